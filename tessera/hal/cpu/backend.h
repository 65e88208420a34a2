// The host's cores as a device: asynchronous queues over one thread pool per device.
//
// Options of device_open: `threads` (default: a thread per core this process may use) and
// `memory_limit` (bytes of slabs; default: what the machine and its cgroups allow). With one
// thread, work whose waits have passed runs inside submit, on the caller's thread; with more, on a
// thread of the queue and the pool's workers, unless the queue was made with
// TESSERA_QUEUE_ON_SUBMIT.
#pragma once

#include "tessera/tessera_plugin.h"

namespace tessera::hal::cpu {

int32_t plugin_main(const tessera_host* host, const tessera_backend** backend,
                    tessera_error* error);

}  // namespace tessera::hal::cpu
