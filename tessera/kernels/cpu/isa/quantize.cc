// Between numbers and their quantised form: runs of elements that share a scale, or have one each.
#include "tessera/kernels/cpu/isa/quantize.h"

#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/quantize_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// Elements that follow each other, beginning with one: their first scale, and whether the others'
// are the same or the ones behind it.
struct Run {
  int64_t length, scale, step;
};

Run run_at(const QuantizeArgs& a, int64_t element) {
  if (a.one) return {a.count - element, 0, 0};
  const int64_t plane = a.axis * a.inner, outer = element / plane, at = element % plane;
  const int64_t index = at / a.inner, inside = at % a.inner;
  if (a.block == 0)
    return a.inner == 1 ? Run{a.axis - index, index, 1} : Run{a.inner - inside, index, 0};
  const int64_t blocks = (a.axis + a.block - 1) / a.block, block = index / a.block;
  const int64_t scale = (outer * blocks + block) * a.inner + inside;
  if (a.inner > 1) return {a.inner - inside, scale, 1};
  return {least(a.axis, (block + 1) * a.block) - index, scale, 0};
}

TESSERA_INLINE Vec load_part(const float* p, int64_t count) {
  return count == kLanes ? load(p) : Part(static_cast<int>(count)).load(p);
}

template <class T>
struct Quantize {
  using From = float;
  using To = T;
  using Zero = T;
  // `count` elements, at most a vector of them.
  TESSERA_INLINE void vector(const float* x, Vec scale, VecI zero, T* y, int64_t count) {
    const VecI q = quantized<T>(load_part(x, count), scale, zero);
    if (count == kLanes)
      Narrow<T>::store(y, q);
    else
      Narrow<T>::store(y, q, count);
  }
};

template <class T>
struct Dequantize {
  using From = T;
  using To = float;
  using Zero = T;
  TESSERA_INLINE void vector(const T* x, Vec scale, VecI zero, float* y, int64_t count) {
    const VecI q = count == kLanes ? Narrow<T>::load(x) : Narrow<T>::load(x, count);
    const Vec v = __builtin_convertvector(q - zero, Vec) * scale;
    if (count == kLanes)
      store(y, v);
    else
      Part(static_cast<int>(count)).store(y, v);
  }
};

// What 32 bits hold goes through f64.
struct DequantizeWide {
  using From = int32_t;
  using To = float;
  using Zero = int32_t;
};

void run_wide(const QuantizeArgs& a, const Run& r, const int32_t* x, const float* scales,
              const int32_t* zeros, float* y) {
  for (int64_t i = 0; i < r.length; ++i) {
    const int64_t at = r.scale + i * r.step;
    const double zero = a.has_zero ? zeros[at] : 0;
    y[i] = static_cast<float>((x[i] - zero) * static_cast<double>(scales[at]));
  }
}

template <class F>
void run(const QuantizeArgs& a, const Run& r, const typename F::From* x, const float* scales,
         const typename F::Zero* zeros, typename F::To* y) {
  using Zero = typename F::Zero;
  if (r.step == 0) {
    const Vec scale = splat(scales[r.scale]);
    const VecI zero = splat_int(a.has_zero ? zeros[r.scale] : 0);
    for (int64_t i = 0; i < r.length; i += kLanes)
      F::vector(x + i, scale, zero, y + i, least<int64_t>(kLanes, r.length - i));
    return;
  }
  for (int64_t i = 0; i < r.length; i += kLanes) {
    const int64_t count = least<int64_t>(kLanes, r.length - i);
    const Vec scale = load_part(scales + r.scale + i, count);
    const VecI zero = a.has_zero ? Narrow<Zero>::load(zeros + r.scale + i, count) : VecI{};
    F::vector(x + i, scale, zero, y + i, count);
  }
}

template <class F>
void items_of(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const QuantizeArgs*>(launch->constants);
  const auto* x = static_cast<const typename F::From*>(launch->ranges[0].data);
  const auto* scales = static_cast<const float*>(launch->ranges[1].data);
  const auto* zeros =
      a.has_zero ? static_cast<const typename F::Zero*>(launch->ranges[2].data) : nullptr;
  auto* y = static_cast<typename F::To*>(launch->ranges[a.has_zero ? 3 : 2].data);
  const int64_t end = least(a.count, (int64_t{first} + count) * a.chunk);
  for (int64_t e = first * a.chunk; e < end;) {
    Run r = run_at(a, e);
    r.length = least(r.length, end - e);
    if constexpr (sizeof(typename F::From) == sizeof(typename F::To))
      run_wide(a, r, x + e, scales, zeros, y + e);
    else
      run<F>(a, r, x + e, scales, zeros, y + e);
    e += r.length;
  }
}

}  // namespace

void quantize(const tessera_launch* launch, uint32_t first, uint32_t count) {
  switch (static_cast<const QuantizeArgs*>(launch->constants)->type) {
    case QuantizedType::kU8:
      return items_of<Quantize<uint8_t>>(launch, first, count);
    case QuantizedType::kI8:
      return items_of<Quantize<int8_t>>(launch, first, count);
    case QuantizedType::kU16:
      return items_of<Quantize<uint16_t>>(launch, first, count);
    case QuantizedType::kI16:
      return items_of<Quantize<int16_t>>(launch, first, count);
    case QuantizedType::kI32:
      return launch->fail(launch, "quantises to i32");
  }
}

void dequantize(const tessera_launch* launch, uint32_t first, uint32_t count) {
  switch (static_cast<const QuantizeArgs*>(launch->constants)->type) {
    case QuantizedType::kU8:
      return items_of<Dequantize<uint8_t>>(launch, first, count);
    case QuantizedType::kI8:
      return items_of<Dequantize<int8_t>>(launch, first, count);
    case QuantizedType::kU16:
      return items_of<Dequantize<uint16_t>>(launch, first, count);
    case QuantizedType::kI16:
      return items_of<Dequantize<int16_t>>(launch, first, count);
    case QuantizedType::kI32:
      return items_of<DequantizeWide>(launch, first, count);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
