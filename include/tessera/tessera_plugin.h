/* The C table that a backend implements: docs/hal.md. Compiles as C11 and C++20. */
#ifndef TESSERA_PLUGIN_H
#define TESSERA_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of device memory; on a CPU `data` is a host pointer. */
typedef struct tessera_range {
  void* data;
  uint64_t size_bytes;
} tessera_range;

/* What a kernel sees. `grid` work items are spread over the device's workers; a kernel starts no threads.
 * `constants` is the block that the kernel's prepare() wrote. The struct and what it points to live until the
 * launch has finished. */
typedef struct tessera_launch {
  uint32_t struct_size;
  uint32_t grid;
  uint32_t range_count;
  uint32_t constants_bytes;
  const tessera_range* ranges;
  const void* constants;
  /* Fails the launch with a text (copied); the first failure wins. May be called from any worker. */
  void (*fail)(const struct tessera_launch* launch, const char* message);
  void* fail_context;
} tessera_launch;

/* Computes work items [first, first + count) of the grid. */
typedef void (*tessera_entry)(const tessera_launch* launch, uint32_t first, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_PLUGIN_H */
