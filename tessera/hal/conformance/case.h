// What a conformance case is: a function that drives one backend and answers with the first thing
// that was wrong.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/hal/allocator.h"
#include "tessera/hal/conformance_executables.h"
#include "tessera/hal/device.h"
#include "tessera/hal/event.h"

namespace tessera::hal::conformance {

// A backend under test.
struct Subject {
  std::string name;  // "null", "cpu-1"; also of its ledger, up to the first '-'
  std::function<Result<std::unique_ptr<Backend>>()> load;
  Options options = {};
  ConformanceExecutables executables;
};

// An open device with the three executables on it.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> open(const Subject& subject);

  Device& device() { return *device_; }
  Backend& backend() { return *backend_; }
  const Executable& executable() const { return executable_; }

  // Commands of the three entries; each keeps what it points to in the bench.
  Command add(Slice a, Slice b, Slice c, const char* label = "add");
  Command spin(std::chrono::microseconds time, Slice counter, const char* label = "spin");
  Command trap(const char* label = "trap");

  // A buffer with these bytes in it, and what is in a buffer. They wait.
  Result<Buffer> upload_new(std::span<const std::byte> bytes);
  template <class T>
  Result<Buffer> buffer_of(const std::vector<T>& values) {
    return upload_new(std::as_bytes(std::span(values)));
  }
  Status download_to(Slice from, std::span<std::byte> to);
  template <class T>
  Result<std::vector<T>> values_of(Slice from) {
    std::vector<T> values(from.size_bytes / sizeof(T));
    TRY(download_to(from, std::as_writable_bytes(std::span(values))));
    return values;
  }
  // Submits to a queue of its own and waits for the end.
  Status run(std::initializer_list<Command> commands);

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  Executable executable_;
  std::vector<std::unique_ptr<Slice[]>> slices_;
  std::vector<std::unique_ptr<uint64_t>> constants_;
};

struct Case {
  const char* topic;
  const char* name;
  Status (*run)(const Subject& subject);
};

// The topics, each in its own file.
std::span<const Case> loading_cases();
std::span<const Case> memory_cases();
std::span<const Case> copy_cases();
std::span<const Case> launch_cases();
std::span<const Case> queue_cases();
std::span<const Case> failure_cases();
std::span<const Case> event_cases();
std::span<const Case> allocator_cases();
std::span<const Case> loss_cases();
std::vector<Case> all_cases();

// The longest that any wait of a case may take: longer is a hang.
inline constexpr std::chrono::seconds kHang{60};

}  // namespace tessera::hal::conformance

// EXPECT_THAT-like, but answers with an Error: CHECK(x == 1) and CHECK(x == 1, "x is {}", x).
#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition))                                                                        \
      return ::tessera::error(::tessera::Code::kInternal, "{}:{}: not true: {}{}", __FILE__, \
                              __LINE__, #condition,                                          \
                              std::string("; ") + ::fmt::format("" __VA_ARGS__));            \
  } while (0)
// The expression is a Status or Result that failed with this code.
#define CHECK_FAILS(expected, ...)                                                      \
  do {                                                                                  \
    auto&& check_result = (__VA_ARGS__);                                                \
    CHECK(!check_result, "it succeeded");                                               \
    CHECK(check_result.error().code == (expected), "it failed with {}: {}",             \
          ::tessera::name_of(check_result.error().code), check_result.error().message); \
  } while (0)
