#include "tessera/tile/verify.h"

#include <gtest/gtest.h>

#include "tessera/tile/schedule.h"
#include "tessera/tile/text.h"

namespace tessera::tile {
namespace {

// What is wrong with a program of this signature and these statements; empty if nothing is.
std::string fault(
    std::string_view statements,
    std::string_view signature = "x: in f32[M, N], v: in f32[N], t: in i32[M], y: out f32[M, N]",
    std::string_view axes = "axes m = M, n = N, k = 3\n grid m, n") {
  const std::string text =
      fmt::format("program p({}) {{\n {}\n{}}}\n", signature, axes, statements);
  const auto program = parse(text);
  if (!program) return "does not parse: " + program.error().message;
  const Status ok = verify(*program);
  return ok ? "" : ok.error().message;
}

TEST(Verify, TypesAndAxes) {
  EXPECT_EQ(fault("%0 = load x[m, n] : f32(m, n)\nstore y[m, n] = %0\n"), "");
  EXPECT_EQ(fault("%0 = load x[m, n] : f32(m)\n"),
            "program p: load that makes value 0: value 0 has axes (m), need (m, n)");
  EXPECT_EQ(fault("%0 = load x[m, n] : f16(m, n)\n"),
            "program p: load that makes value 0: f16 of x, which holds f32");
  EXPECT_EQ(fault("%0 = load x[m] : f32(m)\n"),
            "program p: load that makes value 0: 1 subscripts for the 2 dimensions of x");
  EXPECT_EQ(fault("%0 = load y[m, n] : f32(m, n)\n"),
            "program p: load that makes value 0: of 'y', which is only written");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = constant i64 1\n%2 = add(%0, %1) : f32(n)\n"),
            "program p: add that makes value 2: i64 and f32");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = bit_not(%0) : f32(n)\n"),
            "program p: bit_not that makes value 1: input 0 is f32");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = lt(%0, %0) : f32(n)\n"),
            "program p: lt that makes value 1: yields bool");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = select(%0, %0, %0) : f32(n)\n"),
            "program p: select that makes value 1: chooses by f32, need bool");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = add(%0) : f32(n)\n"),
            "program p: add that makes value 1: 1 inputs, need 2");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = load t[m] : i32(m)\n%2 = convert(%1) : f32(m)\n"
                  "%3 = mul(%0, %2) : f32(n)\n"),
            "program p: mul that makes value 3: value 3 has axes (n), need (m, n)");
  EXPECT_EQ(fault("%0 = index m : f32(m)\n"),
            "program p: index that makes value 0: an index is i64");
}

TEST(Verify, FoldedAxes) {
  constexpr std::string_view kLoad = "%0 = load x[m, n] : f32(m, n)\n%1 = load v[n] : f32(n)\n";
  const auto with = [&](std::string_view rest) {
    return fault(std::string(kLoad) + std::string(rest));
  };
  EXPECT_EQ(with("%2 = reduce add(%0) over n : f32(m)\n"), "");
  EXPECT_EQ(with("%2 = reduce add(%0) over n : f32(m, n)\n"),
            "program p: add that makes value 2: value 2 has axes (m, n), need (m)");
  EXPECT_EQ(with("%2 = reduce sub(%0) over n : f32(m)\n"),
            "program p: sub that makes value 2: does not fold");
  EXPECT_EQ(with("%2 = reduce add(%1) over m : f32(n)\n"),
            "program p: add that makes value 2: folds axis m, which its inputs lack");
  EXPECT_EQ(with("%2 = dot(%0, %1) over n : f32(m)\n"), "");
  EXPECT_EQ(with("%2 = dot(%0, %1) over m : f32(n)\n"),
            "program p: dot that makes value 2: folds axis m, which its inputs lack");
  EXPECT_EQ(with("%2 = dot(%0, %1) over n : f16(m)\n"),
            "program p: dot that makes value 2: of f32 in f16");
  EXPECT_EQ(with("%2 = dot(%0, %1, %0) over n : f32(m)\n"),
            "program p: dot that makes value 2: value 0 has axes (m, n), need (m)");
}

TEST(Verify, Scopes) {
  EXPECT_EQ(fault("%0 = index k : i64(k)\n"),
            "program p: index that makes value 0: axis k is not in scope");
  EXPECT_EQ(fault("for m {\n}\n"), "program p: axis m is in scope twice");
  EXPECT_EQ(fault("for k {\n %0 = index k : i64(k)\n}\n%1 = neg(%0) : i64(k)\n"),
            "program p: neg that makes value 1: reads value 0 where it is not made");
  EXPECT_EQ(fault("%0 = constant i64 0\n%2 = for k (%1 = %0) : i64 {\n"
                  " %3 = index k : i64(k)\n %4 = reduce add(%3) over k : i64\n"
                  " %5 = add(%1, %4) : i64\n yield %5\n}\n"),
            "");
  EXPECT_EQ(fault("%0 = constant i64 0\n%2 = for k (%1 = %0) : i64 {\n"
                  " %3 = index k : i64(k)\n yield %3\n}\n"),
            "program p: for that makes value 3: what is yielded has an axis more than what is "
            "carried");
  EXPECT_EQ(fault("%0 = index m : i64(m)\n%2 = for k (%1 = %0) : i64 {\n yield %1\n}\n"),
            "program p: for that makes value 2: what is carried in has an axis more than what is "
            "carried");
  EXPECT_EQ(fault("", "x: in f32[m]"), "program p: tensor x: m names an axis");
  EXPECT_EQ(fault("", "x: in f32[M, N] strides(1)"),
            "program p: tensor x: 1 strides for 2 dimensions");
  EXPECT_NE(fault("", "x: in f32[M, N] layout \"m\""), "");
}

TEST(Verify, Bounds) {
  EXPECT_EQ(fault("%0 = load v[n + 1] : f32(n)\n"),
            "program p: load that makes value 0: index 0 may be N, of N");
  EXPECT_EQ(fault("%0 = load v[n - 1] : f32(n)\n"),
            "program p: load that makes value 0: index 0 may be -1");
  EXPECT_EQ(fault("%0 = load v[n - 1] pad 0.0 : f32(n)\n"), "");
  EXPECT_EQ(fault("%0 = load v[m] : f32(m)\n"),
            "program p: load that makes value 0: index 0 may be M - 1, of N");
  EXPECT_EQ(fault("%0 = load v[N - 1 - n] : f32(n)\n"), "");
  EXPECT_EQ(fault("%0 = load v[n*m] pad 0.0 : f32(m, n)\n"),
            "program p: load that makes value 0: 'm*n' is not affine in the axes");
  EXPECT_EQ(fault("%0 = load x[3*m, n] : f32(m, n)\n", "x: in f32[3*M - 2, N]"), "");
  EXPECT_EQ(fault("%0 = load x[3*m, n] : f32(m, n)\n", "x: in f32[3*M - 3, N]"),
            "program p: load that makes value 0: index 0 may be 3*M - 3, of 3*M - 3");
  EXPECT_EQ(fault("%0 = load t[m] : i32(m)\n%1 = load x[%0, n] pad 0.0 : f32(m, n)\n"), "");
  EXPECT_EQ(fault("%0 = load v[n] : f32(n)\n%1 = load x[m, %0] pad 0.0 : f32(m, n)\n"),
            "program p: load that makes value 1: at places of f32");
  EXPECT_EQ(fault("%0 = load t[m - 1] pad -7.0 : i32(m)\n"), "");
  EXPECT_EQ(fault("%0 = load t[m - 1] pad 0.5 : i32(m)\n"),
            "program p: load that makes value 0: pads i32 with 0.5");
  EXPECT_EQ(fault("%0 = load t[m - 1] pad -inf : i32(m)\n"),
            "program p: load that makes value 0: pads i32 with -inf");
}

TEST(Verify, OneWriterPerElement) {
  constexpr std::string_view kOne = "%0 = constant f32 1.0\n";
  const auto store = [&](std::string_view rest, std::string_view signature) {
    return fault(std::string(kOne) + std::string(rest), signature);
  };
  EXPECT_EQ(store("store y[m, n] = %0\n", "y: out f32[M, N]"), "");
  EXPECT_EQ(store("store y[m] = %0\n", "y: out f32[M]"),
            "program p: store: all pieces of axis n write one place");
  EXPECT_EQ(store("store y[m + n] = %0\n", "y: out f32[M + N]"),
            "program p: store: axes that share a subscript need constant sizes");
  EXPECT_EQ(store("store y[m, n, n] = %0\n", "y: out f32[M, N, N]"),
            "program p: store: axis n is in two subscripts");
  constexpr std::string_view kAxes = "axes m = 4, n = 5\n grid m, n";
  const auto digits = [&](std::string_view at) {
    return fault(fmt::format("{}store y[{}] = %0\n", kOne, at), "y: out f32[100]", kAxes);
  };
  EXPECT_EQ(digits("5*m + n"), "");
  EXPECT_EQ(digits("m + 4*n"), "");
  EXPECT_EQ(digits("4*m + n"), "program p: store: two indices lead to one place");
}

TEST(Schedule, FootprintIsThatOfTheLiveTiles) {
  const Program p = *parse(R"(program p(x: in f32[M, N], y: out f32[M, N]) {
  axes m = M, n = N
  grid m
  %0 = constant f32 0.0
  %2 = for n (%1 = %0) : f32(m) {
    %3 = load x[m, n] : f32(m, n)
    %4 = mul(%3, %3) : f32(m, n)
    %5 = reduce add(%4) over n : f32(m)
    %6 = add(%1, %5) : f32(m)
    yield %6
  }
  for n {
    %7 = load x[m, n] : f32(m, n)
    %8 = mul(%7, %2) : f32(m, n)
    store y[m, n] = %8
  }
}
)");
  ASSERT_TRUE(verify(p));
  const op::Bindings sizes{{"M", 100}, {"N", 1000}};
  const Schedule s{{{2, 1}, {64, 16}}};
  // What is carried, x and its square.
  EXPECT_EQ(footprint(p, s, sizes)->value, 4 * (2 + 2 * 128));
  EXPECT_EQ(*grid_size(p, s, sizes), 50);
  EXPECT_TRUE(check(p, s, sizes, {Bytes(2000)}));
  EXPECT_EQ(check(p, s, sizes, {Bytes(1000)}).error().code, Code::kResourceExhausted);
  EXPECT_EQ(footprint(p, Schedule{{{2, 1}, {0, 1}}}, sizes)->value, 4 * (2 + 2 * 2000));
  // A piece is never longer than its axis.
  EXPECT_EQ(footprint(p, s, {{"M", 1}, {"N", 3}})->value, 4 * (1 + 2 * 3));
  EXPECT_FALSE(check(p, Schedule{{{2, 1}, {60, 16}}}, sizes));
  EXPECT_FALSE(check(p, Schedule{{{2, 2}, {64, 16}}}, sizes));
  EXPECT_FALSE(check(p, Schedule{{{2, 1}}}, sizes));
}

}  // namespace
}  // namespace tessera::tile
