// Random layouts for property tests: every one of them is legal for its extents.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tessera/layout/bound.h"

namespace tessera::layout {

struct RandomCase {
  std::vector<int64_t> extents;
  Layout layout;
};

class RandomLayouts {
 public:
  explicit RandomLayouts(uint32_t seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  DType dtype() {
    constexpr DType kTypes[] = {DType::kI8,   DType::kF16, DType::kF32, DType::kF64,
                                DType::kC128, DType::kI4,  DType::kU2};
    return kTypes[below(7)];
  }
  // 0, 1, primes, a tile and its neighbours.
  std::vector<int64_t> extents(int rank) {
    constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1, 6, 0};
    std::vector<int64_t> result;
    for (int a = 0; a < rank; ++a) result.push_back(kExtents[below(below(8) == 0 ? 14 : 13)]);
    return result;
  }

  // Blocks, merges, swizzles and segments of all axes, shuffled.
  Layout layout(std::span<const int64_t> extents) {
    std::vector<Expr> pool;
    for (size_t a = 0; a < extents.size(); ++a)
      pool.push_back(axis(static_cast<int>(a), extents[a]));
    if (pool.size() > 1 && below(3) == 0) merge_some(&pool);
    std::vector<Expr> axes;
    for (Expr& e : pool) split(std::move(e), below(3), &axes);
    std::shuffle(axes.begin(), axes.end(), random_);
    if (axes.size() > 1 && below(4) == 0) swizzle(&axes);
    if (axes.size() > 1 && below(4) == 0) merge_some(&axes);
    const Padding padding = below(2) == 0 ? Padding::kZero : Padding::kAny;
    return *Layout::make(Layout::row_major(static_cast<int>(extents.size())).letters(),
                         std::move(axes), padding);
  }

 private:
  Expr axis(int a, int64_t extent) {
    if (extent < 2 || below(5) != 0) return letter(a);
    const int64_t cut = 1 + below(static_cast<int>(extent) - 1);
    std::vector<Segment> segments = {{0, cut}, {cut, extent}};
    if (below(2) == 0) std::swap(segments[0], segments[1]);
    return join(a, segments);
  }
  void split(Expr e, int times, std::vector<Expr>* axes) {
    constexpr int64_t kTiles[] = {2, 3, 4, 8, 16};
    for (; times > 0; --times) {
      const int64_t tile = kTiles[below(5)];
      axes->push_back(mod(e, tile));
      if (below(6) == 0) axes->push_back(mod(e, tile));  // block-diagonal
      e = div(e, tile);
    }
    axes->push_back(std::move(e));
  }
  void merge_some(std::vector<Expr>* pool) {
    std::shuffle(pool->begin(), pool->end(), random_);
    Expr last = std::move(pool->back());
    pool->pop_back();
    pool->back() = merge({std::move(pool->back()), std::move(last)});
  }
  void swizzle(std::vector<Expr>* axes) { (*axes)[0] = exclusive_or({(*axes)[0], (*axes)[1]}); }

  std::mt19937 random_;
};

// Calls visit(index) for every element in row-major order.
template <class Visit>
void for_each_index(std::span<const int64_t> extents, Visit visit) {
  std::vector<int64_t> index(extents.size());
  for (const int64_t extent : extents)
    if (extent == 0) return;
  while (true) {
    visit(index);
    size_t a = extents.size();
    while (a > 0 && ++index[a - 1] == extents[a - 1]) index[--a] = 0;
    if (a == 0) return;
  }
}

}  // namespace tessera::layout
