#include "tessera/layout/layout.h"

#include <gtest/gtest.h>

namespace tessera::layout {
namespace {

std::string reprint(std::string_view text, std::string_view letters) {
  const Result<Layout> layout = Layout::parse(text, letters);
  return layout ? layout->expression() : "error: " + layout.error().message;
}

TEST(LayoutText, PrintsWhatItParses) {
  for (const char* text :
       {"m n", "n/16 m/16 m%16 n%16", "m", "", "(m n)", "(m n)/16 (m n)%16", "((m n) m%2)/3%4 n",
        "m (n/8)^(m%8) n%8", "m^n n", "(m^n)/4 n", "m[0:20]|m[20:52] n",
        "(m[0:20]|m[20:52])/16 n (m[0:20]|m[20:52])%16", "m/2/3%5 n%7/2", "(m/2 n)^(m%2 n) m"})
    EXPECT_EQ(reprint(text, "mn"), text);
}

TEST(LayoutText, NormalisesSpaceAndParentheses) {
  EXPECT_EQ(reprint("  n /16   m% 16 ", "mn"), "n/16 m%16");
  EXPECT_EQ(reprint("((m)) (n)/2", "mn"), "m n/2");
  EXPECT_EQ(reprint("m ^ n/2", "mn"), "(m^n)/2");
  EXPECT_EQ(reprint("m[0:2] | m[2:5] n", "mn"), "m[0:2]|m[2:5] n");
}

// parse(l.to_string()) == l
TEST(LayoutText, RoundTripsWithHeadAndPadding) {
  for (const char* text : {"nchw: n c/16 h w c%16", "mn: n m; pad=any", ": ", "a: a/2 a%2"}) {
    const Result<Layout> layout = Layout::parse(text);
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_EQ(layout->to_string(), text);
    EXPECT_EQ(*Layout::parse(layout->to_string()), *layout);
  }
}

TEST(LayoutText, LettersAreOnlyNames) {
  EXPECT_EQ(*Layout::parse("n m", "mn"), *Layout::parse("b a", "ab"));
  EXPECT_FALSE(*Layout::parse("n m", "mn") == *Layout::parse("n m", "nm"));
  EXPECT_FALSE(*Layout::parse("m", "m") == Layout::parse("m", "m")->with_padding(Padding::kAny));
}

TEST(LayoutText, BuildsRowMajor) {
  EXPECT_EQ(Layout::row_major(3).to_string(), "abc: a b c");
  EXPECT_EQ(Layout::dense(3).to_string(), "abc: (a b c)");
  EXPECT_EQ(Layout::plain(DType::kI4, 2), Layout::dense(2));
  EXPECT_EQ(Layout::plain(DType::kF16, 2), Layout::row_major(2));
  EXPECT_TRUE(Layout::row_major(0).is_row_major());
  EXPECT_TRUE(Layout::parse("xy: x y")->is_row_major());
  EXPECT_FALSE(Layout::parse("xy: y x")->is_row_major());
  EXPECT_EQ(Layout::row_major(60).rank(), 60);
}

TEST(LayoutText, RefusesWhatIsNotALayout) {
  const std::pair<const char*, const char*> cases[] = {
      {"m x", "one of the logical axes"},
      {"mn", "separated by a space"},
      {"(m n", "')' is missing"},
      {"m n )", "one of the logical axes"},
      {"m/0 n", "at least 1"},
      {"m%0 n", "at least 1"},
      {"m/ n", "expected a number"},
      {"m/-2 n", "expected a number"},
      {"m/99999999999999999999 n", "beyond 2^63"},
      {"() m n", "is empty"},
      {"n/8^m m", "'^' after a division"},
      {"m[0:2]|n[0:2]", "different letters"},
      {"m[0:2]|m[1:3]", "overlap"},
      {"m[3:3] n", "is empty"},
      {"m[3 n", "expected ':'"},
      {"m|n", "joins segments only"},
      {"m n; pad=seven", "expected pad=zero"},
  };
  for (const auto& [text, reason] : cases) {
    const Result<Layout> layout = Layout::parse(text, "mn");
    ASSERT_FALSE(layout) << text;
    EXPECT_EQ(layout.error().code, Code::kInvalidArgument);
    EXPECT_NE(layout.error().message.find(reason), std::string::npos) << layout.error().message;
  }
  EXPECT_FALSE(Layout::parse("m n"));
  EXPECT_FALSE(Layout::parse("mm: m"));
  EXPECT_FALSE(Layout::parse("m?: m"));
  EXPECT_FALSE(Layout::parse("m1: m"));
  EXPECT_FALSE(Layout::parse("m k[0:3]"));
}

TEST(LayoutText, LimitsDepthLengthAndTerms) {
  EXPECT_FALSE(Layout::parse(std::string(10000, '(') + "m" + std::string(10000, ')'), "m"));
  EXPECT_FALSE(Layout::parse(std::string(4000, '(') + "m" + std::string(4000, ')'), "m"));
  std::string chain = "m";
  for (int i = 0; i < 1000; ++i) chain += "/2";
  EXPECT_FALSE(Layout::parse(chain, "m"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "m ";
  EXPECT_FALSE(Layout::parse(many, "m"));
  Expr deep = letter(0);
  for (int i = 0; i < 1000; ++i) deep = div(std::move(deep), 1);
  EXPECT_FALSE(Layout::make("m", {deep}));
  EXPECT_FALSE(Layout::make("m", {letter(1)}));
  EXPECT_FALSE(Layout::make("m", {div(letter(0), 0)}));
  EXPECT_FALSE(Layout::make("m", {exclusive_or({letter(0)})}));
  EXPECT_FALSE(Layout::make("m", {join(0, {})}));
}

}  // namespace
}  // namespace tessera::layout
