// Resizing along two neighbouring axes: rows are mixed first, then columns.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/kernels/cpu/resize_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

struct Taps {
  const int32_t *first, *indices;
  const float* weights;
};

// The tables of an axis at `at`, which is moved behind them.
Taps taps_at(const char** at, int64_t out) {
  Taps t;
  t.first = reinterpret_cast<const int32_t*>(*at);
  t.indices = t.first + out + 1;
  t.weights = reinterpret_cast<const float*>(t.indices + t.first[out]);
  *at = reinterpret_cast<const char*>(t.weights + t.first[out]);
  return t;
}

void nearest_row(const ResizeArgs& a, const Taps& columns, const char* x, char* y) {
  const int64_t size = a.inner * a.bytes;
  if (size == 4) {
    const uint32_t* __restrict from = reinterpret_cast<const uint32_t*>(x);
    uint32_t* __restrict to = reinterpret_cast<uint32_t*>(y);
    for (int64_t o = 0; o < a.out[1]; ++o) to[o] = from[columns.indices[o]];
  } else {
    for (int64_t o = 0; o < a.out[1]; ++o)
      __builtin_memcpy(y + o * size, x + columns.indices[o] * size, static_cast<size_t>(size));
  }
}

void mixed_row(const ResizeArgs& a, const Taps& rows, const Taps& columns, int64_t row,
               const float* x, float* y) {
  alignas(64) float mixed[kResizeRow];
  const int64_t length = a.in[1] * a.inner;
  for (int64_t i = 0; i < length; ++i) mixed[i] = 0;
  for (int32_t t = rows.first[row]; t < rows.first[row + 1]; ++t) {
    const float* __restrict from = x + rows.indices[t] * length;
    const float weight = rows.weights[t];
    for (int64_t i = 0; i < length; ++i) mixed[i] += weight * from[i];
  }
  for (int64_t o = 0; o < a.out[1]; ++o) {
    const int32_t begin = columns.first[o], end = columns.first[o + 1];
    for (int64_t k = 0; k < a.inner; ++k) {
      float sum = 0;
      for (int32_t t = begin; t < end; ++t)
        sum += columns.weights[t] * mixed[columns.indices[t] * a.inner + k];
      y[o * a.inner + k] = sum;
    }
  }
}

}  // namespace

void resize(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ResizeArgs*>(launch->constants);
  const char* tables = static_cast<const char*>(launch->constants) + sizeof(ResizeArgs);
  const Taps rows = taps_at(&tables, a.out[0]), columns = taps_at(&tables, a.out[1]);
  const int64_t last = least(a.outer * a.out[0], (int64_t{first} + count) * a.chunk);
  const int64_t in_row = a.in[1] * a.inner, out_row = a.out[1] * a.inner;
  for (int64_t i = int64_t{first} * a.chunk; i < last; ++i) {
    const int64_t row = i % a.out[0], plane = i / a.out[0] * a.in[0];
    const char* x = static_cast<const char*>(launch->ranges[0].data);
    char* y = static_cast<char*>(launch->ranges[1].data);
    if (a.nearest)
      nearest_row(a, columns, x + (plane + rows.indices[row]) * in_row * a.bytes,
                  y + i * out_row * a.bytes);
    else
      mixed_row(a, rows, columns, row, reinterpret_cast<const float*>(x) + plane * in_row,
                reinterpret_cast<float*>(y) + i * out_row);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
