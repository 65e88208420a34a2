// Matrix products: gemm (packed panels, register tiles), gemv (one row, or one column), dot_plain
// (all other types).
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/gemm.h"
#include "tessera/kernels/cpu/isa/half.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

struct Item {
  int64_t a, b, y;  // offsets of the batch's matrices, in matrices
  int64_t m0, m1, n0, n1;
};

Item item_at(const GemmArgs& g, uint32_t index) {
  Item item{};
  int64_t rest = index;
  const int64_t n_block = rest % g.n_items;
  rest /= g.n_items;
  const int64_t m_block = rest % g.m_items;
  rest /= g.m_items;
  item.y = rest;
  for (int axis = g.batch_rank; axis-- > 0;) {
    const int64_t at = rest % g.batch_dims[axis];
    rest /= g.batch_dims[axis];
    item.a += at * g.a_strides[axis];
    item.b += at * g.b_strides[axis];
  }
  item.m0 = m_block * g.m_step;
  item.m1 = least(g.M, item.m0 + g.m_step);
  item.n0 = n_block * g.n_step;
  item.n1 = least(g.N, item.n0 + g.n_step);
  return item;
}

// Columns [n0, n1) of b's rows [k0, k0 + depth) as panels: in place if b is packed, else copied to
// `strip`. The distance of panels is written to `panel_stride`.
const float* strip_of(const GemmArgs& g, const float* b, int64_t n0, int64_t n1, int64_t k0,
                      int64_t depth, float* strip, int64_t* panel_stride) {
  if (g.b_packed) {
    *panel_stride = g.K * kPanelCols;
    return b + n0 * g.K + k0 * kPanelCols;
  }
  *panel_stride = depth * kPanelCols;
  pack_cols(b + k0 * g.N + n0, g.N, n1 - n0, depth, strip);
  return strip;
}

void gemm_item(const GemmArgs& g, const Item& item, const float* a, const float* b, float* y) {
  alignas(64) float strip[kDepth * kStrip];
  alignas(64) float panel[kDepth * kPanelRows];
  const int64_t step = g.b_packed ? item.n1 - item.n0 : kStrip;
  for (int64_t n0 = item.n0; n0 < item.n1; n0 += step) {
    const int64_t n1 = least(item.n1, n0 + step);
    for (int64_t k0 = 0; k0 == 0 || k0 < g.K; k0 += kDepth) {
      const int64_t depth = least(kDepth, g.K - k0);
      int64_t panel_stride = 0;
      const float* columns = strip_of(g, b, n0, n1, k0, depth, strip, &panel_stride);
      for (int64_t m = item.m0; m < item.m1; m += kPanelRows) {
        const int64_t rows = least(kPanelRows, item.m1 - m);
        pack_rows(a + m * g.K + k0, g.K, rows, depth, panel);
        for (int64_t n = n0; n < n1; n += kPanelCols)
          panel_product(rows, least(kPanelCols, n1 - n), depth, panel,
                        columns + (n - n0) / kPanelCols * panel_stride, kPanelCols, y + m * g.N + n,
                        g.N, k0 > 0, nullptr);
      }
    }
  }
}

// y (n) = a (k) * b (k, n), row-major: kRun columns at a time in registers.
void row_times_matrix(const GemmArgs& g, const Item& item, const float* a, const float* b,
                      float* y) {
  constexpr int kVecs = 8, kRun = kVecs * kLanes;
  int64_t n = item.n0;
  for (; n + kRun <= item.n1; n += kRun) {
    Vec sum[kVecs] = {};
    for (int64_t k = 0; k < g.K; ++k)
      for (int v = 0; v < kVecs; ++v) sum[v] += splat(a[k]) * load(b + k * g.N + n + v * kLanes);
    for (int v = 0; v < kVecs; ++v) store(y + n + v * kLanes, sum[v]);
  }
  for (; n < item.n1; n += kLanes) {
    const int64_t width = least<int64_t>(kLanes, item.n1 - n);
    float sum[kLanes] = {};
    for (int64_t k = 0; k < g.K; ++k)
      for (int64_t x = 0; x < width; ++x) sum[x] += a[k] * b[k * g.N + n + x];
    for (int64_t x = 0; x < width; ++x) y[n + x] = sum[x];
  }
}

// y (m) = a (m, k) * b (k)
void matrix_times_column(const GemmArgs& g, const Item& item, const float* a, const float* b,
                         float* y) {
  for (int64_t m = item.m0; m < item.m1; ++m) {
    const float* row = a + m * g.K;
    Vec sum[4] = {};
    int64_t k = 0;
    for (; k + 4 * kLanes <= g.K; k += 4 * kLanes)
      for (int v = 0; v < 4; ++v) sum[v] += load(row + k + v * kLanes) * load(b + k + v * kLanes);
    float total = sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; k < g.K; ++k) total += row[k] * b[k];
    y[m] = total;
  }
}

// Types of dot_plain: how an element is read, what sums are kept in, how results are stored.
template <class T, class Sum>
struct Number {
  using Stored = T;
  static Sum read(T v) { return static_cast<Sum>(v); }
};
struct F16 {
  using Stored = uint16_t;
  static float read(uint16_t v) { return from_f16(v); }
  static uint16_t write(float v) { return to_f16(v); }
};
struct BF16 {
  using Stored = uint16_t;
  static float read(uint16_t v) { return from_bf16(v); }
  static uint16_t write(float v) { return to_bf16(v); }
};
template <class T>
struct Same {
  using Stored = T;
  static T write(T v) { return v; }
};

// Four rows by 64 columns at a time; b's rows are read once for the four.
template <class A, class B, class Sum, class Y>
void plain_item(const GemmArgs& g, const Item& item, const void* a_data, const void* b_data,
                void* y_data) {
  constexpr int kRows = 4, kCols = 64;
  const auto* a = static_cast<const typename A::Stored*>(a_data) + item.a * g.M * g.K;
  const auto* b = static_cast<const typename B::Stored*>(b_data) + item.b * g.K * g.N;
  auto* y = static_cast<typename Y::Stored*>(y_data) + item.y * g.M * g.N;
  for (int64_t m = item.m0; m < item.m1; m += kRows) {
    const int64_t rows = least<int64_t>(kRows, item.m1 - m);
    for (int64_t n = item.n0; n < item.n1; n += kCols) {
      const int64_t cols = least<int64_t>(kCols, item.n1 - n);
      Sum sum[kRows][kCols] = {};
      for (int64_t k = 0; k < g.K; ++k) {
        Sum row[kCols] = {};
        for (int64_t x = 0; x < cols; ++x) row[x] = B::read(b[k * g.N + n + x]);
        for (int64_t r = 0; r < rows; ++r) {
          const Sum factor = A::read(a[(m + r) * g.K + k]);
          for (int x = 0; x < kCols; ++x) sum[r][x] += factor * row[x];
        }
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t x = 0; x < cols; ++x) y[(m + r) * g.N + n + x] = Y::write(sum[r][x]);
    }
  }
}

using PlainFn = void (*)(const GemmArgs&, const Item&, const void*, const void*, void*);
using U32 = uint32_t;
constexpr PlainFn kPlain[] = {
    plain_item<Number<double, double>, Number<double, double>, double, Same<double>>,  // kF64
    plain_item<F16, F16, float, F16>,                                                  // kF16
    plain_item<BF16, BF16, float, BF16>,                                               // kBF16
    plain_item<F16, F16, float, Same<float>>,                                          // kF16ToF32
    plain_item<BF16, BF16, float, Same<float>>,                                        // kBF16ToF32
    plain_item<Number<int8_t, U32>, Number<int8_t, U32>, U32, Same<U32>>,              // kI8I8
    plain_item<Number<int8_t, U32>, Number<uint8_t, U32>, U32, Same<U32>>,             // kI8U8
    plain_item<Number<uint8_t, U32>, Number<int8_t, U32>, U32, Same<U32>>,             // kU8I8
    plain_item<Number<uint8_t, U32>, Number<uint8_t, U32>, U32, Same<U32>>,            // kU8U8
    plain_item<Number<U32, U32>, Number<U32, U32>, U32, Same<U32>>,                    // kI32
    plain_item<Number<uint64_t, uint64_t>, Number<uint64_t, uint64_t>, uint64_t,
               Same<uint64_t>>,  // kI64
};

}  // namespace

void gemm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& g = *static_cast<const GemmArgs*>(launch->constants);
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(g, i);
    gemm_item(g, item, static_cast<const float*>(launch->ranges[0].data) + item.a * g.M * g.K,
              static_cast<const float*>(launch->ranges[1].data) + item.b * g.b_batch_size,
              static_cast<float*>(launch->ranges[2].data) + item.y * g.M * g.N);
  }
}

void gemv(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& g = *static_cast<const GemmArgs*>(launch->constants);
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(g, i);
    const float* a = static_cast<const float*>(launch->ranges[0].data) + item.a * g.M * g.K;
    const float* b = static_cast<const float*>(launch->ranges[1].data) + item.b * g.K * g.N;
    float* y = static_cast<float*>(launch->ranges[2].data) + item.y * g.M * g.N;
    (g.N == 1 ? matrix_times_column : row_times_matrix)(g, item, a, b, y);
  }
}

void dot_plain(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& args = *static_cast<const PlainDotArgs*>(launch->constants);
  for (uint32_t i = first; i < first + count; ++i)
    kPlain[static_cast<int>(args.types)](args.gemm, item_at(args.gemm, i), launch->ranges[0].data,
                                         launch->ranges[1].data, launch->ranges[2].data);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
