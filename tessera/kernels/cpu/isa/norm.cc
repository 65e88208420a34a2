// Normalisations: sums in one pass, squares of differences in the next and results in the last,
// over rows that stay in the first cache.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/epilogue.h"
#include "tessera/kernels/cpu/isa/rows.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kTogether = 2048;  // elements of the rows that steps are applied to at once

template <class T>
struct RowNorm {
  const T *x, *scale, *bias;
  T *y, *mean, *inverse;
};

// y = (x - mean) factor + shift
template <class T>
TESSERA_INLINE void scale_run(const T* x, T* y, int64_t n, T mean, T factor, T shift) {
  each_vector<T>(
      0, n, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        lanes.store(y + i, (lanes.load(x + i) - mean) * factor + shift);
      });
}

// The same with factors and shifts of each element.
template <class T, bool kScale, bool kBias>
TESSERA_INLINE void scale_each(const T* x, T* y, int64_t n, T mean, T inverse, const T* scale,
                               const T* bias) {
  each_vector<T>(
      0, n, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        auto v = (lanes.load(x + i) - mean) * inverse;
        if constexpr (kScale) v = v * lanes.load(scale + i);
        if constexpr (kBias) v = v + lanes.load(bias + i);
        lanes.store(y + i, v);
      });
}

template <class T>
void scale_channels(const RowNormArgs& a, const RowNorm<T>& n, const T* x, T* y, int64_t row,
                    T mean, T inverse) {
  for (int64_t c = 0; c < a.channels; ++c, x += a.inner, y += a.inner) {
    const int64_t channel = (row * a.channels + c) % a.all_channels;
    scale_run(x, y, a.inner, mean, n.scale[channel] * inverse, n.bias[channel]);
  }
}

// Several rows at a time: what waits for one row's sums is done for another.
constexpr int64_t kRowsAtOnce = 4;

template <class T>
void norm_rows(const RowNormArgs& a, const RowNorm<T>& n, int64_t row, int64_t rows) {
  const double per_element = 1 / static_cast<double>(a.length);
  const T* x[kRowsAtOnce];
  T mean[kRowsAtOnce] = {}, inverse[kRowsAtOnce];
  double squares[kRowsAtOnce];
  for (int64_t r = 0; r < rows; ++r) x[r] = n.x + offset_of(a.rows, 0, row + r);
  for (int64_t r = 0; r < rows && !a.rms; ++r)
    mean[r] = static_cast<T>(per_element * sum_of<T>(
                                               a.length, [from = x[r]](auto lanes, int64_t i)
                                                             __attribute__((always_inline)) {
                                                               return lanes.load(from + i);
                                                             }));
  for (int64_t r = 0; r < rows; ++r) {
    const auto middle = spread(mean[r]);
    squares[r] = sum_of<T>(
        a.length, [ from = x[r], middle ](auto lanes, int64_t i) __attribute__((always_inline)) {
          const auto d = lanes.load(from + i, middle) - middle;
          return d * d;
        });
  }
  for (int64_t r = 0; r < rows; ++r)
    inverse[r] = static_cast<T>(1 / __builtin_sqrt(squares[r] * per_element + a.epsilon));
  for (int64_t r = 0; r < rows; ++r) {
    if (n.mean) n.mean[row + r] = mean[r];
    if (n.inverse) n.inverse[row + r] = inverse[r];
    T* y = n.y + offset_of(a.rows, 1, row + r);
    if (a.affine == Affine::kPerChannel)
      scale_channels(a, n, x[r], y, row + r, mean[r], inverse[r]);
    else if (n.scale && n.bias)
      scale_each<T, true, true>(x[r], y, a.length, mean[r], inverse[r], n.scale, n.bias);
    else if (n.scale)
      scale_each<T, true, false>(x[r], y, a.length, mean[r], inverse[r], n.scale, n.bias);
    else if (n.bias)
      scale_each<T, false, true>(x[r], y, a.length, mean[r], inverse[r], n.scale, n.bias);
    else
      scale_each<T, false, false>(x[r], y, a.length, mean[r], inverse[r], n.scale, n.bias);
  }
}

template <class T>
void norm_items(const RowNormArgs& a, const tessera_launch* launch, int64_t first, int64_t count) {
  const tessera_range* r = launch->ranges;
  RowNorm<T> n{};
  n.x = static_cast<const T*>((r++)->data);
  if (a.has_scale) n.scale = static_cast<const T*>((r++)->data);
  if (a.has_bias) n.bias = static_cast<const T*>((r++)->data);
  n.y = static_cast<T*>((r++)->data);
  if (a.has_mean) n.mean = static_cast<T*>((r++)->data);
  if (a.has_inverse) n.inverse = static_cast<T*>((r++)->data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t last = least(a.rows.count, (first + count) * a.chunk);
  const int64_t at_once = a.length > kTogether ? 1 : kRowsAtOnce;
  const int64_t together = a.epilogue.count > 0 ? most<int64_t>(1, kTogether / a.length) : last;
  for (int64_t row = first * a.chunk; row < last; row += together) {
    const int64_t end = least(last, row + together);
    for (int64_t i = row; i < end; i += at_once) norm_rows(a, n, i, least(at_once, end - i));
    if constexpr (sizeof(T) == 4)
      if (epilogue.count > 0)
        apply_rows(epilogue, 0, row, 0, end - row, a.length, n.y + row * a.length, a.length);
  }
}

template <class T>
T factor_of(const BatchNormArgs& a, const T* const* in, int64_t c) {
  return static_cast<T>(static_cast<double>(in[1][c]) /
                        __builtin_sqrt(static_cast<double>(in[4][c]) + a.epsilon));
}

// Pixels of neighbouring channels.
template <class T>
void batch_pixels(const BatchNormArgs& a, const tessera_launch* launch, const T* const* in, T* out,
                  int64_t first, int64_t last) {
  constexpr int64_t kChannels = 512;
  T factor[kChannels];
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  for (int64_t start = 0; start < a.channels; start += kChannels) {
    const int64_t channels = least(kChannels, a.channels - start);
    for (int64_t c = 0; c < channels; ++c) factor[c] = factor_of(a, in, start + c);
    const T *mean = in[3] + start, *shift = in[2] + start;
    const int64_t together = most<int64_t>(1, kTogether / channels);
    for (int64_t p = first; p < last; p += together) {
      const int64_t end = least(last, p + together);
      T* y = out + p * a.y_ld + start;
      for (int64_t i = p; i < end; ++i) {
        const T* from = in[0] + i * a.x_ld + start;
        T* to = y + (i - p) * a.y_ld;
        each_vector<T>(
            0, channels, [&](auto lanes, int64_t c) __attribute__((always_inline)) {
              const auto d = lanes.load(from + c) - lanes.load(mean + c);
              lanes.store(to + c, d * lanes.load(factor + c) + lanes.load(shift + c));
            });
      }
      if constexpr (sizeof(T) == 4)
        if (epilogue.count > 0) apply_rows(epilogue, 0, p, start, end - p, channels, y, a.y_ld);
    }
  }
}

template <class T>
void batch_items(const BatchNormArgs& a, const tessera_launch* launch, int64_t first,
                 int64_t count) {
  const T* in[5];
  for (int i = 0; i < 5; ++i) in[i] = static_cast<const T*>(launch->ranges[i].data);
  T* out = static_cast<T*>(launch->ranges[5].data);
  const int64_t begin = first * a.chunk, end = (first + count) * a.chunk;
  if (a.channels_last) return batch_pixels(a, launch, in, out, begin, least(a.pixels, end));
  for (int64_t p = begin; p < least(a.planes, end); ++p) {
    const int64_t c = p % a.channels;
    scale_run(in[0] + p * a.inner, out + p * a.inner, a.inner, in[3][c], factor_of(a, in, c),
              in[2][c]);
  }
}

}  // namespace

void row_norm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RowNormArgs*>(launch->constants);
  (a.wide ? norm_items<double> : norm_items<float>)(a, launch, first, count);
}

void batch_norm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const BatchNormArgs*>(launch->constants);
  (a.wide ? batch_items<double> : batch_items<float>)(a, launch, first, count);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
