// Events: a mark that a device sets when its queue gets there, with the time; and one that the host
// sets.
#pragma once

#include <chrono>
#include <memory>

#include "tessera/hal/device.h"

namespace tessera::hal {

// Recorded as often as wanted; the last record counts.
class DeviceEvent {
 public:
  static Result<DeviceEvent> create(Device& device);

  // Fails, or passes, when the work before it on `queue` has ended (on an out-of-order queue: at
  // once).
  Status record(Queue& queue);
  // Of the last record; one that has passed if there is none.
  Point point() const { return timeline_.at(records_); }
  bool passed() const { return point().passed(); }
  Status wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const {
    return point().wait(timeout);
  }
  // The device's clock at the last record. kFailedPrecondition before it passed, kUnimplemented
  // where the device has no timestamps.
  Result<uint64_t> time_ns() const;

 private:
  Device* device_ = nullptr;
  Timeline timeline_;
  uint64_t records_ = 0;
  std::shared_ptr<uint64_t> time_;  // the queue writes it
};

// Set once.
class HostEvent {
 public:
  static Result<HostEvent> create(Device& device);

  Point point() const { return timeline_.at(1); }
  Status set() { return timeline_.signal(1); }
  // All that waits for it fails with `cause`.
  Status fail(const Failure& cause) { return timeline_.fail(cause); }

 private:
  Timeline timeline_;
};

}  // namespace tessera::hal
