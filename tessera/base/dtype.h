// Element types. Sub-byte types are packed, lowest bits first; strings exist on the host only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class DType : uint8_t {
  kBool,
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kC64,
  kC128,
  kString,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kString) + 1;

enum class DTypeClass : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kString };

struct DTypeInfo {
  DType dtype;
  std::string_view name;   // canonical: "f32", "bf16", "f8e4m3fn", "i8", "u4", "bool", "c64", "str"
  std::string_view numpy;  // numpy's or ml_dtypes' name: "float32"; "" if neither has it
  DTypeClass kind;
  int bits;  // storage size of one element; 0 for strings
};

const DTypeInfo& info(DType dtype);
inline std::string_view name_of(DType dtype) { return info(dtype).name; }
inline int bits_of(DType dtype) { return info(dtype).bits; }
inline bool is_float(DType d) { return info(d).kind == DTypeClass::kFloat; }
inline bool is_complex(DType d) { return info(d).kind == DTypeClass::kComplex; }
inline bool is_signed_int(DType d) { return info(d).kind == DTypeClass::kSigned; }
inline bool is_unsigned_int(DType d) { return info(d).kind == DTypeClass::kUnsigned; }
inline bool is_int(DType d) { return is_signed_int(d) || is_unsigned_int(d); }

// Bytes of `count` packed elements: ceil(count * bits / 8); -1 when the result does not fit in
// int64.
int64_t packed_bytes(DType dtype, int64_t count);

// Accepts the canonical name, ONNX's ("FLOAT16", "float8e4m3fn") and numpy's ("float16", "<f4"), in
// any case.
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace tessera
