// Timelines, the only means of synchronisation: a 64-bit value that only grows, until it fails for
// good.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "tessera/hal/failure.h"
#include "tessera/hal/owned.h"

namespace tessera::hal {

class Device;

// The moment at which a timeline reaches `value`. Valid as long as the Timeline it was taken from.
struct Point {
  const Device* device = nullptr;
  tessera_timeline* timeline = nullptr;
  uint64_t value = 0;

  // Whether it has passed. False too if it never will: see failure().
  bool passed() const;
  // The first cause, if the point can never pass any more.
  std::optional<Failure> failure() const;
  // The failure's error, with its cause; kDeadlineExceeded when the time is up.
  Status wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const;
  // Calls once, from any thread, perhaps before it returns: with null when the point passed, or the
  // cause. The callee must not block.
  Status notify(std::function<void(const Failure*)> call) const;
};

// Outlives the points taken from it, except those handed to queues. Moving it leaves its points
// valid.
class Timeline {
 public:
  Timeline() = default;
  Point at(uint64_t value) const { return {device_, owned_.get(), value}; }
  uint64_t value() const;
  // Raises the value to at least `value`.
  Status signal(uint64_t value);
  // Values reached stay reached; the first failure counts.
  Status fail(const Failure& cause);
  std::optional<Failure> failure() const;
  Status wait(uint64_t value,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const {
    return at(value).wait(timeout);
  }

 private:
  friend class Device;
  Timeline(const Device* device, const tessera_backend* table, tessera_timeline* handle)
      : device_(device), owned_(table, handle) {}
  const Device* device_ = nullptr;
  Owned<tessera_timeline, &tessera_backend::timeline_destroy> owned_;
};

}  // namespace tessera::hal
