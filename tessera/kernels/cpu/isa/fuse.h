// Steps of an epilogue on a tile in registers.
#pragma once

#include "tessera/kernels/cpu/isa/epilogue.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// A tile's rows in memory, R of V vectors, the last of which is cut to `part`.
template <int R, int V>
struct Place {
  const Part& part;
  bool whole;

  Vec load_at(const float* row, int v) const {
    return v + 1 < V ? load(row + v * kLanes) : part.load(row + v * kLanes);
  }
  void load_row(const float* row, Vec (&to)[V]) const {
    TESSERA_UNROLL
    for (int v = 0; v < V; ++v) to[v] = load_at(row, v);
  }
  void store_at(float* row, int v, Vec x) const {
    if (v + 1 < V || whole)
      store(row + v * kLanes, x);
    else
      part.store(row + v * kLanes, x);
  }
};

// Loops over the tile's vectors, which stay in registers: `body` sees r, v and x = sum[r][v].
#define TESSERA_EACH(body)        \
  TESSERA_UNROLL                  \
  for (int r = 0; r < R; ++r) {   \
    TESSERA_UNROLL                \
    for (int v = 0; v < V; ++v) { \
      auto& x = sum[r][v];        \
      body;                       \
    }                             \
  }

// The step on a tile in registers. `operand`: of the tile's first element.
template <int R, int V>
TESSERA_INLINE void fuse(const BoundStep& s, const float* operand, const Place<R, V>& place,
                         Vec (&sum)[R][V]) {
  const Vec scalar = splat(s.scalar), p = splat(s.params[0]), q = splat(s.params[1]);
  const Vec zero{}, one = splat(1.0f);
  Vec cols[V];
  switch (s.fused) {
    case Fused::kNone:
      break;
    case Fused::kAddScalar:
      TESSERA_EACH(x += scalar)
      break;
    case Fused::kMulScalar:
      TESSERA_EACH(x *= scalar)
      break;
    case Fused::kAddCols:
      place.load_row(operand, cols);
      TESSERA_EACH(x += cols[v])
      break;
    case Fused::kMulCols:
      place.load_row(operand, cols);
      TESSERA_EACH(x *= cols[v])
      break;
    case Fused::kAddFull:
      TESSERA_EACH(x += place.load_at(operand + r * s.ld, v))
      break;
    case Fused::kMulFull:
      TESSERA_EACH(x *= place.load_at(operand + r * s.ld, v))
      break;
    case Fused::kMaxScalar:
      TESSERA_EACH(x = max_of(scalar, x))
      break;
    case Fused::kMinScalar:
      TESSERA_EACH(x = min_of(scalar, x))
      break;
    case Fused::kLeakyRelu:
      TESSERA_EACH(x = max_of(zero, x) + p * min_of(zero, x))
      break;
    case Fused::kHardSigmoid:
      TESSERA_EACH(x = min_of(one, max_of(zero, p * x + q)))
      break;
    case Fused::kHardSwish:
      TESSERA_EACH(x *= min_of(one, max_of(zero, p * x + q)))
      break;
  }
}

// What is left of the epilogue goes over the tile in the cache.
template <int R, int V, class Tile>
TESSERA_INLINE void finish_rows(const Tile& t, const Place<R, V>& place, const Vec (&sum)[R][V]) {
  alignas(64) float tile[R * V * kLanes];
  const int64_t cols = t.cols;
  // A row's last vector may reach into the next row, which is stored after it.
  TESSERA_EACH(store(tile + r * cols + v * kLanes, x))
  apply_rows(*t.epilogue, t.epilogue->fused, t.row, t.col, R, cols, tile, cols);
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      place.store_at(t.c + r * t.ldc, v, load(tile + r * cols + v * kLanes));
}

// Stores a tile's sums: c, ldc, cols, accumulate, epilogue, row and col of `t` as in
// tile_product.h.
template <int R, int V, class Tile>
TESSERA_INLINE void finish(const Tile& t, const Place<R, V>& place, Vec (&sum)[R][V]) {
  if (t.accumulate) TESSERA_EACH(x += place.load_at(t.c + r * t.ldc, v))
  if (const BoundEpilogue* e = t.epilogue) {
    for (int i = 0; i < e->fused; ++i) {
      const BoundStep& s = e->steps[i];
      fuse<R, V>(s, s.operand + offset_in(s, t.row, t.col), place, sum);
    }
    if (e->fused < e->count) return finish_rows<R, V>(t, place, sum);
  }
  TESSERA_EACH(place.store_at(t.c + r * t.ldc, v, x))
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
