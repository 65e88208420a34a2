#include "tessera/session/machine.h"

#include <gtest/gtest.h>

namespace tessera::session {
namespace {

std::vector<std::string> sources(std::string_view provider) {
  const auto machine = Machine::open("cpu", 1, Bytes(1 << 20), "generic", provider);
  EXPECT_TRUE(machine) << machine.error().message;
  std::vector<std::string> names;
  if (machine)
    for (const op::ClaimSource* source : (*machine)->runtime.sources)
      names.emplace_back(source->name());
  return names;
}

TEST(Machine, HasTheKernelsOfItsProvider) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(sources("own"), Names{"cpu.generic"});
  EXPECT_EQ(sources("all"), (Names{"cpu.generic", "onednn"}));
  EXPECT_EQ(sources("onednn"), (Names{"cpu.generic", "onednn"}));
  const auto none = Machine::open("cpu", 1, Bytes(1 << 20), "", "vendor");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no provider 'vendor': auto, own, all, onednn");
}

}  // namespace
}  // namespace tessera::session
