#include "tessera/kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace tessera::kernels::cpu {
namespace {

constexpr std::string_view kNames[] = {"generic",    "neon",       "avx2", "avx512",
                                       "avx512vnni", "avx512bf16", "amx"};

// The list of this architecture, and its best. Builds under sanitizers leave out the widest, whose
// kernels are the same templates: a third of their time would go there.
#if defined(__x86_64__)
#if defined(TESSERA_UP_TO_AVX2)
constexpr Isa kIsas[] = {Isa::kGeneric, Isa::kAvx2};
#else
constexpr Isa kIsas[] = {Isa::kGeneric,    Isa::kAvx2,       Isa::kAvx512,
                         Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};
#endif

// Register state that the operating system saves.
uint64_t enabled_state() {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// Linux lets a process use tiles after it has asked (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

Isa ask_processor() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return Isa::kGeneric;
  constexpr uint32_t kNeeded = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;  // FMA, XSAVE, AVX, F16C
  if ((c & kNeeded) != kNeeded) return Isa::kGeneric;
  const uint64_t state = enabled_state();
  if ((state & 0x6) != 0x6) return Isa::kGeneric;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 5))) return Isa::kGeneric;
  constexpr uint32_t kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  const bool avx512 =
      (b & (kF | kDq | kBw | kVl)) == (kF | kDq | kBw | kVl) && (state & 0xe6) == 0xe6;
  if (!avx512) return Isa::kAvx2;
  constexpr uint32_t kVnni = 1u << 11;
  if (!(c & kVnni)) return Isa::kAvx512;
  constexpr uint32_t kTile = 1u << 24, kInt8 = 1u << 25, kTileBf16 = 1u << 22, kBf16 = 1u << 5;
  constexpr uint32_t kTiles = kTile | kInt8 | kTileBf16;
  constexpr uint64_t kTileState = 0x60000;
  const bool tiles = (d & kTiles) == kTiles && (state & kTileState) == kTileState;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & kBf16)) return Isa::kAvx512Vnni;
  return tiles && may_use_tiles() ? Isa::kAmx : Isa::kAvx512Bf16;
}
#elif defined(__aarch64__)
constexpr Isa kIsas[] = {Isa::kGeneric, Isa::kNeon};
Isa ask_processor() { return Isa::kNeon; }
#else
constexpr Isa kIsas[] = {Isa::kGeneric};
Isa ask_processor() { return Isa::kGeneric; }
#endif

// Asked once: under a hypervisor each question takes microseconds.
Isa detect() {
  static const Isa isa = std::min(ask_processor(), *std::rbegin(kIsas));
  return isa;
}

}  // namespace

std::string_view name_of(Isa isa) { return kNames[static_cast<int>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (Isa isa : kIsas)
    if (name_of(isa) == name) return isa;
  return std::nullopt;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kIsas)
    if (isa <= detect()) isas.push_back(isa);
  return isas;
}

Isa best_isa() {
  const char* cap = std::getenv("TESSERA_ISA");
  const std::optional<Isa> named = cap ? isa_from_name(cap) : std::nullopt;
  const Isa best = detect();
  return named && *named < best ? *named : best;
}

}  // namespace tessera::kernels::cpu
