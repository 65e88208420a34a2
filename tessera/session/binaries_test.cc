// A claim source whose code is made at run time, on its way through planner, executor and device.
#include "tessera/runtime/binaries.h"

#include <gtest/gtest.h>

#include "tessera/hal/conformance_executables.h"
#include "tessera/ir/text.h"
#include "tessera/passes/schedule.h"
#include "tessera/runtime/executor.h"
#include "tessera/session/machine.h"

namespace tessera::session {
namespace {

// Claims additions of equal shapes; its code is the entry `add` of the conformance executables.
class Adder final : public op::ClaimSource {
 public:
  explicit Adder(hal::ConformanceExecutables x)
      : binary_(std::make_shared<const op::Binary>(
            op::Binary{x.format, std::move(x.bytes), {"add", "spin", "trap"}, "adder"})) {}
  std::string_view name() const override { return "adder"; }
  std::vector<op::Claim> probe(const op::Problem& p) const override {
    if (p.op->name != "add" || p.in[0].dims != p.in[1].dims) return {};
    op::Claim claim;
    claim.kernel = "adder.add";
    return {claim};
  }
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem& p,
                                              const op::Claim&) const override {
    op::LaunchSpec launch;
    launch.entry = entry;
    launch.binary = binary_;
    launch.grid = static_cast<uint32_t>(p.out[0].count());
    launch.arguments = {
        {op::Argument::kInput, 0}, {op::Argument::kInput, 1}, {op::Argument::kOutput, 0}};
    return std::vector{launch};
  }
  Status pack(const op::Problem&, const op::Claim&, int, const std::byte*,
              std::byte*) const override {
    return error(Code::kInternal, "packs nothing");
  }
  std::string_view entry = "add";

 private:
  std::shared_ptr<const op::Binary> binary_;
};

TEST(Binaries, RunFromAPlanAndAreLoadedOnce) {
  const hal::ConformanceExecutables x = hal::elf_conformance_executables();
  if (x.format.empty()) GTEST_SKIP() << "no machine code for this machine";
  auto machine = *Machine::open("cpu", 2, Bytes(int64_t{1} << 30));
  Adder adder(x);
  machine->runtime.sources = {&adder};
  const auto graph = *ir::parse(R"(graph @"g"(%0 "x": f32[n], %1 "y": f32[n]) {
  %2 = add(%0, %1) : f32[n]
  %3 = add(%2, %1) : f32[n]
  return %3 "z"
}
)",
                                {});
  const auto plan =
      passes::schedule(graph, machine->runtime.sources, {.device = "cpu", .bindings = {{"n", 5}}});
  ASSERT_TRUE(plan) << plan.error().message;
  runtime::Executor executor(machine->runtime, std::make_shared<const plan::Plan>(*plan));
  for (int64_t n : {1, 5, 1000}) {
    op::Tensor a = *op::Tensor::make(DType::kF32, {n}), b = *op::Tensor::make(DType::kF32, {n});
    for (int64_t i = 0; i < n; ++i) {
      a.set_f64(i, static_cast<double>(i));
      b.set_f64(i, 0.5);
    }
    const auto out = executor.run({a, b}, {});
    ASSERT_TRUE(out) << out.error().message;
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ((*out)[0].tensor().f64(i), static_cast<double>(i) + 1);
  }
  EXPECT_EQ(executor.counters().launches, 2);
  EXPECT_EQ(machine->runtime.binaries->size(), 1u);

  adder.entry = "absent";
  runtime::Executor other(machine->runtime, std::make_shared<const plan::Plan>(*plan));
  const auto out =
      other.run({*op::Tensor::make(DType::kF32, {1}), *op::Tensor::make(DType::kF32, {1})}, {});
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("no entry 'absent'"), std::string::npos)
      << out.error().message;
}

TEST(Binaries, AreRefusedWithTheDevicesReason) {
  auto machine = *Machine::open("cpu", 1, Bytes(int64_t{1} << 30));
  const op::Binary bad{"elf", std::vector<std::byte>(100), {"f"}, "bad"};
  const auto found = machine->runtime.binaries->find(bad, "f");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kInvalidArgument);
  EXPECT_EQ(machine->runtime.binaries->size(), 0u);
}

}  // namespace
}  // namespace tessera::session
