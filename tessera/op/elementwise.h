// Which operators work element by element.
#pragma once

#include "tessera/op/def.h"

namespace tessera::op {

// Each element of the one result follows from the elements of the inputs at its place, broadcast:
// what may be a step of a fused group.
bool elementwise(const OpDef& op);

}  // namespace tessera::op
