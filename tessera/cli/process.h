// What the process knows about itself.
#pragma once

#include "tessera/base/units.h"

namespace tessera::cli {

// Called first in main(): the process has existed for as long as it has used the processor until
// then.
void mark_start();
// Since the process was started.
Seconds since_start();
// The most memory that the process had resident at once.
Bytes peak_resident();

}  // namespace tessera::cli
