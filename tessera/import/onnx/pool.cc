// Pooling.
#include "tessera/import/onnx/windows.h"

namespace tessera::import::onnx {
namespace {

// The pooling operator `op` with its window attributes.
Result<op::Attrs> pool_attrs(NodeContext& c) {
  if (c.input_count() != 1)
    return error(Code::kInvalidArgument, "{}: has {} inputs, need 1", c.node.op_type,
                 c.input_count());
  const op::Ints kernel = c.ints("kernel_shape");
  if (kernel.empty())
    return error(Code::kInvalidArgument, "{}: needs kernel_shape", c.node.op_type);
  if (c.type(0).ranked() && c.type(0).rank() != static_cast<int>(kernel.size()) + 2)
    return error(Code::kInvalidArgument, "{}: kernel_shape has {} numbers, the input is {}",
                 c.node.op_type, kernel.size(), c.type(0).str());
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, op::Shape(kernel.begin(), kernel.end())));
  attrs.set("kernel", kernel);
  return attrs;
}

Status max_pool(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs, pool_attrs(c));
  if (c.wants(1) && c.i("storage_order", 0)) attrs.set("column_major", int64_t{1});
  c.outputs = c.b.ops("max_pool", {c.in(0)}, std::move(attrs), static_cast<int>(c.output_count()));
  return {};
}

Status average_pool(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs, pool_attrs(c));
  attrs.set("count_include_pad", c.i("count_include_pad", 0));
  c.out(0, c.b.op("average_pool", {c.in(0)}, std::move(attrs)));
  return {};
}

// Before opset 2, p is a float.
double exponent(NodeContext& c) {
  return c.opset < 2 ? c.f("p", 2) : static_cast<double>(c.i("p", 2));
}

Status lp_pool(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs, pool_attrs(c));
  attrs.set("p", exponent(c));
  c.out(0, c.b.op("lp_pool", {c.in(0)}, std::move(attrs)));
  return {};
}

Status global(NodeContext& c, std::string_view op, op::Attrs attrs = {}) {
  c.out(0, c.b.op(op, c.inputs, std::move(attrs)));
  return {};
}
Status global_average_pool(NodeContext& c) { return global(c, "global_average_pool"); }
Status global_max_pool(NodeContext& c) { return global(c, "global_max_pool"); }
Status global_lp_pool(NodeContext& c) { return global(c, "global_lp_pool", {{"p", exponent(c)}}); }

constexpr Converter kRows[] = {
    {"", "AveragePool", average_pool},
    {"", "GlobalAveragePool", global_average_pool},
    {"", "GlobalLpPool", global_lp_pool},
    {"", "GlobalMaxPool", global_max_pool},
    {"", "LpPool", lp_pool},
    {"", "MaxPool", max_pool},
};

}  // namespace

std::span<const Converter> pool_converters() { return kRows; }

}  // namespace tessera::import::onnx
