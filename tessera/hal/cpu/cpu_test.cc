#include "tessera/hal/cpu/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/hal/conformance_executables.h"
#include "tessera/hal/device.h"

namespace tessera::hal::cpu {
namespace {

void add(const tessera_launch* l, uint32_t first, uint32_t count) {
  const auto* a = static_cast<const float*>(l->ranges[0].data);
  const auto* b = static_cast<const float*>(l->ranges[1].data);
  auto* c = static_cast<float*>(l->ranges[2].data);
  for (uint32_t i = first; i < first + count; ++i) c[i] = a[i] + b[i];
}
void trap(const tessera_launch* l, uint32_t, uint32_t) { l->fail(l, "index 7, need below 5"); }

constexpr HostFunction kFunctions[] = {{"add", add}, {"trap", trap}};

struct Cpu : testing::TestWithParam<const char*> {
  Cpu() : registry({{"cpu", plugin_main, ""}}) {
    device = *registry.open("cpu", {{"threads", GetParam()}});
    executable = *device->load(kFunctions);
  }
  Registry registry;
  std::unique_ptr<Device> device;
  Executable executable;
};

TEST_P(Cpu, AddsWrappedAndAllocatedBuffers) {
  std::vector<float> a(1000), b(1000, 2.0f);
  std::iota(a.begin(), a.end(), 0.0f);
  const Buffer wrapped = *device->wrap(a.data(), Bytes(4000));
  EXPECT_EQ(wrapped.host(), reinterpret_cast<std::byte*>(a.data()));
  const Buffer copied = *device->allocate(Bytes(4000)), sum = *device->allocate(Bytes(4000));
  Queue queue = *device->queue();
  const Timeline done = *device->timeline();
  const Slice ranges[] = {wrapped.slice(), copied.slice(), sum.slice()};
  ASSERT_TRUE(queue.submit(
      {upload(b.data(), copied.slice()),
       launch({.executable = &executable, .entry = 0, .grid = 1000, .ranges = ranges})},
      {}, {done.at(1)}));
  ASSERT_TRUE(done.wait(1));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(reinterpret_cast<float*>(sum.host())[i], i + 2.0f);
}

TEST_P(Cpu, ReportsTheFirstCause) {
  Queue queue = *device->queue();
  const Timeline done = *device->timeline();
  const uint64_t number = *queue.submit(
      {launch({.executable = &executable, .entry = 1, .grid = 9, .label = "gather3"})}, {},
      {done.at(1)});
  const Status status = done.wait(1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  const Failure f = *done.failure();
  EXPECT_EQ(f.message, "index 7, need below 5");
  EXPECT_EQ(f.operator_name, "gather3");
  EXPECT_EQ(f.submission, number);
  EXPECT_NE(f.site.find("cpu_test.cc"), std::string::npos);
}

TEST_P(Cpu, RefusesUnknownOptionsAndFormats) {
  EXPECT_EQ(registry.open("cpu", {{"speed", "9"}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(registry.open("cpu", {{"threads", "0"}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(registry.open("cpu:1").error().code, Code::kNotFound);
  EXPECT_EQ(registry.open("gpu").error().message, "there is no backend 'gpu'; there are: cpu");
  EXPECT_EQ(device->load("ptx", {}, {}).error().code, Code::kUnimplemented);
}

TEST_P(Cpu, LoadsElfAndRefusesWhatIsNone) {
  const auto load = [&](std::span<const std::byte> bytes, const std::vector<std::string>& names) {
    return device->load("elf", bytes, names);
  };
  EXPECT_EQ(load({}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(load(std::vector<std::byte>(500), {}).error().code, Code::kInvalidArgument);
  const ConformanceExecutables x = elf_conformance_executables();
  if (x.format.empty()) GTEST_SKIP() << "no machine code for this machine";
  const std::vector<std::string> names = {"trap", "add"};
  const Result<Executable> code = load(x.bytes, names);
  ASSERT_TRUE(code) << code.error().message;
  const Result<Executable> absent = load(x.bytes, {"add", "subtract"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "the executable has no function 'subtract' among its 3");
  for (size_t size = 0; size < x.bytes.size(); size += 13)
    EXPECT_FALSE(load(std::span(x.bytes).first(size), names)) << size;

  std::vector<float> a(100), b(100, 0.5f), c(100);
  std::iota(a.begin(), a.end(), 0.0f);
  const Buffer buffers[] = {*device->wrap(a.data(), Bytes(400)),
                            *device->wrap(b.data(), Bytes(400)),
                            *device->wrap(c.data(), Bytes(400))};
  const Slice ranges[] = {buffers[0].slice(), buffers[1].slice(), buffers[2].slice()};
  Queue queue = *device->queue();
  const Timeline done = *device->timeline();
  ASSERT_TRUE(
      queue.submit({launch({.executable = &*code, .entry = 1, .grid = 100, .ranges = ranges})}, {},
                   {done.at(1)}));
  ASSERT_TRUE(done.wait(1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(c[static_cast<size_t>(i)], i + 0.5f);
  ASSERT_TRUE(queue.submit({launch({.executable = &*code, .entry = 0})}, {}, {done.at(2)}));
  EXPECT_EQ(done.wait(2).error().code, Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Threads, Cpu, testing::Values("1", "2"));

}  // namespace
}  // namespace tessera::hal::cpu
