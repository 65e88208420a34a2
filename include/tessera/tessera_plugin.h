/* The C table that a backend implements: docs/hal.md. Compiles as C11 and C++20.
 *
 * Rules. Structs that cross the border start with struct_size, as their writer knew them, and only
 * ever grow at the end; a reader takes what both sides know and treats the rest as zero. Entries
 * that a backend lacks are NULL: the host puts "unimplemented" in their place. No call depends on
 * ambient state: each names its device or queue. Every entry may be called from any thread; none
 * throws, prints or exits. Functions that return int32_t return a tessera_code and, where it is not
 * TESSERA_OK, describe it in `error` (which may be NULL). */
#ifndef TESSERA_PLUGIN_H
#define TESSERA_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/tessera_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Kernels
 * -------------------------------------------------------------------------------------------------
 */

/* A range of device memory; on a CPU `data` is a host pointer. */
typedef struct tessera_range {
  void* data;
  uint64_t size_bytes;
} tessera_range;

/* What a kernel sees. `grid` work items are spread over the device's workers; a kernel starts no
 * threads. `constants` is the block that the kernel's prepare() wrote. The struct and what it
 * points to live until the launch has finished. */
typedef struct tessera_launch {
  uint32_t struct_size;
  uint32_t grid;
  uint32_t range_count;
  uint32_t constants_bytes;
  const tessera_range* ranges;
  const void* constants;
  /* Fails the launch with a text (copied); the first failure wins. May be called from any worker.
   */
  void (*fail)(const struct tessera_launch* launch, const char* message);
  void* fail_context;
} tessera_launch;

/* Computes work items [first, first + count) of the grid. */
typedef void (*tessera_entry)(const tessera_launch* launch, uint32_t first, uint32_t count);

/* ---- Errors and failures
 * ------------------------------------------------------------------------------------- */

/* Why submitted work failed: the first cause, as it happened, however many waits it travelled
 * through. */
typedef struct tessera_failure {
  uint32_t struct_size;
  int32_t code;
  uint64_t submission; /* its number, unique in the backend; 0: no submission, the host said so */
  const char* message;
  const char* operator_name; /* the command's label; "" if it had none */
  const char* site;          /* where in the host's source the command was made; "" if unknown */
  uint32_t line;             /* in `site` */
  uint32_t reserved;
} tessera_failure;

/* ---- Handles: each backend defines what is behind them
 * -------------------------------------------------------- */

typedef struct tessera_device tessera_device;
typedef struct tessera_slab
    tessera_slab; /* one allocation of a memory space, or wrapped host memory */
typedef struct tessera_timeline
    tessera_timeline; /* a value that only grows, until it fails for good */
typedef struct tessera_executable tessera_executable;
typedef struct tessera_queue tessera_queue;

/* ---- Devices
 * -------------------------------------------------------------------------------------------------
 */

enum tessera_space_flag {
  TESSERA_SPACE_DEVICE_LOCAL = 1u << 0,
  TESSERA_SPACE_HOST_VISIBLE = 1u << 1, /* slab_info gives a host pointer */
  TESSERA_SPACE_DEFAULT = 1u << 2       /* where buffers go that name no space */
};

typedef struct tessera_space {
  uint32_t struct_size;
  uint32_t flags;                 /* tessera_space_flag */
  const char* name;               /* "host", "hbm", "l1" */
  uint64_t capacity_bytes;        /* 0: unknown */
  uint64_t alignment_bytes;       /* of every slab's base; a power of two */
  uint64_t max_slab_bytes;        /* 0: no bound but the capacity */
  uint64_t range_alignment_bytes; /* of the offsets of launch ranges; a power of two */
  uint64_t copy_alignment_bytes;  /* of offsets and sizes of copies, transfers and fills; a power of
                                     two */
} tessera_space;

enum tessera_capability {
  TESSERA_CAN_WRAP_HOST = 1u << 0,      /* slab_wrap */
  TESSERA_CAN_RUN_HOST_CALLS = 1u << 1, /* TESSERA_COMMAND_HOST */
  TESSERA_CAN_TIMESTAMP = 1u << 2,      /* TESSERA_COMMAND_TIMESTAMP */
  TESSERA_CAN_OUT_OF_ORDER = 1u << 3,   /* TESSERA_QUEUE_OUT_OF_ORDER */
  TESSERA_RUNS_ON_SUBMIT = 1u << 4      /* submit may return only after the work is done */
};

/* Pointers in it live as long as the backend is loaded (device_info) or the device is open
 * (device_properties). */
typedef struct tessera_device_info {
  uint32_t struct_size;
  uint32_t capabilities;      /* tessera_capability */
  const char* name;           /* for people */
  const char* chip;           /* the id of a chip file in data/hardware, or "" */
  const char* const* formats; /* executable formats taken: "host_fn", "elf", "ptx", ... */
  uint32_t format_count;
  uint32_t space_count;
  const tessera_space* spaces; /* spaces[i] lies space_bytes * i behind spaces[0] */
  uint32_t space_bytes;
  uint32_t compute_units;       /* cores or their like that a launch is spread over */
  uint32_t max_launch_ranges;   /* 0: no bound */
  uint32_t max_constants_bytes; /* 0: no bound */
  uint64_t launch_overhead_ns;  /* typical; 0: unknown */
} tessera_device_info;

typedef struct tessera_option {
  const char* key;
  const char* value;
} tessera_option;

/* Memory figures of one space. A field counts only if its bit is in `known`. */
typedef struct tessera_memory {
  uint32_t struct_size;
  uint32_t known;
  uint64_t capacity_bytes;  /* bit 0 */
  uint64_t free_bytes;      /* bit 1 */
  uint64_t slab_bytes;      /* bit 2: in slabs of this device, now */
  uint64_t peak_slab_bytes; /* bit 3 */
  uint64_t slab_count;      /* bit 4 */
  uint64_t wrapped_bytes;   /* bit 5: host memory wrapped now */
} tessera_memory;

typedef struct tessera_slab_info {
  uint32_t struct_size;
  uint32_t space;
  uint64_t size_bytes;
  void* host; /* NULL where the host cannot see it */
} tessera_slab_info;

/* ---- Work
 * ----------------------------------------------------------------------------------------------------
 */

/* The moment at which `timeline` reaches `value`. */
typedef struct tessera_point {
  tessera_timeline* timeline;
  uint64_t value;
} tessera_point;

/* Bytes [offset, offset + size) of a slab. */
typedef struct tessera_slice {
  tessera_slab* slab;
  uint64_t offset_bytes;
  uint64_t size_bytes;
} tessera_slice;

typedef struct tessera_entry_source {
  const char* name;
  tessera_entry host_fn; /* format "host_fn"; NULL for all others, which find `name` in the bytes */
} tessera_entry_source;

/* An executable: format, bytes, entries. Nothing of it needs to outlive executable_load but host_fn
 * pointers. */
typedef struct tessera_executable_source {
  uint32_t struct_size;
  uint32_t entry_count;
  const char* format;
  const void* bytes; /* NULL for "host_fn" */
  uint64_t size_bytes;
  const tessera_entry_source* entries;
} tessera_executable_source;

enum tessera_command_kind {
  TESSERA_COMMAND_LAUNCH = 0,
  TESSERA_COMMAND_COPY = 1, /* slab to slab of one device; the ranges must not overlap */
  TESSERA_COMMAND_UPLOAD =
      2, /* host memory, which must stay unchanged until the signal, to a slab */
  TESSERA_COMMAND_DOWNLOAD = 3,
  TESSERA_COMMAND_FILL =
      4, /* a pattern of 1, 2, 4 or 8 bytes, repeated; the size is a multiple of it */
  TESSERA_COMMAND_HOST = 5,      /* a call on the host, in the queue's order */
  TESSERA_COMMAND_TIMESTAMP = 6, /* the device's clock, in ns */
  TESSERA_COMMAND_KINDS = 7
};

typedef struct tessera_launch_command {
  tessera_executable* executable;
  uint32_t entry;
  uint32_t grid;
  uint32_t range_count;
  uint32_t constants_bytes;
  const tessera_slice* ranges;
  const void* constants;
} tessera_launch_command;

typedef struct tessera_copy_command {
  tessera_slice source;
  tessera_slice target; /* of the same size */
} tessera_copy_command;

typedef struct tessera_transfer_command {
  tessera_slice device;
  void* host; /* upload only reads it */
} tessera_transfer_command;

typedef struct tessera_fill_command {
  tessera_slice target;
  uint64_t pattern;
  uint32_t pattern_bytes;
  uint32_t reserved;
} tessera_fill_command;

/* Returns a tessera_code. It must not wait for work of its own queue. */
typedef struct tessera_host_command {
  int32_t (*call)(void* context, tessera_error* error);
  void* context;
} tessera_host_command;

typedef struct tessera_timestamp_command {
  uint64_t* ns; /* written before the submission's signals fire */
} tessera_timestamp_command;

typedef struct tessera_command {
  uint32_t kind;
  uint32_t line;
  const char* label; /* the operator, or NULL */
  const char* site;  /* a string that is never freed, or NULL */
  union {
    tessera_launch_command launch;
    tessera_copy_command copy;
    tessera_transfer_command transfer;
    tessera_fill_command fill;
    tessera_host_command host;
    tessera_timestamp_command timestamp;
    uint64_t reserved[10];
  } as;
} tessera_command;

/* When all waits have passed, the commands run one after the other; then all signals fire. If a
 * wait fails, no command runs; if a command fails, none after it runs; either way all signals fail
 * with the first cause. Waiting for a point whose signal is not submitted yet is legal. Nothing
 * that the struct points to needs to outlive queue_submit, save what host, timestamp and transfer
 * commands address. */
typedef struct tessera_submission {
  uint32_t struct_size;
  uint32_t wait_count;
  uint32_t signal_count;
  uint32_t command_count;
  uint32_t command_bytes; /* distance of commands[i] from commands[i + 1] */
  uint32_t reserved;
  const tessera_point* waits;
  const tessera_point* signals;
  const tessera_command* commands;
} tessera_submission;

enum tessera_queue_flag {
  /* Submissions are ordered by their waits alone. Otherwise each follows, and depends on, the one
   * before it: once one failed, all later ones fail with its cause, until queue_recover. */
  TESSERA_QUEUE_OUT_OF_ORDER = 1u << 0,
  /* The backend may run work on the submitting thread before submit returns: lowest overhead, no
     overlap. */
  TESSERA_QUEUE_ON_SUBMIT = 1u << 1
};

/* ---- Claims: the optional second table
 * ------------------------------------------------------------------------ */

enum tessera_claim_flag { TESSERA_CLAIM_DETERMINISTIC = 1u << 0 };

/* What a backend offers for one problem (docs: problem strings, such as `matmul_f16_m64n32k128`).
 */
typedef struct tessera_claim {
  uint32_t struct_size;
  uint32_t flags; /* tessera_claim_flag */
  uint64_t cost_ps;
  uint64_t workspace_bytes;
  uint32_t launch_count; /* at least 1 */
  uint32_t reserved;
  const char* compute_type; /* dtype names; live as long as the backend */
  const char* accumulate_type;
} tessera_claim;

/* One launch of a claim. The plugin owns what it points to until `release`. */
typedef struct tessera_prepared {
  uint32_t struct_size;
  uint32_t grid;
  tessera_executable_source source;
  uint32_t entry;
  uint32_t constants_bytes;
  const void* constants;
  void* owner;
} tessera_prepared;

typedef struct tessera_claims {
  uint32_t struct_size;
  uint32_t reserved;
  /* TESSERA_OK and a claim, or TESSERA_UNIMPLEMENTED and in `error` the reason why not. */
  int32_t (*probe)(tessera_device* device, const char* problem, tessera_claim* claim,
                   tessera_error* error);
  /* Launch `index` of `claim`. */
  int32_t (*prepare)(tessera_device* device, const char* problem, const tessera_claim* claim,
                     uint32_t index, tessera_prepared* prepared, tessera_error* error);
  void (*release)(tessera_device* device, tessera_prepared* prepared);
} tessera_claims;

/* ---- The table
 * -----------------------------------------------------------------------------------------------
 */

typedef struct tessera_backend {
  uint32_t struct_size;
  uint32_t abi_version; /* what the plugin chose from the host's range */
  const char* name;
  void* context;                /* handed to the entries that take one */
  const tessera_claims* claims; /* or NULL */

  /* Called once, after everything that came from the backend is gone. */
  void (*unload)(void* context);

  int32_t (*device_count)(void* context, uint32_t* count, tessera_error* error);
  /* Describes a device without opening it. */
  int32_t (*device_info)(void* context, uint32_t ordinal, tessera_device_info* info,
                         tessera_error* error);
  /* Refuses options that it does not know (TESSERA_INVALID_ARGUMENT). */
  int32_t (*device_open)(void* context, uint32_t ordinal, const tessera_option* options,
                         uint32_t option_count, tessera_device** device, tessera_error* error);
  /* Everything made from the device is gone by now. */
  void (*device_close)(tessera_device* device);
  /* As opened, with its options taken into account. */
  int32_t (*device_properties)(tessera_device* device, tessera_device_info* info,
                               tessera_error* error);
  /* TESSERA_OK, or TESSERA_DEVICE_LOST with the cause. */
  int32_t (*device_status)(tessera_device* device, tessera_error* error);
  /* The host gives the device up (a watchdog, say): every signal that is pending on it fails,
   * timelines of the device fail, later work and allocations are refused with TESSERA_DEVICE_LOST;
   * frees and closing still work. A device that notices its loss by itself does the same. */
  int32_t (*device_lose)(tessera_device* device, const tessera_failure* cause,
                         tessera_error* error);
  int32_t (*device_clock)(tessera_device* device, uint64_t* ns, tessera_error* error);
  int32_t (*device_memory)(tessera_device* device, uint32_t space, tessera_memory* memory,
                           tessera_error* error);

  /* Size at least 1. TESSERA_RESOURCE_EXHAUSTED when it does not fit. */
  int32_t (*slab_allocate)(tessera_device* device, uint32_t space, uint64_t size_bytes,
                           tessera_slab** slab, tessera_error* error);
  /* Host memory, used in place; it must outlive the slab. */
  int32_t (*slab_wrap)(tessera_device* device, void* host, uint64_t size_bytes, tessera_slab** slab,
                       tessera_error* error);
  /* No command that uses the slab is pending any more. */
  void (*slab_free)(tessera_slab* slab);
  int32_t (*slab_info)(tessera_slab* slab, tessera_slab_info* info, tessera_error* error);

  int32_t (*timeline_create)(tessera_device* device, uint64_t initial, tessera_timeline** timeline,
                             tessera_error* error);
  /* The timeline lives on while submitted work signals it; when nobody is left who could, waits
   * that are not passed fail with TESSERA_CANCELLED. */
  void (*timeline_destroy)(tessera_timeline* timeline);
  /* TESSERA_OK, or the failure's code; writes the last value reached either way. */
  int32_t (*timeline_query)(tessera_timeline* timeline, uint64_t* value);
  /* NULL while it has not failed; else it lives as long as the timeline. */
  const tessera_failure* (*timeline_failure)(tessera_timeline* timeline);
  /* Raises the value to at least `value`; no effect on a failed timeline. */
  int32_t (*timeline_signal)(tessera_timeline* timeline, uint64_t value, tessera_error* error);
  /* Values reached stay reached; later ones never are. The first failure counts. Strings are
   * copied. */
  int32_t (*timeline_fail)(tessera_timeline* timeline, const tessera_failure* failure,
                           tessera_error* error);
  /* TESSERA_OK, the failure's code, or TESSERA_DEADLINE_EXCEEDED. UINT64_MAX waits forever. */
  int32_t (*timeline_wait)(tessera_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                           tessera_error* error);
  /* Calls once, from any thread, perhaps before this returns: with NULL when the value is reached,
   * with the cause when it never will be. The callee must not block; it may destroy the timeline.
   */
  int32_t (*timeline_notify)(tessera_timeline* timeline, uint64_t value,
                             void (*call)(void* context, const tessera_failure* failure),
                             void* context, tessera_error* error);

  int32_t (*executable_load)(tessera_device* device, const tessera_executable_source* source,
                             tessera_executable** executable, tessera_error* error);
  /* No launch of it is pending any more. */
  void (*executable_unload)(tessera_executable* executable);

  int32_t (*queue_create)(tessera_device* device, uint32_t flags, tessera_queue** queue,
                          tessera_error* error);
  /* Submissions that could run still do; all others fail with TESSERA_CANCELLED. */
  void (*queue_destroy)(tessera_queue* queue);
  /* On an error nothing was submitted and no signal will fire. `number` (may be NULL): what a
   * failure will name. */
  int32_t (*queue_submit)(tessera_queue* queue, const tessera_submission* submission,
                          uint64_t* number, tessera_error* error);
  /* Forgets the failure that an in-order queue holds. */
  int32_t (*queue_recover)(tessera_queue* queue, tessera_error* error);
} tessera_backend;

/* ---- Loading
 * -------------------------------------------------------------------------------------------------
 */

#define TESSERA_ABI_VERSION \
  1u /* what this header describes; it grows only when a reader of the old one would err */

typedef struct tessera_host {
  uint32_t struct_size;
  uint32_t abi_oldest; /* the host takes abi_oldest ... abi_newest */
  uint32_t abi_newest;
  uint32_t reserved;
} tessera_host;

/* What a plugin exports, as `tessera_plugin_main`: chooses a version in the host's range, or
 * refuses with TESSERA_FAILED_PRECONDITION; a plugin whose vendor library or device is absent
 * answers TESSERA_UNAVAILABLE and says why. The table lives until `unload`. */
typedef int32_t (*tessera_plugin_entry)(const tessera_host* host, const tessera_backend** backend,
                                        tessera_error* error);

#define TESSERA_PLUGIN_SYMBOL "tessera_plugin_main"

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_PLUGIN_H */
