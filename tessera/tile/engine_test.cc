#include "tessera/tile/engine.h"

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/tile/engine_chip.h"
#include "tessera/tile/engine_paths.h"

namespace tessera::tile::engine {
namespace {

constexpr std::string_view kProduct = R"(engine "dot" on aic {
  constants n
  argument a = 0 : f16[n, 64]
  argument b = 1 : f16[64, 32] strides(1, 64)
  argument c = 2 : f32[n, 32]
  buffer a1 in l1 at 0 : f16[2, 128, 64] layout "NZ"
  buffer b1 in l1 at 32768 : f16[32, 64] layout "NZ"
  buffer a0 in l0a at 0 : f16[128, 64] layout "ZZ"
  buffer b0 in l0b at 0 : f16[64, 32] layout "ZN"
  buffer c0 in l0c at 0 : f32[128, 32] layout "FRACTAL_NZ_L0C"
  for t = core to (n + 127)/128 by cores {
    mte2: copy a1[t%2, i, k] = a[128*t + i, k] pad 0 over i = min(128, n - 128*t), k = 64
    mte2: copy b1[j, k] = b[k, j] over j = 32, k = 64
    mte2: set mte1 t%2
    mte1: wait mte2 t%2
    mte1: copy a0[i, k] = a1[t%2, i, k] over i = min(128, n - 128*t), k = 64
    mte1: copy b0[k, j] = b1[j, k] over j = 32, k = 64
    mte1: set cube 0
    cube: wait mte1 0
    cube: matrix f16 c0[i, j] = a0[i, k] * b0[k, j] add 0*t over i = min(128, n - 128*t), j = 32, k = 64
    cube: set fix 0
    fix: wait cube 0
    fix: copy c[128*t + i, j] = c0[i, j] over i = min(128, n - 128*t), j = 32
  }
}
)";

chip::Chip chip_of(std::string_view id) { return *chip::Catalog().load(id); }

TEST(EngineText, ReadsBack) {
  const auto programs = parse(kProduct);
  ASSERT_TRUE(programs) << programs.error().message;
  ASSERT_EQ(programs->size(), 1u);
  const std::string text = print(programs->front());
  const auto again = parse(text);
  ASSERT_TRUE(again) << again.error().message << "\n" << text;
  EXPECT_EQ(print(again->front()), text);
  EXPECT_NE(text.find("over i = min(128, n - 128*t), j = 32, k = 64"), text.npos) << text;
  EXPECT_TRUE(verify(programs->front(), chip_of("ascend910b2")));
}

TEST(EngineText, SaysWhereItIsWrong) {
  const auto fault = [](std::string_view text) { return parse(text).error().message; };
  EXPECT_NE(fault("engine \"x\" on aic {\n  foo: jump\n}").find("line 2"), std::string::npos);
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("engine \"x\" on aic {"));
  // Not affine.
  EXPECT_FALSE(
      parse("engine \"x\" on c {\n argument a = 0 : f32[9]\n"
            " e: copy a[i*i] = a[i] over i = 3\n}"));
  EXPECT_FALSE(parse("engine \"x\" on c {\n argument a = 0 : f32[q]\n}"));
  std::string deep = "engine \"x\" on c {\n";
  for (int i = 0; i < 40; ++i) deep += fmt::format("for s{} = 0 to 1 {{\n", i);
  EXPECT_FALSE(parse(deep));
  std::string nested(1000, '(');
  EXPECT_FALSE(parse("engine \"x\" on c {\n argument a = 0 : f32[" + nested + "]\n}"));
}

TEST(EngineExpr, DividesDownAndNeverByNothing) {
  const Expr s = Expr::symbol(0);
  const auto at = [](const Expr& e, int64_t v) { return e.eval(std::vector<int64_t>{v}); };
  EXPECT_EQ(at(s / Expr(4), -1), -1);
  EXPECT_EQ(at(s % Expr(4), -1), 3);
  EXPECT_EQ(at(Expr(7) / s, 0), 0);
  EXPECT_EQ(at(Expr(7) % s, -2), 0);
  EXPECT_EQ(at(min(s, Expr(3)) + max(s, Expr(3)), 5), 8);
  EXPECT_EQ(at(s * s + s, INT64_MAX), INT64_MIN);  // wraps
  EXPECT_EQ((Expr(3) * Expr(4) - Expr(2)), Expr(10));
}

// One of its lines replaced.
Status with(std::string_view from, std::string_view to, std::string_view chip = "ascend910b2") {
  std::string text(kProduct);
  const size_t at = text.find(from);
  if (at == text.npos) return error(Code::kInternal, "'{}' is not there", from);
  text.replace(at, from.size(), to);
  TRY_ASSIGN(const std::vector<Program> programs, parse(text));
  return verify(programs[0], chip_of(chip));
}

TEST(EngineVerify, HoldsProgramsToTheChip) {
  const auto message = [](std::string_view from, std::string_view to) {
    const Status s = with(from, to);
    return s ? std::string("it is fine") : s.error().message;
  };
  EXPECT_NE(message("on aic", "on aiv").find("no engine"), std::string::npos);
  EXPECT_NE(message("l0a at 0", "l0a at 5").find("multiple of 512"), std::string::npos);
  const std::string overflow = message("f16[2, 128, 64]", "f16[64, 128, 64]");
  EXPECT_NE(overflow.find("'a1'"), std::string::npos) << overflow;
  EXPECT_NE(overflow.find("'l1', which has 524288 bytes"), std::string::npos) << overflow;
  EXPECT_NE(message("mte1: copy b0", "mte2: copy b0").find("no route"), std::string::npos);
  EXPECT_NE(message("matrix f16", "matrix f64").find("multiplies no f64"), std::string::npos);
  EXPECT_NE(message("c0 in l0c at 0 : f32", "c0 in l0c at 0 : f16").find("operand c"),
            std::string::npos);
  EXPECT_NE(message("    fix: wait cube 0\n", "").find("never waits"), std::string::npos);
  EXPECT_NE(message("    cube: set fix 0\n", "").find("never sets"), std::string::npos);
  EXPECT_NE(message("cube: set fix 0", "cube: set cube 0").find("to itself"), std::string::npos);
  EXPECT_NE(message(", k = 64\n    mte2: copy b1", ", k = 64, z = 9\n    mte2: copy b1")
                .find("no operand walks"),
            std::string::npos);
}

// Registers of this chip have no alignment of their own: an element is not begun inside of another.
TEST(EngineVerify, HoldsTilesToTheirElements) {
  const auto at = [](int offset) {
    const auto programs = parse(fmt::format(
        "engine \"x\" on cu {{\n argument a = 0 : f32[8]\n buffer t in registers at {} : f32[8]\n"
        " load_store: copy t[i] = a[i] over i = 8\n}}",
        offset));
    return programs ? verify(programs->front(), chip_of("mi300x"))
                    : Status(tl::unexpected(programs.error()));
  };
  const Status fine = at(4);
  EXPECT_TRUE(fine) << fine.error().message;
  const Status inside = at(3);
  ASSERT_FALSE(inside);
  EXPECT_NE(inside.error().message.find("lies at 3"), std::string::npos) << inside.error().message;
  EXPECT_NE(inside.error().message.find("multiple of 4"), std::string::npos);
}

TEST(EngineVerify, KnowsTheLayoutsOfFractals) {
  Buffer b{.name = "x", .dtype = DType::kF16, .dims = {20, 28}, .space = "l1", .layout = "NZ"};
  const auto places = places_of(b, {});
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->span, 2 * 2 * 256);
  // (n/16 m/16 m%16 n%16)
  EXPECT_EQ(places->dims[0].at(17) + places->dims[1].at(18), 512 + 256 + 16 + 2);
  b.dims = {2, 20, 28};
  EXPECT_EQ(places_of(b, {})->dims[0].stride, 1024);
}

TEST(EnginePaths, FollowRoutes) {
  const auto path = find_matrix_path(chip_of("ascend910b2"));
  ASSERT_TRUE(path) << path.error().message;
  ASSERT_EQ(path->to_a.size(), 2u);
  EXPECT_EQ(path->to_a[0].engine, "mte2");
  EXPECT_EQ(path->to_b[1].to, "l0b");
  EXPECT_EQ(path->from_c.size(), 1u);
  EXPECT_EQ(find_vector_path(chip_of("ascend910b2"))->space, "ub");
  EXPECT_EQ(find_vector_path(chip_of("tpu_v5e"))->space, "vmem");
  EXPECT_EQ(find_vector_path(chip_of("mi300x"))->space, "registers");
  EXPECT_FALSE(find_vector_path(chip_of("scalesim_ws")));
  EXPECT_EQ(find_matrix_path(chip_of("ascend310p3"))->from_c.size(), 2u);
}

}  // namespace
}  // namespace tessera::tile::engine
