// Operators that pick or join elements.
#include <algorithm>

#include "tessera/import/onnx/importer.h"
#include "tessera/op/rules.h"

namespace tessera::import::onnx {
namespace {

// Slice: bounds are attributes before opset 10.
Status slice(NodeContext& c) {
  if (c.opset < 10) {
    const ValueId axes = c.has_attr("axes") ? c.b.ints(c.ints("axes")) : kAbsent;
    c.out(0,
          c.b.op("slice", {c.in(0), c.b.ints(c.ints("starts")), c.b.ints(c.ints("ends")), axes}));
    return {};
  }
  if (!c.has(1) || !c.has(2)) return c.fail("needs starts and ends");
  c.out(0, c.b.op("slice", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}));
  return {};
}

// Concat: axis was 1 where not given, before opset 4.
Status concat(NodeContext& c) {
  if (c.opset >= 4 && !c.has_attr("axis")) return c.fail("needs axis");
  c.out(0, c.b.concat(c.inputs, c.i("axis", 1)));
  return {};
}

Status gather(NodeContext& c) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  c.out(0, c.b.gather(c.in(0), c.in(1), c.i("axis", 0)));
  return {};
}

// Split becomes a slice per output. Sizes are an input (opset 1, 13 on), an attribute, or equal
// parts, of which the last is what is left.
Status split(NodeContext& c) {
  ir::Builder& b = c.b;
  const ValueId x = c.in(0);
  const int64_t axis = c.i("axis", 0), parts = static_cast<int64_t>(c.output_count());
  if (c.has_attr("num_outputs") && c.i("num_outputs", 0) != parts)
    return c.fail("num_outputs is {} for {} outputs", c.i("num_outputs", 0), parts);
  std::optional<op::Ints> sizes;
  if (c.has_attr("split")) sizes = c.ints("split");
  if (c.has(1)) sizes = c.known_ints(1);
  const bool given = c.has(1) || c.has_attr("split");
  if (!given && c.type(0).ranked()) {
    TRY_ASSIGN(int at, op::normalize_axis(axis, c.type(0).rank()));
    if (const auto n = c.type(0).dim(at).constant()) {
      if (*n % parts != 0 && c.opset < 18)
        return c.fail("{} elements do not split into {} equal parts", *n, parts);
      const int64_t part = (*n + parts - 1) / parts;
      for (sizes = op::Ints(); static_cast<int64_t>(sizes->size()) < parts;)
        sizes->push_back(
            std::clamp<int64_t>(*n - part * static_cast<int64_t>(sizes->size()), 0, part));
    }
  }
  if (sizes) {
    if (static_cast<int64_t>(sizes->size()) != parts)
      return c.fail("{} sizes for {} outputs", sizes->size(), parts);
    int64_t start = 0;
    for (size_t i = 0; i < sizes->size(); ++i) {
      const int64_t size = (*sizes)[i];
      if (size < 0 || __builtin_add_overflow(start, size, &start))
        return c.fail("size {} is {}", i, size);
      if (c.wants(i)) c.out(i, b.slice(x, axis, start - size, start));
    }
    if (c.type(0).ranked()) {
      TRY_ASSIGN(int at, op::normalize_axis(axis, c.type(0).rank()));
      if (const auto n = c.type(0).dim(at).constant(); n && *n != start)
        return c.fail("the sizes sum to {}, the axis has {}", start, *n);
    }
    return {};
  }
  // Sizes that follow from the input's own, or are data.
  const ValueId total = given ? kAbsent : b.dim(x, axis);
  const ValueId part = given ? kAbsent : b.div(b.add(total, b.ints({parts - 1})), b.ints({parts}));
  ValueId start = b.ints({0});
  for (int64_t i = 0; i < parts; ++i) {
    const ValueId size = given ? b.slice(c.in(1), 0, i, i + 1) : part;
    const ValueId end = !given && i == parts - 1
                            ? total
                            : b.add(start, given ? b.convert(size, DType::kI64) : size);
    c.out(static_cast<size_t>(i), b.op("slice", {x, start, end, b.ints({axis})}));
    start = end;
  }
  return {};
}

// Pad: pads and value are attributes before opset 11 ("paddings" in opset 1).
Status pad(NodeContext& c) {
  ir::Builder& b = c.b;
  ValueId pads = c.in(1), value = c.in(2);
  if (c.opset < 11) {
    pads = b.ints(c.ints(c.opset < 2 ? "paddings" : "pads"));
    value = b.scalar_like(c.in(0), c.f("value", 0));
  }
  if (pads == kAbsent) return c.fail("needs pads");
  c.out(0, b.op("pad", {c.in(0), pads, value, c.in(3)}, {{"mode", c.s("mode", "constant")}}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "Concat", concat}, {"", "Gather", gather}, {"", "Pad", pad},
    {"", "Slice", slice},   {"", "Split", split},
};

}  // namespace

std::span<const Converter> move_converters() { return kRows; }

}  // namespace tessera::import::onnx
