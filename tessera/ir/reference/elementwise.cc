// Element-wise primitives: floats are computed in double and rounded once, integers in 64 bits and
// wrapped.
#include <algorithm>
#include <cmath>

#include "tessera/base/element.h"
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

using Floats = double (*)(double, double);
using Signed = int64_t (*)(int64_t, int64_t);
using Unsigned = uint64_t (*)(uint64_t, uint64_t);

struct BinaryRow {
  std::string_view op;
  Floats floats;
  Signed ints;
  Unsigned uints;
};

uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
int64_t s(uint64_t v) { return static_cast<int64_t>(v); }

double float_min(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}
double float_max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t int_div(int64_t a, int64_t b) { return b == -1 ? s(0 - u(a)) : a / b; }
int64_t int_rem(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
int64_t int_mod(int64_t a, int64_t b) {
  const int64_t r = int_rem(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (uint64_t base = u(a); b; b >>= 1, base *= base)
    if (b & 1) result *= base;
  return s(result);
}
uint64_t shift_left(uint64_t a, uint64_t b) { return b > 63 ? 0 : a << b; }
uint64_t shift_right(uint64_t a, uint64_t b) { return b > 63 ? 0 : a >> b; }

constexpr BinaryRow kArithmetic[] = {
    {"add", [](double a, double b) { return a + b; },
     [](int64_t a, int64_t b) { return s(u(a) + u(b)); },
     [](uint64_t a, uint64_t b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; },
     [](int64_t a, int64_t b) { return s(u(a) - u(b)); },
     [](uint64_t a, uint64_t b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; },
     [](int64_t a, int64_t b) { return s(u(a) * u(b)); },
     [](uint64_t a, uint64_t b) { return a * b; }},
    {"div", [](double a, double b) { return a / b; }, int_div,
     [](uint64_t a, uint64_t b) { return a / b; }},
    {"rem", [](double a, double b) { return std::fmod(a, b); }, int_rem,
     [](uint64_t a, uint64_t b) { return a % b; }},
    {"mod", float_mod, int_mod, [](uint64_t a, uint64_t b) { return a % b; }},
    {"min", float_min, [](int64_t a, int64_t b) { return std::min(a, b); },
     [](uint64_t a, uint64_t b) { return std::min(a, b); }},
    {"max", float_max, [](int64_t a, int64_t b) { return std::max(a, b); },
     [](uint64_t a, uint64_t b) { return std::max(a, b); }},
    {"pow", [](double a, double b) { return std::pow(a, b); }, int_pow,
     [](uint64_t a, uint64_t b) { return u(int_pow(s(a), s(b))); }},
    {"and", nullptr, [](int64_t a, int64_t b) { return int64_t{a && b}; }, nullptr},
    {"or", nullptr, [](int64_t a, int64_t b) { return int64_t{a || b}; }, nullptr},
    {"xor", nullptr, [](int64_t a, int64_t b) { return int64_t{!a != !b}; }, nullptr},
    {"bit_and", nullptr, [](int64_t a, int64_t b) { return a & b; },
     [](uint64_t a, uint64_t b) { return a & b; }},
    {"bit_or", nullptr, [](int64_t a, int64_t b) { return a | b; },
     [](uint64_t a, uint64_t b) { return a | b; }},
    {"bit_xor", nullptr, [](int64_t a, int64_t b) { return a ^ b; },
     [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"shift_left", nullptr, [](int64_t a, int64_t b) { return s(shift_left(u(a), u(b))); },
     shift_left},
    {"shift_right", nullptr, [](int64_t a, int64_t b) { return b > 63 ? a >> 63 : a >> b; },
     shift_right},
    {"eq", [](double a, double b) { return double(a == b); },
     [](int64_t a, int64_t b) { return int64_t{a == b}; },
     [](uint64_t a, uint64_t b) { return uint64_t{a == b}; }},
    {"lt", [](double a, double b) { return double(a < b); },
     [](int64_t a, int64_t b) { return int64_t{a < b}; },
     [](uint64_t a, uint64_t b) { return uint64_t{a < b}; }},
    {"le", [](double a, double b) { return double(a <= b); },
     [](int64_t a, int64_t b) { return int64_t{a <= b}; },
     [](uint64_t a, uint64_t b) { return uint64_t{a <= b}; }},
    {"gt", [](double a, double b) { return double(a > b); },
     [](int64_t a, int64_t b) { return int64_t{a > b}; },
     [](uint64_t a, uint64_t b) { return uint64_t{a > b}; }},
    {"ge", [](double a, double b) { return double(a >= b); },
     [](int64_t a, int64_t b) { return int64_t{a >= b}; },
     [](uint64_t a, uint64_t b) { return uint64_t{a >= b}; }},
};

struct UnaryRow {
  std::string_view op;
  double (*floats)(double);
  int64_t (*ints)(int64_t);
  uint64_t (*uints)(uint64_t) = nullptr;  // where it is another function of the same bits
};

constexpr UnaryRow kUnary[] = {
    {"neg", [](double a) { return -a; }, [](int64_t a) { return s(0 - u(a)); }},
    {"abs", [](double a) { return std::fabs(a); },
     [](int64_t a) { return a < 0 ? s(0 - u(a)) : a; }, [](uint64_t a) { return a; }},
    {"sign", [](double a) { return std::isnan(a) ? a : double((a > 0) - (a < 0)); },
     [](int64_t a) { return int64_t{(a > 0) - (a < 0)}; },
     [](uint64_t a) { return uint64_t{a > 0}; }},
    {"floor", [](double a) { return std::floor(a); }, [](int64_t a) { return a; }},
    {"ceil", [](double a) { return std::ceil(a); }, [](int64_t a) { return a; }},
    {"round", [](double a) { return std::nearbyint(a); }, [](int64_t a) { return a; }},
    {"trunc", [](double a) { return std::trunc(a); }, [](int64_t a) { return a; }},
    {"sqrt", [](double a) { return std::sqrt(a); }, nullptr},
    {"exp", [](double a) { return std::exp(a); }, nullptr},
    {"log", [](double a) { return std::log(a); }, nullptr},
    {"sin", [](double a) { return std::sin(a); }, nullptr},
    {"cos", [](double a) { return std::cos(a); }, nullptr},
    {"tan", [](double a) { return std::tan(a); }, nullptr},
    {"asin", [](double a) { return std::asin(a); }, nullptr},
    {"acos", [](double a) { return std::acos(a); }, nullptr},
    {"atan", [](double a) { return std::atan(a); }, nullptr},
    {"sinh", [](double a) { return std::sinh(a); }, nullptr},
    {"cosh", [](double a) { return std::cosh(a); }, nullptr},
    {"tanh", [](double a) { return std::tanh(a); }, nullptr},
    {"asinh", [](double a) { return std::asinh(a); }, nullptr},
    {"acosh", [](double a) { return std::acosh(a); }, nullptr},
    {"atanh", [](double a) { return std::atanh(a); }, nullptr},
    {"erf", [](double a) { return std::erf(a); }, nullptr},
    {"not", nullptr, [](int64_t a) { return int64_t{!a}; }},
    {"bit_not", nullptr, [](int64_t a) { return ~a; }},
    {"is_nan", [](double a) { return double(std::isnan(a)); }, nullptr},
};

template <size_t N, class R>
const R* row_for(const R (&rows)[N], std::string_view op) {
  auto found =
      std::find_if(std::begin(rows), std::end(rows), [op](const R& row) { return row.op == op; });
  return found == std::end(rows) ? nullptr : &*found;
}

bool integer_like(DType d) { return is_int(d) || d == DType::kBool; }

Result<std::vector<Value>> unary(const Call& call) {
  const UnaryRow& row = *row_for(kUnary, call.op());
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  if (is_float(x.dtype()) && row.floats) {
    for (int64_t i = 0; i < x.count(); ++i) y.set_f64(i, row.floats(x.f64(i)));
  } else if (is_unsigned_int(x.dtype()) && row.uints) {
    for (int64_t i = 0; i < x.count(); ++i) y.set_i64(i, s(row.uints(u(x.i64(i)))));
  } else if (integer_like(x.dtype()) && row.ints) {
    for (int64_t i = 0; i < x.count(); ++i) y.set_i64(i, row.ints(x.i64(i)));
  } else {
    return call.fail("is not defined for {}", name_of(x.dtype()));
  }
  return one(std::move(y));
}

// Integers that are raised to a float power, or divided by zero, have no value of their own type.
Result<std::vector<Value>> binary(const Call& call) {
  const BinaryRow& row = *row_for(kArithmetic, call.op());
  const Tensor &a = call.t(0), &b = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims sa = broadcast_strides(a.dims(), y.dims()), sb = broadcast_strides(b.dims(), y.dims());
  const bool as_float = is_float(a.dtype()) || is_float(b.dtype());
  if (a.dtype() == DType::kString && call.op() == "eq") {
    for (Index at(y.dims()); !at.done(); at.next())
      y.set_i64(at.linear(), a.text()[static_cast<size_t>(at.dot(sa))] ==
                                 b.text()[static_cast<size_t>(at.dot(sb))]);
    return one(std::move(y));
  }
  if (is_complex(a.dtype()) || a.dtype() == DType::kString ||
      (as_float ? row.floats == nullptr : row.ints == nullptr))
    return call.fail("is not defined for {}", name_of(a.dtype()));
  const bool divides = call.op() == "div" || call.op() == "rem" || call.op() == "mod";
  for (Index at(y.dims()); !at.done(); at.next()) {
    const int64_t ia = at.dot(sa), ib = at.dot(sb);
    if (as_float) {
      const double value = row.floats(a.f64(ia), b.f64(ib));
      y.set_f64(at.linear(), value);
    } else if (divides && b.i64(ib) == 0) {
      return call.fail("element {} divides {} by zero", at.linear(), a.i64(ia));
    } else if (is_unsigned_int(a.dtype()) && row.uints) {
      y.set_i64(at.linear(), s(row.uints(u(a.i64(ia)), u(b.i64(ib)))));
    } else {
      y.set_i64(at.linear(), row.ints(a.i64(ia), b.i64(ib)));
    }
  }
  return one(std::move(y));
}

Result<std::vector<Value>> is_inf(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const bool positive = call.attrs().i("positive", 1) != 0,
             negative = call.attrs().i("negative", 1) != 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = x.f64(i);
    y.set_i64(i, std::isinf(v) && (v > 0 ? positive : negative));
  }
  return one(std::move(y));
}

Result<std::vector<Value>> select(const Call& call) {
  const Tensor &p = call.t(0), &a = call.t(1), &b = call.t(2);
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims sp = broadcast_strides(p.dims(), y.dims()), sa = broadcast_strides(a.dims(), y.dims()),
             sb = broadcast_strides(b.dims(), y.dims());
  for (Index at(y.dims()); !at.done(); at.next()) {
    const bool first = p.i64(at.dot(sp)) != 0;
    copy_element(first ? a : b, at.dot(first ? sa : sb), y, at.linear());
  }
  return one(std::move(y));
}

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  for (const UnaryRow& row : kUnary) rows.push_back({row.op, unary});
  for (const BinaryRow& row : kArithmetic) rows.push_back({row.op, binary});
  rows.push_back({"is_inf", is_inf});
  rows.push_back({"select", select});
  return rows;
}

}  // namespace

std::span<const Row> elementwise_rows() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

}  // namespace tessera::ir::reference
