#include "tessera/tile/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

// Runs a program on host tensors.
class Try {
 public:
  explicit Try(std::string_view text) : program_(*parse(text)) {
    const Status ok = verify(program_);
    EXPECT_EQ(ok ? "" : ok.error().message, "");
  }
  template <class T>
  Try& with(std::vector<T>& values) {
    memory_.push_back(std::as_writable_bytes(std::span(values)));
    return *this;
  }
  // "" or what went wrong.
  std::string at(std::string_view schedule, op::Bindings symbols = {}) {
    const Schedule s = *parse_schedule(schedule, program_);
    const Status ran = interpret(program_, s, symbols, memory_);
    return ran ? "" : ran.error().message;
  }

 private:
  Program program_;
  std::vector<std::span<std::byte>> memory_;
};

TEST(Interpret, ConvolvesWithZerosAroundAtAnySchedule) {
  constexpr std::string_view kText =
      R"(program conv(x: in f32[C, H], w: in f32[C, 3], y: out f32[H]) {
  axes h = H, c = C, r = 3
  grid h
  whole r
  %0 = constant f32 0.0
  %2 = for c (%1 = %0) : f32(h) {
    %3 = load x[c, h + r - 1] pad 0.0 : f32(h, c, r)
    %4 = load w[c, r] : f32(c, r)
    %5 = dot(%3, %4, %1) over c, r : f32(h)
    yield %5
  }
  store y[h] = %2
}
)";
  std::vector<float> x{1, 2, 3, 4, 10, 20, 30, 40}, w{1, 10, 100, -1, 0, 1}, y(4);
  for (std::string_view s : {"h: 1, c: 1, r: 0", "h: 3, c: 2, r: 0", "h: 0, c: 0, r: 0"}) {
    std::ranges::fill(y, 0.0f);
    EXPECT_EQ(Try(kText).with(x).with(w).with(y).at(s, {{"C", 2}, {"H", 4}}), "");
    EXPECT_EQ(y, (std::vector<float>{210 + 20, 321 + 20, 432 + 20, 43 - 30})) << s;
  }
}

TEST(Interpret, LoadsFromPlacesThatAreComputed) {
  constexpr std::string_view kText =
      R"(program embed(t: in i32[N], e: in f32[V, 2], y: out f32[N, 2]) {
  axes n = N, d = 2
  grid n
  whole d
  %0 = load t[n] : i32(n)
  %1 = load e[%0, d] : f32(n, d)
  store y[n, d] = %1
}
)";
  std::vector<int32_t> t{2, 0, 1};
  std::vector<float> e{1, 2, 3, 4, 5, 6}, y(6);
  EXPECT_EQ(Try(kText).with(t).with(e).with(y).at("n: 2, d: 0", {{"N", 3}, {"V", 3}}), "");
  EXPECT_EQ(y, (std::vector<float>{5, 6, 1, 2, 3, 4}));
  t[1] = 3;
  EXPECT_EQ(Try(kText).with(t).with(e).with(y).at("n: 2, d: 0", {{"N", 3}, {"V", 3}}),
            "program embed: index [3,0] of 'e', which is [3,2]");
}

TEST(Interpret, HidesByIndex) {
  std::vector<float> y(6);
  EXPECT_EQ(Try(R"(program lower(y: out f32[M, N]) {
  axes m = M, n = N
  grid m, n
  %0 = index m : i64(m)
  %1 = index n : i64(n)
  %2 = le(%1, %0) : bool(m, n)
  %3 = constant f32 1.0
  %4 = constant f32 -inf
  %5 = select(%2, %3, %4) : f32(m, n)
  store y[m, n] = %5
}
)")
                .with(y)
                .at("m: 2, n: 2", {{"M", 2}, {"N", 3}}),
            "");
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(y, (std::vector<float>{1, hidden, hidden, 1, 1, hidden}));
}

TEST(Interpret, ReportsWhatCannotBe) {
  constexpr std::string_view kText = R"(program half(x: in i32[N], y: out i32[N]) {
  axes n = N
  grid n
  %0 = load x[n] : i32(n)
  %1 = size N - 3 : i64
  %2 = convert(%1) : i32
  %3 = div(%0, %2) : i32(n)
  store y[n] = %3
}
)";
  std::vector<int32_t> x{8, -9, 5, 7}, y(4);
  EXPECT_EQ(Try(kText).with(x).with(y).at("n: 2", {{"N", 3}}), "an integer is divided by zero");
  EXPECT_EQ(Try(kText).with(x).with(y).at("n: 2", {{"N", 4}}), "");
  EXPECT_EQ(y, x);
  EXPECT_EQ(Try(kText).with(x).with(y).at("n: 2", {{"N", 5}}),
            "element 4 of 16 bytes; program half, tensor 'x'");
  EXPECT_EQ(Try(kText).with(x).with(y).at("n: 2"), "size 'N' is not known");
  EXPECT_EQ(Try(kText).with(x).at("n: 2", {{"N", 4}}), "1 tensors for the 2 of program half");
}

// What the functions yield of the corners of their types.
TEST(Interpret, WrapsRoundsAndPassesNaNOn) {
  std::vector<int8_t> i{127, -128}, j(2);
  std::vector<float> f{NAN, 1.5f}, g(2), h(2);
  EXPECT_EQ(
      Try(R"(program p(i: in i8[2], f: in f32[2], j: out i8[2], g: out f32[2], h: out f32[2]) {
  axes n = 2
  whole n
  %0 = load i[n] : i8(n)
  %1 = load f[n] : f32(n)
  %2 = constant i8 1
  %3 = add(%0, %2) : i8(n)
  store j[n] = %3
  %4 = constant f32 0.0
  %5 = max(%4, %1) : f32(n)
  store g[n] = %5
  %6 = constant bf16 1.01
  %7 = convert(%6) : f32
  store h[n] = %7
}
)")
          .with(i)
          .with(f)
          .with(j)
          .with(g)
          .with(h)
          .at("n: 0"),
      "");
  EXPECT_EQ(j, (std::vector<int8_t>{-128, -127}));
  EXPECT_TRUE(std::isnan(g[0]));
  EXPECT_EQ(g[1], 1.5f);
  EXPECT_EQ(h[0], 1.0078125f);
}

}  // namespace
}  // namespace tessera::tile
