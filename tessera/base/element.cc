#include "tessera/base/element.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {
namespace {

template <class T>
T read(const void* base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* base, int64_t index, T value) {
  std::memcpy(static_cast<char*>(base) + index * static_cast<int64_t>(sizeof(T)), &value,
              sizeof(T));
}

struct Packed {
  int64_t byte;
  int shift;
  uint8_t mask;
};

Packed packed_at(int bits, int64_t index) {
  const int64_t per_byte = 8 / bits;
  return {index / per_byte, static_cast<int>(index % per_byte) * bits,
          static_cast<uint8_t>((1 << bits) - 1)};
}

int64_t sign_extend(uint64_t bits, int width) {
  const int unused = 64 - width;
  return static_cast<int64_t>(bits << unused) >> unused;
}

int64_t smallest_int(int bits) { return std::numeric_limits<int64_t>::min() >> (64 - bits); }
int64_t largest_int(int bits) { return ~smallest_int(bits); }
uint64_t largest_uint(int bits) { return ~uint64_t{0} >> (64 - bits); }

double load_float(DType dtype, const void* base, int64_t index) {
  switch (dtype) {
    case DType::kF64:
      return read<double>(base, index);
    case DType::kF32:
      return read<float>(base, index);
    case DType::kF16:
      return f16_to_f32(read<uint16_t>(base, index));
    case DType::kBF16:
      return bf16_to_f32(read<uint16_t>(base, index));
    default:
      return decode(float_format(dtype), load_bits(dtype, base, index));
  }
}

void store_float(DType dtype, void* base, int64_t index, double value, FloatCast cast) {
  const bool plain = cast.rounding == Rounding::kNearestEven && !cast.saturate;
  if (dtype == DType::kF64 && !cast.saturate) return write(base, index, value);
  if (dtype == DType::kF32 && plain) return write(base, index, static_cast<float>(value));
  store_bits(dtype, base, index, encode(float_format(dtype), value, cast));
}

void store_magnitude(DType dtype, void* base, int64_t index, bool negative, uint64_t magnitude,
                     FloatCast cast) {
  store_bits(dtype, base, index, encode_integer(float_format(dtype), negative, magnitude, cast));
}

using Convert = void (*)(DType from, const void* src, DType to, void* dst, int64_t count,
                         FloatCast cast);

void convert_same(DType from, const void* src, DType, void* dst, int64_t count, FloatCast) {
  const int64_t whole_bytes = count * bits_of(from) / 8;
  std::memcpy(dst, src, static_cast<size_t>(whole_bytes));
  // A last byte that is shared keeps its other elements.
  const int64_t copied = bits_of(from) < 8 ? whole_bytes * 8 / bits_of(from) : count;
  for (int64_t i = copied; i < count; ++i) store_bits(from, dst, i, load_bits(from, src, i));
}

void convert_real(DType from, const void* src, DType to, void* dst, int64_t count, FloatCast cast) {
  for (int64_t i = 0; i < count; ++i) store_f64(to, dst, i, load_f64(from, src, i), cast);
}

void convert_signed(DType from, const void* src, DType to, void* dst, int64_t count,
                    FloatCast cast) {
  for (int64_t i = 0; i < count; ++i) store_i64(to, dst, i, load_i64(from, src, i), cast);
}

void convert_unsigned(DType from, const void* src, DType to, void* dst, int64_t count,
                      FloatCast cast) {
  for (int64_t i = 0; i < count; ++i) store_u64(to, dst, i, load_u64(from, src, i), cast);
}

void convert_complex(DType from, const void* src, DType to, void* dst, int64_t count,
                     FloatCast cast) {
  for (int64_t i = 0; i < count; ++i) store_c128(to, dst, i, load_c128(from, src, i), cast);
}

template <class From, class To, To (*kConvert)(From)>
void convert_each(const void* src, void* dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) write<To>(dst, i, kConvert(read<From>(src, i)));
}

double f32_to_f64(float v) { return v; }
float f64_to_f32(double v) { return static_cast<float>(v); }
float i64_to_f32(int64_t v) { return static_cast<float>(v); }
float i32_to_f32(int32_t v) { return static_cast<float>(v); }
int64_t i32_to_i64(int32_t v) { return v; }
int32_t i64_to_i32(int64_t v) { return static_cast<int32_t>(v); }

// Pairs with a loop of their own, used with the default FloatCast only.
struct FastPair {
  DType from, to;
  void (*convert)(const void* src, void* dst, int64_t count);
};
constexpr FastPair kFastPairs[] = {
    {DType::kF16, DType::kF32, convert_each<uint16_t, float, f16_to_f32>},
    {DType::kF32, DType::kF16, convert_each<float, uint16_t, f32_to_f16>},
    {DType::kBF16, DType::kF32, convert_each<uint16_t, float, bf16_to_f32>},
    {DType::kF32, DType::kBF16, convert_each<float, uint16_t, f32_to_bf16>},
    {DType::kF32, DType::kF64, convert_each<float, double, f32_to_f64>},
    {DType::kF64, DType::kF32, convert_each<double, float, f64_to_f32>},
    {DType::kI64, DType::kF32, convert_each<int64_t, float, i64_to_f32>},
    {DType::kI32, DType::kF32, convert_each<int32_t, float, i32_to_f32>},
    {DType::kI32, DType::kI64, convert_each<int32_t, int64_t, i32_to_i64>},
    {DType::kI64, DType::kI32, convert_each<int64_t, int32_t, i64_to_i32>},
};

Convert conversion_from(DType from) {
  switch (info(from).kind) {
    case DTypeClass::kSigned:
      return convert_signed;
    case DTypeClass::kBool:
    case DTypeClass::kUnsigned:
      return convert_unsigned;
    case DTypeClass::kFloat:
      return convert_real;
    case DTypeClass::kComplex:
      return convert_complex;
    case DTypeClass::kString:
      return [](DType, const void*, DType, void*, int64_t, FloatCast) {};
  }
  return convert_real;
}

}  // namespace

int64_t truncate_to_int(double value, int bits) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return largest_int(bits);
  if (value < -0x1p63) return smallest_int(bits);
  return sign_extend(static_cast<uint64_t>(static_cast<int64_t>(value)), bits);
}

uint64_t truncate_to_uint(double value, int bits) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p64) return largest_uint(bits);
  if (value < -0x1p63) return 0;
  const uint64_t whole =
      value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  return whole & largest_uint(bits);
}

uint64_t load_bits(DType dtype, const void* base, int64_t index) {
  switch (const int bits = bits_of(dtype)) {
    case 8:
      return read<uint8_t>(base, index);
    case 16:
      return read<uint16_t>(base, index);
    case 32:
      return read<uint32_t>(base, index);
    case 64:
      return read<uint64_t>(base, index);
    case 2:
    case 4: {
      const Packed at = packed_at(bits, index);
      return static_cast<uint64_t>((read<uint8_t>(base, at.byte) >> at.shift) & at.mask);
    }
    default:
      return 0;
  }
}

void store_bits(DType dtype, void* base, int64_t index, uint64_t value) {
  switch (const int bits = bits_of(dtype)) {
    case 8:
      return write(base, index, static_cast<uint8_t>(value));
    case 16:
      return write(base, index, static_cast<uint16_t>(value));
    case 32:
      return write(base, index, static_cast<uint32_t>(value));
    case 64:
      return write(base, index, value);
    case 2:
    case 4: {
      const Packed at = packed_at(bits, index);
      const unsigned others = read<uint8_t>(base, at.byte) & ~(unsigned{at.mask} << at.shift);
      const unsigned mine = (static_cast<unsigned>(value) & at.mask) << at.shift;
      return write(base, at.byte, static_cast<uint8_t>(others | mine));
    }
    default:
      return;
  }
}

double load_f64(DType dtype, const void* base, int64_t index) {
  switch (info(dtype).kind) {
    case DTypeClass::kFloat:
      return load_float(dtype, base, index);
    case DTypeClass::kSigned:
      return static_cast<double>(load_i64(dtype, base, index));
    case DTypeClass::kBool:
    case DTypeClass::kUnsigned:
      return static_cast<double>(load_u64(dtype, base, index));
    case DTypeClass::kComplex:
      return load_c128(dtype, base, index).real();
    case DTypeClass::kString:
      return 0;
  }
  return 0;
}

int64_t load_i64(DType dtype, const void* base, int64_t index) {
  switch (info(dtype).kind) {
    case DTypeClass::kFloat:
    case DTypeClass::kComplex:
      return truncate_to_int(load_f64(dtype, base, index), 64);
    case DTypeClass::kSigned:
      return sign_extend(load_bits(dtype, base, index), bits_of(dtype));
    case DTypeClass::kUnsigned:
      return static_cast<int64_t>(load_bits(dtype, base, index));
    case DTypeClass::kBool:
      return load_bits(dtype, base, index) != 0;
    case DTypeClass::kString:
      return 0;
  }
  return 0;
}

uint64_t load_u64(DType dtype, const void* base, int64_t index) {
  const bool real = is_float(dtype) || is_complex(dtype);
  if (real) return truncate_to_uint(load_f64(dtype, base, index), 64);
  return static_cast<uint64_t>(load_i64(dtype, base, index));
}

std::complex<double> load_c128(DType dtype, const void* base, int64_t index) {
  if (dtype == DType::kC64) return std::complex<double>(read<std::complex<float>>(base, index));
  if (dtype == DType::kC128) return read<std::complex<double>>(base, index);
  return load_f64(dtype, base, index);
}

void store_f64(DType dtype, void* base, int64_t index, double value, FloatCast cast) {
  const int bits = bits_of(dtype);
  switch (info(dtype).kind) {
    case DTypeClass::kFloat:
      return store_float(dtype, base, index, value, cast);
    case DTypeClass::kSigned:
      return store_bits(dtype, base, index, static_cast<uint64_t>(truncate_to_int(value, bits)));
    case DTypeClass::kUnsigned:
      return store_bits(dtype, base, index, truncate_to_uint(value, bits));
    case DTypeClass::kBool:
      return store_bits(dtype, base, index, value != 0);
    case DTypeClass::kComplex:
      return store_c128(dtype, base, index, value);
    case DTypeClass::kString:
      return;
  }
}

void store_i64(DType dtype, void* base, int64_t index, int64_t value, FloatCast cast) {
  if (value >= 0 || !is_float(dtype)) {
    if (is_complex(dtype)) return store_c128(dtype, base, index, static_cast<double>(value));
    return store_u64(dtype, base, index, static_cast<uint64_t>(value), cast);
  }
  store_magnitude(dtype, base, index, true, -static_cast<uint64_t>(value), cast);
}

void store_u64(DType dtype, void* base, int64_t index, uint64_t value, FloatCast cast) {
  switch (info(dtype).kind) {
    case DTypeClass::kFloat:
      return store_magnitude(dtype, base, index, false, value, cast);
    case DTypeClass::kSigned:
    case DTypeClass::kUnsigned:
      return store_bits(dtype, base, index, value);
    case DTypeClass::kBool:
      return store_bits(dtype, base, index, value != 0);
    case DTypeClass::kComplex:
      return store_c128(dtype, base, index, static_cast<double>(value));
    case DTypeClass::kString:
      return;
  }
}

void store_c128(DType dtype, void* base, int64_t index, std::complex<double> value,
                FloatCast cast) {
  if (dtype == DType::kC64) return write(base, index, std::complex<float>(value));
  if (dtype == DType::kC128) return write(base, index, value);
  if (dtype == DType::kBool) return store_bits(dtype, base, index, value != 0.0);
  store_f64(dtype, base, index, value.real(), cast);
}

void convert_elements(DType from, const void* src, DType to, void* dst, int64_t count,
                      FloatCast cast) {
  if (count <= 0) return;
  if (from == to && from != DType::kBool) return convert_same(from, src, to, dst, count, cast);
  const bool plain = cast.rounding == Rounding::kNearestEven && !cast.saturate;
  const auto* fast = std::find_if(std::begin(kFastPairs), std::end(kFastPairs),
                                  [&](const FastPair& p) { return p.from == from && p.to == to; });
  if (plain && fast != std::end(kFastPairs)) return fast->convert(src, dst, count);
  conversion_from(from)(from, src, to, dst, count, cast);
}

}  // namespace tessera
