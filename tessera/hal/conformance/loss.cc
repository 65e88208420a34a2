// Device loss has one meaning everywhere: pending work fails with its cause, new work is refused,
// nothing hangs, and everything can still be taken down.
#include <thread>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

const Failure kCause{.code = Code::kDeadlineExceeded, .message = "the watchdog barked"};

bool is_loss(const Status& s) {
  return !s && s.error().code == Code::kDeviceLost &&
         s.error().message.find("the watchdog barked") != std::string::npos;
}

Status fails_all_that_is_pending(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  TRY_ASSIGN(Queue a, d.queue());
  TRY_ASSIGN(Queue b, d.queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(d));
  TRY_ASSIGN(const Timeline t, d.timeline());
  TRY_ASSIGN(const Timeline u, d.timeline());
  TRY_ASSIGN(const Timeline unused, d.timeline());
  TRY(a.submit({bench->trap()}, {gate.point()}, {t.at(1)}));
  TRY(b.submit({}, {t.at(1)}, {u.at(1)}));
  Status waited;
  {
    const std::jthread waiter([&] { waited = u.wait(1, kHang); });
    TRY(d.lose(kCause));
  }
  CHECK(is_loss(waited));
  CHECK(is_loss(t.wait(1, kHang)));
  CHECK(is_loss(unused.wait(1, kHang)));
  CHECK(is_loss(d.status()));
  return {};
}

Status fails_what_is_running(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  TRY_ASSIGN(const Buffer counter, bench->buffer_of<uint32_t>({0, 0, 0, 0}));
  TRY_ASSIGN(Queue queue, d.queue());
  TRY_ASSIGN(const Timeline t, d.timeline());
  {
    const std::jthread submitter([&] {
      for (uint64_t i = 1; i <= 50; ++i)
        (void)queue.submit({bench->spin(std::chrono::microseconds(500), counter.slice())}, {},
                           {t.at(i)});
    });
    (void)t.wait(2, kHang);
    TRY(d.lose(kCause));
    CHECK(is_loss(t.wait(50, kHang)));
  }
  CHECK(t.value() < 50);
  return {};
}

Status refuses_new_work(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  TRY_ASSIGN(Queue queue, d.queue());
  TRY_ASSIGN(const Timeline t, d.timeline());
  TRY_ASSIGN(const Buffer b, d.allocate(Bytes(64)));
  TRY(d.lose(kCause));
  TRY(d.lose({.code = Code::kInternal, .message = "a later cause"}));
  CHECK(is_loss(d.status()));
  CHECK(is_loss(queue.submit({}, {}, {t.at(1)}).map([](uint64_t) {})));
  CHECK(is_loss(t.wait(1, kHang)));
  CHECK_FAILS(Code::kDeviceLost, d.allocate(Bytes(64)));
  CHECK_FAILS(Code::kDeviceLost, d.queue());
  CHECK_FAILS(Code::kDeviceLost, d.timeline());
  CHECK_FAILS(Code::kDeviceLost, d.load(subject.executables.functions));
  Allocator allocator(d);
  CHECK(!allocator.allocate(Bytes(64)));
  return {};
}

Status frees_pending_blocks(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  Allocator allocator(d);
  TRY_ASSIGN(Queue queue, d.queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(d));
  TRY_ASSIGN(const Timeline t, d.timeline());
  TRY_ASSIGN(Buffer b, allocator.allocate(Bytes(64)));
  TRY(queue.submit({fill(b.slice(), 1, 4)}, {gate.point()}, {t.at(1)}));
  b.used_until(t.at(1));
  b = Buffer();
  TRY(d.lose(kCause));
  CHECK(allocator.statistics().pending.value == 0);
  CHECK(allocator.trim().value > 0);
  return {};
}

Status spares_other_devices(const Subject& subject) {
  TRY_ASSIGN(const auto lost, Bench::open(subject));
  TRY_ASSIGN(const auto other, Bench::open(subject));
  TRY(lost->device().lose(kCause));
  TRY(other->device().status());
  TRY_ASSIGN(const Buffer x, other->buffer_of<float>({1, 2, 3, 4}));
  TRY(other->run({other->add(x.slice(), x.slice(), x.slice())}));
  TRY_ASSIGN(const auto again, Bench::open(subject));
  return again->run({});
}

constexpr Case kCases[] = {
    {"loss", "fails_all_that_is_pending", fails_all_that_is_pending},
    {"loss", "fails_what_is_running", fails_what_is_running},
    {"loss", "refuses_new_work", refuses_new_work},
    {"loss", "frees_pending_blocks", frees_pending_blocks},
    {"loss", "spares_other_devices", spares_other_devices},
};

}  // namespace

std::span<const Case> loss_cases() { return kCases; }

}  // namespace tessera::hal::conformance
