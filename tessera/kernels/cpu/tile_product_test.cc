// The microkernel in its generic variant; the others run below the rows that use it. R, C, K:
// rows, columns and depth of a tile.
#define TESSERA_ISA_NAME generic
#include "tessera/kernels/cpu/isa/tile_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

std::vector<float> floats(std::mt19937_64& random, int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(count));
  for (float& x : v) x = normal(random);
  return v;
}

struct Operands {
  std::vector<float> cols, rows, full;
  float scalar = 0.25f;
  static constexpr int64_t kLd = 40;
  tessera_range ranges[4];
  tessera_launch launch{};

  Operands(std::mt19937_64& random, int64_t R, int64_t C)
      : cols(floats(random, C)), rows(floats(random, 2 * R)), full(floats(random, kLd * R)) {
    ranges[0] = {&scalar, sizeof(float)};
    ranges[1] = {cols.data(), cols.size() * sizeof(float)};
    ranges[2] = {rows.data(), rows.size() * sizeof(float)};
    ranges[3] = {full.data(), full.size() * sizeof(float)};
    launch.ranges = ranges;
  }
  float at(const EpilogueStep& s, int64_t r, int64_t c) const {
    const auto i = static_cast<size_t>(s.broadcast == Broadcast::kCols   ? c
                                       : s.broadcast == Broadcast::kRows ? r * s.ld
                                       : s.broadcast == Broadcast::kFull ? r * s.ld + c
                                                                         : 0);
    return static_cast<const float*>(ranges[s.range].data)[i];
  }
};

EpilogueStep step(Function f, Broadcast b, bool swapped = false, float p = 0, float q = 0) {
  const int64_t ld = b == Broadcast::kRows ? 2 : Operands::kLd;
  return {f, b, std::max(0, static_cast<int>(b) - 1), swapped, ld, {p, q}};
}

double apply(const EpilogueStep& s, double x, double y) {
  if (s.swapped) std::swap(x, y);
  switch (s.function) {
    case Function::kAdd:
      return x + y;
    case Function::kSub:
      return x - y;
    case Function::kMul:
      return x * y;
    case Function::kMax:
      return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
    case Function::kMin:
      return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
    case Function::kRelu:
      return x < 0 ? 0 : x;
    case Function::kLeakyRelu:
      return x < 0 ? s.params[0] * x : x;
    case Function::kHardSwish:
      return x * std::clamp(s.params[0] * x + s.params[1], 0.0, 1.0);
    case Function::kTanh:
      return std::tanh(x);
    default:
      return NAN;
  }
}

using F = Function;
using B = Broadcast;
const std::vector<EpilogueStep> kEpilogues[] = {
    {},
    {step(F::kAdd, B::kCols), step(F::kRelu, B::kNone)},
    {step(F::kAdd, B::kFull), step(F::kMax, B::kScalar), step(F::kMul, B::kScalar, true)},
    {step(F::kMul, B::kCols), step(F::kHardSwish, B::kNone, false, 0.25f, 0.5f),
     step(F::kMin, B::kScalar)},
    {step(F::kLeakyRelu, B::kNone, false, 0.125f), step(F::kSub, B::kRows, true),
     step(F::kMul, B::kFull)},
    {step(F::kAdd, B::kRows), step(F::kTanh, B::kNone), step(F::kSub, B::kCols, true),
     step(F::kSub, B::kScalar), step(F::kAdd, B::kFull)},
};

// Tiles of every size, the sum over terms of A times B, rows of A at a stride or from a table.
TEST(TileProduct, SumsTermsAndFinishes) {
  std::mt19937_64 random(1);
  for (int64_t R = 1; R <= generic::kMaxTileRows; ++R)
    for (int64_t C = 1; C <= generic::tile_vecs(R) * generic::kLanes; ++C)
      for (const auto& steps : kEpilogues) {
        const bool table = random() % 2, accumulate = random() % 2;
        const int64_t lda = 50, stride = 70 * kPanel, terms = size_between(random, 0, 3), ldc = 40;
        const std::vector<float> a = floats(random, lda * R * 3), b = floats(random, 3 * stride),
                                 before = floats(random, R * ldc);
        const Operands operands(random, R, C);
        Epilogue epilogue{.count = static_cast<int32_t>(steps.size()), .steps = {}};
        std::copy(steps.begin(), steps.end(), epilogue.steps);
        const generic::BoundEpilogue bound = generic::bind(epilogue, &operands.launch);
        std::vector<generic::Term> list;
        std::vector<std::vector<const float*>> rows(3, std::vector<const float*>(8));
        for (int64_t i = 0; i < terms; ++i) {
          for (int64_t r = 0; r < R; ++r)
            rows[static_cast<size_t>(i)][static_cast<size_t>(r)] = a.data() + (i * R + r) * lda;
          list.push_back({a.data() + i * R * lda,
                          table ? rows[static_cast<size_t>(i)].data() : nullptr,
                          b.data() + 20 * i * kPanel, size_between(random, 0, 20)});
        }
        std::vector<float> c = before;
        generic::tile_product({.rows = static_cast<int>(R),
                               .cols = static_cast<int>(C),
                               .terms = list.data(),
                               .count = terms,
                               .lda = table ? 0 : lda,
                               .panel_stride = stride,
                               .c = c.data(),
                               .ldc = ldc,
                               .accumulate = accumulate,
                               .epilogue = steps.empty() ? nullptr : &bound,
                               .row = 0,
                               .col = 0});
        for (int64_t r = 0; r < R; ++r)
          for (int64_t x = 0; x < ldc; ++x) {
            const auto at = static_cast<size_t>(r * ldc + x);
            if (x >= C) {
              EXPECT_EQ(c[at], before[at]) << "written beyond the tile";
              continue;
            }
            double want = accumulate ? before[at] : 0;
            for (int64_t i = 0; i < terms; ++i)
              for (int64_t k = 0; k < list[static_cast<size_t>(i)].depth; ++k)
                want += double{a[static_cast<size_t>((i * R + r) * lda + k)]} *
                        b[static_cast<size_t>((20 * i + k) * kPanel + x / kPanel * stride +
                                              x % kPanel)];
            for (const EpilogueStep& s : steps)
              want = apply(s, want, s.broadcast == B::kNone ? 0 : operands.at(s, r, x));
            EXPECT_NEAR(c[at], want, 2e-5 * (1 + std::fabs(want)))
                << R << "x" << C << " at " << r << ", " << x;
          }
      }
}

TEST(TileProduct, StepsPassNanOn) {
  std::mt19937_64 random(2);
  for (const auto& steps : kEpilogues) {
    const Operands operands(random, 1, 8);
    Epilogue epilogue{.count = static_cast<int32_t>(steps.size()), .steps = {}};
    std::copy(steps.begin(), steps.end(), epilogue.steps);
    const generic::BoundEpilogue bound = generic::bind(epilogue, &operands.launch);
    float c[8] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    generic::tile_product({.rows = 1,
                           .cols = 7,
                           .terms = nullptr,
                           .count = 0,
                           .lda = 0,
                           .panel_stride = 0,
                           .c = c,
                           .ldc = 8,
                           .accumulate = true,
                           .epilogue = &bound,
                           .row = 0,
                           .col = 0});
    for (int i = 0; i < 7; ++i) EXPECT_TRUE(std::isnan(c[i]));
  }
}

// Any number of rows and columns, as one product.
TEST(TileProduct, CoversBlocks) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    const int64_t M = size_between(random, 0, 20), N = size_between(random, 0, 40),
                  K = size_between(random, 0, 33);
    const std::vector<float> a = floats(random, M * K), b = floats(random, K * N);
    std::vector<float> panels(static_cast<size_t>(packed_size(K, N))),
        c(static_cast<size_t>(M * N));
    const bool transposed = random() % 2;
    pack_panels(b.data(), transposed ? 1 : N, transposed ? K : 1, K, N, panels.data());
    generic::block_product({.rows = M,
                            .cols = N,
                            .depth = K,
                            .a = a.data(),
                            .lda = K,
                            .b = panels.data(),
                            .panel_stride = K * kPanel,
                            .c = c.data(),
                            .ldc = N,
                            .accumulate = false,
                            .epilogue = nullptr,
                            .row = 0,
                            .col = 0});
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n) {
        double want = 0;
        for (int64_t k = 0; k < K; ++k)
          want += double{a[static_cast<size_t>(m * K + k)]} *
                  b[static_cast<size_t>(transposed ? n * K + k : k * N + n)];
        EXPECT_NEAR(c[static_cast<size_t>(m * N + n)], want, 1e-4);
      }
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
