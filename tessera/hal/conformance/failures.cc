// Failure: it reaches every signal and every waiter, with the first cause.
#include <atomic>
#include <thread>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

using std::chrono::milliseconds;

Status names_its_cause(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(const uint64_t number, queue.submit({bench->trap("conv1")}, {}, {done.at(1)}));
  const Status status = done.wait(1, kHang);
  CHECK(!status);
  CHECK(status.error().message.find("conv1") != std::string::npos, "{}", status.error().message);
  const std::optional<Failure> f = done.failure();
  CHECK(f.has_value());
  CHECK(f->operator_name == "conv1", "operator '{}'", f->operator_name);
  CHECK(f->site.find("bench.cc") != std::string::npos, "site '{}'", f->site);
  CHECK(f->line > 0);
  CHECK(f->submission != 0);
  if (number != 0) CHECK(f->submission == number, "{}, submitted as {}", f->submission, number);
  CHECK(done.at(1).failure().has_value());
  CHECK(!done.at(0).failure().has_value());
  CHECK(!done.at(1).passed());
  return {};
}

Status runs_nothing_after_a_failure(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer counter, bench->buffer_of<uint32_t>({0, 0, 0, 0}));
  const Command count = bench->spin(std::chrono::microseconds(0), counter.slice());
  CHECK(!bench->run({count, bench->trap(), count}));
  TRY_ASSIGN(const std::vector<uint32_t> n, bench->values_of<uint32_t>(counter.slice()));
  CHECK(n[0] == 1, "{}", n[0]);
  return {};
}

Status travels_through_queues(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer counter, bench->buffer_of<uint32_t>({0, 0, 0, 0}));
  const Command count = bench->spin(std::chrono::microseconds(0), counter.slice());
  std::vector<Queue> queues;
  std::vector<Timeline> timelines;
  for (int i = 0; i < 5; ++i) {
    TRY_ASSIGN(Queue q, bench->device().queue());
    queues.push_back(std::move(q));
    TRY_ASSIGN(Timeline t, bench->device().timeline());
    timelines.push_back(std::move(t));
  }
  for (size_t i = 4; i > 0; --i)
    TRY(queues[i].submit({count}, {timelines[i - 1].at(1)}, {timelines[i].at(1)}));
  TRY(queues[0].submit({bench->trap("first")}, {}, {timelines[0].at(1)}));
  TRY(queues[0].submit({bench->trap("second")}, {}, {timelines[0].at(2)}));
  for (const Timeline& t : timelines) {
    CHECK(!t.wait(1, kHang));
    CHECK(t.failure()->operator_name == "first", "'{}'", t.failure()->operator_name);
  }
  TRY_ASSIGN(const std::vector<uint32_t> n, bench->values_of<uint32_t>(counter.slice()));
  CHECK(n[0] == 0, "work ran whose wait failed");
  return {};
}

Status poisons_an_in_order_queue_until_recover(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(const Timeline a, bench->device().timeline());
  TRY_ASSIGN(const Timeline b, bench->device().timeline());
  TRY_ASSIGN(const Timeline c, bench->device().timeline());
  TRY(queue.submit({bench->trap("first")}, {}, {a.at(1)}));
  TRY(queue.submit({}, {}, {b.at(1)}));
  CHECK(!b.wait(1, kHang));
  CHECK(b.failure()->operator_name == "first");
  TRY(queue.recover());
  TRY(queue.submit({}, {}, {c.at(1)}));
  return c.wait(1, kHang);
}

Status spares_independent_work(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue a, bench->device().queue());
  TRY_ASSIGN(Queue b, bench->device().queue());
  TRY_ASSIGN(const Timeline failing, bench->device().timeline());
  TRY_ASSIGN(const Timeline fine, bench->device().timeline());
  TRY(a.submit({bench->trap()}, {}, {failing.at(1)}));
  TRY(b.submit({}, {}, {fine.at(1)}));
  CHECK(!failing.wait(1, kHang));
  TRY(fine.wait(1, kHang));
  if (!bench->device().info().can(TESSERA_CAN_OUT_OF_ORDER)) return {};
  TRY_ASSIGN(Queue free, bench->device().queue({.out_of_order = true}));
  TRY(free.submit({bench->trap()}, {}, {failing.at(2)}));
  TRY(free.submit({}, {}, {fine.at(2)}));
  return fine.wait(2, kHang);
}

Status keeps_what_was_reached(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Timeline t, bench->device().timeline());
  TRY(t.signal(3));
  TRY(t.fail({.code = Code::kDataLoss, .message = "first"}));
  TRY(t.fail({.code = Code::kInternal, .message = "second"}));
  TRY(t.signal(9));
  CHECK(t.value() == 3);
  TRY(t.wait(3, milliseconds(0)));
  CHECK_FAILS(Code::kDataLoss, t.wait(4, kHang));
  CHECK(t.failure()->message == "first", "'{}'", t.failure()->message);
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY(queue.submit({}, {t.at(3)}, {done.at(1)}));
  TRY(done.wait(1, kHang));
  TRY(queue.submit({}, {t.at(4)}, {done.at(2)}));
  CHECK_FAILS(Code::kDataLoss, done.wait(2, kHang));
  return {};
}

Status wakes_every_waiter(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY(queue.submit({bench->trap("late")}, {gate.point()}, {done.at(1)}));
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (uint64_t i = 1; i <= 4; ++i)
      threads.emplace_back([&, i] {
        const Status s = done.wait(i, kHang);
        if (!s && s.error().message.find("late") != std::string::npos) ++right;
      });
    TRY(gate.set());
  }
  CHECK(right == 4, "{} of 4", right.load());
  return {};
}

Status fails_the_signals_of_refused_work(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(const Buffer b, bench->device().allocate(Bytes(64)));
  CHECK_FAILS(Code::kInvalidArgument, queue.submit({fill(b.slice(), 0, 3)}, {}, {done.at(1)}));
  CHECK_FAILS(Code::kInvalidArgument, done.wait(1, kHang));
  return {};
}

Status fails_host_calls(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  if (!bench->device().info().can(TESSERA_CAN_RUN_HOST_CALLS)) return {};
  std::vector<int> order;
  struct Note {
    std::vector<int>* order;
    int number;
  } notes[] = {{&order, 0}, {&order, 1}, {&order, 2}};
  const auto call = [](void* context, tessera_error* e) -> int32_t {
    const Note& n = *static_cast<Note*>(context);
    n.order->push_back(n.number);
    return n.number < 2 ? TESSERA_OK : to_c(Error{Code::kOutOfRange, "host says no"}, e);
  };
  const Status status =
      bench->run({host_call(call, &notes[0]), host_call(call, &notes[1]),
                  host_call(call, &notes[2], "tokenize"), host_call(call, &notes[0])});
  CHECK_FAILS(Code::kOutOfRange, status);
  CHECK(status.error().message.find("host says no; operator 'tokenize'") == 0, "{}",
        status.error().message);
  CHECK(order == std::vector<int>({0, 1, 2}));
  return {};
}

constexpr Case kCases[] = {
    {"failures", "names_its_cause", names_its_cause},
    {"failures", "runs_nothing_after_a_failure", runs_nothing_after_a_failure},
    {"failures", "travels_through_queues", travels_through_queues},
    {"failures", "poisons_an_in_order_queue_until_recover",
     poisons_an_in_order_queue_until_recover},
    {"failures", "spares_independent_work", spares_independent_work},
    {"failures", "keeps_what_was_reached", keeps_what_was_reached},
    {"failures", "wakes_every_waiter", wakes_every_waiter},
    {"failures", "fails_the_signals_of_refused_work", fails_the_signals_of_refused_work},
    {"failures", "fails_host_calls", fails_host_calls},
};

}  // namespace

std::span<const Case> failure_cases() { return kCases; }

}  // namespace tessera::hal::conformance
