// Quantisation.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// The attribute's element type; nullopt if it is absent or 0.
Result<std::optional<DType>> dtype_attr(NodeContext& c, std::string_view name) {
  const int64_t number = c.i(name, 0);
  if (number == 0) return std::optional<DType>();
  auto dtype = number == static_cast<int32_t>(number)
                   ? dtype_from_onnx(static_cast<int32_t>(number))
                   : dtype_from_onnx(-1);
  if (!dtype) return error(std::move(dtype).error().at(name));
  return std::optional(*dtype);
}

op::Attrs granularity(NodeContext& c, DType to) {
  return {{"to", to}, {"axis", c.i("axis", 1)}, {"block", c.i("block_size", 0)}};
}

Status quantize(NodeContext& c) {
  TRY_ASSIGN(auto to, dtype_attr(c, "output_dtype"));
  TRY_ASSIGN(auto precision, dtype_attr(c, "precision"));
  op::Attrs attrs = granularity(c, c.has(2) ? c.type(2).dtype : to.value_or(DType::kU8));
  if (c.has(2) && to && *to != c.type(2).dtype)
    return c.fail("output_dtype is {}, the zero point {}", name_of(*to), name_of(c.type(2).dtype));
  attrs.set("saturate", c.i("saturate", 1));
  // A scale that is a power of two or an integer does not tell the precision of a quotient.
  const DType scale = c.type(1).dtype;
  const bool general =
      scale == DType::kF16 || scale == DType::kBF16 || scale == DType::kF32 || scale == DType::kF64;
  attrs.set("precision", precision.value_or(general                     ? scale
                                            : is_float(c.type(0).dtype) ? c.type(0).dtype
                                                                        : DType::kF32));
  c.out(0, c.b.op("quantize", c.inputs, std::move(attrs)));
  return {};
}

Status dequantize(NodeContext& c) {
  TRY_ASSIGN(auto to, dtype_attr(c, "output_dtype"));
  const DType scale = c.type(1).dtype;
  c.out(0, c.b.op("dequantize", c.inputs,
                  granularity(c, to.value_or(scale == DType::kF8E8M0 ? DType::kF32 : scale))));
  return {};
}

// The range with 0 in it, in 255 steps; the zero point is where 0 falls.
Status dynamic_quantize(NodeContext& c) {
  ir::Builder& b = c.b;
  const ValueId x = c.in(0), zero = b.scalar(DType::kF32, 0), top = b.scalar(DType::kF32, 255);
  const ValueId highest = b.max(b.reduce("max", x, {}, false), zero),
                lowest = b.min(b.reduce("min", x, {}, false), zero);
  const ValueId scale = b.div(b.sub(highest, lowest), top);
  const ValueId exact = b.sub(zero, b.div(lowest, scale));
  const ValueId point = b.convert(b.unary("round", b.max(b.min(exact, top), zero)), DType::kU8);
  c.out(0, b.op("quantize", {x, scale, point}, {{"to", DType::kU8}}));
  c.out(1, scale);
  c.out(2, point);
  return {};
}

Status matmul_integer(NodeContext& c) {
  c.out(0, c.b.op("dot_integer", c.inputs));
  return {};
}

// Scales as zero points: rank 1 is one for each row of a.
ValueId row_scale(NodeContext& c, size_t a, size_t scale) {
  return c.b.rank(c.in(scale)) == 1 && c.b.rank(c.in(a)) > 1 ? c.b.reshape(c.in(scale), {-1, 1})
                                                             : c.in(scale);
}

Status qlinear_matmul(NodeContext& c) {
  if (c.input_count() != 8) return c.fail("has {} inputs, need 8", c.input_count());
  ir::Builder& b = c.b;
  const ValueId sum = b.op("dot_integer", {c.in(0), c.in(3), c.in(2), c.in(5)});
  const ValueId a_scale = b.convert(row_scale(c, 0, 1), DType::kF32),
                b_scale = b.convert(c.in(4), DType::kF32);
  const ValueId exact = b.mul(b.convert(sum, DType::kF32), b.mul(a_scale, b_scale));
  c.out(0, b.op("quantize", {exact, b.convert(c.in(6), DType::kF32), c.in(7)},
                {{"to", b.dtype(c.in(7))}, {"axis", int64_t{-1}}}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "QuantizeLinear", quantize},
    {"", "DequantizeLinear", dequantize},
    {"", "DynamicQuantizeLinear", dynamic_quantize},
    {"", "MatMulInteger", matmul_integer},
    {"", "QLinearMatMul", qlinear_matmul},
};

}  // namespace

std::span<const Converter> quantize_converters() { return kRows; }

}  // namespace tessera::import::onnx
