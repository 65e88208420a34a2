// The layouts that a chip's device memory holds: those its engines and libraries name.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/op/problem.h"

namespace tessera::kernels::chip {

using Names = std::set<std::string, std::less<>>;

// Formats by their full names ("FRACTAL_NZ"), without ND: what the chip's engines read from its
// device memory or write to it, on the way to an operand of a matrix unit or from it.
Names formats_of(const tessera::chip::Chip& chip);
// The same, and what its vendor's library wishes for.
Names vendor_formats_of(const tessera::chip::Chip& chip);

// "NZ" -> "FRACTAL_NZ"; empty for what is no format (expressions). ND stays ND.
std::string full_name(std::string_view format);

// The layout of a tensor in a format, as problems name it; empty: row-major. kInvalidArgument
// where the format does not take the shape.
Result<std::string> layout_in(std::string_view format, DType dtype, const op::Dims& dims,
                              int64_t groups = 1);

// Bytes that the operand takes in its layout, padding included.
Result<Bytes> stored_bytes(const op::Operand& operand);

// A name for a layout that a tensor of this shape has: "NZ", "NC1HWC0", "NHWC", or the expression
// itself; "ND" for row-major.
std::string name_of_layout(std::string_view layout, DType dtype, const op::Dims& dims,
                           int64_t groups = 1);

}  // namespace tessera::kernels::chip
