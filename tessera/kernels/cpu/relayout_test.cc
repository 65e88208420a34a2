#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tessera/kernels/cpu/box_args.h"
#include "tessera/kernels/cpu/table.h"
#include "tessera/layout/convert.h"

namespace tessera::kernels::cpu {
namespace {

const std::string kPlain = layout::Layout::row_major(4).to_string();

layout::BoundLayout bound(const std::string& text, DType dtype, const Dims& dims) {
  return *layout::BoundLayout::bind(*layout::Layout::parse(text), dtype, dims);
}

Problem relayout(DType dtype, const Dims& dims, std::string from, std::string to) {
  op::Operand x;
  x.dtype = dtype;
  x.dims = dims;
  op::Operand y = x;
  x.layout = std::move(from);
  y.layout = std::move(to);
  return {op::find("relayout"), {}, {x}, {y}};
}

// Items one by one, from the last to the first.
std::vector<std::byte> run(const Problem& p, const Claim& claim, const std::vector<std::byte>& x,
                           size_t bytes) {
  std::vector<std::byte> y(bytes, std::byte{0x5a});
  const auto launches = table().prepare(p, claim);
  if (!launches) return {};
  const auto entries = table().entries();
  for (const LaunchSpec& spec : *launches) {
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& e) { return e.name == spec.entry; });
    tessera_range ranges[2] = {};
    for (size_t k = 0; k < spec.arguments.size(); ++k)
      ranges[k].data =
          spec.arguments[k].kind == Argument::kInput ? const_cast<std::byte*>(x.data()) : y.data();
    tessera_launch launch = {};
    launch.struct_size = sizeof launch;
    launch.grid = spec.grid;
    launch.range_count = static_cast<uint32_t>(spec.arguments.size());
    launch.constants_bytes = static_cast<uint32_t>(spec.constants.size());
    launch.ranges = ranges;
    launch.constants = spec.constants.data();
    for (uint32_t i = spec.grid; i-- > 0;) entry->function(&launch, i, 1);
  }
  return y;
}

TEST(Relayout, BlockedLayoutsThereAndBack) {
  std::mt19937_64 random(5);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8})
    for (const Dims& dims : {Dims{1, 16, 3, 4}, Dims{3, 47, 17, 2}, Dims{16, 32, 3, 3}})
      for (const std::string text : {"nchw: n c/16 h w c%16", "nchw: (c/16 h w) n/16 n%16 c%16"}) {
        const auto plain = bound(kPlain, dtype, dims), other = bound(text, dtype, dims);
        std::vector<std::byte> source(static_cast<size_t>(plain.bytes().value));
        for (std::byte& b : source) b = static_cast<std::byte>(random());
        std::vector<std::byte> expected(static_cast<size_t>(other.bytes().value));
        ASSERT_TRUE(layout::convert(plain, source, other, expected));
        const Problem there = relayout(dtype, dims, kPlain, text),
                      back = relayout(dtype, dims, text, kPlain);
        const Claim claims[] = {table().ask(there, "cpu.relayout"),
                                table().ask(back, "cpu.relayout")};
        for (const Claim& claim : claims) ASSERT_TRUE(claim.supported()) << claim.refusal;
        EXPECT_EQ(run(there, claims[0], source, expected.size()), expected) << there.str();
        EXPECT_EQ(run(back, claims[1], expected, source.size()), source) << back.str();
      }
}

TEST(Relayout, SaysWhyNot) {
  const auto refusal = [](std::string from, std::string to) {
    return table()
        .ask(relayout(DType::kF32, {8, 4}, std::move(from), std::move(to)), "cpu.relayout")
        .refusal;
  };
  EXPECT_NE(refusal("", "mn: n m").find("orders of the axes"), std::string::npos);
  EXPECT_NE(refusal("", "mn: m^^").size(), 0u);
  EXPECT_NE(refusal("", "mn: m (m%4)^n").find("boxes"), std::string::npos);
  EXPECT_EQ(refusal("", "mn: n/3 m n%3"), "");
}

}  // namespace
}  // namespace tessera::kernels::cpu
