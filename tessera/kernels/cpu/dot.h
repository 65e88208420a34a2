// What the rows of products have in common.
#pragma once

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/dot_args.h"

namespace tessera::kernels::cpu {

// All of `g` but items and epilogue, for operands in f32; why not, if the problem or its steps are
// none for a product.
Reason check_dot(const Problem& p, GemmArgs& g);
// Sets the batch axes, of these sizes and strides of a, b and y; false if they are too many.
bool set_batch(const Dims& batch, const std::vector<Dims>& strides, Products& s);
int64_t batches(const Products& s);
// Whether b is a weight that can be packed. @pre check_dot(p, g).fine()
bool packs_right(const Problem& p, const GemmArgs& g);
double dot_flops(const Problem& p, const GemmArgs& g);
// The launch of `entry`, with the epilogue that it writes into `g`: grid and constants remain to be
// set. @pre check_dot(p, g).fine()
LaunchSpec dot_launch(const Problem& p, std::string_view entry, Argument b, GemmArgs& g);

// Cuts products with weights in 16 bits into items, whose number it returns.
uint32_t cut_narrow(const Problem& p, int64_t height, Products& s);
// What launches of gemm_bf16 share: a's rows, rounded once where many items would.
Bytes narrow_workspace(const Problem& p, const Products& s);
// `launch` of gemm_bf16 or gemm_f16, whose arguments and epilogue are set, and what comes before
// it.
std::vector<LaunchSpec> narrow_launches(const Problem& p, LaunchSpec launch, const GemmArgs& g);

}  // namespace tessera::kernels::cpu
