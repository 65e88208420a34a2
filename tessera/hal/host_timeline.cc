#include "tessera/hal/host_timeline.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tessera::hal {

HostTimeline::HostTimeline(TimelineSet& set, uint64_t initial) : value_(initial), set_(set) {
  set_.add(this);
}

HostTimeline::~HostTimeline() { set_.remove(this); }

HostTimeline::State HostTimeline::state(uint64_t value) const {
  if (value <= this->value()) return State::kReached;
  if (!failed_.load(std::memory_order_acquire)) return State::kPending;
  return value <= this->value() ? State::kReached : State::kFailed;
}

FailurePtr HostTimeline::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return failure_;
}

const tessera_failure* HostTimeline::c_failure() const {
  return failed_.load(std::memory_order_acquire) ? &c_failure_ : nullptr;
}

void HostTimeline::signal(uint64_t value) {
  std::vector<Callback> due;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ || value <= value_.load(std::memory_order_relaxed)) return;
    value_.store(value, std::memory_order_release);
    const auto end = callbacks_.upper_bound(value);
    for (auto i = callbacks_.begin(); i != end; i = callbacks_.erase(i))
      due.push_back(std::move(i->second));
    if (sleepers_ > 0) changed_.notify_all();
  }
  for (const Callback& call : due) call(nullptr);
}

void HostTimeline::fail(const FailurePtr& cause) {
  std::multimap<uint64_t, Callback> due;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = cause;
    c_failure_ = view(*cause);
    failed_.store(true, std::memory_order_release);
    due.swap(callbacks_);
    if (sleepers_ > 0) changed_.notify_all();
  }
  for (const auto& [value, call] : due) call(cause);
}

HostTimeline::State HostTimeline::wait(uint64_t value, uint64_t timeout_ns) {
  if (const State s = state(value); s != State::kPending || timeout_ns == 0) return s;
  // A year is forever, and does not overflow the clock.
  constexpr uint64_t kForever = 365ull * 24 * 3600 * 1'000'000'000;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(static_cast<int64_t>(std::min(timeout_ns, kForever)));
  std::unique_lock lock(mutex_);
  ++sleepers_;
  changed_.wait_until(lock, until, [&] { return state(value) != State::kPending; });
  --sleepers_;
  return state(value);
}

void HostTimeline::notify(uint64_t value, Callback callback) {
  FailurePtr cause;
  {
    const std::lock_guard lock(mutex_);
    if (value > value_.load(std::memory_order_relaxed)) {
      if (!failure_) {
        callbacks_.emplace(value, std::move(callback));
        return;
      }
      cause = failure_;
    }
  }
  callback(cause);
}

void HostTimeline::drop_signaller() {
  if (signallers_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  {
    const std::lock_guard lock(mutex_);
    if (callbacks_.empty() && sleepers_ == 0) return;
  }
  fail(std::make_shared<Failure>(Failure{
      .code = Code::kCancelled,
      .message = fmt::format("the timeline was dropped at value {}; nothing can signal it any more",
                             value())}));
}

void HostTimeline::drop_handle() {
  const std::shared_ptr<HostTimeline> self = std::move(handle_);
  drop_signaller();
}

void TimelineSet::add(HostTimeline* t) {
  const std::lock_guard lock(mutex_);
  all_.insert(t);
}

void TimelineSet::remove(HostTimeline* t) {
  const std::lock_guard lock(mutex_);
  all_.erase(t);
}

void TimelineSet::fail_all(const FailurePtr& cause) {
  std::vector<std::shared_ptr<HostTimeline>> alive;
  {
    const std::lock_guard lock(mutex_);
    for (HostTimeline* t : all_)
      if (auto p = t->weak_from_this().lock()) alive.push_back(std::move(p));
  }
  for (const auto& t : alive) t->fail(cause);
}

}  // namespace tessera::hal
