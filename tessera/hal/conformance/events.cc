// Host events gate queues; device events mark them and tell the time.
#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

Status host_events_gate(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(DeviceEvent event, DeviceEvent::create(bench->device()));
  CHECK(event.passed());
  TRY(queue.submit({}, {gate.point()}, {}));
  TRY(event.record(queue));
  CHECK(!event.passed());
  CHECK_FAILS(Code::kDeadlineExceeded, event.wait(std::chrono::milliseconds(1)));
  TRY(gate.set());
  TRY(event.wait(kHang));
  CHECK(event.passed());
  return {};
}

Status failed_host_events_fail_device_events(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(DeviceEvent event, DeviceEvent::create(bench->device()));
  TRY(queue.submit({}, {gate.point()}, {}));
  TRY(event.record(queue));
  TRY(gate.fail({.code = Code::kCancelled, .message = "the user left"}));
  CHECK_FAILS(Code::kCancelled, event.wait(kHang));
  CHECK_FAILS(bench->device().info().can(TESSERA_CAN_TIMESTAMP) ? Code::kFailedPrecondition
                                                                : Code::kUnimplemented,
              event.time_ns());
  return {};
}

Status device_events_tell_the_time(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(DeviceEvent before, DeviceEvent::create(bench->device()));
  TRY_ASSIGN(DeviceEvent after, DeviceEvent::create(bench->device()));
  TRY_ASSIGN(const Buffer counter, bench->buffer_of<uint32_t>({0, 0, 0, 0}));
  TRY(before.record(queue));
  TRY(queue.submit({bench->spin(std::chrono::microseconds(2000), counter.slice())}));
  TRY(after.record(queue));
  TRY(after.wait(kHang));
  if (!bench->device().info().can(TESSERA_CAN_TIMESTAMP)) return {};
  TRY_ASSIGN(const uint64_t from, before.time_ns());
  TRY_ASSIGN(const uint64_t to, after.time_ns());
  TRY_ASSIGN(const uint64_t now, bench->device().clock_ns());
  CHECK(to >= from + 2'000'000, "{} ns", to - from);
  CHECK(now >= to);
  return {};
}

Status events_order_queues(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue a, bench->device().queue());
  TRY_ASSIGN(Queue b, bench->device().queue());
  TRY_ASSIGN(DeviceEvent event, DeviceEvent::create(bench->device()));
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(const Buffer x, bench->buffer_of<float>({0, 0, 0, 0}));
  TRY_ASSIGN(const Buffer one, bench->buffer_of<float>({1, 1, 1, 1}));
  for (uint64_t i = 0; i < 50; ++i) {
    Queue& queue = i % 2 == 0 ? a : b;
    TRY(queue.submit({bench->add(x.slice(), one.slice(), x.slice())}, {event.point()},
                     {done.at(i + 1)}));
    TRY(event.record(queue));
  }
  TRY(event.wait(kHang));
  TRY_ASSIGN(const std::vector<float> got, bench->values_of<float>(x.slice()));
  CHECK(got[0] == 50.0f, "{}", got[0]);
  return {};
}

Status events_may_go_early(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY(queue.submit({}, {gate.point()}, {}));
  {
    TRY_ASSIGN(DeviceEvent event, DeviceEvent::create(bench->device()));
    TRY(event.record(queue));
  }
  TRY(queue.submit({}, {}, {done.at(1)}));
  TRY(gate.set());
  return done.wait(1, kHang);
}

constexpr Case kCases[] = {
    {"events", "host_events_gate", host_events_gate},
    {"events", "failed_host_events_fail_device_events", failed_host_events_fail_device_events},
    {"events", "device_events_tell_the_time", device_events_tell_the_time},
    {"events", "events_order_queues", events_order_queues},
    {"events", "events_may_go_early", events_may_go_early},
};

}  // namespace

std::span<const Case> event_cases() { return kCases; }

}  // namespace tessera::hal::conformance
