// Loops shared by reference functions.
#pragma once

#include "tessera/ir/reference/interpreter.h"

namespace tessera::ir::reference {

// Steps through all indices of `dims`, last axis fastest: for (Index at(dims); !at.done(); at.next()).
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

// Copies element `source` of `from` to element `target` of `to`; any dtype (strings and packed ones included), equal on both.
void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target);

// One tensor as the only result.
inline Result<std::vector<Value>> one(Tensor t) { return std::vector<Value>{Value(std::move(t))}; }

}  // namespace tessera::ir::reference
