#include "tessera/kernels/cpu/table.h"

#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/integer_entries.h"

namespace tessera::kernels::cpu {
namespace {

#define GENERIC_ENTRY(name) {"cpu." #name, generic::name},
#define AVX2_ENTRY(name) {"cpu." #name, avx2::name},
#define AVX512_ENTRY(name) {"cpu." #name, avx512::name},
#define AVX512VNNI_ENTRY(name) {"cpu." #name, avx512vnni::name},
constexpr Entry kGenericEntries[] = {TESSERA_ISA_ENTRIES(GENERIC_ENTRY) TESSERA_QUANTIZE_ENTRIES(
    GENERIC_ENTRY) TESSERA_INTEGER_ENTRIES(GENERIC_ENTRY)};
constexpr Entry kAvx2Entries[] = {TESSERA_ISA_ENTRIES(AVX2_ENTRY) TESSERA_QUANTIZE_ENTRIES(
    AVX2_ENTRY) TESSERA_INTEGER_ENTRIES(AVX2_ENTRY)};
constexpr Entry kAvx512Entries[] = {TESSERA_ISA_ENTRIES(AVX512_ENTRY) TESSERA_QUANTIZE_ENTRIES(
    AVX512_ENTRY) TESSERA_INTEGER_ENTRIES(AVX512_ENTRY)};
constexpr Entry kAvx512VnniEntries[] = {TESSERA_ISA_ENTRIES(AVX512_ENTRY) TESSERA_QUANTIZE_ENTRIES(
    AVX512_ENTRY) TESSERA_INTEGER_ENTRIES(AVX512VNNI_ENTRY)};

std::span<const Entry> isa_entries(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return kGenericEntries;
    case Isa::kAvx2:
      return kAvx2Entries;
    case Isa::kAvx512:
      return kAvx512Entries;
    case Isa::kAvx512Vnni:
      return kAvx512VnniEntries;
  }
  return {};
}

std::vector<Family> families(Isa isa) {
  return {
      {{}, isa_entries(isa)},
      {attention_rows(), {}},
      {conv_rows(), {}},
      {conv_first_rows(), {}},
      {conv_last_rows(), {}},
      {conv_winograd_rows(), {}},
      {conv_last_depthwise_rows(), {}},
      {conv_transpose_rows(), {}},
      {dot_rows(), {}},
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
      {rnn_rows(), {}},
      {softmax_rows(), {}},
      index_family(),
      move_family(),
      relayout_family(),
  };
}

// Cores of each class at 3 GHz: 2 multiplications and 2 additions, 2 FMAs of a vector per cycle.
// Products of 8-bit integers take as many instructions as those of floats, or a quarter with VNNI.
Rates rates_of(int lanes, int flops_per_lane, double integers) {
  Rates rates;
  rates.flops_per_ps = 0.003 * lanes * flops_per_lane;
  for (const char* kernel : {"cpu.integer_dot", "cpu.integer_conv"})
    rates.efficiency[kernel] = integers;
  return rates;
}

}  // namespace

const Table& table(Isa isa) {
  static const Table tables[] = {
      Table("cpu.generic", families(Isa::kGeneric), rates_of(4, 2, 0.5)),
      Table("cpu.avx2", families(Isa::kAvx2), rates_of(8, 4, 0.5)),
      Table("cpu.avx512", families(Isa::kAvx512), rates_of(16, 4, 0.5)),
      Table("cpu.avx512vnni", families(Isa::kAvx512Vnni), rates_of(16, 4, 2.5)),
  };
  return tables[static_cast<int>(isa)];
}

const Table& table() { return table(best_isa()); }

}  // namespace tessera::kernels::cpu
