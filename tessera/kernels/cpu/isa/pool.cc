// Pooling: an output row at a time, one tap after the other over all windows of the row that have
// it inside.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/kernels/cpu/pool_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kRun = 256;  // windows of a row at a time

// Indices i in [0, count) with 0 <= i * step + offset < size.
struct Inside {
  int64_t first, last;
};
Inside inside(int64_t count, int64_t step, int64_t offset, int64_t size) {
  const int64_t first = offset >= 0 ? 0 : (-offset + step - 1) / step;
  const int64_t room = size - offset;
  return {least(first, count), room <= 0 ? 0 : least(count, (room + step - 1) / step)};
}

template <class T>
constexpr T kLowest = T(0.5) != T(0) ? -static_cast<T>(__builtin_inf())
                      : T(-1) < T(0) ? static_cast<T>(-128)
                                     : T(0);

template <class T>
TESSERA_INLINE T fold_max(T a, T b) {
  return b != b ? b : (a < b ? b : a);
}

// sum[i] folded with x[i * step] for i in [0, count)
template <class T, bool kMaximum>
TESSERA_INLINE void fold_tap(T* __restrict sum, const T* __restrict x, int64_t step,
                             int64_t count) {
  if (step == 1)
    for (int64_t i = 0; i < count; ++i)
      sum[i] = kMaximum ? fold_max(sum[i], x[i]) : static_cast<T>(sum[i] + x[i]);
  else if (step == 2)
    for (int64_t i = 0; i < count; ++i)
      sum[i] = kMaximum ? fold_max(sum[i], x[i * 2]) : static_cast<T>(sum[i] + x[i * 2]);
  else
    for (int64_t i = 0; i < count; ++i)
      sum[i] = kMaximum ? fold_max(sum[i], x[i * step]) : static_cast<T>(sum[i] + x[i * step]);
}

// Taps of window `o` along an axis that count in an average.
int64_t counted(const PoolArgs& a, int axis, int64_t o) {
  const int64_t start = o * a.stride[axis];
  const Inside i = a.count_padding
                       ? inside(a.kernel[axis], a.dilation[axis], start,
                                a.in[axis] + a.pad[axis] + a.pad_end[axis])
                       : inside(a.kernel[axis], a.dilation[axis], start - a.pad[axis], a.in[axis]);
  return most<int64_t>(0, i.last - i.first);
}

template <class T, bool kMaximum>
void pool_row(const PoolArgs& a, const T* x, int64_t od, int64_t oh, int64_t w0, int64_t count,
              T* y) {
  T sum[kRun];
  for (int64_t i = 0; i < count; ++i) sum[i] = kMaximum ? kLowest<T> : T(0);
  const int64_t d0 = od * a.stride[0] - a.pad[0], h0 = oh * a.stride[1] - a.pad[1],
                c0 = w0 * a.stride[2] - a.pad[2];
  const Inside ds = inside(a.kernel[0], a.dilation[0], d0, a.in[0]),
               hs = inside(a.kernel[1], a.dilation[1], h0, a.in[1]);
  for (int64_t kd = ds.first; kd < ds.last; ++kd)
    for (int64_t kh = hs.first; kh < hs.last; ++kh) {
      const T* row = x + ((d0 + kd * a.dilation[0]) * a.in[1] + h0 + kh * a.dilation[1]) * a.in[2];
      for (int64_t kw = 0; kw < a.kernel[2]; ++kw) {
        const int64_t offset = c0 + kw * a.dilation[2];
        const Inside ws = inside(count, a.stride[2], offset, a.in[2]);
        if (ws.first < ws.last)
          fold_tap<T, kMaximum>(sum + ws.first, row + offset + ws.first * a.stride[2], a.stride[2],
                                ws.last - ws.first);
      }
    }
  if constexpr (kMaximum) {
    for (int64_t i = 0; i < count; ++i) y[i] = sum[i];
  } else {
    const int64_t lead = counted(a, 0, od) * counted(a, 1, oh);
    for (int64_t i = 0; i < count; ++i)
      y[i] = static_cast<T>(sum[i] / static_cast<T>(lead * counted(a, 2, w0 + i)));
  }
}

// The maximum of one window and its place, the first of equal ones.
template <class T>
void find_max(const PoolArgs& a, const T* x, int64_t plane, int64_t od, int64_t oh, int64_t ow,
              T* y, int64_t* place) {
  const int64_t o[3] = {od, oh, ow};
  int64_t start[3];
  Inside taps[3];
  for (int i = 0; i < 3; ++i) {
    start[i] = o[i] * a.stride[i] - a.pad[i];
    taps[i] = inside(a.kernel[i], a.dilation[i], start[i], a.in[i]);
  }
  int64_t best[3] = {-1, 0, 0};
  T top = kLowest<T>;
  for (int64_t kd = taps[0].first; kd < taps[0].last; ++kd)
    for (int64_t kh = taps[1].first; kh < taps[1].last; ++kh)
      for (int64_t kw = taps[2].first; kw < taps[2].last; ++kw) {
        const int64_t d = start[0] + kd * a.dilation[0], h = start[1] + kh * a.dilation[1],
                      w = start[2] + kw * a.dilation[2];
        const T v = x[(d * a.in[1] + h) * a.in[2] + w];
        if (best[0] >= 0 && !(v > top) && !(v != v && top == top)) continue;
        best[0] = d, best[1] = h, best[2] = w, top = v;
      }
  *y = top;
  if (best[0] < 0) {
    *place = plane * a.in[0] * a.in[1] * a.in[2] - 1;
  } else {
    const int64_t base = plane * a.in[0] * a.in[1] * a.in[2];
    *place = base + (a.column_major ? best[0] + a.in[0] * (best[1] + a.in[1] * best[2])
                                    : (best[0] * a.in[1] + best[1]) * a.in[2] + best[2]);
  }
}

template <class T>
void pool_planes(const PoolArgs& a, const tessera_launch* launch, int64_t first, int64_t last) {
  const int64_t in = a.in[0] * a.in[1] * a.in[2], out = a.out[0] * a.out[1] * a.out[2];
  for (int64_t p = first; p < last; ++p) {
    const T* x = static_cast<const T*>(launch->ranges[0].data) + p * in;
    T* y = static_cast<T*>(launch->ranges[1].data) + p * out;
    int64_t* places =
        a.has_indices ? static_cast<int64_t*>(launch->ranges[2].data) + p * out : nullptr;
    for (int64_t d = 0; d < a.out[0]; ++d)
      for (int64_t h = 0; h < a.out[1]; ++h, y += a.out[2]) {
        if (places) {
          for (int64_t w = 0; w < a.out[2]; ++w) find_max(a, x, p, d, h, w, y + w, places++);
          continue;
        }
        for (int64_t w = 0; w < a.out[2]; w += kRun) {
          const int64_t count = least(kRun, a.out[2] - w);
          if (a.kind == PoolKind::kMax)
            pool_row<T, true>(a, x, d, h, w, count, y + w);
          else
            pool_row<T, false>(a, x, d, h, w, count, y + w);
        }
      }
  }
}

}  // namespace

void pool(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PoolArgs*>(launch->constants);
  constexpr void (*kByType[])(const PoolArgs&, const tessera_launch*, int64_t, int64_t) = {
      pool_planes<float>, pool_planes<double>, pool_planes<int8_t>, pool_planes<uint8_t>};
  kByType[static_cast<int>(a.type)](a, launch, int64_t{first} * a.chunk,
                                    least(a.planes, (int64_t{first} + count) * a.chunk));
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
