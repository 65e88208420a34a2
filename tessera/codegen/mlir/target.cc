#include "tessera/codegen/mlir/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace tessera::codegen::mlir {
namespace {

#if defined(__x86_64__)
bool has_half() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29));
}
#else
bool has_half() { return false; }
#endif

}  // namespace

Target target_for(std::string_view isa) {
  Target t;
  t.isa = isa;
  const bool wide = isa.starts_with("avx512");
  if (isa != "avx2" && !wide) return t;
  static const bool half = has_half();
  t.features = "+sse4.2,+avx,+avx2,+fma";
  t.vector_bytes = 32;
  t.fma = t.round = true;
  t.half = half;
  if (half) t.features += ",+f16c";
  if (!wide) return t;
  t.features += ",+avx512f,+avx512bw,+avx512dq,+avx512vl";
  t.vector_bytes = 64;
  t.masks = true;
  return t;
}

}  // namespace tessera::codegen::mlir
