// Graphs as text, for reading, golden tests and bug reports. Constants of more than 16 elements are
// handles into a store.
//
//   graph @"main"(%0 "x": f32[n,4]) {
//     %1 "w" = constant f32[4,8] @0
//     %2 = constant i64[2] {1, 2}
//     %3 = dot(%0, %1) {transpose_b = 1} : f32[n,8] from "MatMul_0"
//     %4, _ = split(%3, _, %2) : f32[1,8], _
//     %5 = if(%4) : f32[*] {
//       graph @"then"() { ... }
//       graph @"else"() { ... }
//     }
//     return %4 "y", %5 "z"
//   }
//
// Floats are written so that they read back bit by bit; ints as 3, floats as 3.0, lists as [1, 2],
// f[1.0], s["a"].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::ir {

// @post parse(print(g, store), store) prints the same again
// `store` grows by the constants that the text refers to.
std::string print(const Graph& graph, std::vector<op::Tensor>& store);
// For people: the handles lead nowhere.
std::string print(const Graph& graph);

// kInvalidArgument with line and column. Types are inferred anew; where the text states other
// sizes, they must be of the same dtype and rank, and the text's count.
Result<Graph> parse(std::string_view text, const std::vector<op::Tensor>& store);

}  // namespace tessera::ir
