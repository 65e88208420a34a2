#include "tessera/codegen/mlir/object.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/codegen/mlir/compiler.h"
#include "tessera/codegen/mlir/emit.h"
#include "tessera/codegen/mlir/schedule.h"
#include "tessera/tile/text.h"

namespace tessera::codegen::mlir {
namespace {

TEST(Object, RefusesWhatIsNone) {
  EXPECT_FALSE(link({}, "f"));
  const std::vector<std::byte> zeros(1000);
  EXPECT_EQ(link(zeros, "f").error().message,
            "no usable object file: not a relocatable file for x86-64");
}

TEST(Compiler, TellsWhatMlirSays) {
  const auto compiler = Compiler::open();
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  const auto answer = (*compiler)->compile("module { nonsense }", target_for("generic"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("nonsense"), std::string::npos) << answer.error().message;
  EXPECT_EQ((*compiler)->version().substr(0, 5), "LLVM ");
}

TEST(Compiler, ReportsSymbolsFromElsewhere) {
  const auto compiler = Compiler::open();
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  const auto answer = (*compiler)->compile(R"(module {
  llvm.func @sinf(f32) -> f32
  llvm.func @run(%x: !llvm.ptr, %first: i32, %count: i32) {
    %a = llvm.load %x : !llvm.ptr -> f32
    %b = llvm.call @sinf(%a) : (f32) -> f32
    llvm.store %b, %x : f32, !llvm.ptr
    llvm.return
  }
}
)",
                                           target_for("generic"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("'sinf' from elsewhere"), std::string::npos)
      << answer.error().message;
}

}  // namespace
}  // namespace tessera::codegen::mlir
