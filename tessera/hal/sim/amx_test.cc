// The model of AMX against this machine's, bit by bit. Skipped where there is none.
#include <bit>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/numerics.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera::hal::sim {
namespace {

constexpr int kRows = 16, kColumns = 16;
constexpr int kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2)

bool has(int bit) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> bit & 1);
}
bool available() {
  constexpr int kBf16 = 22, kTile = 24, kInt8 = 25;
  return has(kBf16) && has(kTile) && has(kInt8) &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64};
  uint8_t rows[16] = {16, 16, 16};
};

// c[16][16] += a[16][K] b[K/pack][16][pack], with rows of 64 bytes
enum class Product { kBf16, kInt8 };
__attribute__((target("amx-tile,amx-bf16,amx-int8"))) void multiply_tile(Product product,
                                                                         const void* a,
                                                                         const void* b, void* c) {
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_loadd(0, c, 64);
  _tile_loadd(1, a, 64);
  _tile_loadd(2, b, 64);
  if (product == Product::kBf16)
    _tile_dpbf16ps(0, 1, 2);
  else
    _tile_dpbssd(0, 1, 2);
  _tile_stored(0, c, 64);
  _tile_release();
}

MatrixUnit unit_of(std::string_view type) {
  return *MatrixUnit::make(*chip::Catalog().load("cpu_amx"), type);
}

// Both, of the same operands; the number of sums that differ.
int differences(const std::function<uint16_t()>& operand, const std::function<float()>& sum) {
  constexpr int kProducts = 32;
  alignas(64) uint16_t a[kRows * kProducts], b[kProducts * kColumns];
  alignas(64) float tile[kRows * kColumns];
  for (uint16_t& x : a) x = operand();
  for (uint16_t& x : b) x = operand();
  for (float& x : tile) x = sum();
  std::vector<float> wide_a, wide_b(kProducts * kColumns), c(tile, tile + kRows * kColumns);
  for (const uint16_t x : a) wide_a.push_back(bf16_to_f32(x));
  for (int k = 0; k < kProducts; ++k)
    for (int n = 0; n < kColumns; ++n)
      wide_b[k * kColumns + n] = bf16_to_f32(b[(k / 2 * kColumns + n) * 2 + k % 2]);
  multiply_tile(Product::kBf16, a, b, tile);
  unit_of("bf16").multiply(kRows, kColumns, kProducts, wide_a.data(), kProducts, wide_b.data(),
                           kColumns, c.data(), kColumns);
  int count = 0;
  for (int i = 0; i < kRows * kColumns; ++i) {
    const bool nans = std::isnan(tile[i]) && std::isnan(c[i]);
    count += std::bit_cast<uint32_t>(tile[i]) != std::bit_cast<uint32_t>(c[i]) && !nans;
  }
  return count;
}

TEST(Amx, Bf16IsThisMachines) {
  if (!available()) GTEST_SKIP() << "no AMX with bf16 here";
  std::mt19937 random(7);
  for (const int spread : {1, 6, 20, 80, 250}) {
    const auto exponent = [&] {
      return 127 - spread / 2 + static_cast<int>(random() % (spread + 1));
    };
    const auto operand = [&] {
      return static_cast<uint16_t>((random() & 0x807f) | (exponent() << 7));
    };
    const auto sum = [&] {
      return std::bit_cast<float>((static_cast<uint32_t>(random()) & 0x807fffffu) |
                                  (static_cast<uint32_t>(exponent()) << 23));
    };
    for (int i = 0; i < 40; ++i) ASSERT_EQ(differences(operand, sum), 0) << "spread " << spread;
  }
  // All bits: subnormals, infinities and NaNs, too.
  const auto any = [&] { return static_cast<uint16_t>(random()); };
  const auto any_sum = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  for (int i = 0; i < 40; ++i) ASSERT_EQ(differences(any, any_sum), 0);
  // Around the smallest normal number.
  const auto tiny = [&] {
    return static_cast<uint16_t>((random() & 0x807f) | ((60 + random() % 8) << 7));
  };
  const auto tiny_sum = [&] {
    return std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x81ffffffu);
  };
  for (int i = 0; i < 40; ++i) ASSERT_EQ(differences(tiny, tiny_sum), 0);
}

TEST(Amx, Int8IsThisMachines) {
  if (!available()) GTEST_SKIP() << "no AMX with int8 here";
  constexpr int kProducts = 64;
  std::mt19937 random(8);
  alignas(64) int8_t a[kRows * kProducts], b[kProducts * kColumns];
  alignas(64) int32_t tile[kRows * kColumns];
  for (int8_t& x : a) x = static_cast<int8_t>(random());
  for (int8_t& x : b) x = static_cast<int8_t>(random());
  for (int32_t& x : tile) x = static_cast<int32_t>(random());
  std::vector<float> wide_a(a, a + kRows * kProducts), wide_b(kProducts * kColumns);
  std::vector<int32_t> c(tile, tile + kRows * kColumns);
  for (int k = 0; k < kProducts; ++k)
    for (int n = 0; n < kColumns; ++n)
      wide_b[k * kColumns + n] = b[(k / 4 * kColumns + n) * 4 + k % 4];
  multiply_tile(Product::kInt8, a, b, tile);
  unit_of("i8").multiply(kRows, kColumns, kProducts, wide_a.data(), kProducts, wide_b.data(),
                         kColumns, c.data(), kColumns);
  EXPECT_EQ(c, std::vector<int32_t>(tile, tile + kRows * kColumns));
}

}  // namespace
}  // namespace tessera::hal::sim

#endif
