#include "tessera/base/limits.h"

#include <limits>

#include "tessera/base/machine.h"

namespace tessera {

Bytes default_memory_limit() {
  const int64_t memory = usable_memory().value;
  return Bytes(memory > 0 ? memory - memory / 5 : std::numeric_limits<int64_t>::max());
}

Limits::Limits(Options options)
    : memory_(options.memory ? *options.memory : default_memory_limit()),
      timeout_(options.timeout) {}

Status Limits::charge(Bytes bytes, std::string_view what) {
  if (bytes.value < 0)
    return error(Code::kInvalidArgument, "{} has a size of {} B", what, bytes.value);
  int64_t used = used_.load();
  do {
    if (bytes.value > memory_.value - used)
      return error(Code::kResourceExhausted,
                   "{} needs {}, and {} of the memory limit of {} are in use", what,
                   to_string(bytes), to_string(Bytes(used)), to_string(memory_));
  } while (!used_.compare_exchange_weak(used, used + bytes.value));
  const int64_t now = used + bytes.value;
  for (int64_t peak = peak_.load(); now > peak && !peak_.compare_exchange_weak(peak, now);) {
  }
  return {};
}

Status Limits::check_deadline(std::string_view where) const {
  if (cancelled_.load()) return error(Code::kCancelled, "cancelled; {}", where);
  if (!timeout_) return {};
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  if (elapsed < timeout_->value) return {};
  return error(Code::kDeadlineExceeded, "{} have passed, the timeout is {}; {}",
               to_string(Seconds(elapsed)), to_string(*timeout_), where);
}

Result<Charge> Charge::make(Limits& limits, Bytes bytes, std::string_view what) {
  TRY(limits.charge(bytes, what));
  return Charge(limits, bytes);
}

}  // namespace tessera
