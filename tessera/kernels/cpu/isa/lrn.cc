// Local response normalisation over a window of channels.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/rows.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

#if defined(__AVX512F__)
// 1 / sqrt(v), v > 0, to 2 ulp
TESSERA_INLINE Vec inverse_sqrt(Vec v) {
  const Vec r = _mm512_maskz_rsqrt14_ps(0xffff, v);
  return r * (1.5f - (0.5f * v) * r * r);
}
#else
TESSERA_INLINE Vec inverse_sqrt(Vec v) { return 1.0f / sqrt_of(v); }
#endif

// base^-beta, base > 0
enum class Power { kHalf, kThreeQuarters, kOne, kAny };
template <Power kPower>
TESSERA_INLINE Vec power_of(Vec base, float beta) {
  if constexpr (kPower == Power::kHalf) {
    return inverse_sqrt(base);
  } else if constexpr (kPower == Power::kThreeQuarters) {
    const Vec r = inverse_sqrt(base);
    return r * r * inverse_sqrt(r);
  } else if constexpr (kPower == Power::kOne) {
    return 1.0f / base;
  } else {
    return exp_of(-beta * log_of(base));
  }
}

struct Numbers {
  float factor, bias, beta;
};

// y = x (bias + factor sums)^-beta, where sums[i] is the sum of `size` neighbours from windows[i]
// on
template <Power kPower>
void divide(const Numbers& n, const float* x, const float* windows, int64_t size, float* y,
            int64_t count) {
  each_vector<float>(
      0, count, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        Vec sum = lanes.load(windows + i);
        for (int64_t k = 1; k < size; ++k) sum += lanes.load(windows + i + k);
        const Vec base = n.bias + n.factor * sum;
        lanes.store(y + i, lanes.load(x + i) * power_of<kPower>(base, n.beta));
      });
}

using DivideFn = void (*)(const Numbers&, const float*, const float*, int64_t, float*, int64_t);
DivideFn divide_for(float beta) {
  return beta == 0.5f    ? divide<Power::kHalf>
         : beta == 0.75f ? divide<Power::kThreeQuarters>
         : beta == 1.0f  ? divide<Power::kOne>
                         : divide<Power::kAny>;
}

// sums (cols) += squares of a channel's columns
void add_squares(const float* x, float* sums, int64_t cols) {
  for (int64_t j = 0; j < cols; ++j) sums[j] += x[j] * x[j];
}

void columns(const LrnArgs& a, const Numbers& n, const float* x, float* y, int64_t cols) {
  const DivideFn divide = divide_for(n.beta);
  for (int64_t c = 0; c < a.channels; ++c) {
    float sums[kLrnCols] = {};
    const int64_t last = least(a.channels, c - a.before + a.size);
    for (int64_t k = most<int64_t>(0, c - a.before); k < last; ++k)
      add_squares(x + k * a.inner, sums, cols);
    divide(n, x + c * a.inner, sums, 1, y + c * a.inner, cols);
  }
}

// The window slides along the channels of a pixel, beyond which are zeros.
void pixels(const LrnArgs& a, const Numbers& n, const tessera_launch* launch, int64_t first,
            int64_t last) {
  alignas(64) float padded[kLrnChannels + 2 * kLrnWindow];
  float* squares = padded + kLrnWindow;
  for (int64_t c = 0; c < kLrnWindow; ++c) padded[c] = squares[a.channels + c] = 0.0f;
  const DivideFn divide = divide_for(n.beta);
  for (int64_t p = first; p < last; ++p) {
    const float* x = static_cast<const float*>(launch->ranges[0].data) + p * a.channels;
    float* y = static_cast<float*>(launch->ranges[1].data) + p * a.channels;
    for (int64_t c = 0; c < a.channels; ++c) squares[c] = x[c] * x[c];
    divide(n, x, squares - a.before, a.size, y, a.channels);
  }
}

}  // namespace

void lrn(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const LrnArgs*>(launch->constants);
  const Numbers n{static_cast<float>(a.factor), static_cast<float>(a.bias),
                  static_cast<float>(a.beta)};
  if (a.channels_last)
    return pixels(a, n, launch, first * a.chunk,
                  least(a.outer, (int64_t{first} + count) * a.chunk));
  const int64_t runs = (a.inner + kLrnCols - 1) / kLrnCols;
  for (int64_t item = first; item < int64_t{first} + count; ++item) {
    const int64_t column = item % runs * kLrnCols;
    const int64_t at = item / runs * a.channels * a.inner + column;
    columns(a, n, static_cast<const float*>(launch->ranges[0].data) + at,
            static_cast<float*>(launch->ranges[1].data) + at, least(kLrnCols, a.inner - column));
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
