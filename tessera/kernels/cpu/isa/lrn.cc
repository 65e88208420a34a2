// Local response normalisation over a window of channels.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/rows.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// base^beta, base > 0
enum class Power { kHalf, kThreeQuarters, kOne, kAny };
template <Power kPower>
TESSERA_INLINE Vec power_of(Vec base, float beta) {
  switch (kPower) {
    case Power::kHalf:
      return sqrt_of(base);
    case Power::kThreeQuarters: {
      const Vec root = sqrt_of(base);
      return root * sqrt_of(root);
    }
    case Power::kOne:
      return base;
    case Power::kAny:
      return exp_of(beta * log_of(base));
  }
}

struct Numbers {
  float factor, bias, beta;
};

// y = x / (bias + factor sums)^beta
template <Power kPower>
void divide(const Numbers& n, const float* x, const float* sums, float* y, int64_t count) {
  each_vector<float>(
      0, count, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        const Vec base = n.bias + n.factor * lanes.load(sums + i);
        lanes.store(y + i, lanes.load(x + i) / power_of<kPower>(base, n.beta));
      });
}

using DivideFn = void (*)(const Numbers&, const float*, const float*, float*, int64_t);
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
    divide(n, x + c * a.inner, sums, y + c * a.inner, cols);
  }
}

// Of one pixel: the window slides along neighbours.
void pixel(const LrnArgs& a, const Numbers& n, const float* x, float* y, float* squares) {
  alignas(64) float sums[kLrnChannels];
  for (int64_t c = 0; c < a.channels; ++c) squares[c] = x[c] * x[c];
  const float* window = squares - a.before;
  for (int64_t c = 0; c < a.channels; ++c) sums[c] = window[c];
  for (int64_t k = 1; k < a.size; ++k)
    for (int64_t c = 0; c < a.channels; ++c) sums[c] += window[c + k];
  divide_for(n.beta)(n, x, sums, y, a.channels);
}

void pixels(const LrnArgs& a, const Numbers& n, const tessera_launch* launch, int64_t first,
            int64_t last) {
  alignas(64) float squares[kLrnChannels + 2 * kLrnWindow];
  for (int64_t c = 0; c < kLrnWindow; ++c) squares[c] = squares[kLrnWindow + a.channels + c] = 0.0f;
  for (int64_t p = first; p < last; ++p)
    pixel(a, n, static_cast<const float*>(launch->ranges[0].data) + p * a.channels,
          static_cast<float*>(launch->ranges[1].data) + p * a.channels, squares + kLrnWindow);
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
