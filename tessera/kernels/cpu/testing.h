// Runs claims as a device would and compares them with the reference. For tests only.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tessera/kernels/cpu/table.h"
#include "tessera/op/tensor.h"

namespace tessera::kernels::cpu::testing {

using op::Dims;
using op::Tensor;

// A step behind the node; values are numbered as in op::Step.
struct CaseStep {
  std::string op;
  op::Attrs attrs = {};
  std::vector<int> in = {};
};

// How an operand lies: a layout (empty: row-major; else op::channels_last), and how many elements
// more than needed are between its innermost rows (row-major) or pixels (channels-last); or, if
// any, these strides.
struct Placement {
  std::string layout = {};
  int64_t gap = 0;
  Dims strides = {};
};

// One node on concrete inputs, or a group: then the inputs that steps read come last.
struct Case {
  std::string op;
  op::Attrs attrs = {};
  std::vector<std::optional<Tensor>> in = {};
  std::vector<bool> constant = {};  // per input; missing: not constant
  bool values_known = true;         // small integer inputs are in Operand::values
  int outputs = 1;
  std::vector<CaseStep> steps = {};
  size_t arity = 0;                    // with steps: how many inputs are the node's
  std::vector<Placement> placed = {};  // per input; missing: row-major, packed
  Placement out_placed = {};           // of output 0
};

// How far results may lie from the reference: exact claims not at all; others by `rel` of the
// magnitude plus `abs`, in units of the output type's roundoff; or, for sums of products, by the
// error budget of base/budget.h with `products`.
struct Tolerance {
  double rel = 8;
  double abs = 8;
  int64_t products = 0;
};

Result<op::Problem> problem_of(const Case& c, const std::vector<Tensor>& outputs);

// Executes the launches of a claim on 64-byte aligned, guarded buffers, the grid cut at random.
// kInternal if a kernel writes outside its ranges or leaves an output untouched that it should
// fill.
Result<std::vector<Tensor>> run_claim(const Table& table, const op::Problem& problem,
                                      const op::Claim& claim,
                                      const std::vector<std::optional<Tensor>>& inputs,
                                      std::mt19937_64& random);

// Checks every claim of every instruction set of this machine for the case: refusals have a reason,
// claims give what the reference gives. Returns how many claims ran (per instruction set); failures
// are reported to GoogleTest.
int check(const Case& c, std::mt19937_64& random, Tolerance tolerance = {});
// The same for the claims of one table.
int check(const Table& table, const Case& c, std::mt19937_64& random, Tolerance tolerance = {});

// Random elements: floats normal around 0, sometimes special (NaN, Inf, 0) if asked for; integers
// small unless `wide`.
struct Fill {
  double scale = 1;
  bool special = false;
  bool wide = false;
  bool positive = false;
};
Tensor random_tensor(DType dtype, const Dims& dims, std::mt19937_64& random, Fill fill = {});
// One of a list.
template <class T>
T pick(std::mt19937_64& random, std::initializer_list<T> list) {
  return *(list.begin() + static_cast<int64_t>(random() % list.size()));
}
int64_t size_between(std::mt19937_64& random, int64_t low, int64_t high);
// Rank up to `rank`, sizes among 0, 1, small, prime, some hundred; at most about `most` elements.
Dims random_dims(std::mt19937_64& random, int rank, int64_t most = 4096);
// A shape that broadcasts to `dims`: leading axes dropped, others set to 1, at random.
Dims broadcastable(std::mt19937_64& random, const Dims& dims);

}  // namespace tessera::kernels::cpu::testing
