// The kernels for CPUs as a claim source.
#pragma once

#include "tessera/kernels/cpu/isa.h"
#include "tessera/kernels/table.h"

namespace tessera::kernels::cpu {

// The kernels compiled for `isa`. Rows, claims and packed forms are the same for all; only the
// entries differ.
// @pre `isa` is available before an entry is called
const Table& table(Isa isa);
// The table for best_isa().
const Table& table();

}  // namespace tessera::kernels::cpu
