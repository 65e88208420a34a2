// Matrix products of all types but f32: row-major, sums in the type that holds them.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/isa/products.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

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
void plain_item(const Products& g, const Item& item, const void* a_data, const void* b_data,
                void* y_data) {
  constexpr int kRows = 4, kCols = 64;
  const auto* a = static_cast<const typename A::Stored*>(a_data) + item.a;
  const auto* b = static_cast<const typename B::Stored*>(b_data) + item.b;
  auto* y = static_cast<typename Y::Stored*>(y_data) + item.y;
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

using PlainFn = void (*)(const Products&, const Item&, const void*, const void*, void*);
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

void dot_plain(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& args = *static_cast<const PlainDotArgs*>(launch->constants);
  for (uint32_t i = first; i < first + count; ++i)
    kPlain[static_cast<int>(args.types)](args.products, item_at(args.products, i),
                                         launch->ranges[0].data, launch->ranges[1].data,
                                         launch->ranges[2].data);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
