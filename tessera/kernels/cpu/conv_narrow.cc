// conv(x, w, bias?) of f32 on channels-last operands whose window is one pixel, with weights held
// in 16 bits: rows cpu.conv_bf16 and cpu.conv_f16. A product of pixels (P, C) and weights (C, M),
// by the entries of dot_narrow.cc.
#include <algorithm>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/dot.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu {
namespace {

bool reads_inside(const ConvShape& s) {
  for (int i = 0; i < 3; ++i)
    if (s.pad[i] != 0 || (s.out[i] - 1) * s.stride[i] >= std::max<int64_t>(s.in[i], 1))
      return false;
  return true;
}

Reason fit(const Problem& p, LastConv& conv) {
  Reason why = check_last(p, conv);
  if (!why.fine()) return why;
  const ConvShape& s = conv.shape;
  why.need(product(s.kernel) == 1, "the window has {} pixels, need 1", product(s.kernel)) &&
      why.need(reads_inside(s), "the input is padded") &&
      why.need(s.G == 1, "{} groups, need 1", s.G) &&
      why.need(s.M > 1 && s.C > 0, "{} channels to {}, need more than one", s.C, s.M);
  return why;
}

// All but items and epilogue: all pixels are rows of one product if none is left out, else those of
// a row of the plane.
void fill(const LastConv& conv, GemmArgs& g) {
  const ConvShape& s = conv.shape;
  Products& r = g.products;
  const bool flat = is_flat(s);
  r.M = flat ? s.N * product(s.out) : s.out[2];
  r.N = s.M;
  r.K = s.C;
  g.a_row = flat ? conv.x_ld : s.stride[2] * conv.x_ld;
  g.a_col = 1;
  g.b_row = 1;
  g.b_col = s.C;
  g.y_row = conv.y_ld;
  g.right = RightSide::kPanels;
  if (flat) return;
  const int64_t rows = s.in[2] * conv.x_ld, to = s.out[2] * conv.y_ld;
  r.batch_rank = 3;
  const int64_t dims[] = {s.N, s.out[0], s.out[1]},
                a[] = {product(s.in) * conv.x_ld, s.stride[0] * s.in[1] * rows, s.stride[1] * rows},
                y[] = {s.out[0] * s.out[1] * to, s.out[1] * to, to};
  std::copy_n(dims, 3, r.batch_dims);
  std::copy_n(a, 3, r.a_batch);
  std::copy_n(y, 3, r.y_batch);
}

Claim probe(const Problem& p) {
  LastConv conv;
  const Reason why = fit(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  GemmArgs g{};
  fill(conv, g);
  const double rows = static_cast<double>(std::max<int64_t>(g.products.M, 1)),
               whole = static_cast<double>(panels_of(s.M) * kPanel);
  Claim c = claim(conv_flops(p, s), bytes_of(p) - bytes_of(p.in[1]) / 2,
                  0.85 * static_cast<double>(s.M) / whole * rows / (rows + 1),
                  NumericClass::kReassociated);
  c.packed.push_back({1, Bytes(narrow_size(s.C, s.M) * 2)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, std::string_view entry) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  fit(p, conv);
  GemmArgs g{};
  fill(conv, g);
  LaunchSpec launch;
  launch.entry = entry;
  launch.grid = cut_products(p, g.products);
  launch.arguments = last_arguments(p, g.epilogue);
  launch.set_constants(g);
  launches.push_back(std::move(launch));
  return launches;
}

Result<std::vector<LaunchSpec>> prepare_bf16(const Problem& p, const Claim&) {
  return prepare(p, "cpu.gemm_bf16");
}
Result<std::vector<LaunchSpec>> prepare_f16(const Problem& p, const Claim&) {
  return prepare(p, "cpu.gemm_f16");
}

template <auto kPack>
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  kPack(reinterpret_cast<const float*>(source), 1, s.C, s.C, s.M,
        reinterpret_cast<uint16_t*>(target));
  return {};
}

constexpr Row kRows[] = {
    {"conv", "cpu.conv_bf16", probe, prepare_bf16, pack<pack_bf16>, true, DType::kBF16},
    {"conv", "cpu.conv_f16", probe, prepare_f16, pack<pack_f16>, true, DType::kF16},
};

}  // namespace

std::span<const Row> conv_narrow_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
