// The worked examples are those of XLA's notes on tiled layouts.
#include "tessera/layout/xla.h"

#include <gtest/gtest.h>

#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;

int64_t place(std::string_view text, const Index& extents, const Index& index) {
  return BoundLayout::bind(parse_xla(text)->layout, DType::kF32, extents)->offset(index);
}

TEST(Xla, WorkedExamples) {
  EXPECT_EQ(place("{1,0:T(2,2)}", {3, 5}, {2, 3}), 17);
  EXPECT_EQ(place("{1,0:T(2,4)(2,1,1,1)}", {8, 8}, {6, 5}), 51);
}

TEST(Xla, BecomesAnExpression) {
  const auto text = [](std::string_view xla, std::string_view letters = "") {
    const auto parsed = parse_xla(xla, letters);
    return parsed ? parsed->layout.to_string() : parsed.error().message;
  };
  EXPECT_EQ(text("{1,0}"), "ab: a b");
  EXPECT_EQ(text("{0,1}", "mn"), "mn: n m");
  EXPECT_EQ(text("{3,0,2,1}", "nchw"), "nchw: c h n w");
  EXPECT_EQ(text("{1,0:T(8,128)}", "mn"), "mn: m/8 n/128 m%8 n%128");
  EXPECT_EQ(text("{1,0:T(8,128)(2,1)}", "mn"), "mn: m/8 n/128 m%8/2 n%128 m%2");
  EXPECT_EQ(text("{1,0:T(8,128)(4,1)}", "mn"), "mn: m/8 n/128 m%8/4 n%128 m%4");
  EXPECT_EQ(text("{0:T(256)(128)(2,1)}", "n"), "n: n/256 n%256/128/2 n%128 n%256/128%2");
  EXPECT_EQ(text("{2,1,0:T(2,*,128)}", "abc"), "abc: a/2 (b c)/128 a%2 (b c)%128");
  EXPECT_EQ(text("{}"), ": ");
  EXPECT_EQ(text(" f32[3,5]{1,0:T(2,2)} "), "ab: a/2 b/2 a%2 b%2");
  EXPECT_EQ(text("f32[3,5]"), "ab: a b");
}

TEST(Xla, KeepsWhatItSaysBesides) {
  const XlaLayout x = *parse_xla("s4[20, 28]{1,0:T(8,128)(2,1)E(4)S(5)}");
  EXPECT_EQ(x.dtype, DType::kI4);
  EXPECT_EQ(x.extents, (Index{20, 28}));
  EXPECT_EQ(x.element_bits, 4);
  EXPECT_EQ(x.memory_space, 5);
  EXPECT_EQ(parse_xla("pred[]")->dtype, DType::kBool);
  EXPECT_EQ(parse_xla("f8e4m3fn[2]{0:D(D)L(1)}")->dtype, DType::kF8E4M3FN);
}

// linear_index(e, d) over (d / t, t) for tiles that need no padding within a tile: tile by tile, by
// the rule itself.
int64_t by_rule(Index index, Index dims, const std::vector<Index>& tiles) {
  for (const Index& tile : tiles) {
    const size_t first = dims.size() - tile.size();
    for (size_t i = 0; i < tile.size(); ++i) {
      dims.push_back(tile[i]);
      index.push_back(index[first + i] % tile[i]);
      dims[first + i] = (dims[first + i] + tile[i] - 1) / tile[i];
      index[first + i] /= tile[i];
    }
  }
  int64_t linear = 0;
  for (size_t i = 0; i < dims.size(); ++i) linear = linear * dims[i] + index[i];
  return linear;
}

TEST(Xla, FollowsTheRuleForAnyTiles) {
  RandomLayouts random(5);
  for (int round = 0; round < 300; ++round) {
    const int rank = 1 + random.below(3);
    const Index extents = random.extents(rank);
    std::vector<Index> tiles;
    std::string text = "{";
    for (int a = rank; a-- > 0;) text += fmt::format("{}{}", a, a > 0 ? "," : "");
    size_t axes = static_cast<size_t>(rank);
    for (int t = 1 + random.below(2); t > 0; --t) {
      Index tile;
      for (size_t n = 1 + static_cast<size_t>(random.below(static_cast<int>(axes))); n > 0; --n)
        tile.push_back(1 << random.below(4));
      axes += tile.size();
      text += fmt::format("{}({})", tiles.empty() ? ":T" : "", fmt::join(tile, ","));
      tiles.push_back(std::move(tile));
    }
    text += "}";
    const auto parsed = parse_xla(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto bound = BoundLayout::bind(parsed->layout, DType::kF32, extents);
    ASSERT_TRUE(bound) << bound.error().message;
    for_each_index(extents, [&](const Index& i) {
      ASSERT_EQ(bound->offset(i), by_rule(i, extents, tiles)) << text;
    });
  }
}

TEST(Xla, SaysWhatIsWrong) {
  const auto says = [](std::string_view text, std::string_view part, Code code) {
    const auto parsed = parse_xla(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, code) << text;
    EXPECT_NE(parsed.error().message.find(part), std::string::npos) << parsed.error().message;
  };
  constexpr Code kBad = Code::kInvalidArgument;
  says("", "expected '{' or a shape", kBad);
  says("{1,0", "expected ',' or '}' at position 4", kBad);
  says("{1,1}", "no permutation of 2 axes", kBad);
  says("{2,0}", "no permutation", kBad);
  says("{1,0:T(0,128)}", "1 to 2147483648 is expected at position 7", kBad);
  says("{1,0:T()}", "a tile without sizes", kBad);
  says("{0:T(8,128)}", "a tile of 2 sizes cuts 1 axes", kBad);
  says("{1,0:T(8,*)}", "there is no next axis", kBad);
  says("{1,0:T(8,128)x}", "expected a property", kBad);
  says("{1,0:P(f32[2])}", "the property 'P' has no expression", Code::kUnimplemented);
  says("{1,0:D(C,D)}", "sparse", Code::kUnimplemented);
  says("{1,0:L(128)}", "tail aligned to 128", Code::kUnimplemented);
  says("{1,0} x", "more text", kBad);
  says("f33[2,2]{1,0}", "'f33' is no type", kBad);
  says("f32[2]{1,0}", "the layout has 2 axes, the shape 1", kBad);
  says("{0:T(2)(2)(2)(2)(2)(2)(2)(2)(2)}", "more than 8 tiles", kBad);
  EXPECT_FALSE(parse_xla("{1,0}", "mnk"));
}

}  // namespace
}  // namespace tessera::layout
