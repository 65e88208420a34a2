// Random numbers. A seed makes the key; without one the key follows from the node's first output,
// so that nodes differ and runs repeat.
#include <bit>

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// `stream` tells apart the draws of one node.
int64_t key(const NodeContext& c, uint32_t stream = 0) {
  uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  if (c.has_attr("seed")) {
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(c.f("seed", 0)));
    for (int i = 0; i < 4; ++i) mix(static_cast<uint8_t>(bits >> 8 * i));
  } else {
    for (char letter : c.node.output.empty() ? std::string_view() : c.node.output[0])
      mix(static_cast<uint8_t>(letter));
  }
  mix(static_cast<uint8_t>(stream));
  return static_cast<int64_t>(hash);
}

// The element type: attribute dtype, or the input's, or f32.
Result<DType> dtype(NodeContext& c, DType otherwise) {
  const int64_t number = c.i("dtype", 0);
  if (number == 0) return otherwise;
  if (number < 0 || number > 1000) return dtype_from_onnx(-1);
  return dtype_from_onnx(static_cast<int32_t>(number));
}

ValueId shape(NodeContext& c) {
  return c.input_count() > 0 ? c.b.op("shape_of", {c.in(0)}) : c.b.ints(c.ints("shape"));
}

// Numbers in [0, 1) with 24 random bits, or 53 for f64; `low` is added before scaling, to keep away
// from 0.
ValueId unit(NodeContext& c, ValueId dims, DType type, uint32_t stream, double low = 0) {
  ir::Builder& b = c.b;
  auto bits = [&](uint32_t part, int64_t keep) {
    const ValueId words = b.op("random", {dims}, {{"key", key(c, 2 * stream + part)}});
    return b.convert(
        b.op("shift_right", {words, b.scalar(DType::kU32, static_cast<double>(32 - keep))}), type);
  };
  if (type != DType::kF64)
    return b.mul(b.add(bits(0, 24), b.scalar(type, low)), b.scalar(type, 0x1p-24));
  const ValueId high = b.mul(bits(0, 26), b.scalar(type, 0x1p27));
  return b.mul(b.add(b.add(high, bits(1, 27)), b.scalar(type, low)), b.scalar(type, 0x1p-53));
}

DType wide(DType type) { return type == DType::kF64 ? DType::kF64 : DType::kF32; }

Status uniform(NodeContext& c) {
  TRY_ASSIGN(DType to, dtype(c, c.input_count() > 0 && is_float(c.type(0).dtype) ? c.type(0).dtype
                                                                                 : DType::kF32));
  ir::Builder& b = c.b;
  const DType work = wide(to);
  const double low = c.f("low", 0), high = c.f("high", 1);
  const ValueId y =
      b.add(b.mul(unit(c, shape(c), work, 0), b.scalar(work, high - low)), b.scalar(work, low));
  c.out(0, b.convert(y, to));
  return {};
}

// Box and Muller: sqrt(-2 ln u) cos(2 pi v), u in (0, 1)
Status normal(NodeContext& c) {
  TRY_ASSIGN(DType to, dtype(c, c.input_count() > 0 && is_float(c.type(0).dtype) ? c.type(0).dtype
                                                                                 : DType::kF32));
  ir::Builder& b = c.b;
  const DType work = wide(to);
  const ValueId dims = shape(c);
  const ValueId radius =
      b.unary("sqrt", b.mul(b.unary("log", unit(c, dims, work, 0, 0.5)), b.scalar(work, -2)));
  const ValueId angle = b.mul(unit(c, dims, work, 1), b.scalar(work, 6.283185307179586));
  const ValueId z = b.mul(radius, b.unary("cos", angle));
  c.out(0,
        b.convert(b.add(b.mul(z, b.scalar(work, c.f("scale", 1))), b.scalar(work, c.f("mean", 0))),
                  to));
  return {};
}

// u < p
Status bernoulli(NodeContext& c) {
  TRY_ASSIGN(DType to, dtype(c, c.type(0).dtype));
  ir::Builder& b = c.b;
  const DType work = wide(c.type(0).dtype);
  c.out(0, b.convert(b.op("lt", {unit(c, shape(c), work, 0), b.convert(c.in(0), work)}), to));
  return {};
}

Status multinomial(NodeContext& c) {
  TRY_ASSIGN(DType to, dtype(c, DType::kI32));
  c.out(0, c.b.op("multinomial", {c.in(0)},
                  {{"samples", c.i("sample_size", 1)}, {"key", key(c)}, {"to", to}}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "RandomUniform", uniform}, {"", "RandomUniformLike", uniform},
    {"", "RandomNormal", normal},   {"", "RandomNormalLike", normal},
    {"", "Bernoulli", bernoulli},   {"", "Multinomial", multinomial},
};

}  // namespace

std::span<const Converter> random_converters() { return kRows; }

}  // namespace tessera::import::onnx
