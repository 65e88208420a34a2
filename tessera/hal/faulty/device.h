// The objects behind the handles of hal/faulty. Slabs and executables are the inner backend's own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tessera/hal/faulty/faulty.h"
#include "tessera/hal/host_queue.h"

namespace tessera::hal::faulty {

using Clock = std::chrono::steady_clock;

struct Wrapper {
  std::unique_ptr<Backend> inner;
  Faults faults;
  tessera_backend table;
};

class Device {
 public:
  Device(const tessera_backend& inner, tessera_device* device, const Faults& faults)
      : inner_(inner), device_(device), faults_(faults), random_(faults.seed) {}

  const tessera_backend& inner() const { return inner_; }
  tessera_device* handle() const { return device_; }
  const Faults& faults() const { return faults_; }
  bool happens(double probability);
  std::chrono::microseconds delay();  // 0 if there is none
  uint64_t below(uint64_t n);
  // Counts a submission; loses the device when its time has come.
  void count_submission();

 private:
  const tessera_backend& inner_;
  tessera_device* device_;
  const Faults faults_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  uint64_t submissions_ = 0;
};

// Shared by its handle and by submissions that are held back: the inner timeline dies with the last
// of them.
class Timeline {
 public:
  Timeline(const tessera_backend& t, tessera_timeline* h) : inner(t), handle(h) {}
  ~Timeline() { inner.timeline_destroy(handle); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const tessera_backend& inner;
  tessera_timeline* const handle;
};
using TimelinePtr = std::shared_ptr<Timeline>;

class Queue {
 public:
  Queue(Device& device, tessera_queue* queue, uint32_t flags);
  // Hands all on to the inner queue, then destroys it.
  ~Queue();

  Status submit(const tessera_submission& s, uint64_t* number);
  Status recover();

 private:
  struct Held;

  bool holds() const;
  void serve();
  std::unique_ptr<Held> take_due(std::unique_lock<std::mutex>& lock);
  void flush();
  void pass_on(const Held& h);
  Status forward(const tessera_submission& s, bool fail, uint64_t* number);

  Device& device_;
  tessera_queue* queue_;
  const bool in_order_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::unique_ptr<Held>> held_;  // by when they may go
  std::deque<std::unique_ptr<Held>> due_;
  Clock::time_point last_due_{};
  bool passing_ = false;
  bool flushing_ = false;
  bool stop_ = false;
  std::thread thread_;
};

// The seven timeline entries and the three queue entries.
void install_timelines(tessera_backend& table);
void install_queues(tessera_backend& table);

}  // namespace tessera::hal::faulty
