// From a place back to its element: the proof that elements have places of their own, kept as a
// list of steps. Internal to layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/layout/graph.h"

namespace tessera::layout {

// How one more node's value follows from values that are known.
enum class StepKind : uint8_t {
  kDigit,    // target = a / k, % m unless m is 0
  kDigits,   // target = a * k + b % k
  kSegment,  // target = value of a join: a its quotient by k, b its remainder
  kUnjoin,   // target = letter at position a of the joined segments
  kUnxor,    // target = xor of node a and its other arguments
  kForward,  // target = its own expression
};

struct Step {
  StepKind kind;
  int target;
  int a = 0;
  int b = 0;
  int64_t k = 0;
  int64_t m = 0;
};

class Inverse {
 public:
  Inverse() = default;
  // `roots` are the nodes of the physical axes. May add nodes to `graph`. kInvalidArgument names a
  // logical axis that the places do not determine. The rules are sound but not complete: what they
  // cannot show is refused.
  static Result<Inverse> solve(Graph* graph, std::span<const Ref> roots, std::string_view letters);

  // The element at physical coordinates `place`, nullopt for padding.
  std::optional<std::vector<int64_t>> element_at(const Graph& graph, std::span<const Ref> roots,
                                                 std::span<const int64_t> place) const;

 private:
  bool run(const Graph& graph, std::span<int64_t> values) const;
  std::vector<Step> steps_;
};

}  // namespace tessera::layout
