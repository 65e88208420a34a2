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

constexpr Converter kRows[] = {
    {"", "Reshape", reshape},
    {"", "Transpose", transpose},
};

}  // namespace

std::span<const Converter> shape_converters() { return kRows; }

}  // namespace tessera::import::onnx
