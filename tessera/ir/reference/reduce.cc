// Reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

struct Kind {
  std::string_view name;
  double (*floats)(double, double);
  int64_t (*ints)(int64_t, int64_t);
  int64_t (*uints)(int64_t, int64_t) = nullptr;  // of unsigned integers, where the order differs
};

constexpr Kind kKinds[] = {
    {"sum", [](double a, double b) { return a + b; },
     [](int64_t a, int64_t b) {
       return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
     }},
    {"prod", [](double a, double b) { return a * b; },
     [](int64_t a, int64_t b) {
       return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
     }},
    {"max",
     [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); },
     [](int64_t a, int64_t b) { return std::max(a, b); },
     [](int64_t a, int64_t b) {
       return static_cast<uint64_t>(a) < static_cast<uint64_t>(b) ? b : a;
     }},
    {"min",
     [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); },
     [](int64_t a, int64_t b) { return std::min(a, b); },
     [](int64_t a, int64_t b) {
       return static_cast<uint64_t>(b) < static_cast<uint64_t>(a) ? b : a;
     }},
    {"and", nullptr, [](int64_t a, int64_t b) { return int64_t{a && b}; }},
    {"or", nullptr, [](int64_t a, int64_t b) { return int64_t{a || b}; }},
};

// The value of an empty reduction: sum 0, prod 1, max the lowest of the type, min the highest.
double float_identity(std::string_view kind) {
  const double infinity = std::numeric_limits<double>::infinity();
  return kind == "prod" ? 1 : kind == "max" ? -infinity : kind == "min" ? infinity : 0;
}
int64_t int_identity(std::string_view kind, DType dtype) {
  if (kind == "sum" || kind == "or") return 0;
  if (kind == "prod" || kind == "and") return 1;
  if (dtype == DType::kBool) return kind == "min";
  const int bits = bits_of(dtype);
  if (is_unsigned_int(dtype)) return kind == "max" ? 0 : bits == 64 ? -1 : (int64_t{1} << bits) - 1;
  const int64_t lowest =
      bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  return kind == "max" ? lowest : -1 - lowest;
}

Result<std::vector<Value>> reduce(const Call& call) {
  const Tensor& x = call.t(0);
  const std::string name = call.attrs().s("kind");
  auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.name == name; });
  if (kind == std::end(kKinds)) return call.fail("unknown kind '{}'", name);
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<int64_t> given = call.has(1) ? call.t(1).to_i64s() : std::vector<int64_t>{};
  TRY_ASSIGN(std::vector<int> axes, op::normalize_axes(given, x.rank()));
  Dims kept = x.dims();
  for (int a : axes) kept[static_cast<size_t>(a)] = 1;
  const Dims strides = broadcast_strides(kept, x.dims());
  const bool floats = is_float(x.dtype());
  if (floats ? kind->floats == nullptr : is_complex(x.dtype()))
    return call.fail("{} is not defined for {}", name, name_of(x.dtype()));
  // Sums are kept in double (or 64 bits) and rounded once.
  std::vector<double> wide(floats ? static_cast<size_t>(y.count()) : 0, float_identity(name));
  std::vector<int64_t> ints(floats ? 0 : static_cast<size_t>(y.count()),
                            int_identity(name, x.dtype()));
  const auto fold_ints = is_unsigned_int(x.dtype()) && kind->uints ? kind->uints : kind->ints;
  for (Index at(x.dims()); !at.done(); at.next()) {
    const size_t to = static_cast<size_t>(at.dot(strides));
    if (floats)
      wide[to] = kind->floats(wide[to], x.f64(at.linear()));
    else
      ints[to] = fold_ints(ints[to], x.i64(at.linear()));
  }
  for (int64_t i = 0; i < y.count(); ++i) {
    if (floats)
      y.set_f64(i, wide[static_cast<size_t>(i)]);
    else
      y.set_i64(i, ints[static_cast<size_t>(i)]);
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"reduce", reduce}};

}  // namespace

std::span<const Row> reduce_rows() { return kRows; }

}  // namespace tessera::ir::reference
