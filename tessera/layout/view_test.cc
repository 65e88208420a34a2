#include "tessera/layout/view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tessera/layout/convert.h"
#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;

BoundLayout bind_stored(const Stored& stored, const Index& extents, DType dtype = DType::kF16) {
  const Result<BoundLayout> result = BoundLayout::bind(stored, dtype, extents);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

Stored stored(std::string_view text) { return {.layout = *Layout::parse(text)}; }

BoundLayout bound(std::string_view text, const Index& extents) {
  return bind_stored(stored(text), extents);
}

Index to_index(int64_t position, const Index& extents) {
  Index index(extents.size());
  for (size_t a = extents.size(); a-- > 0; position /= extents[a]) index[a] = position % extents[a];
  return index;
}

TEST(SamePlaces, SeesThroughSizeOneAxes) {
  EXPECT_TRUE(
      *same_places(bound("nchw: n c h w", {2, 5, 1, 1}), bound("nchw: n h w c", {2, 5, 1, 1})));
  EXPECT_FALSE(
      *same_places(bound("nchw: n c h w", {2, 5, 1, 2}), bound("nchw: n h w c", {2, 5, 1, 2})));
  EXPECT_TRUE(*same_places(bound("nc: n c/16 c%16", {2, 32}), bound("nc: n c", {2, 32})));
  EXPECT_FALSE(*same_places(bound("nc: n c/16 c%16", {2, 31}), bound("nc: n c", {2, 31})));
  EXPECT_TRUE(*same_places(bound("nc: n c/16 c%16", {1, 31}), bound("nc: n c", {1, 31})));
  EXPECT_TRUE(*same_places(bound("mn: (m n)/7 (m n)%7", {5, 6}), bound("mn: m n", {5, 6})));
  EXPECT_FALSE(*same_places(bound("mn: m n", {5, 6}), bound("mn: m n", {5, 7})));
  EXPECT_TRUE(*same_places(bound("mn: n m", {0, 6}), bound("mn: m n", {0, 6})));
}

// same_places(a, b) <=> a.offset(i) == b.offset(i) for all i
TEST(SamePlaces, AgreesWithComparingAllOffsets) {
  RandomLayouts random(7);
  int equal = 0;
  for (int round = 0; round < 2000; ++round) {
    Index extents = random.extents(random.below(3) + 1);
    for (int64_t& extent : extents) extent = std::min<int64_t>(extent, 4);
    const BoundLayout a = bind_stored({.layout = random.layout(extents)}, extents);
    const BoundLayout b = bind_stored({.layout = random.layout(extents)}, extents);
    bool same = true;
    for_each_index(extents, [&](const Index& i) { same &= a.offset(i) == b.offset(i); });
    ASSERT_EQ(*same_places(a, b), same)
        << a.layout().to_string() << " and " << b.layout().to_string();
    equal += same;
  }
  EXPECT_GT(equal, 50);
  EXPECT_LT(equal, 1900);
}

TEST(SamePlaces, GivesUpInsteadOfHanging) {
  const Index extents = {2, int64_t{1} << 50};
  const Result<bool> same =
      same_places(bound("mn: n/16 m n%16", extents), bound("mn: (n/16 m) n%16", extents));
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, Code::kResourceExhausted);
}

TEST(IsViewOf, AsksForPlacesAndPaddingToo) {
  const Index extents = {20, 28};
  const BoundLayout nz = bound("mn: n/16 m/16 m%16 n%16", extents);
  EXPECT_TRUE(*is_view_of(nz, nz));
  EXPECT_TRUE(*is_view_of(bound("mn: n/16 m/16 m%16 n%16; pad=any", extents), nz));
  EXPECT_FALSE(*is_view_of(nz, bound("mn: n/16 m/16 m%16 n%16; pad=any", extents)));
  EXPECT_FALSE(*is_view_of(nz, bound("mn: m n", extents)));
  // Three channels in rows of 16: the strided view has no padding, so it needs nothing of the gaps.
  const BoundLayout padded = bound("mc: m c/16 c%16", {4, 3});
  const BoundLayout strided =
      bind_stored({.layout = *Layout::parse("mc: m c"), .strides = Index{16, 1}}, {4, 3});
  EXPECT_TRUE(*is_view_of(strided, padded));
  EXPECT_FALSE(*is_view_of(padded, strided));
  EXPECT_TRUE(*is_view_of(bound("mc: m c%4", {1, 3}), bound("mc: m c%8", {1, 3})));
  EXPECT_FALSE(*is_view_of(bound("mc: m c%8", {1, 3}), bound("mc: m c%4", {1, 3})));
}

// @post at(permute(t, p), i) == at(t, j) with j[p[a]] == i[a]
TEST(Permute, RenamesAxes) {
  RandomLayouts random(7);
  for (int round = 0; round < 200; ++round) {
    const Index extents = random.extents(3);
    const Stored t{.layout = random.layout(extents)};
    std::vector<int> p = {0, 1, 2};
    for (int n = random.below(6); n > 0; --n) std::next_permutation(p.begin(), p.end());
    const View view = *permute(t, extents, p);
    const BoundLayout before = bind_stored(t, extents);
    const BoundLayout after = bind_stored(view.stored, view.extents);
    for_each_index(view.extents, [&](const Index& i) {
      Index j(3);
      for (size_t a = 0; a < 3; ++a) j[static_cast<size_t>(p[a])] = i[a];
      ASSERT_EQ(after.offset(i), before.offset(j));
    });
  }
  EXPECT_EQ(
      permute(stored("mn: m n"), Index{2, 3}, std::vector<int>{1, 0})->stored.layout.to_string(),
      "nm: m n");
  EXPECT_FALSE(permute(stored("mn: m n"), Index{2, 3}, std::vector<int>{0, 0}));
  EXPECT_FALSE(permute(stored("mn: m n"), Index{2, 3}, std::vector<int>{0}));
}

// @post at(slice(t, a, s, n, d), i) == at(t, j) with j[a] == s + d i[a], j == i elsewhere
TEST(Slice, KeepsElementsInPlace) {
  RandomLayouts random(7);
  int done = 0;
  for (int round = 0; round < 3000; ++round) {
    const Index extents = random.extents(1 + random.below(3));
    const auto axis = static_cast<size_t>(random.below(static_cast<int>(extents.size())));
    if (extents[axis] == 0) continue;
    const int64_t step = random.below(3) == 0 ? random.below(5) - 2 : 1;
    const int64_t start = random.below(static_cast<int>(extents[axis]));
    const int64_t room = step > 0   ? (extents[axis] - 1 - start) / step + 1
                         : step < 0 ? start / -step + 1
                                    : 1;
    const int64_t count = random.below(static_cast<int>(room) + 1);
    const Stored t{.layout = random.layout(extents), .offset = 5};
    const Result<View> view =
        slice(t, DType::kF16, extents, static_cast<int>(axis), start, count, step);
    SCOPED_TRACE(fmt::format("{} of {}: axis {} from {} count {} step {}", t.layout.to_string(),
                             fmt::join(extents, "x"), axis, start, count, step));
    if (!view) {
      ASSERT_TRUE(view.error().code == (step == 0 ? Code::kOutOfRange : Code::kUnimplemented))
          << view.error().message;
      continue;
    }
    ++done;
    const BoundLayout before = bind_stored(t, extents);
    const BoundLayout after = bind_stored(view->stored, view->extents);
    ASSERT_EQ(view->extents[axis], count);
    for_each_index(view->extents, [&](const Index& i) {
      Index j = i;
      j[axis] = start + step * i[axis];
      ASSERT_EQ(after.offset(i), before.offset(j));
    });
  }
  EXPECT_GT(done, 700);
}

TEST(Slice, OfBlockedAxesHasAnyPadding) {
  const Stored nz = stored("mn: n/16 m/16 m%16 n%16");
  const Result<View> view = slice(nz, DType::kF16, Index{32, 64}, 1, 16, 20);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->stored.layout.padding(), Padding::kAny);
  EXPECT_EQ(view->stored.offset, 16 * 32);
  EXPECT_EQ(slice(nz, DType::kF16, Index{32, 64}, 1, 8, 20).error().code, Code::kUnimplemented);
  EXPECT_EQ(slice(nz, DType::kF16, Index{32, 64}, 1, 16, 60).error().code, Code::kOutOfRange);
  EXPECT_EQ(slice(nz, DType::kF16, Index{32, 64}, 1, 60, 60, INT64_MIN).error().code,
            Code::kOutOfRange);
  EXPECT_EQ(slice(stored("mn: m n"), DType::kF16, Index{32, 64}, 0, 3, 5)->stored.layout.padding(),
            Padding::kZero);
}

// @post at(reshape(t, e), i) == at(t, j) where i and j have the same row-major position
TEST(Reshape, KeepsElementsInPlace) {
  RandomLayouts random(7);
  constexpr int64_t kTargets[][4] = {{1, 24, 1, 1}, {2, 12, 1, 1}, {3, 8, 1, 1},
                                     {4, 3, 2, 1},  {24, 1, 1, 1}, {2, 2, 2, 3}};
  int done = 0;
  for (int round = 0; round < 1500; ++round) {
    const auto& from = kTargets[random.below(6)];
    const auto& to = kTargets[random.below(6)];
    const Index extents(from, from + 2 + random.below(2) + (from[3] > 1 ? 1 : 0));
    const Index target(to, to + 4);
    if (std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()) != 24)
      continue;
    const DType dtype = random.dtype();
    const Stored t{.layout = random.layout(extents), .offset = 3};
    const Result<View> view = reshape(t, dtype, extents, target);
    SCOPED_TRACE(fmt::format("{} of {} to {}", t.layout.to_string(), fmt::join(extents, "x"),
                             fmt::join(target, "x")));
    if (!view) {
      ASSERT_EQ(view.error().code, Code::kUnimplemented) << view.error().message;
      continue;
    }
    ++done;
    const BoundLayout before = bind_stored(t, extents, dtype);
    const BoundLayout after = bind_stored(view->stored, view->extents, dtype);
    for (int64_t k = 0; k < 24; ++k)
      ASSERT_EQ(after.offset(to_index(k, target)), before.offset(to_index(k, extents)))
          << view->stored.layout.to_string();
  }
  EXPECT_GT(done, 700);
}

TEST(Reshape, OfRowMajorIsRowMajor) {
  const std::pair<Index, Index> cases[] = {
      {{4, 6}, {24}},      {{24}, {4, 6}},           {{4, 6}, {3, 8}}, {{4, 6}, {2, 2, 6}},
      {{4, 6}, {1, 4, 6}}, {{1, 4, 1, 6}, {4, 6}},   {{1}, {}},        {{}, {1, 1}},
      {{0, 3}, {5, 0}},    {{2, 3, 4}, {6, 2, 2, 1}}};
  for (const auto& [from, to] : cases)
    for (const DType dtype : {DType::kF32, DType::kI4}) {
      const Stored t{.layout = Layout::plain(dtype, static_cast<int>(from.size()))};
      const Result<View> view = reshape(t, dtype, from, to);
      ASSERT_TRUE(view) << view.error().message;
      EXPECT_TRUE(dtype == DType::kI4 || view->stored.layout.is_row_major())
          << view->stored.layout.to_string();
      EXPECT_EQ(view->stored.strides, std::nullopt)
          << fmt::format("{} to {}", fmt::join(from, "x"), fmt::join(to, "x"));
      EXPECT_EQ(view->extents, to);
    }
  EXPECT_FALSE(reshape(stored("mn: m n"), DType::kF32, Index{4, 6}, Index{5, 5}));
  EXPECT_FALSE(reshape(stored("mn: m n"), DType::kF32, Index{4, 6}, Index{-4, -6}));
}

TEST(AxisOrder, ReportsAxesThatCouldStandAnywhere) {
  const AxisOrder nhwc = *axis_order(Index{2, 3, 4, 5}, Index{60, 1, 15, 3});
  EXPECT_EQ(nhwc.order, (std::vector<int>{0, 2, 3, 1}));
  EXPECT_TRUE(nhwc.free.empty());
  const AxisOrder unclear = *axis_order(Index{2, 3, 1, 1}, Index{3, 1, 3, 3});
  EXPECT_EQ(unclear.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(unclear.free, (std::vector<int>{2, 3}));
  EXPECT_EQ(axis_order(Index{0, 3}, Index{3, 1})->free, (std::vector<int>{0, 1}));
  EXPECT_FALSE(axis_order(Index{2, 3}, Index{1, 1}));
  EXPECT_FALSE(axis_order(Index{2, 3}, Index{1}));
}

TEST(MatchingLayouts, ReturnsAllThatFit) {
  const std::vector<Layout> candidates = {*Layout::parse("nchw: n c h w"),
                                          *Layout::parse("nchw: n h w c"),
                                          *Layout::parse("nchw: n c/16 h w c%16")};
  EXPECT_EQ(matching_layouts(bound("nchw: n c h w", {2, 16, 1, 1}), candidates)->size(), 3u);
  EXPECT_EQ(matching_layouts(bound("nchw: n c h w", {2, 3, 1, 1}), candidates)->size(), 2u);
  EXPECT_EQ(matching_layouts(bound("nchw: n c h w", {2, 3, 2, 1}), candidates)->size(), 1u);
  EXPECT_EQ(matching_layouts(bound("nchw: w c h n", {2, 3, 2, 2}), candidates)->size(), 0u);
}

}  // namespace
}  // namespace tessera::layout
