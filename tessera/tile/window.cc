// Windows: a reduction of taps, or of taps times weights, where each channel is by itself.
//
//   max_pool, average_pool   y[n,c,p,q] = fold over r, s of x[n, c, p*step + r*spread - pad, ...]
//   conv by channels         the same with weights
#include <algorithm>
#include <cmath>

#include "tessera/op/window.h"
#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {
namespace {

Tensor tensor_of(std::string name, Role role, const op::Operand& o, const op::Dims& strides) {
  Tensor t{.name = std::move(name), .role = role, .dtype = o.dtype, .dims = {}};
  for (int64_t d : o.dims) t.dims.emplace_back(d);
  if (strides != op::strides_of(o.dims))
    for (int64_t s : strides) t.strides.emplace_back(s);
  return t;
}

bool plain(const op::Operand& o) {
  return !is_complex(o.dtype) && o.dtype != DType::kString && bits_of(o.dtype) >= 8 &&
         std::ranges::find(o.dims, 0) == o.dims.end();
}

}  // namespace

Result<Instance> windows(const op::Problem& p) {
  const bool by_weights = p.op->name == "conv", averages = p.op->name == "average_pool";
  if (!by_weights && !averages && p.op->name != "max_pool")
    return refuse("{} is no window", p.op->name);
  if (p.fused()) return refuse("steps behind a window");
  const op::Operand &x = p.in[0], &y = p.out[0];
  if (!y.present || (p.out.size() > 1 && p.out[1].present)) return refuse("where maxima lie");
  if (!is_float(x.dtype) || !plain(x) || !plain(y))
    return refuse("windows of {}", name_of(x.dtype));
  const size_t spatial = x.dims.size() - 2;
  op::Dims kernel;
  if (by_weights) {
    if (p.in[1].dims[1] != 1 || p.in[1].dims[0] != x.dims[1] || !plain(p.in[1]) || p.has(2))
      return refuse("channels that mix, or a bias");
    kernel.assign(p.in[1].dims.begin() + 2, p.in[1].dims.end());
  } else {
    kernel = p.attrs.ints("kernel");
  }
  TRY_ASSIGN(const op::Window window, op::window_of(p.attrs, spatial));
  if (averages && p.attrs.i("count_include_pad", 0) == 0) {
    for (size_t a = 0; a < spatial; ++a) {
      const auto pads = window.pads(a, x.dims[2 + a], kernel[a]);
      if (pads.first != 0 || pads.second != 0 || window.ceil_mode)
        return refuse("an average that leaves padding out");
    }
  }
  TRY_ASSIGN(const op::Dims x_strides, operand_strides(x));
  TRY_ASSIGN(const op::Dims y_strides, operand_strides(y));

  Builder b(std::string(p.op->name));
  const auto axis = [&](std::string name, int64_t n) { return b.axis(std::move(name), Expr(n)); };
  std::vector<int> out, taps;
  std::vector<Subscript> at_x, at_y, at_w;
  for (size_t d = 0; d < y.dims.size(); ++d)
    out.push_back(axis(std::string(1, static_cast<char>('i' + d)), y.dims[d]));
  for (size_t a = 0; a < spatial; ++a)
    taps.push_back(axis(std::string(1, static_cast<char>('r' + a)), kernel[a]));
  for (int a : out) {
    b.grid(a);
    at_y.push_back({b.at(a)});
  }
  at_x = {{b.at(out[0])}, {b.at(out[1])}};
  for (size_t a = 0; a < spatial; ++a)
    at_x.push_back({b.at(out[2 + a]) * Expr(window.strides[a]) +
                    b.at(taps[a]) * Expr(window.dilations[a]) -
                    Expr(window.pads(a, x.dims[2 + a], kernel[a]).first)});
  const int tx = b.tensor(tensor_of("x", Role::kIn, x, x_strides));
  Instance instance;
  instance.arguments.push_back({op::Argument::kInput, 0, 0});
  int tw = kNone;
  if (by_weights) {
    TRY_ASSIGN(const op::Dims w_strides, operand_strides(p.in[1]));
    tw = b.tensor(tensor_of("w", Role::kIn, p.in[1], w_strides));
    instance.arguments.push_back({op::Argument::kInput, 1, 0});
    at_w = {{b.at(out[1])}, {Expr(0)}};
    for (int a : taps) at_w.push_back({b.at(a)});
  }
  const int ty = b.tensor(tensor_of("y", Role::kOut, y, y_strides));
  instance.arguments.push_back({op::Argument::kOutput, 0, 0});

  const bool sums = by_weights || averages;
  const DType type = is_narrow(x.dtype) && sums ? DType::kF32 : x.dtype;
  const std::function<int(size_t, int)> loops = [&](size_t a, int so_far) -> int {
    if (a < taps.size())
      return b.loop(taps[a], {so_far}, {out}, [&](const std::vector<int>& carried) {
        return std::vector<int>{loops(a + 1, carried[0])};
      })[0];
    int value = b.convert(b.load(tx, at_x, sums ? 0.0 : -INFINITY), type);
    if (by_weights) value = b.mul(value, b.convert(b.load(tw, at_w), type));
    const Function fold = sums ? Function::kAdd : Function::kMax;
    return b.map(fold, {so_far, b.reduce(fold, value, taps)});
  };
  int value = loops(0, b.constant(type, sums ? 0 : -INFINITY));
  if (averages) {
    double count = 1;
    for (int64_t n : kernel) count *= static_cast<double>(n);
    value = b.mul(value, b.constant_like(value, 1 / count));
  }
  b.store(ty, at_y, b.convert(value, y.dtype));
  instance.numeric = sums ? op::NumericClass::kReassociated : op::NumericClass::kExact;
  TRY_ASSIGN(instance.program, b.finish());
  return instance;
}

}  // namespace tessera::tile
