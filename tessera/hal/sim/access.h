// What a step touches, with numbers for all that is open in the program: the operands of one
// execution of a step.
#pragma once

#include <array>
#include <span>

#include "tessera/hal/sim/loaded.h"

namespace tessera::hal::sim {

inline constexpr size_t kDims = engine::kMaxDims;

// Half-open ranges of indices, by dimension.
struct Box {
  std::array<int64_t, kDims> lo{}, hi{};
  size_t rank = 0;

  bool meets(const Box& other) const {
    for (size_t d = 0; d < rank; ++d)
      if (hi[d] <= other.lo[d] || other.hi[d] <= lo[d]) return false;
    return true;
  }
};

struct Access {
  const engine::Operand* operand = nullptr;
  const engine::Places* places = nullptr;  // null: a number or an index
  DType dtype = DType::kF32;
  std::byte* base = nullptr;
  std::array<int64_t, kDims> offset{};  // of indices
  Box box;

  size_t rank() const { return operand->at.size(); }
  int64_t coefficient(size_t dim, size_t axis) const {
    const auto& c = operand->at[dim].coefficients;
    return axis < c.size() ? c[axis] : 0;
  }
};

// Addresses along the last axis, in elements: start + i * stride, or list[i].
struct Row {
  int64_t start = 0, stride = 0;
  const int64_t* list = nullptr;
  int64_t first = 0, last = 0;  // [first, last) lies inside
  int64_t at(int64_t i) const { return list ? list[i] : start + i * stride; }
};

// Walks the axes of a step, all but the last one step by step.
class Walk {
 public:
  explicit Walk(std::span<const int64_t> extents) : extents_(extents) {}
  // False behind the last.
  bool next();
  int64_t length() const { return extents_.empty() ? 1 : extents_.back(); }
  // `room` holds the list, if there need be one.
  Row row(const Access& a, std::vector<int64_t>& room) const;
  // The value of an index operand at place i of the row.
  int64_t index(const Access& a, int64_t i) const;

 private:
  std::span<const int64_t> extents_;
  std::array<int64_t, engine::kMaxAxes> now_{};
};

}  // namespace tessera::hal::sim
