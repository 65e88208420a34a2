#include "tessera/base/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace tessera {
namespace {

using enum DTypeClass;

constexpr std::array<DTypeInfo, kDTypeCount> kTable{{
    {DType::kBool, "bool", "bool", kBool, 8},
    {DType::kI2, "i2", "int2", kSigned, 2},
    {DType::kI4, "i4", "int4", kSigned, 4},
    {DType::kI8, "i8", "int8", kSigned, 8},
    {DType::kI16, "i16", "int16", kSigned, 16},
    {DType::kI32, "i32", "int32", kSigned, 32},
    {DType::kI64, "i64", "int64", kSigned, 64},
    {DType::kU2, "u2", "uint2", kUnsigned, 2},
    {DType::kU4, "u4", "uint4", kUnsigned, 4},
    {DType::kU8, "u8", "uint8", kUnsigned, 8},
    {DType::kU16, "u16", "uint16", kUnsigned, 16},
    {DType::kU32, "u32", "uint32", kUnsigned, 32},
    {DType::kU64, "u64", "uint64", kUnsigned, 64},
    {DType::kF16, "f16", "float16", kFloat, 16},
    {DType::kBF16, "bf16", "bfloat16", kFloat, 16},
    {DType::kF32, "f32", "float32", kFloat, 32},
    {DType::kF64, "f64", "float64", kFloat, 64},
    {DType::kF8E4M3FN, "f8e4m3fn", "float8_e4m3fn", kFloat, 8},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", kFloat, 8},
    {DType::kF8E5M2, "f8e5m2", "float8_e5m2", kFloat, 8},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", kFloat, 8},
    {DType::kF8E8M0, "f8e8m0", "float8_e8m0fnu", kFloat, 8},
    {DType::kF4E2M1, "f4e2m1", "float4_e2m1fn", kFloat, 4},
    {DType::kC64, "c64", "complex64", kComplex, 64},
    {DType::kC128, "c128", "complex128", kComplex, 128},
    {DType::kString, "str", "", kString, 0},
}};

constexpr bool in_enum_order() {
  for (int i = 0; i < kDTypeCount; ++i)
    if (static_cast<int>(kTable[static_cast<size_t>(i)].dtype) != i) return false;
  return true;
}
static_assert(in_enum_order());

struct Alias {
  std::string_view name;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"float", DType::kF32},
    {"double", DType::kF64},
    {"half", DType::kF16},
    {"f8", DType::kF8E4M3FN},
    {"float8e4m3fn", DType::kF8E4M3FN},
    {"float8e4m3fnuz", DType::kF8E4M3FNUZ},
    {"float8e5m2", DType::kF8E5M2},
    {"float8e5m2fnuz", DType::kF8E5M2FNUZ},
    {"float8e8m0", DType::kF8E8M0},
    {"float4e2m1", DType::kF4E2M1},
    {"string", DType::kString},
    {"object", DType::kString},
    {"|b1", DType::kBool},
    {"|i1", DType::kI8},
    {"|u1", DType::kU8},
    {"<i2", DType::kI16},
    {"<i4", DType::kI32},
    {"<i8", DType::kI64},
    {"<u2", DType::kU16},
    {"<u4", DType::kU32},
    {"<u8", DType::kU64},
    {"<f2", DType::kF16},
    {"<f4", DType::kF32},
    {"<f8", DType::kF64},
    {"<c8", DType::kC64},
    {"<c16", DType::kC128},
};

}  // namespace

const DTypeInfo& info(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

int64_t packed_bytes(DType dtype, int64_t count) {
  int64_t bits = 0;
  if (count < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(bits_of(dtype)), &bits))
    return -1;
  if (__builtin_add_overflow(bits, int64_t{7}, &bits)) return -1;
  return bits / 8;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const DTypeInfo& row : kTable)
    if (row.name == lower || (!row.numpy.empty() && row.numpy == lower)) return row.dtype;
  for (const Alias& alias : kAliases)
    if (alias.name == lower) return alias.dtype;
  return std::nullopt;
}

}  // namespace tessera
