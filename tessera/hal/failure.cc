#include "tessera/hal/failure.h"

#include <algorithm>
#include <cstring>

namespace tessera::hal {

static_assert(static_cast<int>(Code::kInvalidArgument) + 1 == TESSERA_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::kResourceExhausted) + 1 == TESSERA_RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(Code::kDeviceLost) + 1 == TESSERA_DEVICE_LOST);
static_assert(static_cast<int>(Code::kInternal) + 1 == TESSERA_INTERNAL);

Error Failure::error() const {
  std::string where;
  const auto add = [&](const std::string& part) { where += (where.empty() ? "; " : ", ") + part; };
  if (!operator_name.empty()) add("operator '" + operator_name + "'");
  if (submission != 0) add("submission " + std::to_string(submission));
  if (!site.empty()) add(site + ":" + std::to_string(line));
  return {code, message + where};
}

int32_t to_c(Code code) { return static_cast<int32_t>(code) + 1; }

Code code_from_c(int32_t code) {
  const bool known = code >= TESSERA_INVALID_ARGUMENT && code <= TESSERA_INTERNAL;
  return known ? static_cast<Code>(code - 1) : Code::kInternal;
}

int32_t to_c(const Error& e, tessera_error* out) {
  if (out != nullptr) {
    const size_t room =
        std::min<size_t>(out->struct_size, sizeof *out) - offsetof(tessera_error, message);
    const size_t length = std::min(e.message.size(), room - 1);
    std::memcpy(out->message, e.message.data(), length);
    out->message[length] = '\0';
    out->code = to_c(e.code);
  }
  return to_c(e.code);
}

Status status_from_c(int32_t code, const tessera_error& e) {
  if (code == TESSERA_OK) return {};
  std::string message(e.message, strnlen(e.message, sizeof e.message));
  if (message.empty()) message = "the backend gave no reason";
  return error(Error{code_from_c(code), std::move(message)});
}

tessera_failure view(const Failure& f) {
  return {.struct_size = sizeof(tessera_failure),
          .code = to_c(f.code),
          .submission = f.submission,
          .message = f.message.c_str(),
          .operator_name = f.operator_name.c_str(),
          .site = f.site.c_str(),
          .line = f.line,
          .reserved = 0};
}

Failure copy(const tessera_failure& f) {
  const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  return {code_from_c(f.code),   text(f.message), f.submission,
          text(f.operator_name), text(f.site),    f.line};
}

}  // namespace tessera::hal
