// Devices of different backends wait for each other.
#include <gtest/gtest.h>

#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/device.h"
#include "tessera/hal/faulty/faulty.h"
#include "tessera/hal/null/backend.h"

namespace tessera::hal::conformance {
namespace {

constexpr std::chrono::seconds kHang{60};

struct Across : testing::Test {
  Across() {
    backends.push_back(*Backend::load(null::plugin_main));
    backends.push_back(*Backend::load(cpu::plugin_main));
    backends.push_back(
        *faulty::wrap(*Backend::load(cpu::plugin_main), {.delayed_submission = 0.5}));
    for (const auto& b : backends) {
      devices.push_back(*Device::open(*b, 0));
      queues.push_back(*devices.back()->queue());
      timelines.push_back(*devices.back()->timeline());
    }
  }
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Timeline> timelines;
  std::vector<Queue> queues;
};

// Each submission waits for the one before, on another device; they are submitted in reverse.
TEST_F(Across, QueuesTakeTurns) {
  std::vector<int> order;
  const auto note = [](void* context, tessera_error*) -> int32_t {
    auto* o = static_cast<std::vector<int>*>(context);
    o->push_back(static_cast<int>(o->size()));
    return TESSERA_OK;
  };
  constexpr uint64_t kRounds = 30;
  const size_t n = devices.size();
  for (uint64_t i = 0; i < kRounds * n; ++i) {
    const Point before = i == 0 ? timelines[0].at(0) : timelines[(i - 1) % n].at((i - 1) / n + 1);
    ASSERT_TRUE(queues[i % n].submit({host_call(note, &order)}, {before},
                                     {timelines[i % n].at(i / n + 1)}));
  }
  for (const Timeline& t : timelines) ASSERT_TRUE(t.wait(kRounds, kHang));
  EXPECT_EQ(order.size(), kRounds * n);
}

TEST_F(Across, AFailureKeepsItsFirstCause) {
  const auto fail = [](void*, tessera_error* e) {
    return to_c(Error{Code::kDataLoss, "torn page"}, e);
  };
  ASSERT_TRUE(queues[2].submit({}, {timelines[1].at(1)}, {timelines[2].at(1)}));
  ASSERT_TRUE(queues[1].submit({}, {timelines[0].at(1)}, {timelines[1].at(1)}));
  ASSERT_TRUE(queues[0].submit({host_call(fail, nullptr, "load")}, {}, {timelines[0].at(1)}));
  for (const Timeline& t : timelines) {
    EXPECT_FALSE(t.wait(1, kHang));
    EXPECT_EQ(t.failure()->message, "torn page");
    EXPECT_EQ(t.failure()->operator_name, "load");
  }
}

TEST_F(Across, AQueueSignalsAnotherDevicesTimeline) {
  ASSERT_TRUE(
      queues[0].submit({}, {}, {timelines[0].at(1), timelines[1].at(4), timelines[2].at(9)}));
  EXPECT_TRUE(timelines[1].wait(4, kHang));
  EXPECT_TRUE(timelines[2].wait(9, kHang));
}

TEST_F(Across, ALostDeviceFailsThoseThatWaitForIt) {
  ASSERT_TRUE(queues[1].submit({}, {timelines[0].at(1)}, {timelines[1].at(1)}));
  ASSERT_TRUE(devices[0]->lose({.code = Code::kDeviceLost, .message = "unplugged"}));
  const Status status = timelines[1].wait(1, kHang);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDeviceLost);
  EXPECT_TRUE(devices[1]->status());
}

}  // namespace
}  // namespace tessera::hal::conformance
