// Code made from tile programs, on its way through planner, cache, executor and device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tessera/base/file.h"
#include "tessera/codegen/mlir/compiler.h"
#include "tessera/ir/text.h"
#include "tessera/session/model.h"

namespace tessera::session {
namespace {

namespace fs = std::filesystem;
using codegen::mlir::Mode;

// Many cheap operators: what a loop over blocks does for each is what compiling saves.
constexpr std::string_view kGraph = R"(graph @"g"(%0 "x": f32[m,n], %1 "b": f32[n]) {
  %2 = add(%0, %1) : f32[m,n]
  %3 = mul(%2, %0) : f32[m,n]
  %4 = sub(%3, %1) : f32[m,n]
  %5 = max(%4, %0) : f32[m,n]
  %6 = mul(%5, %2) : f32[m,n]
  %7 = add(%6, %3) : f32[m,n]
  %8 = mul(%7, %4) : f32[m,n]
  %9 = sub(%8, %5) : f32[m,n]
  return %9 "y"
}
)";

float expected(float x, float b) {
  const float sum = x + b, product = sum * x, shifted = product - b, most = std::max(shifted, x);
  return (most * sum + product) * shifted - most;
}

class Codegen : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto compiler = codegen::mlir::Compiler::open();
    if (!compiler) GTEST_SKIP() << compiler.error().message;
    std::string name = (fs::temp_directory_path() / "tessera-codegen-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    folder_ = name;
    setenv("TESSERA_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    setenv("TESSERA_CACHE_DIR", "none", 1);
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Runs the graph at several sizes; what became of its programs.
  static Counters run(Mode mode) {
    LoadOptions options;
    options.threads = 2;
    options.codegen = mode;
    const auto model = *Model::from_graph(*ir::parse(kGraph, {}), options);
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{40, 1000}, {3, 17}, {1, 1}}) {
      op::Tensor x = *op::Tensor::make(DType::kF32, {m, n}),
                 b = *op::Tensor::make(DType::kF32, {n});
      for (int64_t i = 0; i < m * n; ++i) x.set_f64(i, std::sin(static_cast<double>(i)));
      for (int64_t j = 0; j < n; ++j) b.set_f64(j, 0.5 / static_cast<double>(j + 1));
      const auto out = model->run({{"x", x}, {"b", b}});
      EXPECT_TRUE(out) << out.error().message;
      if (!out) return {};
      for (int64_t i = 0; i < m * n; ++i) {
        const float want = expected(static_cast<float>(x.f64(i)), static_cast<float>(b.f64(i % n)));
        EXPECT_NEAR((*out)[0].tensor().f64(i), want, 2e-6) << m << " " << n << " " << i;
      }
    }
    return model->counters();
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> list;
    for (const auto& e : fs::directory_iterator(folder_ + "/code")) list.push_back(e.path());
    return list;
  }
  std::string folder_;
};

TEST_F(Codegen, CompilesOnceForAllSizesAndAllStarts) {
  const Counters nothing = run(Mode::kCached);
  EXPECT_EQ(nothing.code.compiled + nothing.code.loaded, 0);
  const Counters first = run(Mode::kAlways);
  EXPECT_GE(first.code.compiled, 1);
  EXPECT_EQ(first.code.loaded, 0);
  EXPECT_EQ(static_cast<int64_t>(entries().size()), first.code.compiled);
  for (Mode mode : {Mode::kCached, Mode::kAlways}) {
    const Counters again = run(mode);
    EXPECT_EQ(again.code.compiled, 0);
    EXPECT_EQ(again.code.loaded, first.code.compiled);
  }
  const Counters none = run(Mode::kNone);
  EXPECT_EQ(none.code.compiled + none.code.loaded, 0);
}

TEST_F(Codegen, CompilesAgainWhatIsDamaged) {
  const Counters first = run(Mode::kAlways);
  ASSERT_GE(first.code.compiled, 1);
  for (const fs::path& path : entries()) {
    std::string file = *read_file(path);
    file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
    ASSERT_TRUE(write_file(path, file));
  }
  EXPECT_EQ(run(Mode::kCached).code.loaded, 0);
  EXPECT_EQ(run(Mode::kAlways).code.compiled, first.code.compiled);
  EXPECT_EQ(run(Mode::kAlways).code.compiled, 0);
}

}  // namespace
}  // namespace tessera::session
