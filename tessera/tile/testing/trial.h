// Problems with the answers that the reference gives: what programs, and the code made of them, are
// tried on. For tests only.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tessera/op/problem.h"
#include "tessera/op/tensor.h"

namespace tessera::tile::testing {

using op::Dims;

struct Trial {
  op::Problem problem;
  std::vector<op::Tensor> in;    // row-major, whatever the problem's layouts
  std::vector<op::Tensor> want;  // by output
  double roundoff = 0;           // of the coarsest type on the way
};

// One operator.
Result<Trial> trial_of(std::string_view op, const op::Attrs& attrs, std::vector<op::Tensor> in,
                       int outputs = 1);

// Element-wise operators behind one another, over `dims` and what broadcasts to them, in random
// layouts. Nothing if the draw makes no sense.
std::optional<Trial> random_group(std::mt19937_64& random, const Dims& dims, DType dtype,
                                  int steps);

// The operand lies row-major, channels-last or with gaps, at random.
void place(std::mt19937_64& random, op::Operand& operand);

// Element-wise behind what the trial has already: adds steps that read the last value, other inputs
// of the shapes that broadcast, and each other.
bool append_steps(std::mt19937_64& random, Trial& trial, int steps);

// The bytes of a problem's operands, as its layouts want them, between guards.
class Memory {
 public:
  explicit Memory(const Trial& trial);
  std::span<std::byte> of(const op::Argument& argument);
  // What is wrong with the outputs: an element that is too far from what is wanted, or a byte
  // written that is none of theirs; empty if nothing is.
  std::string fault() const;

 private:
  struct Block {
    op::Operand operand;
    std::vector<std::byte> storage;
    size_t at = 0, size = 0;
  };
  Block block_of(const op::Operand& operand) const;

  const Trial& trial_;
  std::vector<Block> in_, out_;
};

op::Tensor random_tensor(std::mt19937_64& random, DType dtype, const Dims& dims,
                         bool special = false);
// Up to `rank` axes, of 0, 1, small, prime or some hundred elements, at most about `most` in all.
Dims random_dims(std::mt19937_64& random, int rank, int64_t most);
// A shape that broadcasts to `dims`.
Dims broadcastable(std::mt19937_64& random, const Dims& dims);

}  // namespace tessera::tile::testing
