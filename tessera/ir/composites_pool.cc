// Pooling as a reduction of windows.
#include "tessera/ir/builder.h"
#include "tessera/op/window.h"

namespace tessera::ir {
namespace {

using Axes = std::vector<int64_t>;

Axes last_axes(int64_t rank, int64_t count) {
  Axes axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  return axes;
}

// x, or a failure where its rank is unknown.
bool ranked(Builder& b, ValueId x, std::string_view op) {
  if (!b.type(x).ranked())
    b.fail(
        {Code::kUnimplemented, fmt::format("{}: no decomposition where the rank is unknown", op)});
  return b.ok();
}

// 1 in the shape and type of x, whatever x holds.
ValueId ones_like(Builder& b, ValueId x) {
  const ValueId nan = b.unary("is_nan", x);
  return b.convert(b.op("or", {nan, b.unary("not", nan)}), b.dtype(x));
}

ValueId windows(Builder& b, const op::Attrs& attrs, ValueId x, ValueId fill = kAbsent) {
  op::Attrs part{{"kernel", attrs.ints("kernel")}};
  for (std::string_view name :
       {"strides", "dilations", "pads_begin", "pads_end", "ceil_mode", "auto_pad"})
    if (const op::Attr* value = attrs.find(name)) part.set(name, *value);
  return b.op("window", {x, fill}, std::move(part));
}

// The reduction of the taps that windows() put last.
ValueId reduce_taps(Builder& b, std::string_view kind, const op::Attrs& attrs, ValueId x) {
  const auto n = static_cast<int64_t>(attrs.ints("kernel").size());
  return b.reduce(kind, x, last_axes(b.rank(x), n), false);
}

// max_pool(x) = max of windows padded with the lowest value
std::vector<ValueId> max_pool(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                              int outputs) {
  if (!ranked(b, in[0], "max_pool")) return {kAbsent};
  if (outputs > 1) b.fail({Code::kUnimplemented, "max_pool: no decomposition yields indices"});
  auto lowest = op::Tensor::make(b.dtype(in[0]), {});
  if (!lowest) {
    b.fail(std::move(lowest).error());
    return {kAbsent};
  }
  lowest->set_lowest(0);
  return {reduce_taps(b, "max", attrs, windows(b, attrs, in[0], b.constant(*std::move(lowest))))};
}

// Taps of each window that count, over the known spatial sizes: (windows...)
Result<op::Tensor> counts(DType dtype, const op::Window& w, const op::Dims& size,
                          const op::Dims& kernel, bool padding) {
  op::Dims dims;
  for (size_t i = 0; i < size.size(); ++i)
    dims.push_back(w.count(i, size[i], kernel[i]).constant().value_or(0));
  TRY_ASSIGN(op::Tensor result, op::Tensor::make(dtype, dims));
  for (int64_t i = 0; i < result.count(); ++i) {
    double taps = 1;
    int64_t rest = i;
    for (size_t a = dims.size(); a-- > 0; rest /= dims[a]) {
      const auto [begin, end] = w.pads(a, size[a], kernel[a]);
      const int64_t start = rest % dims[a] * w.strides[a];
      const auto [first, last] =
          padding ? op::inside(kernel[a], w.dilations[a], start, size[a] + begin + end)
                  : op::inside(kernel[a], w.dilations[a], start - begin, size[a]);
      taps *= static_cast<double>(last - first);
    }
    result.set_f64(i, taps);
  }
  return result;
}

// average_pool(x) = sum of windows / number of taps that count
std::vector<ValueId> average_pool(Builder& b, const op::Attrs& attrs,
                                  const std::vector<ValueId>& in, int) {
  if (!ranked(b, in[0], "average_pool")) return {kAbsent};
  const op::Ints kernel = attrs.ints("kernel");
  auto window = op::window_of(attrs, kernel.size());
  if (!window) {
    b.fail(std::move(window).error());
    return {kAbsent};
  }
  const bool padding = attrs.i("count_include_pad") != 0;
  const ValueId sum = reduce_taps(b, "sum", attrs, windows(b, attrs, in[0]));
  const op::Shape& x = *b.type(in[0]).shape;
  op::Dims size;
  for (size_t i = x.size() - kernel.size(); i < x.size(); ++i)
    if (x[i].is_constant()) size.push_back(*x[i].constant());
  if (size.size() == kernel.size()) {
    auto taps = counts(b.dtype(in[0]), *window, size, kernel, padding);
    if (!taps) b.fail(std::move(taps).error());
    return {taps ? b.div(sum, b.constant(*std::move(taps))) : kAbsent};
  }
  if (padding && window->ceil_mode)
    b.fail({Code::kUnimplemented,
            "average_pool: no decomposition with count_include_pad and ceil_mode where sizes are "
            "unknown"});
  if (padding) return {b.div(sum, b.scalar_like(sum, op::element_count(kernel).value_or(0)))};
  return {b.div(sum, reduce_taps(b, "sum", attrs, windows(b, attrs, ones_like(b, in[0]))))};
}

// (sum |x|^p)^(1/p)
ValueId norm(Builder& b, ValueId powers_summed, double p) {
  return b.op("pow", {powers_summed, b.scalar_like(powers_summed, 1 / p)});
}
ValueId powers(Builder& b, ValueId x, double p) {
  return b.op("pow", {b.unary("abs", x), b.scalar_like(x, p)});
}

std::vector<ValueId> lp_pool(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                             int) {
  if (!ranked(b, in[0], "lp_pool")) return {kAbsent};
  const double p = attrs.f("p", 2);
  return {norm(b, reduce_taps(b, "sum", attrs, windows(b, attrs, powers(b, in[0], p))), p)};
}

// Over all axes but the first two.
ValueId reduce_image(Builder& b, std::string_view kind, ValueId x) {
  return b.rank(x) == 2 ? x : b.reduce(kind, x, last_axes(b.rank(x), b.rank(x) - 2), true);
}

std::vector<ValueId> global_max_pool(Builder& b, const op::Attrs&, const std::vector<ValueId>& in,
                                     int) {
  if (!ranked(b, in[0], "global_max_pool")) return {kAbsent};
  return {reduce_image(b, "max", in[0])};
}

std::vector<ValueId> global_average_pool(Builder& b, const op::Attrs&,
                                         const std::vector<ValueId>& in, int) {
  if (!ranked(b, in[0], "global_average_pool")) return {kAbsent};
  return {b.div(reduce_image(b, "sum", in[0]), reduce_image(b, "sum", ones_like(b, in[0])))};
}

std::vector<ValueId> global_lp_pool(Builder& b, const op::Attrs& attrs,
                                    const std::vector<ValueId>& in, int) {
  if (!ranked(b, in[0], "global_lp_pool")) return {kAbsent};
  const double p = attrs.f("p", 2);
  return {norm(b, reduce_image(b, "sum", powers(b, in[0], p)), p)};
}

constexpr Composite kRows[] = {
    {"average_pool", average_pool},
    {"global_average_pool", global_average_pool},
    {"global_lp_pool", global_lp_pool},
    {"global_max_pool", global_max_pool},
    {"lp_pool", lp_pool},
    {"max_pool", max_pool},
};

}  // namespace

std::span<const Composite> pool_composites() { return kRows; }

}  // namespace tessera::ir
