// What hal/faulty injects arrives as a user would see it.
#include <gtest/gtest.h>

#include "tessera/hal/allocator.h"
#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/faulty/faulty.h"

namespace tessera::hal::conformance {
namespace {

constexpr std::chrono::seconds kHang{60};

struct Faults : testing::Test {
  std::unique_ptr<Device> open(const Options& options) {
    auto device = Device::open(*backend, 0, options);
    EXPECT_TRUE(device) << device.error().message;
    return std::move(*device);
  }
  std::unique_ptr<Backend> backend = *faulty::wrap(*Backend::load(cpu::plugin_main));
};

TEST_F(Faults, SubmissionsFailWithTheirOperatorAndTheQueueRecovers) {
  for (const char* delayed : {"0", "0.5"}) {
    const auto device = open({{"threads", "1"},
                              {"fault.failed_submission", "0.2"},
                              {"fault.delayed_submission", delayed}});
    Queue queue = *device->queue();
    const Buffer b = *device->allocate(Bytes(64));
    int failed = 0;
    for (int i = 0; i < 200; ++i) {
      const Timeline done = *device->timeline();
      ASSERT_TRUE(queue.submit({fill(b.slice(), 1, 4, "fill7")}, {}, {done.at(1)}));
      if (done.wait(1, kHang)) continue;
      ++failed;
      EXPECT_EQ(done.failure()->operator_name, "fill7");
      EXPECT_EQ(done.failure()->message, "a failure injected by device faulty");
      ASSERT_TRUE(queue.recover());
    }
    EXPECT_GT(failed, 10);
    EXPECT_LT(failed, 100);
  }
}

TEST_F(Faults, AllocationsAreRefused) {
  const auto device = open({{"fault.refused_allocation", "0.5"}});
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    Allocator allocator(*device);
    const auto b = allocator.allocate(Bytes(100));
    if (b) continue;
    ++refused;
    EXPECT_EQ(b.error().code, Code::kResourceExhausted);
    EXPECT_NE(b.error().message.find("refused by device faulty"), std::string::npos);
  }
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 60);
}

TEST_F(Faults, TheSameSeedDrawsTheSame) {
  const auto draw = [&](const char* seed) {
    const auto device = open({{"fault.refused_allocation", "0.5"}, {"fault.seed", seed}});
    std::string result;
    for (int i = 0; i < 64; ++i) result += device->allocate(Bytes(8)) ? '1' : '0';
    return result;
  };
  EXPECT_EQ(draw("5"), draw("5"));
  EXPECT_NE(draw("5"), draw("6"));
}

TEST_F(Faults, TheDeviceIsLostOnTime) {
  for (const char* delayed : {"0", "1"}) {
    const auto device = open({{"fault.lose_after", "10"}, {"fault.delayed_submission", delayed}});
    Queue queue = *device->queue();
    const Timeline done = *device->timeline();
    for (uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(queue.submit({}, {}, {done.at(i)}));
    if (std::string(delayed) == "0") {
      EXPECT_TRUE(done.wait(10, kHang));
    }
    const auto late = queue.submit({}, {}, {done.at(11)});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kDeviceLost);
    EXPECT_EQ(done.wait(11, kHang).error().code, Code::kDeviceLost);
    EXPECT_EQ(device->status().error().code, Code::kDeviceLost);
  }
}

TEST_F(Faults, OutOfOrderQueuesAreOutOfOrder) {
  const auto device =
      open({{"threads", "1"}, {"fault.reorder", "1"}, {"fault.delayed_submission", "1"}});
  Queue queue = *device->queue({.out_of_order = true});
  std::vector<int> order;
  struct Note {
    std::vector<int>* order;
    int number;
  };
  std::vector<Note> notes;
  for (int i = 0; i < 100; ++i) notes.push_back({&order, i});
  std::vector<Timeline> ends;
  for (Note& n : notes) {
    ends.push_back(*device->timeline());
    const auto call = [](void* context, tessera_error*) -> int32_t {
      const Note& note = *static_cast<Note*>(context);
      note.order->push_back(note.number);
      return TESSERA_OK;
    };
    ASSERT_TRUE(queue.submit({host_call(call, &n)}, {}, {ends.back().at(1)}));
  }
  for (const Timeline& t : ends) ASSERT_TRUE(t.wait(1, kHang));
  EXPECT_EQ(order.size(), 100u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Faults, BadOptionsAreRefused) {
  for (const char* value : {"-1", "2", "x", "", "nan"}) {
    const auto device = Device::open(*backend, 0, {{"fault.refused_allocation", value}});
    ASSERT_FALSE(device) << value;
    EXPECT_EQ(device.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(Device::open(*backend, 0, {{"fault.unheard_of", "1"}}));
}

}  // namespace
}  // namespace tessera::hal::conformance
