// Operands as chips see them: bytes with padding, and layouts that routes read or write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/cost/machine.h"
#include "tessera/op/problem.h"

namespace tessera::cost {

// Bytes that an operand takes in memory, padding of its layout included; 0 for one left out.
double bytes_of(const op::Operand& operand);
double bits_of_elements(const op::Operand& operand);  // bits of one element
double elements_of(const op::Operand& operand);
double bytes_per_element(const op::Operand& operand);
double dim(const op::Operand& operand, size_t axis);  // 1 beyond the last
double product_of(const op::Dims& dims, size_t first, size_t last);
// Bytes of the inputs [first, last), and of all results.
double input_bytes(const op::Problem& problem, size_t first, size_t last);
double input_bytes(const op::Problem& problem);
double output_bytes(const op::Problem& problem);

// Names by which the changes of a chip's routes may know the operand's layout: "ND" where it is
// row-major, or those of `names` whose expression is its own.
std::vector<std::string> layout_names(const op::Operand& operand,
                                      const std::vector<std::string>& names);

// Whether the routes from the device's memory to the unit's operand ("a", "b") change its layout to
// one that the unit takes; for "c" the way back. True where the chip says nothing of layouts.
bool reaches(const Machine& machine, const chip::Unit& unit, std::string_view name,
             const op::Operand& operand);
// The layouts, by name, for which that holds, in the order of the chip's routes; empty: any.
std::vector<std::string> reachable(const Machine& machine, const chip::Unit& unit,
                                   std::string_view name);
// The operand in a layout of that name ("ND", a format, or an expression).
Result<op::Operand> laid_out(op::Operand operand, std::string_view name, int64_t groups = 1);

}  // namespace tessera::cost
