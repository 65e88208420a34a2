#include "tessera/base/machine.h"

#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

namespace tessera {
namespace {

namespace fs = std::filesystem;

class CgroupTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tessera_cgroup_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(CgroupTree, TightestLimitOnThePathBinds) {
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  write("a/memory.max", "max\n");
  write("a/b/memory.max", "1048576\n");
  const CgroupLimits limits = read_cgroup_limits("0::/a/b\n", root_.string());
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory, Bytes(1048576));
}

TEST_F(CgroupTree, ReadsVersionOneAndPathsThatTheMountHides) {
  write("cpu/cpu.cfs_quota_us", "50000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits =
      read_cgroup_limits("4:memory:/x\n3:cpuacct,cpu:/docker/77\n", root_.string());
  EXPECT_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory, std::nullopt);
}

TEST_F(CgroupTree, NothingIsKnownFromNonsense) {
  write("cpu.max", "lots\n");
  write("memory.max", "-3\n");
  const CgroupLimits limits = read_cgroup_limits("junk\n0::/\n::\n", root_.string());
  EXPECT_EQ(limits.cpus, std::nullopt);
  EXPECT_EQ(limits.memory, std::nullopt);
}

TEST(Machine, UsableCpusFollowTheAffinityMask) {
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_GT(usable_memory(), Bytes(0));
  std::thread([] {
    const int cpu = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cpus(), 1);
  }).join();
}

}  // namespace
}  // namespace tessera
