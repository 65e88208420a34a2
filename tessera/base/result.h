// Errors as values. A library is a guest in someone's process: it never prints, aborts or throws
// across a module border.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace tessera {

// Canonical codes. The command line maps them to exit codes (docs/cli.md).
enum class Code {
  kInvalidArgument,  // the caller's or the model's fault: bad file, wrong shape, contradicting
                     // types
  kNotFound,         // a name, file or symbol that does not exist
  kAlreadyExists,
  kOutOfRange,          // a size or index beyond its bound
  kFailedPrecondition,  // right call, wrong moment or state
  kUnimplemented,       // legal, but this build or device cannot do it
  kResourceExhausted,   // memory, disk, or a limit set by the user
  kDeadlineExceeded,
  kCancelled,
  kUnavailable,  // vendor library or device absent
  kDeviceLost,
  kDataLoss,  // unreadable or truncated data
  kInternal,  // our own fault
};

std::string_view name_of(Code code);

// A reason. `message` gives the value, the bound and where: "dim 2 is 48, need a multiple of 16; op
// 'conv1'".
struct Error {
  Code code = Code::kInternal;
  std::string message;

  // Appends "; <where>" so that each layer can say what it was doing.
  Error at(std::string_view where) && {
    message.append("; ").append(where);
    return std::move(*this);
  }
  Error at(std::string_view where) const& { return Error(*this).at(where); }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// error(Code::kOutOfRange, "dim {} is {}", d, n) converts to any Result<T>.
template <class... Args>
tl::unexpected<Error> error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}
inline tl::unexpected<Error> error(Error e) { return tl::unexpected<Error>(std::move(e)); }

}  // namespace tessera

#define TESSERA_CONCAT_(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_(a, b)

// TRY(expr): returns the error of a Status or Result from the enclosing function; the value is
// dropped.
#define TRY(...)                                              \
  do {                                                        \
    if (auto&& try_result = (__VA_ARGS__); !try_result)       \
      return ::tl::unexpected(std::move(try_result).error()); \
  } while (0)

// TRY_ASSIGN(auto x, expr): as TRY, and binds the value.
#define TRY_ASSIGN(target, ...) \
  TRY_ASSIGN_(TESSERA_CONCAT(try_result_, __LINE__), target, __VA_ARGS__)
#define TRY_ASSIGN_(result, target, ...)                           \
  auto&& result = (__VA_ARGS__);                                   \
  if (!result) return ::tl::unexpected(std::move(result).error()); \
  target = *std::move(result)
