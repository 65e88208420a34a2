// hal/null as a stranger would ship it: a shared library.
#include "tessera/hal/null/backend.h"

extern "C" int32_t tessera_plugin_main(const tessera_host* host, const tessera_backend** backend,
                                       tessera_error* error);

int32_t tessera_plugin_main(const tessera_host* host, const tessera_backend** backend,
                            tessera_error* error) {
  return tessera::hal::null::plugin_main(host, backend, error);
}
