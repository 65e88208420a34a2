// Views: other tensors, or other layouts, over the same bytes; and which layouts given strides can
// mean.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/layout/bound.h"

namespace tessera::layout {

// Whether both put every element in the same place: a.offset(i) == b.offset(i) for all i. False for
// different extents or bits. kResourceExhausted when a bounded search does not tell.
Result<bool> same_places(const BoundLayout& a, const BoundLayout& b);

// Whether a tensor stored as `base` may be read as `view` without moving a byte:
// @post is_view_of(v, b)  =>  same_places(v, b); v's places lie among b's; v promises zeros only if
//       b does
Result<bool> is_view_of(const BoundLayout& view, const BoundLayout& base);

// A tensor of other logical axes over the same bytes.
struct View {
  Stored stored = {};
  std::vector<int64_t> extents = {};
};

// Axis a of the result is axis permutation[a] of the input.
// @post at(permute(t, p), i) == at(t, j) with j[p[a]] == i[a]
Result<View> permute(const Stored& stored, std::span<const int64_t> extents,
                     std::span<const int> permutation);

// Elements start, start + step, ... (count of them) of one axis; step may be negative. The axis
// must be a physical axis by itself, or step be 1 and start a multiple of every divisor that splits
// it. The part of a blocked axis has padding `any`: the neighbours show through.
// @post at(slice(t, a, s, n, d), i) == at(t, j) with j[a] == s + d i[a], j == i elsewhere
// kUnimplemented when no stored tensor expresses it: then a copy is needed.
Result<View> slice(const Stored& stored, DType dtype, std::span<const int64_t> extents, int axis,
                   int64_t start, int64_t count, int64_t step = 1);

// Other extents of the same elements in row-major order: letters become merges and digits of new
// letters.
// @post at(reshape(t, e), i) == at(t, j) where i and j have the same row-major position
// kInvalidArgument when the numbers of elements differ, kUnimplemented for segmented axes. Of a
// packed row-major tensor of whole bytes the result is row-major.
Result<View> reshape(const Stored& stored, DType dtype, std::span<const int64_t> extents,
                     std::span<const int64_t> to);

// What strides say about the order of axes. Axes of extent 1 could stand anywhere: they are
// reported, not guessed.
struct AxisOrder {
  std::vector<int> order;  // axes of extent above 1, outermost first
  std::vector<int> free;   // axes of extent 1 (of any extent if the tensor is empty)
};
// kInvalidArgument if the strides overlap.
Result<AxisOrder> axis_order(std::span<const int64_t> extents, std::span<const int64_t> strides);

// Every candidate that places each element as `bound` does; more than one means that the extents do
// not tell them apart.
Result<std::vector<Layout>> matching_layouts(const BoundLayout& bound,
                                             std::span<const Layout> candidates);

}  // namespace tessera::layout
