#include "tessera/layout/runs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/layout/formats.h"
#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;

BoundLayout bound(std::string_view text, const Index& extents, DType dtype) {
  return *BoundLayout::bind(*Layout::parse(text), dtype, extents);
}

// Elements over maximal pieces that follow each other on both sides, in bytes, by looking at each.
double counted(const BoundLayout& from, const BoundLayout& to) {
  std::vector<std::pair<int64_t, int64_t>> offsets;  // in `to`, in `from`
  for_each_index(from.extents(),
                 [&](const Index& i) { offsets.emplace_back(to.offset(i), from.offset(i)); });
  std::sort(offsets.begin(), offsets.end());
  int64_t pieces = 0;
  for (size_t k = 0; k < offsets.size(); ++k)
    pieces += k == 0 || offsets[k].first != offsets[k - 1].first + 1 ||
              offsets[k].second != offsets[k - 1].second + 1;
  return static_cast<double>(offsets.size()) / static_cast<double>(pieces) * from.bits() / 8;
}

TEST(Runs, OfRowsToFractals) {
  const auto rows = bound("mn: m n", {64, 64}, DType::kF16);
  const auto nz = bound("mn: n/16 m/16 m%16 n%16", {64, 64}, DType::kF16);
  const Runs runs = *runs_of(rows, nz);
  EXPECT_EQ(runs.elements, Bytes(8192));
  EXPECT_EQ(runs.read, Bytes(8192));
  EXPECT_EQ(runs.written, Bytes(8192));
  EXPECT_EQ(runs.common, 32);
  EXPECT_EQ(runs.read_run, 32);
  EXPECT_EQ(runs.written_run, 32);
  // All of it in a buffer: both sides in one run. A quarter: 512 B each way.
  const Runs whole = *runs_of(rows, nz, Bytes(8192));
  EXPECT_EQ(whole.read_run, 8192);
  EXPECT_EQ(whole.written_run, 8192);
  const Runs part = *runs_of(rows, nz, Bytes(2048));
  EXPECT_GE(part.read_run, 128);
  EXPECT_GE(part.written_run, 512);
}

TEST(Runs, PaddingCountsOnItsSide) {
  const auto rows = bound("mn: m n", {20, 28}, DType::kF16);
  const auto nz = bound("mn: n/16 m/16 m%16 n%16", {20, 28}, DType::kF16);
  const Runs runs = *runs_of(rows, nz);
  EXPECT_EQ(runs.read, Bytes(1120));
  EXPECT_EQ(runs.written, Bytes(2048));
  EXPECT_EQ(runs.common, 28);  // pieces of 16 and of 12 elements
  EXPECT_EQ(runs_of(nz, rows)->read, Bytes(2048));
  EXPECT_EQ(runs_of(nz, rows)->common, 28);
}

TEST(Runs, TransposesNeedABuffer) {
  const Index extents{4096, 4096};
  const auto rows = bound("mn: m n", extents, DType::kF32);
  const auto columns = bound("mn: n m", extents, DType::kF32);
  EXPECT_EQ(runs_of(rows, columns)->written_run, 4);
  const Runs runs = *runs_of(rows, columns, Bytes(32 << 10));
  EXPECT_EQ(runs.common, 4);
  EXPECT_EQ(runs.read_run * runs.written_run, (32 << 10) * 4);
  EXPECT_LE(std::max(runs.read_run, runs.written_run),
            2 * std::min(runs.read_run, runs.written_run));
}

TEST(Runs, CopiesAreOneRun) {
  const auto rows = bound("abc: a b c", {3, 5, 7}, DType::kF32);
  EXPECT_EQ(runs_of(rows, rows)->common, 420);
  EXPECT_EQ(runs_of(rows, bound("abc: (a b) c", {3, 5, 7}, DType::kF32))->common, 420);
}

TEST(Runs, OfWhatIsNoBox) {
  // 16 bytes stay together; of every eighth row, all 128.
  const auto rows = bound("mk: m k", {16, 64}, DType::kF16);
  const auto swizzled = bound("mk: m (k%64/8)^(m%8) k%8", {16, 64}, DType::kF16);
  EXPECT_EQ(runs_of(rows, swizzled)->common, counted(rows, swizzled));
  EXPECT_EQ(runs_of(rows, swizzled)->written, Bytes(2048));
  const auto joined =
      bound("kn: n (k[0:10]|k[10:30])/16 (k[0:10]|k[10:30])%16", {30, 4}, DType::kF32);
  const auto plain = bound("kn: n k", {30, 4}, DType::kF32);
  EXPECT_EQ(runs_of(plain, joined)->common, counted(plain, joined));
}

TEST(Runs, AgreeWithWhatIsCounted) {
  const auto check = [](std::string_view from, std::string_view to, const Index& extents,
                        DType dtype) {
    const auto a = bound(from, extents, dtype), b = bound(to, extents, dtype);
    // Pieces that meet by chance where two boxes end count as two.
    EXPECT_NEAR(runs_of(a, b)->common, counted(a, b), 0.02 * counted(a, b)) << from << " to " << to;
    EXPECT_NEAR(runs_of(b, a)->common, counted(b, a), 0.02 * counted(b, a)) << to << " to " << from;
  };
  check("mn: m n", "mn: n m", {7, 9}, DType::kF32);
  check("mn: m n", "mn: m (n/16 n%16)", {7, 9}, DType::kF16);
  check("nchw: n c h w", "nchw: n h w c", {2, 5, 3, 4}, DType::kI8);
  check("nchw: n c h w", "nchw: n c/16 h w c%16", {2, 33, 3, 4}, DType::kF16);
  check("nhwc: n h w c", "nhwc: n c/16 h w c%16", {2, 3, 4, 33}, DType::kF16);
  check("mn: n/8 m/16 m%16 n%8", "mn: n/16 m/16 m%16 n%16", {17, 31}, DType::kF32);
}

TEST(Runs, HoldForAnyLayouts) {
  RandomLayouts random(11);
  for (int round = 0; round < 400; ++round) {
    const Index extents = random.extents(1 + random.below(4));
    const DType dtype = random.dtype();
    const auto a = BoundLayout::bind(random.layout(extents), dtype, extents);
    const auto b = BoundLayout::bind(random.layout(extents), dtype, extents);
    if (!a || !b || a->places() > 1 << 16 || b->places() > 1 << 16) continue;
    const Runs runs = *runs_of(*a, *b);
    if (a->elements() == 0) {
      EXPECT_EQ(runs.common, 0);
      continue;
    }
    const double element = a->bits() / 8.0;
    EXPECT_GE(runs.common, element - 1e-9);
    EXPECT_LE(runs.common, counted(*a, *b) + 1e-9)
        << a->layout().to_string() << " to " << b->layout().to_string();
    for (const int64_t staged : {64, 1024, 1 << 20}) {
      const Runs tiled = *runs_of(*a, *b, Bytes(staged));
      EXPECT_EQ(tiled.common, runs.common);
      EXPECT_GE(tiled.read_run, runs.read_run);
      EXPECT_GE(tiled.written_run, runs.written_run);
      EXPECT_LE(tiled.read_run, static_cast<double>(a->elements()) * element + 1e-9);
      EXPECT_LE(tiled.written_run, std::max(static_cast<double>(b->places()) * element, 1.0));
    }
  }
}

TEST(Runs, RefuseWhatDiffers) {
  const auto a = bound("mn: m n", {4, 4}, DType::kF16);
  EXPECT_EQ(runs_of(a, bound("mn: m n", {4, 4}, DType::kF32)).error().code, Code::kInvalidArgument);
  EXPECT_EQ(runs_of(a, bound("mn: m n", {4, 5}, DType::kF16)).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::layout
