// What one job may take: memory and time. A job that meets a limit ends with an Error, never with a
// hang or a killed process. All of it may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tessera/base/result.h"
#include "tessera/base/units.h"

namespace tessera {

// 80 % of the memory that the machine or its cgroup has.
Bytes default_memory_limit();

class Limits {
 public:
  struct Options {
    std::optional<Bytes> memory;     // default_memory_limit() if empty
    std::optional<Seconds> timeout;  // from construction; none if empty
  };
  explicit Limits(Options options = {});
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  // Books `bytes`, or books nothing and returns kResourceExhausted: "what" names what they are for.
  Status charge(Bytes bytes, std::string_view what);
  void release(Bytes bytes) { used_.fetch_sub(bytes.value); }

  // kDeadlineExceeded once the time is over, kCancelled after cancel(). "where" names what was
  // going on.
  Status check_deadline(std::string_view where) const;
  // Makes every later check_deadline() fail.
  void cancel() { cancelled_.store(true); }

  Bytes memory_limit() const { return memory_; }
  Bytes used() const { return Bytes(used_.load()); }
  Bytes peak() const { return Bytes(peak_.load()); }

 private:
  using Clock = std::chrono::steady_clock;
  Bytes memory_;
  Clock::time_point start_ = Clock::now();
  std::optional<Seconds> timeout_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<bool> cancelled_{false};
};

// A booking that ends with its scope. The Limits must outlive it.
class Charge {
 public:
  Charge() = default;
  static Result<Charge> make(Limits& limits, Bytes bytes, std::string_view what);
  Charge(Charge&& other) noexcept
      : limits_(std::exchange(other.limits_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(limits_, other.limits_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (limits_) limits_->release(bytes_);
  }

  Bytes bytes() const { return bytes_; }

 private:
  Charge(Limits& limits, Bytes bytes) : limits_(&limits), bytes_(bytes) {}
  Limits* limits_ = nullptr;
  Bytes bytes_;
};

}  // namespace tessera
