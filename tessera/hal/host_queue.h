// The queue engine of backends whose driver runs one command after the other: waits before signals,
// order, failure that reaches every signal, device loss. The backend supplies only "run this
// command".
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tessera/hal/host_timeline.h"

namespace tessera::hal {

class HostQueue;

// What each device with host timelines and queues has; a backend's device derives from it, and its
// tessera_device handle is the address of the HostDevice.
class HostDevice {
 public:
  HostDevice() = default;
  virtual ~HostDevice() = default;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  // Null while the device is there.
  FailurePtr lost() const;
  void lose(const FailurePtr& cause);  // the first cause counts; its code becomes kDeviceLost
  Status status() const;

  TimelineSet& timelines() { return timelines_; }

 private:
  friend class HostQueue;
  std::atomic<bool> is_lost_{false};
  mutable std::mutex mutex_;
  FailurePtr lost_;
  std::unordered_set<HostQueue*> queues_;
  TimelineSet timelines_;
};

// A deep copy of a submission: arrays, constants and labels in one block.
class SubmissionCopy {
 public:
  explicit SubmissionCopy(const tessera_submission& from);
  const tessera_submission& get() const { return submission_; }

 private:
  std::unique_ptr<std::byte[]> block_;
  tessera_submission submission_;
};

// commands[i], as far as both sides know the struct.
const tessera_command& command_at(const tessera_submission& s, uint32_t i);

// Runs commands, one at a time per queue.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  virtual Status run(const tessera_command& command) = 0;
};

// Where work runs whose waits pass only after its submission: on the thread that signals, or on a
// thread of the queue, started when first needed.
enum class Deferred : uint8_t { kSignaller, kOwnThread };

class HostQueue : public std::enable_shared_from_this<HostQueue> {
 public:
  // `flags`: tessera_queue_flag. With TESSERA_QUEUE_ON_SUBMIT, work that can run at once runs
  // inside submit.
  HostQueue(HostDevice& device, CommandRunner& runner, uint32_t flags, Deferred deferred);
  ~HostQueue();

  Status submit(const tessera_submission& s, uint64_t* number);
  void recover();
  // Runs what can run, fails the rest with kCancelled, returns when nothing is running.
  void close();
  // Fails all that has not started.
  void abort(const FailurePtr& cause);

 private:
  struct Pending;
  using PendingPtr = std::shared_ptr<Pending>;

  bool settled(const tessera_submission& s) const;
  FailurePtr failed_wait(const tessera_submission& s) const;
  void defer(const tessera_submission& s, uint64_t number);
  void wait_settled(const PendingPtr& p);
  bool empty() const { return pending_.empty() && ready_.empty(); }
  PendingPtr take_runnable();
  void wake();
  void drain();
  void drain_runnable(std::unique_lock<std::mutex>& lock);
  void serve();
  void execute(const PendingPtr& p);
  FailurePtr run(const tessera_submission& s, uint64_t number);
  FailurePtr run_or_fail(const tessera_submission& s, uint64_t number);
  bool in_order() const { return (flags_ & TESSERA_QUEUE_OUT_OF_ORDER) == 0; }

  HostDevice& device_;
  CommandRunner& runner_;
  const uint32_t flags_;
  const Deferred deferred_;
  std::mutex mutex_;
  std::condition_variable idle_;  // running_ became false, or work for the thread
  bool running_ = false;          // a thread is executing commands of this queue
  bool closed_ = false;
  FailurePtr failure_;  // of an in-order queue
  std::atomic<bool> has_failure_{false};
  std::list<PendingPtr> pending_;  // in the order of submission
  std::list<PendingPtr> ready_;    // out of order: those whose waits settled, taken out of pending_
  std::thread thread_;
};

// Puts the entries for timelines, queue_submit, queue_destroy, queue_recover, device_status,
// device_lose and device_clock into the table. The backend's queue handles are HostQueue* that keep
// themselves alive: see queue_handle.
void install_host_entries(tessera_backend& table);
tessera_queue* queue_handle(std::shared_ptr<HostQueue> queue);

}  // namespace tessera::hal
