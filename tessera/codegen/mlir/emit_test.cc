#include "tessera/codegen/mlir/emit.h"

#include <gtest/gtest.h>

#include "tessera/codegen/mlir/launch.h"
#include "tessera/codegen/mlir/schedule.h"
#include "tessera/tile/text.h"

namespace tessera::codegen::mlir {
namespace {

constexpr std::string_view kAdd =
    R"(program add(x: in f32[M, N], b: in f32[N], y: out f32[M, N]) {
  axes m = M, n = N
  grid m, n
  %0 = load x[m, n] : f32(m, n)
  %1 = load b[n] : f32(n)
  %2 = add(%0, %1) : f32(m, n)
  store y[m, n] = %2
}
)";

TEST(Emit, WalksTheGridByVectorsAndTheirRestByElements) {
  const tile::Program p = *tile::parse(R"(program minus(x: in f32[N], y: out f32[N]) {
  axes n = N
  grid n
  %0 = load x[n] : f32(n)
  %1 = neg(%0) : f32(n)
  store y[n] = %1
}
)");
  const Target target = target_for("generic");
  const tile::Schedule s = vectors_of(p, target);
  EXPECT_EQ(print(s, p), "n: 4 vector 4");
  const std::string text = *emit(p, s, target);
  const size_t items = text.find("    scf.for");
  EXPECT_EQ(text.substr(items, text.find("    llvm.return") - items),
            R"(    scf.for %18 = %14 to %16 step %17 : i64 {
      %19 = arith.muli %18, %11 : i64
      %20 = arith.addi %19, %11 : i64
      %21 = arith.minsi %20, %9 : i64
      %22 = arith.constant -4 : i64
      %23 = arith.subi %21, %19 : i64
      %24 = arith.andi %23, %22 : i64
      %25 = arith.addi %19, %24 : i64
      %26 = arith.constant 4 : i64
      scf.for %27 = %19 to %25 step %26 : i64 {
        %28 = llvm.getelementptr %5[%27] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %29 = llvm.load %28 {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
        %30 = arith.negf %29 : vector<4xf32>
        %31 = llvm.getelementptr %7[%27] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %30, %31 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      }
      %32 = arith.constant 1 : i64
      scf.for %33 = %25 to %21 step %32 : i64 {
        %34 = llvm.getelementptr %5[%33] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %35 = llvm.load %34 {alignment = 4 : i64} : !llvm.ptr -> f32
        %36 = arith.negf %35 : f32
        %37 = llvm.getelementptr %7[%33] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %36, %37 {alignment = 4 : i64} : f32, !llvm.ptr
      }
    }
)");
}

TEST(Emit, ReadsSizesInTheOrderOfConstants) {
  const tile::Program p = *tile::parse(kAdd);
  const auto constants = *constants_of(p);
  ASSERT_EQ(constants.size(), 2u);
  EXPECT_EQ(constants[0].str() + " " + constants[1].str(), "M N");
  tile::Schedule s = vectors_of(p, target_for("generic"));
  const op::Bindings sizes{{"M", 1000}, {"N", 50}};
  ASSERT_TRUE(cut(p, sizes, s));
  EXPECT_EQ(print(s, p), "m: 327, n: 52 vector 4");
  const LaunchShape shape = *launch_shape(p, s, sizes, constants);
  EXPECT_EQ(shape.grid, 4u);
  const auto* numbers = reinterpret_cast<const int64_t*>(shape.constants.data());
  EXPECT_EQ(std::vector<int64_t>(numbers, numbers + 6),
            (std::vector<int64_t>{1000, 50, 327, 4, 52, 1}));
}

TEST(Emit, VectorsLieWhereMemoryDoes) {
  const auto axis = [](std::string_view text) {
    const tile::Program p = *tile::parse(text);
    return print(vectors_of(p, target_for("avx2")), p);
  };
  EXPECT_EQ(axis(kAdd), "m: 1, n: 8 vector 8");
  // A sum along rows, and one along columns.
  EXPECT_EQ(axis(R"(program sum(x: in f32[M, N], y: out f32[M]) {
  axes m = M, n = N
  grid m
  %0 = constant f32 0.0
  %2 = for n (%1 = %0) : f32(m) {
    %3 = load x[m, n] : f32(m, n)
    %4 = reduce add(%3) over n : f32(m)
    %5 = add(%1, %4) : f32(m)
    yield %5
  }
  store y[m] = %2
}
)"),
            "m: 1, n: 8 vector 8");
  EXPECT_EQ(axis(R"(program copy(x: in f32[M] strides(s), y: out f32[M] strides(t)) {
  axes m = M
  grid m
  %0 = load x[m] : f32(m)
  store y[m] = %0
}
)"),
            "m: 1");
}

TEST(Emit, SaysWhatThereIsNoCodeFor) {
  const auto why = [](std::string_view type, std::string_view call, std::string_view isa) {
    const std::string text = fmt::format(
        "program p(x: in {0}[N], y: out {0}[N]) {{\n  axes n = N\n  grid n\n"
        "  %0 = load x[n] : {0}(n)\n  %1 = {1} : {0}(n)\n  store y[n] = %1\n}}\n",
        type, call);
    return refusal(*tile::parse(text), target_for(isa));
  };
  EXPECT_EQ(why("f32", "exp(%0)", "generic"), "");
  EXPECT_EQ(why("f32", "sin(%0)", "avx2"), "sin of floats");
  EXPECT_EQ(why("f64", "exp(%0)", "avx2"), "exp of f64");
  EXPECT_EQ(why("f32", "floor(%0)", "generic"), "no instruction rounds to whole numbers");
  EXPECT_EQ(why("i32", "div(%0, %0)", "avx2"), "div of i32");
  EXPECT_EQ(why("bf16", "add(%0, %0)", "avx2"), "add of bf16");
}

}  // namespace
}  // namespace tessera::codegen::mlir
