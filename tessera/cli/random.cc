#include "tessera/cli/random.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "tessera/base/element.h"

namespace tessera::cli {
namespace {

// SplitMix64's output function: Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t bits_at(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * 0x9e3779b97f4a7c15u);
}

// Box and Muller's transform of the upper and the lower half.
std::complex<double> normals(uint64_t bits) {
  const double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32,
               v = static_cast<double>(bits & 0xffffffffu) * 0x1p-32;
  return std::polar(std::sqrt(-2 * std::log(u)), 2 * std::numbers::pi * v);
}

}  // namespace

Result<op::Tensor> random_tensor(uint64_t seed, std::string_view name, DType dtype,
                                 const op::Dims& dims) {
  TRY_ASSIGN(op::Tensor t, op::Tensor::make(dtype, dims));
  uint64_t key = mix(seed + 1);
  for (char c : name) key = mix(key ^ static_cast<unsigned char>(c)) + 1;
  for (int64_t i = 0; i < t.count(); ++i) {
    const uint64_t bits = bits_at(key, static_cast<uint64_t>(i));
    switch (info(dtype).kind) {
      case DTypeClass::kBool:
      case DTypeClass::kSigned:
      case DTypeClass::kUnsigned:
        store_i64(dtype, t.mutable_data(), i, static_cast<int64_t>(bits >> 63));
        break;
      case DTypeClass::kFloat:
        store_f64(dtype, t.mutable_data(), i, normals(bits).real());
        break;
      case DTypeClass::kComplex:
        store_c128(dtype, t.mutable_data(), i, normals(bits));
        break;
      case DTypeClass::kString:
        t.mutable_text()[static_cast<size_t>(i)].assign(1, bits >> 63 ? '1' : '0');
        break;
    }
  }
  return t;
}

}  // namespace tessera::cli
