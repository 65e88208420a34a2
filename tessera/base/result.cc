#include "tessera/base/result.h"

namespace tessera {

std::string_view name_of(Code code) {
  using enum Code;
  switch (code) {
    case kInvalidArgument:
      return "invalid argument";
    case kNotFound:
      return "not found";
    case kAlreadyExists:
      return "already exists";
    case kOutOfRange:
      return "out of range";
    case kFailedPrecondition:
      return "failed precondition";
    case kUnimplemented:
      return "unimplemented";
    case kResourceExhausted:
      return "resource exhausted";
    case kDeadlineExceeded:
      return "deadline exceeded";
    case kCancelled:
      return "cancelled";
    case kUnavailable:
      return "unavailable";
    case kDeviceLost:
      return "device lost";
    case kDataLoss:
      return "data loss";
    case kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace tessera
