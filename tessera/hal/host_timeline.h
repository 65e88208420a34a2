// A timeline kept on the host: for backends whose driver has only plain events, or none.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "tessera/hal/failure.h"

namespace tessera::hal {

class TimelineSet;

// Every method may be called from any thread. Callbacks run on the thread that signals or fails,
// outside all locks.
class HostTimeline : public std::enable_shared_from_this<HostTimeline> {
 public:
  enum class State : uint8_t { kPending, kReached, kFailed };
  using Callback = std::function<void(const FailurePtr&)>;  // null: reached

  HostTimeline(TimelineSet& set, uint64_t initial);
  ~HostTimeline();
  HostTimeline(const HostTimeline&) = delete;
  HostTimeline& operator=(const HostTimeline&) = delete;

  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  State state(uint64_t value) const;
  FailurePtr failure() const;                // null while it has not failed
  const tessera_failure* c_failure() const;  // lives as long as the timeline

  // Raises the value to at least `value`; no effect once failed.
  void signal(uint64_t value);
  // The first failure counts.
  void fail(const FailurePtr& cause);
  // kReached, kFailed, or kPending when the time is up. ns == UINT64_MAX waits forever.
  State wait(uint64_t value, uint64_t timeout_ns);
  // Calls once, perhaps before it returns.
  void notify(uint64_t value, Callback callback);

  // Those who may still signal: the owner of the handle and submitted work. When the last is gone,
  // waits that are not passed fail with kCancelled.
  void add_signaller() { signallers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_signaller();

  // The owner of the handle: keeps the timeline alive, and is one who may signal.
  void hold_handle() { handle_ = shared_from_this(); }
  void drop_handle();

 private:
  std::atomic<uint64_t> value_;
  std::atomic<bool> failed_{false};
  std::atomic<int> signallers_{1};
  TimelineSet& set_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int sleepers_ = 0;
  std::multimap<uint64_t, Callback> callbacks_;
  FailurePtr failure_;
  std::shared_ptr<HostTimeline> handle_;
  tessera_failure c_failure_{};
};

// The timelines of one device, so that its loss reaches them all.
class TimelineSet {
 public:
  void add(HostTimeline* t);
  void remove(HostTimeline* t);
  void fail_all(const FailurePtr& cause);

 private:
  std::mutex mutex_;
  std::unordered_set<HostTimeline*> all_;
};

}  // namespace tessera::hal
