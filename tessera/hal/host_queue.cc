#include "tessera/hal/host_queue.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "tessera/hal/backend_support.h"

namespace tessera::hal {
namespace {

std::atomic<uint64_t> next_submission{1};

HostTimeline& timeline_of(const tessera_point& p) { return object_of<HostTimeline>(p.timeline); }

std::span<const tessera_point> waits_of(const tessera_submission& s) {
  return {s.waits, s.wait_count};
}
std::span<const tessera_point> signals_of(const tessera_submission& s) {
  return {s.signals, s.signal_count};
}

FailurePtr cancelled(std::string message) {
  return std::make_shared<Failure>(
      Failure{.code = Code::kCancelled, .message = std::move(message)});
}

void settle(const tessera_submission& s, const FailurePtr& cause) {
  for (const tessera_point& p : signals_of(s))
    cause ? timeline_of(p).fail(cause) : timeline_of(p).signal(p.value);
}

// Hands out pieces of a block; with a null block it only counts.
class Carver {
 public:
  explicit Carver(std::byte* block) : block_(block) {}
  template <class T>
  T* put(const T* from, size_t count) {
    if (from == nullptr || count == 0) return nullptr;
    used_ = (used_ + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
    T* to = block_ != nullptr ? reinterpret_cast<T*>(block_ + used_) : nullptr;
    if (to != nullptr) std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
    used_ += count * sizeof(T);
    return to;
  }
  size_t used() const { return used_; }

 private:
  std::byte* block_;
  size_t used_ = 0;
};

void carve(const tessera_submission& from, Carver& carver, tessera_submission* to) {
  const tessera_point* waits = carver.put(from.waits, from.wait_count);
  const tessera_point* signals = carver.put(from.signals, from.signal_count);
  std::vector<tessera_command> commands(from.command_count);
  for (uint32_t i = 0; i < from.command_count; ++i) {
    tessera_command& c = commands[i] = command_at(from, i);
    if (c.label != nullptr) c.label = carver.put(c.label, std::strlen(c.label) + 1);
    if (c.kind != TESSERA_COMMAND_LAUNCH) continue;
    auto& l = c.as.launch;
    l.ranges = carver.put(l.ranges, l.range_count);
    l.constants = carver.put(static_cast<const std::byte*>(l.constants), l.constants_bytes);
  }
  const tessera_command* copied = carver.put(commands.data(), commands.size());
  *to = {.struct_size = sizeof *to,
         .wait_count = from.wait_count,
         .signal_count = from.signal_count,
         .command_count = from.command_count,
         .command_bytes = sizeof(tessera_command),
         .reserved = 0,
         .waits = waits,
         .signals = signals,
         .commands = copied};
}

// Signals run callbacks that run queues that signal: a thread drains them one after the other, not
// one inside the other.
thread_local std::vector<std::shared_ptr<HostQueue>>* drain_list = nullptr;

}  // namespace

FailurePtr HostDevice::lost() const {
  if (!is_lost_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return lost_;
}

void HostDevice::lose(const FailurePtr& cause) {
  auto lost = std::make_shared<Failure>(*cause);
  lost->code = Code::kDeviceLost;
  std::vector<std::shared_ptr<HostQueue>> queues;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    lost_ = lost;
    is_lost_.store(true, std::memory_order_release);
    for (HostQueue* q : queues_)
      if (auto p = q->weak_from_this().lock()) queues.push_back(std::move(p));
  }
  timelines_.fail_all(lost);
  for (const auto& q : queues) q->abort(lost);
}

Status HostDevice::status() const {
  if (const FailurePtr cause = lost()) return error(cause->error());
  return {};
}

const tessera_command& command_at(const tessera_submission& s, uint32_t i) {
  const auto* first = reinterpret_cast<const std::byte*>(s.commands);
  return *reinterpret_cast<const tessera_command*>(first + size_t{i} * s.command_bytes);
}

SubmissionCopy::SubmissionCopy(const tessera_submission& from) {
  Carver count(nullptr);
  carve(from, count, &submission_);
  block_ = std::make_unique_for_overwrite<std::byte[]>(count.used());
  Carver carver(block_.get());
  carve(from, carver, &submission_);
}

struct HostQueue::Pending {
  Pending(const tessera_submission& s, uint64_t n) : copy(s), number(n) {}
  const tessera_submission& get() const { return copy.get(); }

  SubmissionCopy copy;
  uint64_t number;
  std::atomic<uint32_t> outstanding{0};
  std::list<PendingPtr>::iterator place;            // in pending_
  std::vector<std::shared_ptr<HostTimeline>> held;  // waits, then signals
};

HostQueue::HostQueue(HostDevice& device, CommandRunner& runner, uint32_t flags, Deferred deferred)
    : device_(device), runner_(runner), flags_(flags), deferred_(deferred) {
  const std::lock_guard lock(device_.mutex_);
  device_.queues_.insert(this);
}

HostQueue::~HostQueue() {
  const std::lock_guard lock(device_.mutex_);
  device_.queues_.erase(this);
}

bool HostQueue::settled(const tessera_submission& s) const {
  return std::ranges::all_of(waits_of(s), [](const tessera_point& p) {
    return timeline_of(p).state(p.value) != HostTimeline::State::kPending;
  });
}

FailurePtr HostQueue::failed_wait(const tessera_submission& s) const {
  for (const tessera_point& p : waits_of(s))
    if (timeline_of(p).state(p.value) == HostTimeline::State::kFailed)
      return timeline_of(p).failure();
  return nullptr;
}

Status HostQueue::submit(const tessera_submission& s, uint64_t* number) {
  const uint64_t id = next_submission.fetch_add(1, std::memory_order_relaxed);
  if (number != nullptr) *number = id;
  TRY(device_.status());
  {
    std::unique_lock lock(mutex_);
    if (closed_) return error(Code::kFailedPrecondition, "the queue is being destroyed");
    const bool at_once =
        (flags_ & TESSERA_QUEUE_ON_SUBMIT) != 0 && !running_ && pending_.empty() && settled(s);
    if (!at_once) {
      lock.unlock();
      defer(s, id);
      return {};
    }
    running_ = true;
  }
  settle(s, run_or_fail(s, id));
  std::unique_lock lock(mutex_);
  running_ = false;
  if (!empty()) {
    lock.unlock();
    wake();
  } else if (closed_) {
    idle_.notify_all();
  }
  return {};
}

void HostQueue::defer(const tessera_submission& s, uint64_t number) {
  auto p = std::make_shared<Pending>(s, number);
  for (const tessera_point& point : waits_of(s))
    p->held.push_back(timeline_of(point).shared_from_this());
  for (const tessera_point& point : signals_of(s)) {
    p->held.push_back(timeline_of(point).shared_from_this());
    p->held.back()->add_signaller();
  }
  p->outstanding = s.wait_count + 1;
  {
    const std::lock_guard lock(mutex_);
    p->place = pending_.insert(pending_.end(), p);
  }
  for (uint32_t i = 0; i < s.wait_count; ++i)
    p->held[i]->notify(s.waits[i].value, [self = shared_from_this(), p](const FailurePtr&) {
      self->wait_settled(p);
    });
  wait_settled(p);
}

void HostQueue::wait_settled(const PendingPtr& p) {
  if (p->outstanding.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!in_order()) {
    const std::lock_guard lock(mutex_);
    if (p->place != pending_.end()) ready_.splice(ready_.end(), pending_, p->place);
  }
  wake();
}

// The lock is held.
HostQueue::PendingPtr HostQueue::take_runnable() {
  std::list<PendingPtr>& from = in_order() ? pending_ : ready_;
  if (from.empty() || from.front()->outstanding.load(std::memory_order_acquire) != 0)
    return nullptr;
  PendingPtr p = std::move(from.front());
  from.pop_front();
  return p;
}

// There may be something to run.
void HostQueue::wake() {
  if (deferred_ == Deferred::kSignaller) return drain();
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable() && !closed_) thread_ = std::thread([this] { serve(); });
  idle_.notify_all();
}

void HostQueue::drain() {
  if (drain_list != nullptr) {
    drain_list->push_back(shared_from_this());
    return;
  }
  std::vector<std::shared_ptr<HostQueue>> list{shared_from_this()};
  drain_list = &list;
  while (!list.empty()) {
    const std::shared_ptr<HostQueue> queue = std::move(list.back());
    list.pop_back();
    std::unique_lock lock(queue->mutex_);
    queue->drain_runnable(lock);
  }
  drain_list = nullptr;
}

void HostQueue::drain_runnable(std::unique_lock<std::mutex>& lock) {
  while (!running_) {
    const PendingPtr p = take_runnable();
    if (p == nullptr) return;
    running_ = true;
    lock.unlock();
    execute(p);
    lock.lock();
    running_ = false;
    idle_.notify_all();
  }
}

void HostQueue::serve() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    drain_runnable(lock);
    if (!closed_) idle_.wait(lock);
  }
}

void HostQueue::execute(const PendingPtr& p) {
  const tessera_submission& s = p->get();
  settle(s, run_or_fail(s, p->number));
  for (uint32_t i = 0; i < s.signal_count; ++i) p->held[s.wait_count + i]->drop_signaller();
}

FailurePtr HostQueue::run_or_fail(const tessera_submission& s, uint64_t number) {
  FailurePtr cause = device_.lost();
  if (!cause && has_failure_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    cause = failure_;
  }
  if (!cause) cause = failed_wait(s);
  if (!cause) cause = run(s, number);
  if (cause && in_order()) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = cause;
    has_failure_ = true;
  }
  return cause;
}

FailurePtr HostQueue::run(const tessera_submission& s, uint64_t number) {
  for (uint32_t i = 0; i < s.command_count; ++i) {
    const tessera_command& c = command_at(s, i);
    Status status = runner_.run(c);
    if (!status)
      return std::make_shared<Failure>(Failure{.code = status.error().code,
                                               .message = std::move(status.error().message),
                                               .submission = number,
                                               .operator_name = c.label ? c.label : "",
                                               .site = c.site ? c.site : "",
                                               .line = c.line});
  }
  // Work that outlived its device counts for nothing.
  return device_.lost();
}

void HostQueue::recover() {
  const std::lock_guard lock(mutex_);
  failure_ = nullptr;
  has_failure_ = false;
}

void HostQueue::abort(const FailurePtr& cause) {
  std::list<PendingPtr> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (const PendingPtr& p : pending_) p->place = pending_.end();
    dropped.swap(pending_);
    dropped.splice(dropped.end(), ready_);
    if (in_order() && !failure_) failure_ = cause;
    has_failure_ = failure_ != nullptr;
  }
  for (const PendingPtr& p : dropped) {
    settle(p->get(), cause);
    for (uint32_t i = 0; i < p->get().signal_count; ++i)
      p->held[p->get().wait_count + i]->drop_signaller();
  }
}

void HostQueue::close() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return !running_; });
  drain_runnable(lock);
  idle_.wait(lock, [&] { return !running_; });
  closed_ = true;
  idle_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  abort(cancelled("the queue was destroyed before the work could start"));
}

}  // namespace tessera::hal
