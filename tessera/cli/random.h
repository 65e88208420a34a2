// Inputs out of thin air: every element follows from the seed, the input's name and its own index
// alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/op/tensor.h"

namespace tessera::cli {

// Floats are standard normal, integers and bools 0 or 1, strings "0" or "1".
Result<op::Tensor> random_tensor(uint64_t seed, std::string_view name, DType dtype,
                                 const op::Dims& dims);

}  // namespace tessera::cli
