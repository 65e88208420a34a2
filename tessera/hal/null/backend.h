// The skeleton of a backend: complete, synchronous, in host memory. To make a new one, copy this
// folder to hal/<name>, rename the namespace, replace the bodies that say "A driver ..." file by
// file, and add a line to layers.txt, to the list of backends and to hal/conformance's list of
// subjects; when that passes, it is a backend.
//
//   backend.cc     the table, and what the backend is
//   memory.cc      slabs
//   executable.cc  code
//   queue.cc       running one command
//
// Waits, order, failures and device loss come from hal/host_queue.h, so a driver that can only run
// one command after the other is enough. A driver with timelines and queues of its own supplies
// those table entries itself.
#pragma once

#include "tessera/tessera_plugin.h"

namespace tessera::hal::null {

int32_t plugin_main(const tessera_host* host, const tessera_backend** backend,
                    tessera_error* error);

}  // namespace tessera::hal::null
