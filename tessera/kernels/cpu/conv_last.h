// What the rows of convolutions on channels-last operands have in common.
#pragma once

#include "tessera/kernels/cpu/conv_last_args.h"
#include "tessera/kernels/cpu/conv_shape.h"

namespace tessera::kernels::cpu {

// A convolution whose x and y are channels-last and whose weights are constant.
struct LastConv {
  ConvShape shape{};
  int64_t x_ld = 0, y_ld = 0;  // elements between pixels
};

// Fills `conv` and says why the problem is none, or why its steps fit no epilogue.
Reason check_last(const Problem& p, LastConv& conv);
// The same where x may lie in any way.
Reason check_last_output(const Problem& p, LastConv& conv);

// The ranges and the epilogue of a launch: x, packed weights, y, then what the epilogue reads; a
// bias is its first step. @pre check_last(p, conv).fine()
std::vector<Argument> last_arguments(const Problem& p, Epilogue& epilogue);

// (g, m, channel, tap) -> (g, panel of m, tap, channel, column of kPanel); columns beyond M are
// zero. Returns the end of what it wrote.
float* pack_taps(const ConvShape& s, const float* w, float* packed);

// What the problem reads and writes, without the weights.
double activation_bytes(const Problem& p);

}  // namespace tessera::kernels::cpu
