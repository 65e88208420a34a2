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

Claim probe_bf16(const Problem& p) {
  Claim c = probe(p);
  if (!c.supported()) return c;
  GemmArgs g{};
  fit(p, g);
  c.workspace = narrow_workspace(p, g.products);
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
  return narrow_launches(p, dot_launch(p, entry, {Argument::kPacked, 0, 0}, g), g);
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
    {"dot", "cpu.gemm_bf16", probe_bf16, prepare_bf16, pack<pack_bf16>, true, DType::kBF16},
    {"dot", "cpu.gemm_f16", probe, prepare_f16, pack<pack_f16>, true, DType::kF16},
};

// So few rows are rounded where they are multiplied; so are those that one item reads.
bool rounds_ahead(const Products& s) {
  constexpr int64_t kFewRows = 16;
  return s.M > kFewRows && s.n_items > 1;
}

}  // namespace

Bytes narrow_workspace(const Problem& p, const Products& products) {
  if (p.anchor_result().count() == 0) return Bytes(0);
  Products s = products;
  const int64_t height = tile_height(s.M);
  cut_narrow(p, height, s);
  return Bytes(rounds_ahead(s) ? 2 * batches(s) * rounded_size(s.M, s.K, height) : 0);
}

std::vector<LaunchSpec> narrow_launches(const Problem& p, LaunchSpec launch, const GemmArgs& g) {
  std::vector<LaunchSpec> launches;
  NarrowArgs args{g, tile_height(g.products.M), -1};
  Products& s = args.gemm.products;
  launch.grid = cut_narrow(p, args.height, s);
  if (launch.entry == "cpu.gemm_bf16" && rounds_ahead(s)) {
    NarrowArgs rows = args;
    Products& all = rows.gemm.products;
    all.m_step = args.height;
    all.m_items = ceil_div(s.M, all.m_step);
    all.n_items = 1;
    LaunchSpec round;
    round.entry = "cpu.narrow_rows";
    round.grid = items(batches(s) * all.m_items, 1);
    round.arguments = {{Argument::kInput, 0, 0}, {Argument::kWorkspace, 0, 0}};
    round.set_constants(rows);
    launches.push_back(std::move(round));
    args.rounded = static_cast<int32_t>(launch.arguments.size());
    launch.arguments.push_back({Argument::kWorkspace, 0, 0});
  }
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

std::span<const Row> dot_narrow_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
