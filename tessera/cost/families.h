// From operators to models: a row for each family.
#pragma once

#include "tessera/cost/machine.h"
#include "tessera/op/problem.h"

namespace tessera::cost {

Result<Tally> tally_of(const Machine& machine, const op::Problem& problem);

Result<Tally> conversion_tally(const Machine& machine, const op::Operand& from,
                               const op::Operand& to);

}  // namespace tessera::cost
