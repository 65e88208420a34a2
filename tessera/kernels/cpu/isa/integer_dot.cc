// Matrix products of 8-bit integers.
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/integer_tile.h"
#if defined(TESSERA_TILES)
#include "tessera/kernels/cpu/isa/integer_tiles.h"
#endif
#include "tessera/kernels/cpu/isa/products.h"
#include "tessera/kernels/cpu/peak_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kRowBlock = 192;          // at most
constexpr int64_t kBlockBytes = 256 << 10;  // of x that stay in the L2 cache while w passes

}  // namespace

void integer_dot(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const IntegerDotArgs*>(launch->constants);
  const Products& s = a.products;
  const BoundInteger bound = bind_integer(a.terms, a.result, launch);
  const auto* x = static_cast<const uint8_t*>(launch->ranges[0].data);
  const auto* w = static_cast<const uint8_t*>(launch->ranges[1].data);
  auto* y = static_cast<char*>(launch->ranges[2].data);
  const int64_t panel = (s.K + kQuad - 1) / kQuad * kQuad * kPanel, term = 0;
  const int64_t block =
      least(kRowBlock, most<int64_t>(kIntegerRows, kBlockBytes / most<int64_t>(s.K, 1)));
  int64_t at[kRowBlock];
  for (int64_t r = 0; r < kRowBlock; ++r) at[r] = r * a.a_row;
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(s, i);
    const uint8_t* packed = w + item.b;
    const auto* sums = reinterpret_cast<const int32_t*>(packed + panels_of(s.N) * panel);
    for (int64_t m = item.m0; m < item.m1; m += block)
      integer_block(bound, {.rows = least(block, item.m1 - m),
                            .cols = item.n1 - item.n0,
                            .x = x + item.a + m * a.a_row,
                            .at = at,
                            .terms = &term,
                            .count = 1,
                            .depth = s.K,
                            .w = packed + item.n0 / kPanel * panel,
                            .panel = panel,
                            .w_sums = sums + item.n0,
                            .row = item.batch * s.M + m,
                            .col = item.n0,
                            .y = y + (item.y + m * a.y_row + item.n0) * bytes_of(bound.type),
                            .ld = a.y_row});
  }
}

// What multiplications and additions of 8-bit integers reach at most: as peak, four times as many
// to a lane, or those of a tile.
#if defined(TESSERA_TILES)
void integer_peak(const tessera_launch* launch, uint32_t, uint32_t) {
  static_assert(kPeakChains % 4 == 0);
  const auto& a = *static_cast<const PeakArgs*>(launch->constants);
  auto* out = static_cast<float*>(launch->ranges[0].data);
  IntegerUnit<TESSERA_TILES> shaped(kTileBytes);
  shaped.shape(kTileRows, kTileRows);
  TESSERA_TILES& unit = shaped.unit;
  for (int64_t r = 0; r < a.rounds * kPeakChains; r += 4) {
    unit.template products<0, 4, 6, false, true>();
    unit.template products<1, 4, 7, false, true>();
    unit.template products<2, 5, 6, false, true>();
    unit.template products<3, 5, 7, false, true>();
  }
  unit.release();
  out[1] = static_cast<float>(kTileRows * kTileBytes * kPanel);
}
#else
void integer_peak(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& a = *static_cast<const PeakArgs*>(launch->constants);
  auto* out = static_cast<float*>(launch->ranges[0].data);
  VecI chain[kPeakChains];
  for (int c = 0; c < kPeakChains; ++c) chain[c] = splat_int(c);
  const auto x = Quads<false>::of(splat_int(static_cast<int32_t>(out[0]) + 0x01020304));
  const auto w = Quads<true>::of(splat_int(static_cast<int32_t>(out[0]) + 0x04030201));
  for (int64_t r = 0; r < a.rounds; ++r)
    for (int c = 0; c < kPeakChains; ++c) chain[c] = add_products(chain[c], x, w);
  VecI sum{};
  for (int c = 0; c < kPeakChains; ++c) sum += chain[c];
  out[0] = static_cast<float>(sum[0]);
  out[1] = static_cast<float>(kLanes * kQuad);
}
#endif

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
