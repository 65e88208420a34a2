// Operators that move elements.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

Status reshape(NodeContext& c) {
  const ValueId shape = c.ints_attr_or_input("shape", 1);
  if (shape == kAbsent) return c.fail("needs a shape");
  c.out(0, c.b.op("reshape", {c.in(0), shape}, {{"zero_is_zero", c.i("allowzero", 0)}}));
  return {};
}

Status transpose(NodeContext& c) {
  op::Ints perm = c.ints("perm");
  if (!c.has_attr("perm")) {
    if (!c.type(0).ranked()) return c.fail("needs perm where the rank is unknown");
    for (int i = c.type(0).rank(); i-- > 0;) perm.push_back(i);
  }
  c.out(0, c.b.transpose(c.in(0), perm));
  return {};
}

// Unsqueeze, Squeeze: axes are an attribute before opset 13.
Status unsqueeze(NodeContext& c) {
  const ValueId axes = c.ints_attr_or_input("axes", 1);
  if (axes == kAbsent) return c.fail("needs axes");
  c.out(0, c.b.op("unsqueeze", {c.in(0), axes}));
  return {};
}
Status squeeze(NodeContext& c) {
  c.out(0, c.b.op("squeeze", {c.in(0), c.ints_attr_or_input("axes", 1)}));
  return {};
}

ValueId product(ir::Builder& b, ValueId sizes) { return b.reduce("prod", sizes, {0}, true); }

Status flatten(NodeContext& c) {
  ir::Builder& b = c.b;
  const int64_t axis = c.i("axis", 1);
  const op::Type& x = c.type(0);
  const int64_t at = axis < 0 && x.ranked() ? axis + x.rank() : axis;
  if (x.ranked() && (at < 0 || at > x.rank()))
    return c.fail("axis {} is outside of rank {}", axis, x.rank());
  if (!x.ranked() && axis < 0) return c.fail("axis {} of an unknown rank", axis);
  ValueId shape;
  if (x.is_static()) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < x.rank(); ++i) (i < at ? outer : inner) *= *x.dim(i).constant();
    shape = b.ints({outer, inner});
  } else {
    const ValueId sizes = b.shape_of(c.in(0));
    shape = b.concat(
        {product(b, b.slice(sizes, 0, 0, at)), product(b, b.slice(sizes, 0, at, INT64_MAX))}, 0);
  }
  c.out(0, b.op("reshape", {c.in(0), shape}, {{"zero_is_zero", int64_t{1}}}));
  return {};
}

// Shape, with the range that opset 15 added.
Status shape(NodeContext& c) {
  ValueId sizes = c.b.op("shape_of", {c.in(0)});
  if (c.has_attr("start") || c.has_attr("end"))
    sizes = c.b.slice(sizes, 0, c.i("start", 0), c.i("end", INT64_MAX));
  c.out(0, sizes);
  return {};
}

Status size(NodeContext& c) {
  c.out(0, c.b.reduce("prod", c.b.op("shape_of", {c.in(0)}), {0}, false));
  return {};
}

Status expand(NodeContext& c) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  c.out(0, c.b.op("broadcast_to", {c.in(0), c.in(1)}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "Expand", expand},       {"", "Flatten", flatten},     {"", "Reshape", reshape},
    {"", "Shape", shape},         {"", "Size", size},           {"", "Squeeze", squeeze},
    {"", "Transpose", transpose}, {"", "Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Converter> shape_converters() { return kRows; }

}  // namespace tessera::import::onnx
