// Order, waits before their signals, timelines across queues and threads, long queues.
#include <atomic>
#include <thread>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A bench, a counter that `spin` raises, and a timeline.
struct Rig {
  std::unique_ptr<Bench> bench;
  Buffer counter;
  Timeline done;

  static Result<Rig> open(const Subject& subject) {
    Rig r;
    TRY_ASSIGN(r.bench, Bench::open(subject));
    TRY_ASSIGN(r.counter, r.bench->buffer_of<uint32_t>({0, 0, 0, 0}));
    TRY_ASSIGN(r.done, r.bench->device().timeline());
    return r;
  }
  Command count(microseconds time = microseconds(0)) { return bench->spin(time, counter.slice()); }
  Result<uint32_t> counted() {
    TRY_ASSIGN(const std::vector<uint32_t> v, bench->values_of<uint32_t>(counter.slice()));
    return v[0];
  }
};

Status keeps_order(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  TRY_ASSIGN(const Buffer a, r.bench->buffer_of<float>({1, 1, 1, 1}));
  TRY_ASSIGN(const Buffer b, r.bench->buffer_of<float>({0, 0, 0, 0}));
  // b = ((0 + 1) * 2 + 1) * 2 ...: any other order gives another value.
  for (int i = 0; i < 10; ++i) {
    TRY(queue.submit({r.bench->add(a.slice(), b.slice(), b.slice())}));
    TRY(queue.submit({r.bench->add(b.slice(), b.slice(), b.slice())}));
  }
  TRY(queue.submit({}, {}, {r.done.at(1)}));
  TRY(r.done.wait(1, kHang));
  TRY_ASSIGN(const std::vector<float> got, r.bench->values_of<float>(b.slice()));
  CHECK(got[0] == 2046.0f, "got {}", got[0]);
  return {};
}

Status waits_before_the_signal(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue first, r.bench->device().queue());
  TRY_ASSIGN(Queue second, r.bench->device().queue());
  TRY_ASSIGN(const Timeline gate, r.bench->device().timeline());
  TRY(first.submit({r.count()}, {gate.at(5)}, {r.done.at(1)}));
  CHECK_FAILS(Code::kDeadlineExceeded, r.done.wait(1, milliseconds(2)));
  TRY(second.submit({}, {}, {gate.at(4)}));
  TRY(gate.wait(4, kHang));
  CHECK_FAILS(Code::kDeadlineExceeded, r.done.wait(1, milliseconds(2)));
  TRY(second.submit({}, {}, {gate.at(7)}));
  TRY(r.done.wait(1, kHang));
  return {};
}

Status waits_for_the_host(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  TRY_ASSIGN(Timeline gate, r.bench->device().timeline(3));
  CHECK(gate.value() == 3);
  TRY(gate.wait(3, milliseconds(0)));
  TRY(queue.submit({r.count()}, {gate.at(4)}, {r.done.at(1)}));
  CHECK(!r.done.at(1).passed());
  TRY(gate.signal(2));  // lower: no effect
  CHECK(gate.value() == 3);
  TRY(gate.signal(4));
  TRY(r.done.wait(1, kHang));
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == 1);
  return {};
}

Status takes_turns_between_queues(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue a, r.bench->device().queue());
  TRY_ASSIGN(Queue b, r.bench->device().queue());
  constexpr uint64_t kTurns = 200;
  // Submitted back to front as far as the queues' own order allows: first all of a, then all of b.
  for (uint64_t i = 0; i < kTurns; i += 2)
    TRY(a.submit({r.count()}, {r.done.at(i)}, {r.done.at(i + 1)}));
  for (uint64_t i = 1; i < kTurns; i += 2)
    TRY(b.submit({r.count()}, {r.done.at(i)}, {r.done.at(i + 1)}));
  TRY(r.done.wait(kTurns, kHang));
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == kTurns, "{} of {}", n, kTurns);
  return {};
}

Status takes_many_waits_and_signals(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  std::vector<Timeline> before, after;
  std::vector<Point> waits, signals;
  for (int i = 0; i < 20; ++i) {
    TRY_ASSIGN(Timeline t, r.bench->device().timeline());
    waits.push_back(t.at(1));
    before.push_back(std::move(t));
    TRY_ASSIGN(Timeline u, r.bench->device().timeline());
    signals.push_back(u.at(9));
    after.push_back(std::move(u));
  }
  const Command commands[] = {r.count()};
  TRY(queue.submit(commands, waits, signals));
  for (Timeline& t : before) {
    for (const Point& p : signals) CHECK(!p.passed());
    TRY(t.signal(1));
  }
  for (const Point& p : signals) TRY(p.wait(kHang));
  return {};
}

Status lets_out_of_order_work_overtake(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  if (!r.bench->device().info().can(TESSERA_CAN_OUT_OF_ORDER)) {
    CHECK_FAILS(Code::kUnimplemented, r.bench->device().queue({.out_of_order = true}));
    return {};
  }
  TRY_ASSIGN(Queue queue, r.bench->device().queue({.out_of_order = true}));
  constexpr uint64_t kChain = 50;
  for (uint64_t i = kChain; i > 0; --i)
    TRY(queue.submit({r.count()}, {r.done.at(i - 1)}, {r.done.at(i)}));
  TRY(r.done.wait(kChain, kHang));
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == kChain);
  return {};
}

Status queues_ten_thousand(const Subject& subject) {
  constexpr uint64_t kMany = 10'000;
  for (const bool out_of_order : {false, true}) {
    TRY_ASSIGN(Rig r, Rig::open(subject));
    if (out_of_order && !r.bench->device().info().can(TESSERA_CAN_OUT_OF_ORDER)) continue;
    TRY_ASSIGN(HostEvent gate, HostEvent::create(r.bench->device()));
    TRY_ASSIGN(Queue queue, r.bench->device().queue({.out_of_order = out_of_order}));
    for (uint64_t i = 0; i < kMany; ++i)
      TRY(queue.submit({r.count()}, {gate.point(), r.done.at(i)}, {r.done.at(i + 1)}));
    CHECK(r.done.value() == 0);
    TRY(gate.set());
    TRY(r.done.wait(kMany, kHang));
    TRY_ASSIGN(const uint32_t n, r.counted());
    CHECK(n == kMany, "{} of {}", n, kMany);
  }
  return {};
}

Status takes_submissions_from_many_threads(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  constexpr int kThreads = 4, kEach = 100;
  std::vector<Timeline> ends;
  for (int i = 0; i < kThreads; ++i) {
    TRY_ASSIGN(Timeline t, r.bench->device().timeline());
    ends.push_back(std::move(t));
  }
  const Command count = r.count();
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> threads;
    for (Timeline& end : ends)
      threads.emplace_back([&] {
        for (uint64_t i = 1; i <= kEach; ++i)
          if (!queue.submit({count}, {}, {end.at(i)})) ++refused;
        if (!end.wait(kEach, kHang)) ++refused;
      });
  }
  CHECK(refused == 0);
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == kThreads * kEach, "{} of {}", n, kThreads * kEach);
  return {};
}

Status passes_work_between_threads(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  constexpr uint64_t kTurns = 100;
  std::atomic<int> wrong = 0;
  const auto player = [&](uint64_t first) {
    for (uint64_t i = first; i < kTurns; i += 2) {
      if (!r.done.wait(i, kHang) || !r.done.signal(i + 1)) ++wrong;
    }
  };
  { const std::jthread even(player, 0), odd(player, 1); }
  CHECK(wrong == 0);
  CHECK(r.done.value() == kTurns);
  return {};
}

Status notifies_once(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  std::atomic<int> calls = 0, failures = 0;
  const auto note = [&](const Failure* f) {
    if (f != nullptr) ++failures;
    ++calls;
  };
  TRY(r.done.at(0).notify(note));
  CHECK(calls == 1);
  TRY(r.done.at(1).notify(note));
  TRY(r.done.at(2).notify(note));
  CHECK(calls == 1);
  TRY(queue.submit({r.count()}, {}, {r.done.at(1)}));
  TRY(r.done.wait(1, kHang));
  TRY(r.done.fail({.code = Code::kInternal, .message = "enough"}));
  for (int i = 0; i < 60'000 && calls < 3; ++i) std::this_thread::sleep_for(milliseconds(1));
  CHECK(calls == 3, "{} calls", calls.load());
  CHECK(failures == 1, "{} failures", failures.load());
  return {};
}

Status fails_what_a_dropped_timeline_leaves(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue queue, r.bench->device().queue());
  {
    TRY_ASSIGN(const Timeline gate, r.bench->device().timeline());
    TRY(queue.submit({r.count()}, {gate.at(1)}, {r.done.at(1)}));
  }
  CHECK_FAILS(Code::kCancelled, r.done.wait(1, kHang));
  return {};
}

Status keeps_a_dropped_timeline_that_work_signals(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(Queue a, r.bench->device().queue());
  TRY_ASSIGN(Queue b, r.bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(r.bench->device()));
  {
    TRY_ASSIGN(const Timeline between, r.bench->device().timeline());
    TRY(a.submit({r.count()}, {gate.point()}, {between.at(1)}));
    TRY(b.submit({r.count()}, {between.at(1)}, {r.done.at(1)}));
  }
  TRY(gate.set());
  TRY(r.done.wait(1, kHang));
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == 2);
  return {};
}

Status finishes_what_a_destroyed_queue_can(const Subject& subject) {
  TRY_ASSIGN(Rig r, Rig::open(subject));
  TRY_ASSIGN(HostEvent gate, HostEvent::create(r.bench->device()));
  TRY_ASSIGN(const Timeline never, r.bench->device().timeline());
  {
    TRY_ASSIGN(Queue queue, r.bench->device().queue());
    for (uint64_t i = 1; i <= 20; ++i)
      TRY(queue.submit({r.count(microseconds(50))}, {}, {r.done.at(i)}));
    TRY(queue.submit({r.count()}, {gate.point()}, {never.at(1)}));
    TRY(queue.submit({r.count()}, {}, {never.at(2)}));
  }
  TRY(r.done.wait(20, kHang));
  CHECK_FAILS(Code::kCancelled, never.wait(2, kHang));
  TRY_ASSIGN(const uint32_t n, r.counted());
  CHECK(n == 20, "{} of 20", n);
  return {};
}

constexpr Case kCases[] = {
    {"queues", "keeps_order", keeps_order},
    {"queues", "waits_before_the_signal", waits_before_the_signal},
    {"queues", "waits_for_the_host", waits_for_the_host},
    {"queues", "takes_turns_between_queues", takes_turns_between_queues},
    {"queues", "takes_many_waits_and_signals", takes_many_waits_and_signals},
    {"queues", "lets_out_of_order_work_overtake", lets_out_of_order_work_overtake},
    {"queues", "queues_ten_thousand", queues_ten_thousand},
    {"queues", "takes_submissions_from_many_threads", takes_submissions_from_many_threads},
    {"queues", "passes_work_between_threads", passes_work_between_threads},
    {"queues", "notifies_once", notifies_once},
    {"queues", "fails_what_a_dropped_timeline_leaves", fails_what_a_dropped_timeline_leaves},
    {"queues", "keeps_a_dropped_timeline_that_work_signals",
     keeps_a_dropped_timeline_that_work_signals},
    {"queues", "finishes_what_a_destroyed_queue_can", finishes_what_a_destroyed_queue_can},
};

}  // namespace

std::span<const Case> queue_cases() { return kCases; }

}  // namespace tessera::hal::conformance
