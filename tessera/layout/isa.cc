#include "tessera/layout/isa.h"

#include <cstdlib>

namespace tessera::layout {
namespace {

constexpr Isa kIsas[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512};
constexpr std::string_view kNames[] = {"generic", "avx2", "avx512"};

Isa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return Isa::kGeneric;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return wide ? Isa::kAvx512 : Isa::kAvx2;
#else
  return Isa::kGeneric;
#endif
}

}  // namespace

std::string_view name_of(Isa isa) { return kNames[static_cast<int>(isa)]; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kIsas)
    if (isa <= detect()) isas.push_back(isa);
  return isas;
}

Isa best_isa() {
  static const Isa best = detect();
  const char* cap = std::getenv("TESSERA_ISA");
  for (Isa isa : kIsas)
    if (cap && isa < best && name_of(isa) == cap) return isa;
  return best;
}

}  // namespace tessera::layout
