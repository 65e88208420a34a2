// Maxima of windows of bytes on channels-last operands: a run of channels, tap by tap. Constants
// and ranges as pool_last, without an epilogue.
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/kernels/cpu/pool_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

template <class T>
void fold(const T* __restrict x, int64_t count, T* __restrict y) {
  for (int64_t c = 0; c < count; ++c) y[c] = most(y[c], x[c]);
}

// The window of output pixel (d, h, w), channels from x and y on.
template <class T>
void window(const PoolLastArgs& a, int64_t d, int64_t h, int64_t w, const T* x, int64_t count,
            T* y) {
  const PoolArgs& p = a.pool;
  constexpr T kLowest = T(-1) < T(0) ? T(-128) : T(0);
  for (int64_t c = 0; c < count; ++c) y[c] = kLowest;
  for (int64_t i = 0; i < p.kernel[0]; ++i)
    for (int64_t j = 0; j < p.kernel[1]; ++j)
      for (int64_t k = 0; k < p.kernel[2]; ++k) {
        const int64_t z = d * p.stride[0] - p.pad[0] + i * p.dilation[0],
                      row = h * p.stride[1] - p.pad[1] + j * p.dilation[1],
                      column = w * p.stride[2] - p.pad[2] + k * p.dilation[2];
        if (z < 0 || z >= p.in[0] || row < 0 || row >= p.in[1] || column < 0 || column >= p.in[2])
          continue;
        fold(x + ((z * p.in[1] + row) * p.in[2] + column) * a.x_ld, count, y);
      }
}

template <class T>
void run(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PoolLastArgs*>(launch->constants);
  const PoolArgs& p = a.pool;
  const T* x = static_cast<const T*>(launch->ranges[0].data);
  T* y = static_cast<T*>(launch->ranges[1].data);
  const int64_t in = p.in[0] * p.in[1] * p.in[2], out = p.out[0] * p.out[1] * p.out[2];
  for (uint32_t item = first; item < first + count; ++item) {
    int64_t rest = item;
    const int64_t c = rest % a.channel_items * a.channels;
    rest /= a.channel_items;
    const int64_t row0 = rest % a.row_items * a.rows, n = rest / a.row_items;
    const int64_t row1 = least(p.out[0] * p.out[1], row0 + a.rows);
    const int64_t channels = least(a.channels, a.all_channels - c);
    for (int64_t row = row0; row < row1; ++row)
      for (int64_t w = 0; w < p.out[2]; ++w)
        window(a, row / p.out[1], row % p.out[1], w, x + n * in * a.x_ld + c, channels,
               y + (n * out + row * p.out[2] + w) * a.y_ld + c);
  }
}

}  // namespace

void pool_bytes(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PoolLastArgs*>(launch->constants);
  (a.pool.type == PoolType::kI8 ? run<int8_t> : run<uint8_t>)(launch, first, count);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
