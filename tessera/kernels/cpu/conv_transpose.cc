// conv_transpose(x, w, bias?) in f32: row cpu.conv_transpose.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/op/window.h"

namespace tessera::kernels::cpu {
namespace {

int64_t panels(int64_t rows) { return ceil_div(rows, kPanelRows); }

Status fill(const Problem& p, ConvShape& s) {
  const Dims &x = p.in[0].dims, &w = p.in[1].dims, &y = p.out[0].dims;
  const size_t axes = w.size() - 2;
  TRY_ASSIGN(const op::Window window, op::transposed_window(p.attrs, Dims(x.begin() + 2, x.end()),
                                                            Dims(w.begin() + 2, w.end())));
  s.N = x[0];
  s.G = p.attrs.i("groups", 1);
  s.C = x[1] / s.G;
  s.M = w[1];
  for (size_t i = 0; i < 3; ++i) {
    s.in[i] = s.out[i] = s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
    s.pad[i] = 0;
  }
  for (size_t a = 0; a < axes; ++a) {
    const size_t i = 3 - axes + a;
    s.in[i] = x[a + 2];
    s.out[i] = y[a + 2];
    s.kernel[i] = w[a + 2];
    s.stride[i] = window.strides[a];
    s.dilation[i] = window.dilations[a];
    s.pad[i] = window.pads_begin[a];
  }
  return {};
}

double flops(const Problem& p, const ConvShape& s) {
  return 2.0 * static_cast<double>(p.in[0].count()) * static_cast<double>(s.M * product(s.kernel));
}

Claim probe(const Problem& p) {
  Reason why = check_conv_operands(p);
  if (!why.fine()) return why.refusal();
  ConvShape s{};
  const Status filled = fill(p, s);
  why.need(filled.has_value(), "{}", filled ? "" : filled.error().message);
  if (!why.fine()) return why.refusal();
  Claim c = claim(flops(p, s), bytes_of(p), 0.3, NumericClass::kReassociated);
  if (p.in[1].constant)
    c.packed.push_back({1, Bytes(s.G * panels(s.M * product(s.kernel)) * kPanelRows * s.C * 4)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  ConvTransposeArgs args{};
  TRY(fill(p, args.shape));
  const ConvShape& s = args.shape;
  const int64_t target = std::clamp<int64_t>(static_cast<int64_t>(flops(p, s) / 2e6), 1, 16);
  args.m_step = ceil_div(s.M, std::clamp<int64_t>(ceil_div(target, s.N * s.G), 1, s.M));
  args.m_items = ceil_div(s.M, args.m_step);
  args.w_packed = p.in[1].constant;
  args.has_bias = p.has(2);
  LaunchSpec launch;
  launch.entry = "cpu.conv_transpose";
  launch.grid = items(s.N * s.G * args.m_items, 1);
  launch.arguments = all_arguments(p);
  if (args.w_packed) launch.arguments[1] = {Argument::kPacked, 0, 0};
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// (g, channel, row) -> (g, row / kPanelRows, channel, row % kPanelRows), row = (m, tap); rows
// beyond are zero
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill(p, s));
  const auto* w = reinterpret_cast<const float*>(source);
  auto* packed = reinterpret_cast<float*>(target);
  const int64_t rows = s.M * product(s.kernel);
  for (int64_t g = 0; g < s.G; ++g, w += s.C * rows)
    for (int64_t r0 = 0; r0 < rows; r0 += kPanelRows)
      for (int64_t c = 0; c < s.C; ++c, packed += kPanelRows)
        for (int64_t r = 0; r < kPanelRows; ++r)
          packed[r] = r0 + r < rows ? w[c * rows + r0 + r] : 0.0f;
  return {};
}

constexpr Row kRows[] = {{"conv_transpose", "cpu.conv_transpose", row_major<probe>, prepare, pack}};

}  // namespace

std::span<const Row> conv_transpose_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
