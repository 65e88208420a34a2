// Folds axes: reductions, softmax, normalisations. Tag 0: axes that stay, which are the grid; tag
// 1: axes that are folded, which are loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/op/rules.h"
#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {
namespace {

constexpr int kStays = 0, kFolded = 1;

// A space of input 0's dimensions, of which the listed ones are folded, for results of its shape.
Result<Frame> frame_of(std::string name, const op::Problem& p, const std::vector<int>& folded) {
  const op::Operand& x = p.in[0];
  std::vector<int> tags(x.dims.size(), kStays), of_result;
  for (int a : folded) tags[static_cast<size_t>(a)] = kFolded;
  for (int d = 0; d < x.rank(); ++d) of_result.push_back(d);
  Frame f(std::move(name), p, x.dims, std::move(tags), std::move(of_result));
  TRY_ASSIGN(op::Dims strides, operand_strides(x));
  TRY(f.input(0, std::move(strides)));
  return f;
}

std::vector<int> from_axis(int axis, int rank) {
  std::vector<int> axes;
  for (int a = axis; a < rank; ++a) axes.push_back(a);
  return axes;
}

// fold(value of element) over all folded axes, from `first` on.
int folded(Frame& f, Function function, int first, const std::function<int()>& element) {
  const std::vector<int> over = f.axes(kFolded);
  return f.loops(over, {first}, f.axes(kStays), [&](const std::vector<int>& so_far) {
    int value = element();
    if (!over.empty()) value = f.b.reduce(function, value, over);
    return std::vector<int>{f.b.map(function, {so_far[0], value})};
  })[0];
}

Function fold_of(std::string_view kind) {
  using enum Function;
  return kind == "sum"    ? kAdd
         : kind == "prod" ? kMul
         : kind == "max"  ? kMax
         : kind == "min"  ? kMin
         : kind == "and"  ? kAnd
                          : kOr;
}

// The type in which floats of a narrow type are summed.
DType wide(DType d) { return is_narrow(d) ? DType::kF32 : d; }

int identity(Builder& b, Function function, DType dtype) {
  if (is_float(dtype)) return b.constant(dtype, float_identity(function));
  return b.whole(dtype, int_identity(function, dtype));
}

}  // namespace

Result<Instance> reduction(const op::Problem& p) {
  const op::Operand& x = p.in[0];
  const bool given = p.in.size() > 1 && p.anchor_inputs() > 1 && p.in[1].present;
  if (given && !p.in[1].values) return refuse("its axes are known only when it runs");
  auto axes = op::normalize_axes(given ? *p.in[1].values : op::Ints{}, x.rank());
  if (!axes) return error(std::move(axes).error());
  if (p.attrs.i("noop_with_empty_axes") != 0) return refuse("may do nothing");
  std::vector<int> tags(x.dims.size(), kStays), of_result;
  for (int a : *axes) tags[static_cast<size_t>(a)] = kFolded;
  const bool keep = p.attrs.i("keepdims", 1) != 0;
  for (int a = 0; a < x.rank(); ++a)
    if (const bool stays = tags[static_cast<size_t>(a)] == kStays; stays || keep)
      of_result.push_back(stays ? a : kNone);
  Frame f("reduce", p, x.dims, std::move(tags), std::move(of_result));
  TRY_ASSIGN(op::Dims strides, operand_strides(x));
  TRY(f.input(0, std::move(strides)));
  TRY(f.settle());
  f.grid(kStays);
  const Function function = fold_of(p.attrs.s("kind"));
  const DType type = wide(x.dtype);
  if (!in_domain(type, info(function).domain))
    return refuse("{} of {}", p.attrs.s("kind"), name_of(x.dtype));
  if (is_float(type) && function != Function::kMax && function != Function::kMin) f.reassociated();
  const int value =
      folded(f, function, identity(f.b, function, type), [&] { return f.load(0, type); });
  TRY(f.finish_value(value));
  return f.finish();
}

Result<Instance> softmax(const op::Problem& p) {
  TRY_ASSIGN(const int axis, op::normalize_axis(p.attrs.i("axis", -1), p.in[0].rank()));
  TRY_ASSIGN(Frame f, frame_of(std::string(p.op->name), p, {axis}));
  TRY(f.settle());
  f.grid(kStays);
  f.approximate();
  const DType type = wide(p.in[0].dtype);
  Builder& b = f.b;
  const auto x = [&] { return f.load(0, type); };
  const int highest = folded(f, Function::kMax, identity(b, Function::kMax, type), x);
  const int sum = folded(f, Function::kAdd, b.constant(type, 0),
                         [&] { return b.map(Function::kExp, {b.sub(x(), highest)}); });
  const bool logarithm = p.op->name == "log_softmax";
  const int scale = logarithm ? b.map(Function::kLog, {sum}) : b.div(b.constant(type, 1), sum);
  Status status;
  f.loops(f.axes(kFolded), {}, {}, [&](const std::vector<int>&) -> std::vector<int> {
    const int shifted = b.sub(x(), highest);
    status = f.finish_value(logarithm ? b.sub(shifted, scale)
                                      : b.mul(b.map(Function::kExp, {shifted}), scale));
    return {};
  });
  TRY(std::move(status));
  return f.finish();
}

Result<Instance> normalization(const op::Problem& p) {
  const op::Operand& x = p.in[0];
  TRY_ASSIGN(const int axis, op::normalize_axis(p.attrs.i("axis", -1), x.rank()));
  for (size_t o = 1; o < p.out.size(); ++o)
    if (p.out[o].present) return refuse("its statistics are read");
  TRY_ASSIGN(Frame f, frame_of(std::string(p.op->name), p, from_axis(axis, x.rank())));
  for (size_t i = 1; i < p.anchor_inputs(); ++i)
    if (p.in[i].present) TRY(f.input(i));
  TRY(f.settle(p.fused() ? SIZE_MAX : 1));
  f.grid(kStays);
  f.approximate();
  const DType stash = p.attrs.dtype("stash", DType::kF32);
  const DType type = bits_of(stash) > bits_of(wide(x.dtype)) ? stash : wide(x.dtype);
  Builder& b = f.b;
  Expr count(1);
  for (int a : f.axes(kFolded)) count = count * b.program().axis(a).extent;
  const int share = b.div(b.constant(type, 1), b.convert(b.size(count), type));
  const auto value = [&] { return f.load(0, type); };
  const bool centred = p.op->name == "layer_norm";
  int mean = kNone;
  if (centred) mean = b.mul(folded(f, Function::kAdd, b.constant(type, 0), value), share);
  const auto distance = [&] { return centred ? b.sub(value(), mean) : value(); };
  const int squares = folded(f, Function::kAdd, b.constant(type, 0), [&] {
    const int d = distance();
    return b.mul(d, d);
  });
  const int variance = b.add(b.mul(squares, share), b.constant(type, p.attrs.f("epsilon", 1e-5)));
  const int inverse = b.div(b.constant(type, 1), b.map(Function::kSqrt, {variance}));
  Status status;
  f.loops(f.axes(kFolded), {}, {}, [&](const std::vector<int>&) -> std::vector<int> {
    int y = b.mul(distance(), inverse);
    const auto given = [&](size_t i) { return i < p.anchor_inputs() && p.in[i].present; };
    if (given(1)) y = b.mul(y, f.load(1, type));
    if (given(2)) y = b.add(y, f.load(2, type));
    status = f.finish_value(y);
    return {};
  });
  TRY(std::move(status));
  return f.finish();
}

}  // namespace tessera::tile
