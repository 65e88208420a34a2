#include "tessera/cli/process.h"

#include <sys/resource.h>
#include <chrono>
#include <ctime>

namespace tessera::cli {
namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point started = Clock::now();

}  // namespace

void mark_start() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  started =
      Clock::now() - std::chrono::seconds(used.tv_sec) - std::chrono::nanoseconds(used.tv_nsec);
}

Seconds since_start() {
  return Seconds(std::chrono::duration<double>(Clock::now() - started).count());
}

Bytes peak_resident() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return Bytes(int64_t{usage.ru_maxrss} * 1024);
}

}  // namespace tessera::cli
