#include "tessera/kernels/cpu/table.h"

#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/narrow_entries.h"

namespace tessera::kernels::cpu {
namespace {

// One of the instruction sets that this architecture has. Cores of each class at 3 GHz: 2
// multiplications and 2 additions, or 2 FMAs, of a vector per cycle. Products of 8-bit integers
// take twice as many instructions as those of floats, or a quarter with VNNI; those with weights in
// bf16 as many, or half where there is an instruction for pairs. A unit of tiles multiplies 16
// pairs or quads with as many columns in a cycle.
struct Variant {
  Isa isa;
  std::string_view name;
  std::span<const Entry> entries;
  int lanes, flops_per_lane;
  double i8_peak, bf16_peak;  // times that of f32
  double integers, bf16;      // the part that kernels reach; 0: what they claim
};

#define GENERIC_ENTRY(name) {"cpu." #name, generic::name},
// The lists by the variant that is best for each.
#define ENTRIES(all, integer, narrow)                                                             \
  {                                                                                               \
    TESSERA_ISA_ENTRIES(all)                                                                      \
    TESSERA_QUANTIZE_ENTRIES(all) TESSERA_INTEGER_ENTRIES(integer) TESSERA_NARROW_ENTRIES(narrow) \
  }
constexpr Entry kGenericEntries[] = ENTRIES(GENERIC_ENTRY, GENERIC_ENTRY, GENERIC_ENTRY);
#if defined(__x86_64__)
#define AVX2_ENTRY(name) {"cpu." #name, avx2::name},
constexpr Entry kAvx2Entries[] = ENTRIES(AVX2_ENTRY, AVX2_ENTRY, AVX2_ENTRY);
#if !defined(TESSERA_UP_TO_AVX2)
#define AVX512_ENTRY(name) {"cpu." #name, avx512::name},
#define AVX512VNNI_ENTRY(name) {"cpu." #name, avx512vnni::name},
#define AMX_ENTRY(name) {"cpu." #name, amx::name},
#define AVX512BF16_ENTRY(name) {"cpu." #name, avx512bf16::name},
constexpr Entry kAvx512Entries[] = ENTRIES(AVX512_ENTRY, AVX512_ENTRY, AVX512_ENTRY);
constexpr Entry kAvx512VnniEntries[] = ENTRIES(AVX512_ENTRY, AVX512VNNI_ENTRY, AVX512_ENTRY);
constexpr Entry kAvx512Bf16Entries[] = ENTRIES(AVX512_ENTRY, AVX512VNNI_ENTRY, AVX512BF16_ENTRY);
constexpr Entry kAmxEntries[] = ENTRIES(AVX512_ENTRY, AMX_ENTRY, AMX_ENTRY);
#endif
#elif defined(__aarch64__)
#define NEON_ENTRY(name) {"cpu." #name, neon::name},
constexpr Entry kNeonEntries[] = ENTRIES(NEON_ENTRY, NEON_ENTRY, NEON_ENTRY);
#endif

constexpr Variant kVariants[] = {
    {Isa::kGeneric, "cpu.generic", kGenericEntries, 4, 2, 0.5, 1, 1, 0.6},
#if defined(__x86_64__)
    {Isa::kAvx2, "cpu.avx2", kAvx2Entries, 8, 4, 0.5, 1, 1, 0.8},
#if !defined(TESSERA_UP_TO_AVX2)
    {Isa::kAvx512, "cpu.avx512", kAvx512Entries, 16, 4, 0.5, 1, 1, 0.8},
    {Isa::kAvx512Vnni, "cpu.avx512vnni", kAvx512VnniEntries, 16, 4, 4, 1, 0.62, 0.8},
    {Isa::kAvx512Bf16, "cpu.avx512bf16", kAvx512Bf16Entries, 16, 4, 4, 2, 0.62, 0.85},
    {Isa::kAmx, "cpu.amx", kAmxEntries, 16, 4, 32, 16, 0.35, 0.4},
#endif
#elif defined(__aarch64__)
    {Isa::kNeon, "cpu.neon", kNeonEntries, 4, 4, 0.5, 1, 1, 0.6},
#endif
};

std::vector<Family> families(std::span<const Entry> entries) {
  return {
      {{}, entries},
      {attention_rows(), {}},
      {conv_rows(), {}},
      {conv_first_rows(), {}},
      {conv_last_rows(), {}},
      {conv_narrow_rows(), {}},
      {conv_winograd_rows(), {}},
      {conv_last_depthwise_rows(), {}},
      {conv_transpose_rows(), {}},
      {dot_rows(), {}},
      {dot_narrow_rows(), {}},
      {elementwise_rows(), {}},
      {fed_product_rows(), {}},
      integer_dot_family(),
      {integer_conv_rows(), {}},
      {integer_depthwise_rows(), {}},
      {norm_rows(), {}},
      {pool_rows(), {}},
      {quantize_rows(), {}},
      {reduce_rows(), {}},
      {resize_rows(), {}},
      {rotary_rows(), {}},
      {softmax_rows(), {}},
      index_family(),
      move_family(),
      relayout_family(),
      rnn_family(),
  };
}

Table table_of(const Variant& v) {
  Rates rates;
  rates.flops_per_ps = 0.003 * v.lanes * v.flops_per_lane;
  for (const char* kernel : {"cpu.integer_dot", "cpu.integer_conv"})
    rates.efficiency[kernel] = v.integers;
  if (v.bf16_peak > 1)
    for (const char* kernel : {"cpu.gemm_bf16", "cpu.conv_bf16"}) rates.efficiency[kernel] = v.bf16;
  if (v.isa == Isa::kAmx) {
    rates.efficiency["cpu.conv_window_bf16"] = v.bf16;
    rates.efficiency["cpu.attention_bf16"] = 0.12;  // most of its time is the softmax's
  }
  rates.narrow_flops_per_ps = {{DType::kI8, rates.flops_per_ps * v.i8_peak},
                               {DType::kBF16, rates.flops_per_ps * v.bf16_peak}};
  return Table(v.name, families(v.entries), rates);
}

}  // namespace

const Table& table(Isa isa) {
  static const std::vector<Table> tables = [] {
    std::vector<Table> all;
    for (const Variant& v : kVariants) all.push_back(table_of(v));
    return all;
  }();
  for (size_t i = 0; i < tables.size(); ++i)
    if (kVariants[i].isa == isa) return tables[i];
  return tables[0];
}

const Table& table() { return table(best_isa()); }

}  // namespace tessera::kernels::cpu
