// Programs that no problem leads to, compiled and interpreted.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/element.h"
#include "tessera/codegen/mlir/compiler.h"
#include "tessera/codegen/mlir/testing/run.h"
#include "tessera/op/tensor.h"
#include "tessera/tile/interpret.h"
#include "tessera/tile/testing/trial.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen::mlir::testing {
namespace {

constexpr std::string_view kPrograms[] = {
    // By index: what is above the diagonal is hidden.
    R"(program lower(x: in f32[M, N], y: out f32[M, N]) {
  axes m = M, n = N
  grid m, n
  %0 = index m : i64(m)
  %1 = index n : i64(n)
  %2 = le(%1, %0) : bool(m, n)
  %3 = load x[m, n] : f32(m, n)
  %4 = constant f32 -inf
  %5 = select(%2, %3, %4) : f32(m, n)
  store y[m, n] = %5
}
)",
    // Windows that overlap, with a stride.
    R"(program windows(x: in f32[2*M + N, 3], y: out f32[M, 3]) {
  axes m = M, n = N, c = 3
  grid m, c
  %0 = constant f32 0.0
  %2 = for n (%1 = %0) : f32(m, c) {
    %3 = load x[2*m + n, c] : f32(m, n, c)
    %4 = reduce add(%3) over n : f32(m, c)
    %5 = add(%1, %4) : f32(m, c)
    yield %5
  }
  store y[m, c] = %2
}
)",
    // Two values carried, one of which counts; sizes as numbers.
    R"(program statistics(x: in f32[M, N], y: out f32[M], z: out i64[M]) {
  axes m = M, n = N
  grid m
  %0 = constant f32 -inf
  %1 = constant i64 0
  %4, %5 = for n (%2 = %0, %3 = %1) : f32(m), i64(m) {
    %6 = load x[m, n] : f32(m, n)
    %7 = reduce max(%6) over n : f32(m)
    %8 = max(%2, %7) : f32(m)
    %9 = constant f32 0.5
    %10 = gt(%6, %9) : bool(m, n)
    %11 = convert(%10) : i64(m, n)
    %12 = reduce add(%11) over n : i64(m)
    %13 = add(%3, %12) : i64(m)
    yield %8, %13
  }
  %14 = size N : i64
  %15 = sub(%14, %5) : i64(m)
  store y[m] = %4
  store z[m] = %15
}
)",
    // What is carried is read twice: its fold cannot wait for the end of the loop.
    R"(program running(x: in f32[M, N], y: out f32[M]) {
  axes m = M, n = N
  grid m
  %0 = constant f32 1.0
  %2 = for n (%1 = %0) : f32(m) {
    %3 = load x[m, n] : f32(m, n)
    %4 = reduce max(%3) over n : f32(m)
    %5 = max(%1, %4) : f32(m)
    %6 = max(%5, %1) : f32(m)
    yield %6
  }
  store y[m] = %2
}
)",
    // One pass over rows that are kept in place.
    R"(program scale(x: in f32[M], y: inout f32[M, N]) {
  axes m = M, n = N
  grid m
  %0 = load x[m] : f32(m)
  for n {
    %1 = load y[m, n] : f32(m, n)
    %2 = mul(%1, %0) : f32(m, n)
    store y[m, n] = %2
  }
}
)",
};

// The bytes of the program's tensors at these sizes: random numbers, and NaN and infinities.
std::vector<std::vector<std::byte>> draw(std::mt19937_64& random, const tile::Program& p,
                                         const op::Bindings& symbols) {
  std::vector<std::vector<std::byte>> list;
  for (const tile::Tensor& t : p.tensors) {
    op::Dims dims;
    for (const tile::Expr& d : t.dims) dims.push_back(*d.eval(symbols));
    const op::Tensor x = tile::testing::random_tensor(random, t.dtype, dims, random() % 2 == 0);
    list.emplace_back(x.data(), x.data() + packed_bytes(t.dtype, x.count()));
  }
  return list;
}

std::vector<std::span<std::byte>> spans(std::vector<std::vector<std::byte>>& memory) {
  // Empty tensors have an address too.
  static std::byte nothing[64];
  std::vector<std::span<std::byte>> list;
  for (auto& bytes : memory)
    list.push_back(bytes.empty() ? std::span<std::byte>(nothing, 0) : std::span(bytes));
  return list;
}

// The first element that differs by more than sums in another order do; empty if none does.
std::string difference(const tile::Tensor& t, const std::vector<std::byte>& got,
                       const std::vector<std::byte>& want) {
  const auto count = static_cast<int64_t>(want.size()) * 8 / bits_of(t.dtype);
  for (int64_t i = 0; i < count; ++i) {
    const double g = load_f64(t.dtype, got.data(), i), w = load_f64(t.dtype, want.data(), i);
    if (g == w || (std::isnan(g) && std::isnan(w)) || std::fabs(g - w) <= 1e-5 * (1 + std::fabs(w)))
      continue;
    return fmt::format("{}: element {} is {}, want {}", t.name, i, g, w);
  }
  return "";
}

TEST(Programs, MeanWhatTheInterpreterSays) {
  if (const auto compiler = Compiler::open(); !compiler) GTEST_SKIP() << compiler.error().message;
  Machine machine;
  std::mt19937_64 random(7);
  for (std::string_view text : kPrograms) {
    const tile::Program p = *tile::parse(text);
    ASSERT_TRUE(tile::verify(p)) << p.name << tile::verify(p).error().message;
    for (const Target& target : targets())
      for (const auto& [m, n] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 0}, {0, 3}, {5, 16}, {17, 31}, {2, 97}}) {
        const op::Bindings symbols{{"M", m}, {"N", n}};
        const tile::Schedule s = draw_schedule(random, p, target);
        const std::string where =
            fmt::format("{}, M {}, N {}, {} for {}", p.name, m, n, print(s, p), target.isa);
        auto got = draw(random, p, symbols), want = got;
        const Status meant = tile::interpret(p, s, symbols, spans(want));
        ASSERT_TRUE(meant) << meant.error().message << where;
        const Status ran = machine.execute(p, s, symbols, target, spans(got));
        ASSERT_TRUE(ran) << ran.error().message << where;
        for (size_t t = 0; t < p.tensors.size(); ++t)
          EXPECT_EQ(difference(p.tensors[t], got[t], want[t]), "") << where;
      }
  }
}

}  // namespace
}  // namespace tessera::codegen::mlir::testing
