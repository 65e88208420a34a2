// What steps do to elements.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/hal/sim/access.h"

namespace tessera::hal::sim {

class Product;

// Operands of one execution of a step: extents of its axes, the result first, then what is read.
struct Work {
  const engine::Step* step = nullptr;
  std::vector<int64_t> extents;
  std::vector<Access> operands;
  bool add = false;
};

// Extents of a product: of the axes that a and c have, that b and c have, that a and b have, and of
// those that all three have.
struct ProductShape {
  int64_t m = 1, n = 1, k = 1, batch = 1;
};
ProductShape shape_of(const Work& work);

// Scratch that is kept from step to step of one core.
class Computer {
 public:
  // @pre all of `work` lies inside of its buffers, but what a copy pads
  Status copy(const Work& work);
  Status map(const Work& work);
  Status reduce(const Work& work);
  // kUnimplemented: operands in which rows, columns and what is summed mix.
  Status matrix(const Work& work, const Product& product);

 private:
  struct Lane {
    std::vector<double> f;
    std::vector<int64_t> i;
    std::vector<int64_t> room;
  };
  void load(const Walk& walk, const Access& a, int64_t n, bool as_float, double number,
            int64_t whole, Lane& lane);
  void store(const Access& a, const Row& row, int64_t n, const Lane& lane);

  std::vector<Lane> lanes_ = std::vector<Lane>(6);
  std::vector<float> a_, b_, c_;
  std::vector<double> da_, db_, dc_;
  std::vector<int32_t> ic_;
};

}  // namespace tessera::hal::sim
