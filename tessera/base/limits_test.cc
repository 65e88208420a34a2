#include "tessera/base/limits.h"

#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/base/machine.h"

namespace tessera {
namespace {

TEST(Limits, ChargesUpToTheLimitAndSaysWhatDidNotFit) {
  Limits limits({.memory = Bytes(1000), .timeout = {}});
  EXPECT_TRUE(limits.charge(Bytes(600), "weights"));
  EXPECT_TRUE(limits.charge(Bytes(400), "values"));
  EXPECT_TRUE(limits.charge(Bytes(0), "nothing"));
  const Status refused = limits.charge(Bytes(1), "value 'y'");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_EQ(refused.error().message,
            "value 'y' needs 1 B, and 1000 B of the memory limit of 1000 B are in use");
  limits.release(Bytes(400));
  EXPECT_TRUE(limits.charge(Bytes(1), "value 'y'"));
  EXPECT_EQ(limits.used(), Bytes(601));
  EXPECT_EQ(limits.peak(), Bytes(1000));
}

TEST(Limits, HostileSizesAreRefused) {
  Limits limits({.memory = Bytes(1000), .timeout = {}});
  ASSERT_TRUE(limits.charge(Bytes(10), "a"));
  EXPECT_EQ(limits.charge(Bytes(std::numeric_limits<int64_t>::max()), "b").error().code,
            Code::kResourceExhausted);
  EXPECT_EQ(limits.charge(Bytes(-1), "c").error().code, Code::kInvalidArgument);
  EXPECT_EQ(limits.used(), Bytes(10));
}

TEST(Limits, DefaultIsFourFifthsOfTheMemory) {
  EXPECT_NEAR(default_memory_limit() / usable_memory(), 0.8, 1e-6);
  EXPECT_EQ(Limits().memory_limit(), default_memory_limit());
}

TEST(Limits, DeadlineAndCancel) {
  Limits none;
  EXPECT_TRUE(none.check_deadline("x"));
  none.cancel();
  EXPECT_EQ(none.check_deadline("x").error().code, Code::kCancelled);
  Limits over({.memory = {}, .timeout = Seconds(0)});
  const Status late = over.check_deadline("op 'loop1'");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_NE(late.error().message.find("op 'loop1'"), std::string::npos);
  EXPECT_TRUE(Limits({.memory = {}, .timeout = Seconds(1e6)}).check_deadline("x"));
}

TEST(Limits, ChargesEndWithTheirScope) {
  Limits limits({.memory = Bytes(100), .timeout = {}});
  {
    Result<Charge> first = Charge::make(limits, Bytes(60), "a");
    ASSERT_TRUE(first);
    EXPECT_FALSE(Charge::make(limits, Bytes(60), "b"));
    Charge moved = std::move(*first);
    EXPECT_EQ(limits.used(), Bytes(60));
    moved = Charge();
    EXPECT_EQ(limits.used(), Bytes(0));
    moved = *Charge::make(limits, Bytes(30), "c");
    EXPECT_EQ(moved.bytes(), Bytes(30));
  }
  EXPECT_EQ(limits.used(), Bytes(0));
}

TEST(Limits, ThreadsNeverExceedTheLimitTogether) {
  Limits limits({.memory = Bytes(50), .timeout = {}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const Result<Charge> charge = Charge::make(limits, Bytes(20), "x");
        EXPECT_LE(limits.used(), Bytes(50));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limits.used(), Bytes(0));
  EXPECT_LE(limits.peak(), Bytes(40));
}

}  // namespace
}  // namespace tessera
