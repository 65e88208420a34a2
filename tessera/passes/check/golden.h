// Golden texts of rewrites: graph text in, graph text out, and the same numbers from both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/simplify.h"

namespace tessera::passes::check {

// How far outputs may be from what they were.
struct Tolerance {
  // Of the largest finite magnitude of the output; 0: the same bits, up to the sign of zero and
  // which NaN it is. Inputs hold NaN and Inf then, too.
  double relative = 0;
};
inline constexpr Tolerance kExact{};
inline constexpr Tolerance kRounding{2e-6};

// Text without its names of nodes and values, numbered anew.
std::string normal(std::string_view text, const std::vector<op::Tensor>& store = {});

// The pass turns `before` into `after`; both compute the same. Symbols are bound to small sizes.
// `store`: constants that the texts refer to.
void rewrites(std::string_view pass, std::string_view before, std::string_view after,
              Tolerance tolerance = kExact, const std::vector<op::Tensor>& store = {});
// The pass leaves the text as it is, and says `reason` if that is not empty.
void stays(std::string_view pass, std::string_view text, std::string_view reason = "",
           const std::vector<op::Tensor>& store = {});

// Runs passes (all: empty) with the interpreter for constants; after each, the graph verifies and
// types are what its operators infer.
SimplifyReport simplify_checked(ir::Graph& graph, std::vector<std::string_view> only = {});
// Both graphs yield the same outputs for random inputs.
void expect_same(const ir::Graph& before, const ir::Graph& after, Tolerance tolerance,
                 unsigned seed = 1);

// Normal random numbers.
op::Tensor random_tensor(op::Dims dims, unsigned seed, DType dtype = DType::kF32);

}  // namespace tessera::passes::check
