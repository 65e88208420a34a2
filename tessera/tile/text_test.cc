#include "tessera/tile/text.h"

#include <gtest/gtest.h>

#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

constexpr std::string_view kSoftmax =
    R"(program softmax(x: in f32[M, N], y: out f32[M, N] strides(s, 1)) {
  axes m = M, n = N
  grid m
  %0 = constant f32 -inf
  %1 = constant f32 0.0
  %3 = for n (%2 = %0) : f32(m) {
    %4 = load x[m, n] : f32(m, n)
    %5 = reduce max(%4) over n : f32(m)
    %6 = max(%2, %5) : f32(m)
    yield %6
  }
  %8 = for n (%7 = %1) : f32(m) {
    %9 = load x[m, n] : f32(m, n)
    %10 = sub(%9, %3) : f32(m, n)
    %11 = exp(%10) : f32(m, n)
    %12 = reduce add(%11) over n : f32(m)
    %13 = add(%7, %12) : f32(m)
    yield %13
  }
  for n {
    %14 = load x[m, n] : f32(m, n)
    %15 = sub(%14, %3) : f32(m, n)
    %16 = exp(%15) : f32(m, n)
    %17 = div(%16, %8) : f32(m, n)
    store y[m, n] = %17
  }
}
)";

// Convolution by taps with zero padding, an embedding, and two values carried.
constexpr std::string_view kMixed =
    R"(program mixed(x: in f16[C, H] layout "ch: c h", w: in f16[C, 3], t: in i32[H], e: in f32[V, 5], y: out f32[H, 5], z: inout f16[H]) {
  axes h = H, c = C, r = 3, d = 5
  grid h
  whole r, d
  %0 = constant f16 0.0
  %1 = constant i64 -3
  %4, %5 = for c (%2 = %0, %3 = %0) : f16(h), f16(h) {
    %6 = load x[c, h + r - 1] pad 0.0 : f16(h, c, r)
    %7 = load w[c, r] : f16(c, r)
    %8 = dot(%6, %7, %2) over c, r : f16(h)
    yield %8, %3
  }
  %9 = load t[h] : i32(h)
  %10 = load e[%9, d] pad 0.0 : f32(h, d)
  %11 = index d : i64(d)
  %12 = lt(%11, %1) : bool(d)
  %13 = select(%12, %10, %10) : f32(h, d)
  store y[h, d] = %13
  %14 = load z[h] : f16(h)
  %15 = add(%14, %4) : f16(h)
  store z[h] = %15
}
)";

TEST(Text, ReadsBackWhatItPrints) {
  for (std::string_view text : {kSoftmax, kMixed}) {
    const auto program = parse(text);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(print(*program), text);
    const Status ok = verify(*program);
    EXPECT_EQ(ok ? "" : ok.error().message, "");
  }
}

TEST(Text, NamesTheSymbols) {
  EXPECT_EQ(parse(kSoftmax)->symbols(), (std::vector<std::string>{"M", "N", "s"}));
  EXPECT_EQ(parse(kMixed)->symbols(), (std::vector<std::string>{"C", "H", "V"}));
}

TEST(Text, TellsWhereItIsWrong) {
  const auto why = [](std::string_view from, std::string_view to) {
    std::string text(kSoftmax);
    text.replace(text.find(from), from.size(), to);
    const auto program = parse(text);
    return program ? "" : program.error().message;
  };
  EXPECT_EQ(why("program", "graph"), "line 1, column 1: expected 'program'");
  EXPECT_EQ(why("in f32", "into f32"), "line 1, column 24: expected 'in', 'out' or 'inout'");
  EXPECT_EQ(why("f32[M, N], y", "f33[M, N], y"), "line 1, column 26: 'f33' is no type of elements");
  EXPECT_EQ(why("grid m", "grid k"), "line 3, column 9: there is no axis 'k'");
  EXPECT_EQ(why("reduce max(%4)", "reduce max(%5)"), "line 8, column 23: %5 is not made yet");
  EXPECT_EQ(why("%5 = reduce", "%4 = reduce"), "line 8, column 40: %4 is made twice");
  EXPECT_EQ(why("exp(%10)", "expm(%10)"), "line 15, column 15: there is no function 'expm'");
  EXPECT_EQ(why("yield %6", "yield %6, %8"), "line 10, column 17: %8 is not made yet");
  EXPECT_EQ(why("load x[m, n]", "load v[m, n]"), "line 7, column 16: there is no tensor 'v'");
  EXPECT_EQ(why("  for n {\n", "  %20 = for n {\n"),
            "line 20, column 15: 1 results of a loop that carries 0");
}

TEST(Text, OfSchedules) {
  const Program p = *parse(kSoftmax);
  const Schedule s{{{1, 1}, {64, 16}}};
  EXPECT_EQ(print(s, p), "m: 1, n: 64 vector 16");
  EXPECT_EQ(*parse_schedule("m: 1, n: 64 vector 16", p), s);
  EXPECT_EQ(*parse_schedule("n: 0", p), (Schedule{{{1, 1}, {0, 1}}}));
  EXPECT_EQ(parse_schedule("k: 3", p).error().message, "line 1, column 2: there is no axis 'k'");
  EXPECT_FALSE(parse_schedule("m: 1, m: 2", p));
  EXPECT_FALSE(parse_schedule("m: 1 of 2", p));
}

}  // namespace
}  // namespace tessera::tile
