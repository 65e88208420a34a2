// Products of matrices: what dot, convolution, attention and recurrent layers come down to.
#pragma once

#include <string>

#include "tessera/cost/elements.h"
#include "tessera/cost/machine.h"

namespace tessera::cost {

// c[b, m, n] = sum over k of a[b, m, k] b[b, k, n]
struct Product {
  double batch = 1, m = 0, n = 0, k = 0;
  std::string type;                              // of the operands, or the mode to compute in
  double a_bytes = 2, b_bytes = 2, c_bytes = 2;  // of an element
  // Distinct bytes of the operands in memory; windows of a convolution share them.
  double a_memory = 0, b_memory = 0, c_memory = 0;
  double a_run = 0, b_run = 0;  // bytes of them that lie together; 0: whole lines
  double depth = 0;             // k as the unit sees it, with padded channels; 0: k
  ElementWork epilogue = {};
  double epilogue_bytes = 0;  // that steps read beside
  std::string family = "matmul";

  double flops() const { return 2 * batch * m * n * k; }
  double deep() const { return depth > 0 ? depth : k; }
  // Part of what is multiplied that has to be moved for a.
  double a_share() const;
};

// On the unit that is fastest for it. kUnimplemented: none computes the type.
Result<Tally> product(const Machine& machine, const Product& p);

// One way to compute; each leaves `launch` and memory's epilogue bytes to product().
// Cores with threads: tiles in waves over the cores, split k, caches (GPUs).
Tally tiled_product(const Machine& machine, const Engaged& unit, const Product& p);
// Cores with engines that feed the unit through memories: stages that overlap (Ascend, AMX).
Tally staged_product(const Machine& machine, const Engaged& unit, const Product& p);
// Systolic arrays: folds, fill and drain.
Tally systolic_product(const Machine& machine, const Engaged& unit, const Product& p);
// Vector units alone.
Tally vector_product(const Machine& machine, const Engaged& unit, const Product& p);

// Bytes read from memory when tiles of a and b are taken through a cache of `cache` bytes by
// `at_once` tiles of bm x bn at a time: each once if they fit, else again for each round.
double cached_reads(const Product& p, double bm, double bn, double at_once, double cache);

// The clock of a unit that is busy for this part of the time: power caps it the more, the busier.
double clock_at(const Engaged& unit, double busy);

}  // namespace tessera::cost
