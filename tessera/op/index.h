// Loops over indices of several axes.
#pragma once

#include "tessera/op/tensor.h"

namespace tessera::op {

// Steps through all indices of `dims`, last axis fastest: for (Index at(dims); !at.done();
// at.next()).
class Index {
 public:
  explicit Index(const Dims& dims) : dims_(dims), at_(dims.size(), 0) {
    for (int64_t d : dims) done_ |= d <= 0;
  }
  bool done() const { return done_; }
  void next() {
    ++linear_;
    for (size_t axis = dims_.size(); axis-- > 0;) {
      if (++at_[axis] < dims_[axis]) return;
      at_[axis] = 0;
    }
    done_ = true;
  }
  const Dims& operator*() const { return at_; }
  int64_t operator[](size_t axis) const { return at_[axis]; }
  int64_t linear() const { return linear_; }
  int64_t dot(const Dims& strides) const {
    int64_t sum = 0;
    for (size_t i = 0; i < at_.size(); ++i) sum += at_[i] * strides[i];
    return sum;
  }

 private:
  Dims dims_;
  Dims at_;
  int64_t linear_ = 0;
  bool done_ = false;
};

// Strides that read `from` as if broadcast to `to` (0 along broadcast axes).
Dims broadcast_strides(const Dims& from, const Dims& to);

}  // namespace tessera::op
