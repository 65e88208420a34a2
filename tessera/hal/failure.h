// Why submitted work failed, and the passage of codes and errors over the C table.
#pragma once

#include <memory>
#include <string>

#include "tessera/base/result.h"
#include "tessera/tessera_plugin.h"

namespace tessera::hal {

// The first cause, as it happened, however many waits it travelled through.
struct Failure {
  Code code = Code::kInternal;
  std::string message = {};
  uint64_t submission = 0;         // 0: no submission, the host said so
  std::string operator_name = {};  // the command's label; "" if it had none
  std::string site = {};           // the source file that made the command; "" if unknown
  uint32_t line = 0;

  // The message with the cause's place behind it: "...; operator 'conv1', submission 7, x.cc:12".
  Error error() const;
};

using FailurePtr = std::shared_ptr<const Failure>;

int32_t to_c(Code code);
Code code_from_c(int32_t code);  // kInternal for a code that this build does not know; never call
                                 // it with TESSERA_OK

// Writes `e` as far as it fits and returns its code. `out` may be null.
int32_t to_c(const Error& e, tessera_error* out);
inline int32_t to_c(const Status& status, tessera_error* out) {
  return status ? TESSERA_OK : to_c(status.error(), out);
}

// What a table entry answered, as a Status.
Status status_from_c(int32_t code, const tessera_error& e);

// A view that lives as long as `f`; and a copy.
tessera_failure view(const Failure& f);
Failure copy(const tessera_failure& f);

// A tessera_error ready to be filled; the message is not cleared, for speed.
struct ErrorSlot : tessera_error {
  ErrorSlot() {  // NOLINT: the message stays uninitialised on purpose
    struct_size = sizeof(tessera_error);
    code = TESSERA_OK;
    message[0] = '\0';
  }
};

}  // namespace tessera::hal
