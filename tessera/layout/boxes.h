// A conversion as boxes of elements whose offsets are straight lines on both sides. Internal to
// layout.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/layout/bound.h"

namespace tessera::layout {

inline constexpr int kBoxRank = 12;
inline constexpr size_t kMostBoxes = 64;

// The elements at src + sum(i_d * dims[d].src) go to dst + sum(i_d * dims[d].dst), 0 <= i_d < size.
// Dimensions by rising target stride; those that continue each other on both sides are one.
struct Box {
  struct Dim {
    int64_t size = 1;
    int64_t src = 0;
    int64_t dst = 0;
  };
  int64_t src = 0;
  int64_t dst = 0;
  int rank = 0;
  std::array<Dim, kBoxRank> dims = {};
  // Of the first dimension only so many are elements; the rest are padding, to be zero.
  int64_t valid = 0;
};

// The box of these sizes and strides, in elements. nullopt: more than kBoxRank dimensions that do
// not join.
std::optional<Box> box_of(std::span<const int64_t> sizes, std::span<const int64_t> src,
                          std::span<const int64_t> dst, int64_t src_offset, int64_t dst_offset);

// Elements, or bytes of sub-byte elements that stay together.
struct Boxes {
  int64_t element_bytes = 1;
  std::vector<Box> moved;
  std::vector<Box> zeroed;  // padding that no moved box covers; src means nothing
  bool padded = false;      // whether moved and zeroed write all padding that `to` wants written
};

// @post every element is in one moved box, every place of `to` in at most one box
// nullopt: the layouts do not come apart into a few boxes.
std::optional<Boxes> boxes_of(const BoundLayout& from, const BoundLayout& to);

}  // namespace tessera::layout
