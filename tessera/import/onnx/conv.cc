// Convolutions.
#include "tessera/import/onnx/windows.h"

namespace tessera::import::onnx {
namespace {

// Kernel sizes: from kernel_shape, else from the weights (M, C/G, kernel...), which must agree.
Result<op::Shape> kernel_of(const NodeContext& c, size_t weights) {
  const op::Ints given = c.ints("kernel_shape");
  const op::Type& w = c.type(weights);
  if (!w.ranked()) {
    if (given.empty()) return error(Code::kInvalidArgument, "{}: needs kernel_shape, or weights of known rank", c.node.op_type);
    return op::Shape(given.begin(), given.end());
  }
  if (w.rank() < 3) return error(Code::kInvalidArgument, "{}: the weights are {}, need rank 3 or more", c.node.op_type, w.str());
  const op::Shape kernel(w.shape->begin() + 2, w.shape->end());
  for (size_t i = 0; i < given.size(); ++i)
    if (given.size() != kernel.size() || (kernel[i].is_constant() && *kernel[i].constant() != given[i]))
      return error(Code::kInvalidArgument, "{}: kernel_shape is {}, the weights are {}", c.node.op_type, op::to_string(op::Dims(given)), w.str());
  return kernel;
}

Status conv(NodeContext& c) {
  if (c.input_count() < 2 || c.input_count() > 3) return c.fail("has {} inputs, need 2 or 3", c.input_count());
  TRY_ASSIGN(const op::Shape kernel, kernel_of(c, 1));
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, kernel));
  attrs.set("groups", c.i("group", 1));
  c.out(0, c.b.op("conv", {c.in(0), c.in(1), c.in(2)}, std::move(attrs)));
  return {};
}

constexpr Converter kRows[] = {{"", "Conv", conv}};

}  // namespace

std::span<const Converter> conv_converters() { return kRows; }

}  // namespace tessera::import::onnx
