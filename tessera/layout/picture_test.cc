#include "tessera/layout/picture.h"

#include <gtest/gtest.h>

namespace tessera::layout {
namespace {

using Numbers = std::vector<int64_t>;

BoundLayout bound(std::string_view text, const Numbers& extents) {
  return *BoundLayout::bind(*Layout::parse(text), DType::kF16, extents);
}

TEST(Picture, OfFractals) {
  const BoundLayout nz = bound("mn: n/2 m/2 m%2 n%2", {4, 4});
  EXPECT_EQ(order_of(nz, 100), (Numbers{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(order_of(nz, 3), (Numbers{0, 1, 4}));
  const Picture p = picture_of(nz);
  ASSERT_EQ(p.blocks.size(), 4u);
  EXPECT_EQ(p.blocks[1].label, "n/2=0 m/2=1");
  EXPECT_EQ(p.blocks[1].first, 4);
  EXPECT_EQ(p.blocks[1].rows, (std::vector<Numbers>{{8, 9}, {12, 13}}));
  EXPECT_EQ(p.tensor.rows_name, "m");
  EXPECT_EQ(p.tensor.columns_name, "n");
  EXPECT_EQ(p.tensor.rows[3][1].offset, 7);
  EXPECT_EQ(p.tensor.rows[3][1].block, 1);
}

TEST(Picture, ShowsPadding) {
  const Picture p = picture_of(bound("mn: n/4 m/2 m%2 n%4", {3, 5}));
  ASSERT_EQ(p.blocks.size(), 4u);
  EXPECT_EQ(p.blocks[3].rows, (std::vector<Numbers>{{14, -1, -1, -1}, {-1, -1, -1, -1}}));
}

// What a channel's tile divides is shown; the others are held at 0.
TEST(Picture, ChoosesTheAxesThatAreCut) {
  const Picture p = picture_of(bound("nchw: n c/16 h w c%16", {2, 20, 3, 5}));
  EXPECT_EQ(p.tensor.rows_name, "c");
  EXPECT_EQ(p.tensor.columns_name, "w");
  EXPECT_EQ(p.tensor.at, "n=0 h=0");
  EXPECT_EQ(p.tensor.rows[17][2].offset, 3 * 5 * 16 + 2 * 16 + 1);
  EXPECT_EQ(p.tensor.rows[17][2].block, 3 * 5 + 2);
}

TEST(Picture, IsCut) {
  const Picture p = picture_of(bound("mn: n/16 m/16 m%16 n%16", {100, 200}),
                               {.rows = 3, .columns = 5, .blocks = 2});
  ASSERT_EQ(p.blocks.size(), 2u);
  EXPECT_EQ(p.all_blocks, 7 * 13);
  EXPECT_EQ(p.blocks[0].rows.size(), 3u);
  EXPECT_EQ(p.blocks[0].rows[0].size(), 5u);
  EXPECT_EQ(p.tensor.rows.size(), 3u);
  EXPECT_EQ(p.tensor.all_columns, 200);
  EXPECT_NE(to_svg(p, "t").find("2 of 91 blocks, 3 x 5 of 16 x 16 places each"), std::string::npos);
}

TEST(Picture, OfFewAxes) {
  EXPECT_TRUE(picture_of(bound("mn: n m", {0, 4})).blocks.empty());
  EXPECT_EQ(picture_of(bound(": ", {})).blocks[0].rows, (std::vector<Numbers>{{0}}));
  EXPECT_EQ(picture_of(bound("n: n", {3})).blocks[0].rows, (std::vector<Numbers>{{0, 1, 2}}));
  EXPECT_NE(to_svg(picture_of(bound("n: n", {3})), "<&").find("&lt;&amp;"), std::string::npos);
}

}  // namespace
}  // namespace tessera::layout
