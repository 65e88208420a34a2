/* How the C interfaces say what went wrong. Compiles as C11 and C++20. */
#ifndef TESSERA_ERROR_H
#define TESSERA_ERROR_H

#include <stdint.h>

typedef enum tessera_code {
  TESSERA_OK = 0,
  TESSERA_INVALID_ARGUMENT = 1,
  TESSERA_NOT_FOUND = 2,
  TESSERA_ALREADY_EXISTS = 3,
  TESSERA_OUT_OF_RANGE = 4,
  TESSERA_FAILED_PRECONDITION = 5,
  TESSERA_UNIMPLEMENTED = 6,
  TESSERA_RESOURCE_EXHAUSTED = 7,
  TESSERA_DEADLINE_EXCEEDED = 8,
  TESSERA_CANCELLED = 9,
  TESSERA_UNAVAILABLE = 10,
  TESSERA_DEVICE_LOST = 11,
  TESSERA_DATA_LOSS = 12,
  TESSERA_INTERNAL = 13
} tessera_code;

/* Why a call was refused. The caller owns it and sets struct_size; the callee writes it on failure
 * only. */
typedef struct tessera_error {
  uint32_t struct_size;
  int32_t code;
  char message[1016]; /* ends with a zero byte */
} tessera_error;

#endif /* TESSERA_ERROR_H */
