// Conversion between any two layouts of one logical tensor: as a few strided boxes, moved at the
// speed of memory, where the layouts come apart into such; else by walking runs in which both
// offsets are straight lines.
//
//   @post at(convert(t, L), i) == at(t, i) for every element i
//   @post places of L without an element are zero if L says so, and untouched if it says `any`
//   @post gaps between the strides of a Stored are untouched
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/layout/bound.h"
#include "tessera/layout/copy.h"

namespace tessera::layout {

// A conversion worked out once and run many times, in independent parts.
class Conversion {
 public:
  // kInvalidArgument if dtype or extents differ.
  static Result<Conversion> make(const BoundLayout& from, const BoundLayout& to,
                                 Isa isa = best_isa());

  const BoundLayout& from() const { return from_; }
  const BoundLayout& to() const { return to_; }

  // Writes the padding of `to` that no part writes (of packed sub-byte types also the unused bits
  // of each row); goes before all parts. It may also write places of elements.
  void fill(std::span<std::byte> dst) const;
  // Parts write disjoint bytes of dst: any thread may run any of them, in any order.
  int parts() const { return parts_; }
  // Moves the elements of parts [first, first + count). Buffers hold at least from().bytes() and
  // to().bytes(), and do not overlap.
  void run(std::span<const std::byte> src, std::span<std::byte> dst, int first, int count) const;

  // The boxes that all parts together move, run_copies() by run_copies(); empty: by walking.
  std::span<const Copy> copies() const { return copies_; }
  // Whether fill() has nothing to write.
  bool fills_itself() const;

 private:
  // Axes that mix in either layout, walked together: `free` by lines, the others one position at a
  // time.
  struct Cluster {
    std::vector<int> axes;
    int free = 0;
  };
  class Planner;
  template <class Mover>
  class Walk;

  Conversion(const BoundLayout& from, const BoundLayout& to) : from_(from), to_(to) {}
  BoundLayout from_;
  BoundLayout to_;
  Isa isa_ = Isa::kGeneric;
  std::vector<Copy> copies_;
  int64_t tiles_ = 0;
  bool padded_ = false;            // the copies write the padding
  std::vector<Cluster> clusters_;  // outermost first; the last is the inner loop; none if there is
                                   // at most one element
  int split_axis_ = -1;            // parts are ranges of this axis; -1: one part
  int parts_ = 1;
};

// The whole conversion on the calling thread. kInvalidArgument if dtype or extents differ, or a
// buffer is too small.
Status convert(const BoundLayout& from, std::span<const std::byte> src, const BoundLayout& to,
               std::span<std::byte> dst);

// Element access for tests and references: the element's bits, low bits first (up to 128 bits).
struct ElementBits {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const ElementBits&) const = default;
};
ElementBits read_element(std::span<const std::byte> buffer, int bits, int64_t offset);
void write_element(std::span<std::byte> buffer, int bits, int64_t offset, ElementBits value);

// Makes every padding place zero and leaves elements as they are (what turns `any` into `zero`).
Status zero_padding(const BoundLayout& layout, std::span<std::byte> buffer);
// Whether every padding place is zero: what a layout that promises zero must satisfy.
Result<bool> padding_is_zero(const BoundLayout& layout, std::span<const std::byte> buffer);

}  // namespace tessera::layout
