#include "tessera/plan/plan.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera::plan {
namespace {

Slot slab(int64_t elements, int first, int last) {
  Slot slot;
  slot.type = op::Type::tensor(DType::kF32, {op::Expr(elements)});
  slot.first = first;
  slot.last = last;
  return slot;
}

// No two slots that live at the same time overlap; the slab is at least what lives, and not more
// than all of it.
TEST(Layout, LawsHoldOnRandomLifetimes) {
  std::mt19937 engine(7);
  auto pick = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(engine); };
  for (int round = 0; round < 300; ++round) {
    Region region;
    region.body.resize(static_cast<size_t>(pick(1, 20)));
    const int n = static_cast<int>(region.body.size());
    for (int s = pick(0, 30); s > 0; --s) {
      const int first = pick(0, n - 1);
      region.slots.push_back(slab(pick(0, 5) * pick(0, 100), first, pick(first, n - 1)));
    }
    auto layout = lay_out(region, {});
    ASSERT_TRUE(layout) << layout.error().message;
    int64_t total = 0;
    for (size_t a = 0; a < region.slots.size(); ++a) {
      const int64_t bytes = *region.slots[a].type.dim(0).constant() * 4;
      total += (bytes + 63) / 64 * 64;
      EXPECT_EQ(layout->offsets[a] % 64, 0);
      EXPECT_LE(layout->offsets[a] + bytes, layout->size.value);
      for (size_t b = 0; b < a; ++b) {
        const int64_t other = *region.slots[b].type.dim(0).constant() * 4;
        const bool together = region.slots[a].first <= region.slots[b].last &&
                              region.slots[b].first <= region.slots[a].last;
        const bool apart = layout->offsets[a] + bytes <= layout->offsets[b] ||
                           layout->offsets[b] + other <= layout->offsets[a];
        EXPECT_TRUE(!together || apart || bytes == 0 || other == 0)
            << "slots " << a << " and " << b;
      }
    }
    for (int64_t live : layout->live) EXPECT_LE(live, layout->size.value);
    EXPECT_LE(layout->size.value, total);
  }
}

TEST(Layout, ReportsImpossibleAndUnknownSizes) {
  Region region;
  region.body.resize(1);
  region.slots.push_back(slab(int64_t{1} << 62, 0, 0));
  EXPECT_EQ(lay_out(region, {}).error().code, Code::kOutOfRange);
  region.slots[0].type = op::Type::tensor(DType::kF32, {op::Expr::symbol("n")});
  EXPECT_EQ(lay_out(region, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(lay_out(region, {{"n", -1}}).error().code, Code::kOutOfRange);
  EXPECT_TRUE(lay_out(region, {{"n", 5}}));
}

Plan sample() {
  Plan plan;
  plan.device = "cpu";
  plan.planned_for = {{"n", 3}};
  plan.constants.push_back({"w", op::Type::tensor(DType::kF32, {4}), {}});
  Region& r = plan.main;
  r.name = "main";
  for (Storage storage :
       {Storage::kInput, Storage::kConstant, Storage::kSlab, Storage::kHeap, Storage::kAlias}) {
    Slot slot = slab(4, 0, 1);
    slot.storage = storage;
    slot.alias = storage == Storage::kAlias ? 2 : kNone;
    slot.constant = storage == Storage::kConstant ? 0 : kNone;
    r.slots.push_back(slot);
  }
  r.slots[2].contents = op::Contents{op::Expr::symbol("n") + op::Expr(1), 2, 3, 4};
  Instruction add;
  add.op = op::find("add");
  add.kernel = "cpu.add";
  add.in = {0, 1};
  add.out = {2};
  add.origin = {"Add_0"};
  Instruction reduce;
  reduce.kind = Instruction::Kind::kHost;
  reduce.op = op::find("reduce");
  reduce.reason = "no kernel";
  reduce.attrs = {{"kind", std::string("sum")}, {"keepdims", int64_t{0}}};
  reduce.in = {4, kNone};
  reduce.out = {3};
  r.body = {add, reduce};
  r.inputs = {0};
  r.outputs = {3};
  return plan;
}

TEST(Json, ReadsBackTheSame) {
  const Plan plan = sample();
  ASSERT_TRUE(verify(plan)) << verify(plan).error().message;
  const std::string json = to_json(plan);
  auto read = from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(read->count().launches, 1);
  EXPECT_EQ(read->count().reference, 1);
}

TEST(Json, RefusesWhatIsNoPlan) {
  EXPECT_FALSE(from_json(""));
  EXPECT_FALSE(from_json("{}"));
  EXPECT_FALSE(from_json(R"({"schema": "tessera.plan/2"})"));
  EXPECT_FALSE(from_json(std::string(100000, '[')));
  std::string json = to_json(sample());
  json.replace(json.find("\"add\""), 5, "\"odd\"");
  EXPECT_EQ(from_json(json).error().message, "plan: no operator 'odd'");
}

TEST(Verify, FindsReadsBeforeWritesAndAfterDeath) {
  Plan plan = sample();
  plan.main.body[0].in[0] = 3;
  EXPECT_FALSE(verify(plan));
  plan = sample();
  plan.main.slots[2].last = 0;
  EXPECT_FALSE(verify(plan)) << "instruction 1 reads it through its alias";
  plan = sample();
  plan.main.slots[4].alias = 4;
  EXPECT_FALSE(verify(plan));
  plan = sample();
  plan.main.outputs = {9};
  EXPECT_FALSE(verify(plan));
}

TEST(Layout, CountsPaddingOfLayouts) {
  Slot slot;
  slot.type = op::Type::tensor(DType::kF16, {op::Expr(20), op::Expr(28)});
  EXPECT_EQ(bytes_of(slot, {20, 28})->value, 20 * 28 * 2);
  slot.layout = "mn: n/16 m/16 m%16 n%16";
  EXPECT_EQ(bytes_of(slot, {20, 28})->value, 32 * 32 * 2);
  Region region;
  region.body.resize(1);
  region.slots.push_back(slot);
  EXPECT_EQ(lay_out(region, {})->size.value, 32 * 32 * 2);
}

TEST(Basis, IsKeptAndHeldAgainstWhatIsThere) {
  Plan plan;
  plan.device = "ascend910b2";
  plan.planned_for = {{"batch", 8}};
  plan.basis = Basis{"0123",
                     "0.1.0",
                     "f16",
                     {{"", "ascend910b2", 0xabcdef0123456789u}, {"host", "cpu_avx512", 7}}};
  auto back = from_json(to_json(plan));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->basis, plan.basis);
  const Basis same = *plan.basis;
  EXPECT_TRUE(check_basis(*back, same, {{"batch", 8}}));
  const auto refused = [&](const Basis& other, const op::Bindings& sizes) {
    auto status = check_basis(*back, other, sizes);
    EXPECT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
    return status.error().message;
  };
  Basis other = same;
  other.version = "0.2.0";
  EXPECT_EQ(refused(other, {}), "the plan is for version 0.1.0, this is 0.2.0");
  other = same;
  other.model = "4567";
  EXPECT_EQ(refused(other, {}), "the plan is for model 0123, this is 4567");
  other = same;
  other.chips[0].id = "ascend910a";
  EXPECT_EQ(refused(other, {}), "the plan is for chip ascend910b2, this is ascend910a");
  other = same;
  other.chips[0].hash = 1;
  EXPECT_EQ(refused(other, {}),
            "the plan is for chip file ascend910b2 abcdef0123456789, this is 0000000000000001");
  EXPECT_EQ(refused(same, {{"batch", 9}}), "the plan is for size batch = 8, this is 9");
  plan.basis.reset();
  EXPECT_FALSE(check_basis(plan, same, {}));
}

}  // namespace
}  // namespace tessera::plan
