// The families of rows: a kernel file defines one of these, table.cc lists it.
#pragma once

#include <span>

#include "tessera/kernels/table.h"

namespace tessera::kernels::cpu {

std::span<const Row> attention_rows();
std::span<const Row> conv_rows();
std::span<const Row> conv_first_rows();
std::span<const Row> conv_last_rows();
std::span<const Row> conv_narrow_rows();
std::span<const Row> conv_winograd_rows();
std::span<const Row> conv_last_depthwise_rows();
std::span<const Row> conv_transpose_rows();
std::span<const Row> dot_rows();
const Row& gemm_row();  // one of these
std::span<const Row> dot_narrow_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> fed_product_rows();
std::span<const Row> integer_conv_rows();
std::span<const Row> integer_depthwise_rows();
std::span<const Row> norm_rows();
std::span<const Row> pool_rows();
std::span<const Row> quantize_rows();
std::span<const Row> reduce_rows();
std::span<const Row> resize_rows();
std::span<const Row> rotary_rows();
std::span<const Row> softmax_rows();
// With their entries.
Family index_family();
Family integer_dot_family();
Family move_family();
Family relayout_family();
Family rnn_family();

}  // namespace tessera::kernels::cpu
