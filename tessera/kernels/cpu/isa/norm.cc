// Softmax and normalisations: two or three passes over rows that stay in the cache.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/norm_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kWays = 32;  // sums are kept in so many lanes

template <class T>
T highest(const T* x, int64_t n) {
  T lanes[kWays];
  for (int j = 0; j < kWays; ++j) lanes[j] = -static_cast<T>(__builtin_inf());
  int64_t i = 0;
  for (; i + kWays <= n; i += kWays)
    for (int j = 0; j < kWays; ++j)
      lanes[j] = x[i + j] != x[i + j] || lanes[j] < x[i + j] ? x[i + j] : lanes[j];
  for (; i < n; ++i) lanes[0] = x[i] != x[i] || lanes[0] < x[i] ? x[i] : lanes[0];
  for (int j = 1; j < kWays; ++j)
    lanes[0] = lanes[j] != lanes[j] || lanes[0] < lanes[j] ? lanes[j] : lanes[0];
  return lanes[0];
}

// Sum of f(x[i]), blocks of lanes gathered in double.
template <class T, class F>
TESSERA_INLINE double sum_of(const T* x, int64_t n, F f) {
  constexpr int64_t kBlock = 2048;
  double total = 0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = least(n, start + kBlock);
    T lanes[kWays] = {};
    int64_t i = start;
    for (; i + kWays <= end; i += kWays)
      for (int j = 0; j < kWays; ++j) lanes[j] += f(x[i + j]);
    double block = 0;
    for (; i < end; ++i) block += static_cast<double>(f(x[i]));
    for (int j = 0; j < kWays; ++j) block += static_cast<double>(lanes[j]);
    total += block;
  }
  return total;
}

template <class T>
void softmax_row(const T* __restrict x, T* __restrict y, int64_t n, bool log) {
  const T top = highest(x, n);
  if (log) {
    const T tail = log_of(static_cast<T>(sum_of(
        x, n, [top](T v) __attribute__((always_inline)) { return exp_of(v - top); })));
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - tail;
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - top);
  const T factor =
      static_cast<T>(1 / sum_of(
                             y, n, [](T v) __attribute__((always_inline)) { return v; }));
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

template <class T>
void softmax_columns(const T* x, T* y, int64_t length, int64_t stride, int64_t count, bool log) {
  T top[kSoftmaxCols], sum[kSoftmaxCols] = {};
  for (int64_t j = 0; j < count; ++j) top[j] = -static_cast<T>(__builtin_inf());
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < count; ++j) {
      const T v = x[i * stride + j];
      top[j] = v != v || top[j] < v ? v : top[j];
    }
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < count; ++j) {
      const T e = exp_of(x[i * stride + j] - top[j]);
      sum[j] += e;
      if (!log) y[i * stride + j] = e;
    }
  for (int64_t j = 0; j < count; ++j) sum[j] = log ? log_of(sum[j]) : T(1) / sum[j];
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < count; ++j) {
      T& v = y[i * stride + j];
      v = log ? (x[i * stride + j] - top[j]) - sum[j] : v * sum[j];
    }
}

template <class T>
void softmax_items(const SoftmaxArgs& a, const void* from, void* to, int64_t first, int64_t count) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  if (a.inner == 1) {
    for (int64_t row = first * a.chunk; row < least(a.outer, (first + count) * a.chunk); ++row)
      softmax_row(x + row * a.axis, y + row * a.axis, a.axis, a.log);
    return;
  }
  const int64_t runs = (a.inner + kSoftmaxCols - 1) / kSoftmaxCols;
  for (int64_t item = first; item < first + count; ++item) {
    const int64_t column = item % runs * kSoftmaxCols, at = item / runs * a.axis * a.inner + column;
    softmax_columns(x + at, y + at, a.axis, a.inner, least(kSoftmaxCols, a.inner - column), a.log);
  }
}

template <class T>
struct RowNorm {
  const T *x, *scale, *bias;
  T *y, *mean, *inverse;
};

template <class T>
void norm_row(const RowNormArgs& a, const RowNorm<T>& n, int64_t row) {
  const T* __restrict x = n.x + row * a.length;
  T* __restrict y = n.y + row * a.length;
  const double count = static_cast<double>(a.length);
  const T mean =
      a.rms
          ? T(0)
          : static_cast<T>(sum_of(
                               x, a.length, [](T v) __attribute__((always_inline)) { return v; }) /
                           count);
  const double variance =
      sum_of(
          x, a.length,
          [mean](T v) __attribute__((always_inline)) { return (v - mean) * (v - mean); }) /
      count;
  const T inverse = static_cast<T>(1 / __builtin_sqrt(variance + a.epsilon));
  if (n.mean) n.mean[row] = mean;
  if (n.inverse) n.inverse[row] = inverse;
  if (a.affine == Affine::kPerChannel) {
    for (int64_t c = 0; c < a.channels; ++c, x += a.inner, y += a.inner) {
      const int64_t channel = (row * a.channels + c) % a.all_channels;
      const T factor = n.scale[channel] * inverse, shift = n.bias[channel];
      for (int64_t i = 0; i < a.inner; ++i) y[i] = (x[i] - mean) * factor + shift;
    }
  } else if (n.scale && n.bias) {
    for (int64_t i = 0; i < a.length; ++i) y[i] = (x[i] - mean) * inverse * n.scale[i] + n.bias[i];
  } else if (n.scale) {
    for (int64_t i = 0; i < a.length; ++i) y[i] = (x[i] - mean) * inverse * n.scale[i];
  } else {
    for (int64_t i = 0; i < a.length; ++i)
      y[i] = (x[i] - mean) * inverse + (n.bias ? n.bias[i] : T(0));
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
  for (int64_t row = first * a.chunk; row < least(a.rows, (first + count) * a.chunk); ++row)
    norm_row(a, n, row);
}

template <class T>
void batch_items(const BatchNormArgs& a, const tessera_launch* launch, int64_t first,
                 int64_t count) {
  const T* in[5];
  for (int i = 0; i < 5; ++i) in[i] = static_cast<const T*>(launch->ranges[i].data);
  T* out = static_cast<T*>(launch->ranges[5].data);
  for (int64_t p = first * a.chunk; p < least(a.planes, (first + count) * a.chunk); ++p) {
    const int64_t c = p % a.channels;
    const T factor = static_cast<T>(static_cast<double>(in[1][c]) /
                                    __builtin_sqrt(static_cast<double>(in[4][c]) + a.epsilon));
    const T mean = in[3][c], shift = in[2][c];
    const T* __restrict x = in[0] + p * a.inner;
    T* __restrict y = out + p * a.inner;
    for (int64_t i = 0; i < a.inner; ++i) y[i] = (x[i] - mean) * factor + shift;
  }
}

// base^-beta; base is positive unless the parameters are odd.
TESSERA_INLINE float power_of(float base, float beta) { return exp_of(-beta * log_of(base)); }

}  // namespace

void softmax(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const SoftmaxArgs*>(launch->constants);
  (a.wide ? softmax_items<double> : softmax_items<float>)(a, launch->ranges[0].data,
                                                          launch->ranges[1].data, first, count);
}

void row_norm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RowNormArgs*>(launch->constants);
  (a.wide ? norm_items<double> : norm_items<float>)(a, launch, first, count);
}

void batch_norm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const BatchNormArgs*>(launch->constants);
  (a.wide ? batch_items<double> : batch_items<float>)(a, launch, first, count);
}

void lrn(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const LrnArgs*>(launch->constants);
  const int64_t runs = (a.inner + kLrnCols - 1) / kLrnCols;
  const float factor = static_cast<float>(a.factor), bias = static_cast<float>(a.bias),
              beta = static_cast<float>(a.beta);
  for (int64_t item = first; item < int64_t{first} + count; ++item) {
    const int64_t column = item % runs * kLrnCols, cols = least(kLrnCols, a.inner - column);
    const int64_t at = item / runs * a.channels * a.inner + column;
    const float* x = static_cast<const float*>(launch->ranges[0].data) + at;
    float* y = static_cast<float*>(launch->ranges[1].data) + at;
    for (int64_t c = 0; c < a.channels; ++c) {
      float sum[kLrnCols] = {};
      const int64_t last = least(a.channels, c - a.before + a.size);
      for (int64_t k = most<int64_t>(0, c - a.before); k < last; ++k)
        for (int64_t j = 0; j < cols; ++j) sum[j] += x[k * a.inner + j] * x[k * a.inner + j];
      for (int64_t j = 0; j < cols; ++j)
        y[c * a.inner + j] = x[c * a.inner + j] * power_of(bias + factor * sum[j], beta);
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
