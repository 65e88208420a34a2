// The rows of the table, by operator.
#pragma once

#include <span>

#include "tessera/kernels/table.h"

namespace tessera::kernels::onednn {

std::span<const Row> conv_rows();  // conv.cc
std::span<const Row> dot_rows();   // dot.cc
std::span<const Row> norm_rows();  // norm.cc
std::span<const Row> pool_rows();  // pool.cc

}  // namespace tessera::kernels::onednn
