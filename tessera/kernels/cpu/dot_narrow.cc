// dot(a, b) of f32 whose weights may be held in 16 bits: rows cpu.gemm_bf16 and cpu.gemm_f16. Half
// the bytes of cpu.gemm; and where the processor multiplies pairs of bf16, twice the products.
#include <algorithm>

#include "tessera/kernels/cpu/dot.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu {
namespace {

Reason fit(const Problem& p, GemmArgs& g) {
  Reason why = check_dot(p, g);
  if (!why.fine()) return why;
  why.need(packs_right(p, g), "b is no constant of more than one column");
  why.need(p.out[0].strides.empty() || p.out[0].strides.back() == 1,
           "columns of the result are strided");
  return why;
}

// Elements of all of b, packed.
int64_t packed_elements(const Problem& p, const Products& s) {
  return p.in[1].count() / (s.K * s.N) * narrow_size(s.K, s.N);
}

Claim probe(const Problem& p) {
  GemmArgs g{};
  const Reason why = fit(p, g);
  if (!why.fine()) return why.refusal();
  const Products& s = g.products;
  // Widening a vector costs about as much as the products of one row with it.
  const double rows = static_cast<double>(std::max<int64_t>(s.M, 1)),
               whole = static_cast<double>(panels_of(s.N) * kPanel);
  const double efficiency = 0.85 * static_cast<double>(s.N) / whole * rows / (rows + 1);
  Claim c = claim(dot_flops(p, g), bytes_of(p) - bytes_of(p.in[1]) / 2, efficiency,
                  NumericClass::kReassociated);
  c.packed.push_back({1, Bytes(packed_elements(p, s) * 2)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, std::string_view entry) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  GemmArgs g{};
  fit(p, g);
  Products& s = g.products;
  g.right = RightSide::kPanels;
  for (int i = 0; i < s.batch_rank; ++i)
    s.b_batch[i] = s.b_batch[i] / (s.K * s.N) * narrow_size(s.K, s.N);
  LaunchSpec launch = dot_launch(p, entry, {Argument::kPacked, 0, 0}, g);
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
  GemmArgs g{};
  fit(p, g);
  const Products& s = g.products;
  const auto* b = reinterpret_cast<const float*>(source);
  auto* panels = reinterpret_cast<uint16_t*>(target);
  for (int64_t i = p.in[1].count() / (s.K * s.N); i > 0; --i) {
    kPack(b, g.b_row, g.b_col, s.K, s.N, panels);
    b += s.K * s.N;
    panels += narrow_size(s.K, s.N);
  }
  return {};
}

constexpr Row kRows[] = {
    {"dot", "cpu.gemm_bf16", probe, prepare_bf16, pack<pack_bf16>, true, DType::kBF16},
    {"dot", "cpu.gemm_f16", probe, prepare_f16, pack<pack_f16>, true, DType::kF16},
};

}  // namespace

std::span<const Row> dot_narrow_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
