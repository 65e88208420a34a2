// Fourier transforms and windows.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// The axis became an input in opset 20.
Status dft(NodeContext& c) {
  const ValueId axis = c.opset < 20 ? c.b.ints({c.i("axis", 1)}) : c.in(2);
  c.out(0, c.b.op("dft", {c.in(0), c.in(1), axis},
                  {{"inverse", c.i("inverse", 0)}, {"onesided", c.i("onesided", 0)}}));
  return {};
}

Status stft(NodeContext& c) {
  c.out(0, c.b.op("stft", c.inputs, {{"onesided", c.i("onesided", 1)}}));
  return {};
}

Result<DType> output_type(NodeContext& c) {
  const int64_t number = c.i("output_datatype", 1);
  return dtype_from_onnx(number < 0 || number > 1000 ? -1 : static_cast<int32_t>(number));
}

Status mel_weights(NodeContext& c) {
  TRY_ASSIGN(DType to, output_type(c));
  c.out(0, c.b.op("mel_weights", c.inputs, {{"to", to}}));
  return {};
}

// a - b cos(2 pi i / n) + d cos(4 pi i / n), n = size if periodic, else size - 1 (at least 1)
Status window(NodeContext& c, double a, double b, double d) {
  TRY_ASSIGN(DType to, output_type(c));
  ir::Builder& g = c.b;
  const DType work = to == DType::kF64 ? DType::kF64 : DType::kF32;
  const ValueId size = g.convert(g.reshape(c.in(0), {}), DType::kI64);
  const ValueId place =
      g.convert(g.op("range", {g.scalar(DType::kI64, 0), size, g.scalar(DType::kI64, 1)}), work);
  ValueId n = g.convert(size, work);
  if (!c.i("periodic", 1)) n = g.max(g.sub(n, g.scalar(work, 1)), g.scalar(work, 1));
  const ValueId turn = g.div(g.mul(place, g.scalar(work, 6.283185307179586)), n);
  ValueId y = g.sub(g.scalar(work, a), g.mul(g.unary("cos", turn), g.scalar(work, b)));
  if (d != 0) y = g.add(y, g.mul(g.unary("cos", g.add(turn, turn)), g.scalar(work, d)));
  c.out(0, g.convert(y, to));
  return {};
}
Status hann(NodeContext& c) { return window(c, 0.5, 0.5, 0); }
Status hamming(NodeContext& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Status blackman(NodeContext& c) { return window(c, 0.42, 0.5, 0.08); }

constexpr Converter kRows[] = {
    {"", "DFT", dft},
    {"", "STFT", stft},
    {"", "MelWeightMatrix", mel_weights},
    {"", "HannWindow", hann},
    {"", "HammingWindow", hamming},
    {"", "BlackmanWindow", blackman},
};

}  // namespace

std::span<const Converter> signal_converters() { return kRows; }

}  // namespace tessera::import::onnx
