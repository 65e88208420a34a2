#include "tessera/tile/lower.h"

#include <algorithm>

namespace tessera::tile {
namespace {

using op::Attrs;
using op::NumericClass;

double number(const Attrs& attrs, std::string_view name, double otherwise) {
  const op::Attr* value = attrs.find(name);
  const int64_t* whole = value ? std::get_if<int64_t>(value) : nullptr;
  return whole ? static_cast<double>(*whole) : attrs.f(name, otherwise);
}

int times(Builder& b, int x, double c) { return b.mul(x, b.constant_like(x, c)); }
int plus(Builder& b, int x, double c) { return b.add(x, b.constant_like(x, c)); }
int exp_of(Builder& b, int x) { return b.map(Function::kExp, {x}); }

int negative(Builder& b, int x) { return b.map(Function::kLt, {x, b.constant_like(x, 0)}); }
int clamp01(Builder& b, int x) {
  const int low = b.max(x, b.constant_like(x, 0));
  return b.map(Function::kMin, {low, b.constant_like(x, 1)});
}

int relu(Builder& b, const Attrs&, const int* x) { return b.max(x[0], b.constant_like(x[0], 0)); }
int leaky_relu(Builder& b, const Attrs& attrs, const int* x) {
  return b.select(negative(b, x[0]), times(b, x[0], number(attrs, "alpha", 0.01)), x[0]);
}
int prelu(Builder& b, const Attrs&, const int* x) {
  return b.select(negative(b, x[0]), b.mul(x[0], x[1]), x[0]);
}
int elu(Builder& b, const Attrs& attrs, const int* x) {
  const int below = times(b, plus(b, exp_of(b, x[0]), -1), number(attrs, "alpha", 1));
  return b.select(negative(b, x[0]), below, x[0]);
}
int sigmoid_of(Builder& b, int x) {
  const int e = exp_of(b, b.map(Function::kNeg, {x}));
  return b.div(b.constant_like(x, 1), plus(b, e, 1));
}
int sigmoid(Builder& b, const Attrs&, const int* x) { return sigmoid_of(b, x[0]); }
int silu(Builder& b, const Attrs& attrs, const int* x) {
  const double alpha = number(attrs, "alpha", 1);
  return b.mul(x[0], sigmoid_of(b, alpha == 1 ? x[0] : times(b, x[0], alpha)));
}
int hard_sigmoid_of(Builder& b, int x, double alpha, double beta) {
  return clamp01(b, plus(b, times(b, x, alpha), beta));
}
int hard_sigmoid(Builder& b, const Attrs& attrs, const int* x) {
  return hard_sigmoid_of(b, x[0], number(attrs, "alpha", 0.2), number(attrs, "beta", 0.5));
}
int hard_swish(Builder& b, const Attrs&, const int* x) {
  return b.mul(x[0], hard_sigmoid_of(b, x[0], 1.0 / 6, 0.5));
}
int gelu(Builder& b, const Attrs& attrs, const int* x) {
  const int half = times(b, x[0], 0.5);
  if (attrs.i("tanh") == 0) {
    const int e = b.map(Function::kErf, {times(b, x[0], 0.70710678118654752440)});
    return b.mul(half, plus(b, e, 1));
  }
  const int cube = b.mul(b.mul(x[0], x[0]), x[0]);
  const int inner = times(b, b.add(x[0], times(b, cube, 0.044715)), 0.79788456080286535588);
  return b.mul(half, plus(b, b.map(Function::kTanh, {inner}), 1));
}
// max(x, 0) + log(1 + e^-|x|); what rounding 1 + e lost is given back to first order.
int softplus_of(Builder& b, int x) {
  const int e = exp_of(b, b.map(Function::kNeg, {b.map(Function::kAbs, {x})}));
  const int u = plus(b, e, 1);
  const int lost = b.div(b.sub(e, plus(b, u, -1)), u);
  const int l = b.add(b.map(Function::kLog, {u}), lost);
  return b.add(b.max(x, b.constant_like(x, 0)), l);
}
int softplus(Builder& b, const Attrs&, const int* x) { return softplus_of(b, x[0]); }
int mish(Builder& b, const Attrs&, const int* x) {
  return b.mul(x[0], b.map(Function::kTanh, {softplus_of(b, x[0])}));
}
int is_inf(Builder& b, const Attrs& attrs, const int* x) {
  const auto equals = [&](double value, std::string_view asked) {
    const int same = b.map(Function::kEq, {x[0], b.constant_like(x[0], value)});
    return number(attrs, asked, 1) != 0
               ? same
               : b.map(Function::kAnd, {same, b.constant(DType::kBool, 0)});
  };
  const double infinity = std::numeric_limits<double>::infinity();
  return b.map(Function::kOr, {equals(infinity, "positive"), equals(-infinity, "negative")});
}

// Operators that are written with several functions.
struct Row {
  std::string_view op;
  int inputs;
  int domain;
  int (*build)(Builder& b, const Attrs& attrs, const int* in);
  NumericClass numeric = NumericClass::kExact;
};
constexpr NumericClass kClose = NumericClass::kApproximate;
constexpr Row kRows[] = {
    {"relu", 1, kFloats | kInts, relu},
    {"leaky_relu", 1, kFloats, leaky_relu},
    {"prelu", 2, kFloats | kInts, prelu},
    {"elu", 1, kFloats, elu, kClose},
    {"sigmoid", 1, kFloats, sigmoid, kClose},
    {"silu", 1, kFloats, silu, kClose},
    {"hard_sigmoid", 1, kFloats, hard_sigmoid, kClose},
    {"hard_swish", 1, kFloats, hard_swish, kClose},
    {"gelu", 1, kFloats, gelu, kClose},
    {"softplus", 1, kFloats, softplus, kClose},
    {"mish", 1, kFloats, mish, kClose},
    {"is_inf", 1, kFloats, is_inf},
};

const Row* row_of(std::string_view op) {
  const auto found = std::ranges::find(kRows, op, &Row::op);
  return found == std::end(kRows) ? nullptr : &*found;
}

// Of integers these change nothing.
bool rounds(std::string_view op) {
  return op == "floor" || op == "ceil" || op == "round" || op == "trunc";
}

// Whether the function's results are those of IEEE arithmetic, rounded once.
bool exact(Function f) {
  using enum Function;
  return f != kPow && (f < kExp || f > kErf);
}

tl::unexpected<Error> refuse(std::string why) {
  return error(Error{Code::kUnimplemented, std::move(why)});
}

}  // namespace

bool is_narrow(DType dtype) { return is_float(dtype) && bits_of(dtype) < 32; }

void Lowering::define(int number, int tile) {
  if (values_.size() <= static_cast<size_t>(number))
    values_.resize(static_cast<size_t>(number) + 1);
  values_[static_cast<size_t>(number)] = {b_.dtype(tile), {tile}};
}

int Lowering::tile(int number, DType dtype) {
  Value& value = values_[static_cast<size_t>(number)];
  for (int form : value.forms)
    if (b_.dtype(form) == dtype) return form;
  value.forms.push_back(b_.convert(value.forms.front(), dtype));
  return value.forms.back();
}

// Floats are computed in f32 or wider; what mixes them with long integers, in f64; integers in
// their own type.
Result<DType> Lowering::compute_type(const op::OpDef& op, std::span<const int> in) const {
  bool floats = false, wide = false;
  for (int v : in) {
    const DType d = values_[static_cast<size_t>(v)].dtype;
    floats |= is_float(d);
    wide |= d == DType::kF64 || (!is_float(d) && bits_of(d) > 16);
  }
  if (floats) return wide ? DType::kF64 : DType::kF32;
  const DType first = values_[static_cast<size_t>(in[0])].dtype;
  for (int v : in)
    if (const DType d = values_[static_cast<size_t>(v)].dtype; d != first)
      return refuse(fmt::format("{} of {} and {}", op.name, name_of(first), name_of(d)));
  return first;
}

Status Lowering::apply(const op::OpDef& op, const Attrs& attrs, std::span<const int> in, DType out,
                       int number) {
  const Row* row = row_of(op.name);
  const FunctionInfo* function = row ? nullptr : find_function(op.name);
  if (!row && !function) return refuse(fmt::format("{} is no function of tile programs", op.name));
  const size_t inputs = static_cast<size_t>(row ? row->inputs : function->inputs);
  const bool selects = function && function->function == Function::kSelect;
  if (in.size() != inputs)
    return refuse(fmt::format("{} inputs of {}, need {}", in.size(), op.name, inputs));
  for (size_t i = 0; i < in.size(); ++i)
    if (!has(in[i])) return refuse(fmt::format("input {} of {} is left out", i, op.name));

  int result = kNone;
  if (function && function->function == Function::kConvert) {
    if (attrs.s("round", "even") != "even")
      return refuse(fmt::format("convert rounds '{}', need 'even'", attrs.s("round", "even")));
    if (is_float(out) && bits_of(out) <= 8 && attrs.i("saturate", 1) != 0)
      return refuse(fmt::format("convert to {} saturates", name_of(out)));
    define(number, tile(in[0], out));
    return {};
  }
  if (selects) {
    const DType type = is_narrow(out) ? DType::kF32 : out;
    result = b_.select(tile(in[0], DType::kBool), tile(in[1], type), tile(in[2], type));
  } else {
    TRY_ASSIGN(const DType type, compute_type(op, in));
    std::vector<int> tiles;
    for (int v : in) tiles.push_back(tile(v, type));
    if (function && rounds(op.name) && is_int(type)) {
      define(number, tiles[0]);
      return {};
    }
    if (!in_domain(type, row ? row->domain : function->domain))
      return refuse(fmt::format("{} does not take {}", op.name, name_of(type)));
    if (row)
      result = row->build(b_, attrs, tiles.data());
    else if (inputs == 1)
      result = b_.map(function->function, {tiles[0]});
    else
      result = b_.map(function->function, {tiles[0], tiles[1]});
    if (row ? row->numeric == kClose : !exact(function->function)) numeric_ = kClose;
  }
  define(number, result);
  Value& value = values_[static_cast<size_t>(number)];
  value.dtype = out;
  if (b_.dtype(result) == out) return {};
  // A narrow float may wait to be rounded: its readers want f32, as a rule.
  if (is_narrow(out) && b_.dtype(result) == DType::kF32) return {};
  value.forms = {b_.convert(result, out)};
  return {};
}

Status Lowering::apply_steps(const op::Problem& p) {
  int number = static_cast<int>(p.in.size()) + 1;
  for (const op::Step& step : p.steps) {
    TRY(apply(*step.op, step.attrs, step.in, step.out.dtype, number));
    if (is_narrow(step.out.dtype)) numeric_ = kClose;
    ++number;
  }
  return {};
}

}  // namespace tessera::tile
