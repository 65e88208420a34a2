// quantize and dequantize: rows cpu.quantize, cpu.dequantize.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/quantize_args.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kChunk = 1 << 15;  // elements of an item

std::optional<QuantizedType> type_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return QuantizedType::kU8;
    case DType::kI8:
      return QuantizedType::kI8;
    case DType::kU16:
      return QuantizedType::kU16;
    case DType::kI16:
      return QuantizedType::kI16;
    case DType::kI32:
      return QuantizedType::kI32;
    default:
      return std::nullopt;
  }
}

// One order of axes for x and y, whose elements are neighbours: their sizes, outermost first, and
// what has become of the axis of scales.
struct Axes {
  Dims dims;
  size_t axis = 0;
};

std::optional<Axes> axes_of(const Operand& x, const Operand& y, int64_t axis) {
  const auto a = logical_strides(x), b = logical_strides(y);
  if (y.count() == 0) return Axes{{0}, 0};
  if (!a || !b || x.dims != y.dims) return std::nullopt;
  std::vector<size_t> order;
  for (size_t k = 0; k < a->size(); ++k)
    if (x.dims[k] != 1 || static_cast<int64_t>(k) == axis) order.push_back(k);
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return (*a)[i] > (*a)[j]; });
  Axes axes;
  int64_t packed = 1;
  for (size_t i = order.size(); i-- > 0; packed *= x.dims[order[i]])
    if (x.dims[order[i]] != 1 && ((*a)[order[i]] != packed || (*b)[order[i]] != packed))
      return std::nullopt;
  for (size_t i = 0; i < order.size(); ++i) {
    if (static_cast<int64_t>(order[i]) == axis) axes.axis = i;
    axes.dims.push_back(x.dims[order[i]]);
  }
  return axes;
}

Reason fill(const Problem& p, QuantizeArgs& a) {
  const bool to = p.op->name == "quantize";
  Reason why;
  if (!why.need(p.has(0) && p.has(1), "an input is left out")) return why;
  if (!why.need(p.out[0].present, "nobody reads output 0")) return why;
  const Operand &x = p.in[0], &y = p.out[0], &scale = p.in[1];
  why.input_is(p, 1, DType::kF32) &&
      why.need((to ? x : y).dtype == DType::kF32, "{} is {}, need f32", to ? "x" : "the result",
               name_of((to ? x : y).dtype));
  const auto type = type_of((to ? y : x).dtype);
  why.need(type && !(to && *type == QuantizedType::kI32), "the quantised type is {}",
           name_of((to ? y : x).dtype));
  if (to && why.fine()) {
    const DType precision = p.attrs.dtype("precision", DType::kF32);
    why.need(precision == DType::kF32, "divides in {}, need f32", name_of(precision));
  }
  for (size_t i : {1, 2})
    if (why.fine() && p.has(i))
      why.need(p.in[i].layout.empty() && p.in[i].strides.empty(), "input {} is not packed", i);
  if (why.fine() && p.has(2))
    why.need(p.in[2].count() == scale.count(), "{} scales and {} zero points", scale.count(),
             p.in[2].count());
  for (const Operand* o : {&x, &y})
    if (why.fine())
      why.need(op::element_count(o->dims).has_value(), "impossible sizes {}",
               op::to_string(o->dims));
  if (!why.fine()) return why;
  a.type = *type;
  a.has_zero = p.has(2);
  a.count = y.count();
  a.chunk = kChunk;
  a.one = scale.count() == 1;
  a.axis = a.inner = 1;
  int64_t axis = x.rank() <= 1 ? 0 : p.attrs.i("axis", 1);
  if (axis < 0) axis += x.rank();
  a.block = p.attrs.i("block");
  const auto axes = axes_of(x, y, a.one ? -1 : axis);
  why.need(axes.has_value(), "x and y lie in different orders, or apart");
  why.need(a.one || a.block == 0 || x.layout.empty(), "blocks of a layout '{}'", x.layout);
  if (!why.fine() || a.one) return why;
  a.axis = axes->dims[axes->axis];
  for (size_t i = axes->axis + 1; i < axes->dims.size(); ++i) a.inner *= axes->dims[i];
  return why;
}

Claim probe(const Problem& p) {
  QuantizeArgs args{};
  const Reason why = fill(p, args);
  if (!why.fine()) return why.refusal();
  return claim(8 * static_cast<double>(args.count), bytes_of(p), 0.5);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  QuantizeArgs args{};
  fill(p, args);
  LaunchSpec launch;
  launch.entry = p.op->name == "quantize" ? "cpu.quantize" : "cpu.dequantize";
  launch.grid = items(args.count, args.chunk);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"quantize", "cpu.quantize", probe, prepare},
    {"dequantize", "cpu.dequantize", probe, prepare},
};

}  // namespace

std::span<const Row> quantize_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
