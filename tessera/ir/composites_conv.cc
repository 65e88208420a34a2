// Convolution as windows and dot. N, C: batch and channels; M: channels of the result; G: groups;
// o, k: windows and taps.
#include "tessera/ir/composites.h"
#include "tessera/op/window.h"

namespace tessera::ir {
namespace {

template <class... Parts>
std::vector<int64_t> join(const Parts&... parts) {
  std::vector<int64_t> all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}
using Axes = std::vector<int64_t>;

// The attributes that a composite shares with the window inside.
op::Attrs window_part(const op::Attrs& attrs, const op::Ints& kernel) {
  op::Attrs part{{"kernel", kernel}};
  for (std::string_view name :
       {"strides", "dilations", "pads_begin", "pads_end", "ceil_mode", "auto_pad"})
    if (const op::Attr* value = attrs.find(name)) part.set(name, *value);
  return part;
}

// conv(x, w, bias?): a dot of the windows' taps and the weights, group by group. Only sizes of w
// need be known.
std::vector<ValueId> conv(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in, int) {
  if (!b.type(in[1]).is_static()) {
    b.fail(
        {Code::kUnimplemented, fmt::format("conv: no decomposition for weights of unknown size, {}",
                                           b.type(in[1]).str())});
    return {kAbsent};
  }
  const op::Dims w = b.type(in[1]).dims();
  const auto n = static_cast<int64_t>(w.size()) - 2;
  const int64_t G = attrs.i("groups", 1), M = w[0];
  int64_t K = w[1];  // taps of all channels of a group
  for (int64_t i = 0; i < n; ++i) K *= w[static_cast<size_t>(i + 2)];
  const Axes copy(static_cast<size_t>(n + 1), 0), ones(static_cast<size_t>(n - 1), 1);

  ValueId x = b.op("window", {in[0]},
                   window_part(attrs, op::Ints(w.begin() + 2, w.end())));  // (N, C, o..., k...)
  x = b.transpose(
      x, join(Axes{0}, range(2, n + 2), Axes{1}, range(n + 2, 2 * n + 2)));  // (N, o..., C, k...)
  x = b.transpose(b.reshape(x, join(copy, Axes{G, K})),
                  join(Axes{0, n + 1}, range(1, n + 1), Axes{n + 2}));  // (N, G, o..., K)
  const ValueId weights = b.transpose(b.reshape(in[1], {G, M / G, K}), {0, 2, 1});  // (G, K, M/G)
  ValueId y = b.op(
      "dot", {x, b.reshape(weights, join(Axes{G}, ones, Axes{K, M / G}))});  // (N, G, o..., M/G)
  y = b.transpose(y, join(Axes{0}, range(2, n + 2), Axes{1, n + 2}));        // (N, o..., G, M/G)
  y = b.transpose(b.reshape(y, join(copy, Axes{M})),
                  join(Axes{0, n + 1}, range(1, n + 1)));  // (N, M, o...)
  if (in.size() > 2 && in[2] != kAbsent)
    y = b.add(y, b.reshape(in[2], join(Axes{M}, Axes(static_cast<size_t>(n), 1))));
  return {y};
}

// A failure where the sizes of a value are not numbers.
bool is_static(Builder& b, ValueId id, std::string_view what) {
  if (!b.type(id).is_static())
    b.fail(
        {Code::kUnimplemented, fmt::format("no decomposition where the sizes of {} are unknown: {}",
                                           what, b.type(id).str())});
  return b.ok();
}

// conv_transpose(x, w, bias?): a dot yields all taps of all windows, fold adds them up.
std::vector<ValueId> conv_transpose(Builder& b, const op::Attrs& attrs,
                                    const std::vector<ValueId>& in, int) {
  if (!is_static(b, in[1], "the weights")) return {kAbsent};
  if (attrs.has("output_shape") &&
      !is_static(b, in[0], "the input of a conv_transpose with output_shape"))
    return {kAbsent};
  const op::Dims w = b.type(in[1]).dims(), kernel(w.begin() + 2, w.end());
  const int64_t G = attrs.i("groups", 1), M = w[1] * G, n = static_cast<int64_t>(kernel.size());
  const int64_t taps = op::element_count(kernel).value_or(0);
  op::Dims windows(kernel.size());
  for (size_t i = 0; i < windows.size() && attrs.has("output_shape"); ++i)
    windows[i] = *b.type(in[0]).dim(static_cast<int>(i) + 2).constant();
  auto window = op::transposed_window(attrs, windows, kernel);
  if (!window) {
    b.fail(std::move(window).error());
    return {kAbsent};
  }
  const op::Ints extra = attrs.ints("output_padding", op::Ints(kernel.size(), 0));
  std::vector<ValueId> size;
  for (size_t i = 0; i < kernel.size(); ++i) {
    window->pads_end[i] -= extra[i];  // so that there are as many windows as elements of x
    const int64_t more = (kernel[i] - 1) * window->dilations[i] + 1 - window->strides[i] -
                         window->pads_begin[i] - window->pads_end[i];
    size.push_back(
        b.add(b.mul(b.dim(in[0], static_cast<int64_t>(i) + 2), b.ints({window->strides[i]})),
              b.ints({more})));
  }
  const ValueId x =
      b.reshape(b.reshape(in[0], {0, 0, -1}), {0, G, w[0] / G, -1});  // (N, G, C/G, o)
  const ValueId weights =
      b.transpose(b.reshape(in[1], {G, w[0] / G, w[1] * taps}), {0, 2, 1});  // (G, M/G*k, C/G)
  const ValueId columns = b.reshape(b.op("dot", {weights, x}), {0, M, taps, -1});  // (N, M, k, o)
  ValueId y = b.op("fold", {columns, b.concat(size, 0)},
                   {{"kernel", kernel},
                    {"strides", window->strides},
                    {"dilations", window->dilations},
                    {"pads_begin", window->pads_begin},
                    {"pads_end", window->pads_end}});
  if (in.size() > 2 && in[2] != kAbsent)
    y = b.add(y, b.reshape(in[2], join(Axes{M}, Axes(static_cast<size_t>(n), 1))));
  return {y};
}

constexpr Composite kRows[] = {{"conv", conv}, {"conv_transpose", conv_transpose}};

}  // namespace

std::span<const Composite> conv_composites() { return kRows; }

}  // namespace tessera::ir
