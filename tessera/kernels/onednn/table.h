// oneDNN's kernels as a claim source.
#pragma once

#include "tessera/kernels/table.h"

namespace tessera::kernels::onednn {

// Without the library its rows refuse, with the reason. They compute in f32, on the threads that
// the queue gives them; priced above our own until a calibration has measured them.
const Table& table();

}  // namespace tessera::kernels::onednn
