// Softmax along rows that stay in the first cache, or along columns a vector of them at a time.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/epilogue.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/rows.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr double kLowest = -__builtin_inf();

float highest(const float* x, int64_t n) {
  Vec top[4];
  for (Vec& t : top) t = splat(-__builtin_inff());
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int w = 0; w < 4; ++w) top[w] = max_of(top[w], load(x + i + w * kLanes));
  each_vector<float>(
      i, n, [&](auto lanes, int64_t at) __attribute__((always_inline)) {
        top[0] = max_of(top[0], lanes.load(x + at, top[0]));
      });
  return max_lanes(max_of(max_of(top[0], top[1]), max_of(top[2], top[3])));
}
double highest(const double* x, int64_t n) {
  double top = kLowest;
  for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

// e^(x - top). A NaN or an infinite top makes the sum NaN, so that the search for the highest may
// lose it.
TESSERA_INLINE Vec exponential(Vec x, Vec top) { return exp2_of((x - top) * kLog2E); }
TESSERA_INLINE double exponential(double x, double top) { return exp_of(x - top); }

template <class T>
void softmax_row(const T* x, T* y, int64_t n, bool log) {
  const auto top = spread(highest(x, n)), lowest = spread(static_cast<T>(kLowest));
  const double sum = sum_of<T>(
      n, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        const auto e = exponential(lanes.load(x + i, lowest), top);
        if (!log) lanes.store(y + i, e);
        return e;
      });
  const T last = static_cast<T>(log ? __builtin_log(sum) : 1 / sum);
  each_vector<T>(
      0, n, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        lanes.store(y + i, log ? (lanes.load(x + i) - top) - last : lanes.load(y + i) * last);
      });
}

struct Walk {
  int64_t length, x_stride, y_stride;  // along the axis
};

TESSERA_INLINE Vec inverse_of(Vec v) { return 1.0f / v; }
TESSERA_INLINE double inverse_of(double v) { return 1 / v; }
TESSERA_INLINE Vec higher(Vec a, Vec b) { return max_of(a, b); }
TESSERA_INLINE double higher(double a, double b) { return b > a ? b : a; }

template <class T>
void softmax_columns(const T* from, T* to, const Walk& w, int64_t count, bool log) {
  each_vector<T>(
      0, count, [&](auto lanes, int64_t column) __attribute__((always_inline)) {
        const T* x = from + column;
        T* y = to + column;
        Lanes<T> top = spread(static_cast<T>(kLowest)), sum{};
        for (int64_t i = 0; i < w.length; ++i) top = higher(top, lanes.load(x + i * w.x_stride));
        for (int64_t i = 0; i < w.length; ++i) {
          const Lanes<T> e = exponential(lanes.load(x + i * w.x_stride), top);
          sum += e;
          if (!log) lanes.store(y + i * w.y_stride, e);
        }
        const Lanes<T> last = log ? log_of(sum) : inverse_of(sum);
        for (int64_t i = 0; i < w.length; ++i) {
          T* at = y + i * w.y_stride;
          lanes.store(at,
                      log ? (lanes.load(x + i * w.x_stride) - top) - last : lanes.load(at) * last);
        }
      });
}

template <class T>
void softmax_items(const SoftmaxArgs& a, const tessera_launch* launch, int64_t first,
                   int64_t count) {
  const T* x = static_cast<const T*>(launch->ranges[0].data);
  T* y = static_cast<T*>(launch->ranges[1].data);
  if (a.inner == 0) {
    const BoundEpilogue epilogue = bind(a.epilogue, launch);
    for (int64_t r = first * a.chunk; r < least(a.rows.count, (first + count) * a.chunk); ++r) {
      T* to = y + offset_of(a.rows, 1, r);
      softmax_row(x + offset_of(a.rows, 0, r), to, a.axis, a.log);
      if constexpr (sizeof(T) == 4)
        if (epilogue.count > 0) apply_rows(epilogue, 0, r, 0, 1, a.axis, to, a.axis);
    }
    return;
  }
  const int64_t runs = (a.inner + kSoftmaxCols - 1) / kSoftmaxCols;
  const Walk walk{a.axis, a.axis_strides[0], a.axis_strides[1]};
  for (int64_t item = first; item < first + count; ++item) {
    const int64_t column = item % runs * kSoftmaxCols, r = item / runs;
    softmax_columns(x + offset_of(a.rows, 0, r) + column, y + offset_of(a.rows, 1, r) + column,
                    walk, least(kSoftmaxCols, a.inner - column), a.log);
  }
}

}  // namespace

void softmax(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const SoftmaxArgs*>(launch->constants);
  (a.wide ? softmax_items<double> : softmax_items<float>)(a, launch, first, count);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
