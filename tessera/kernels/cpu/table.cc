#include "tessera/kernels/cpu/table.h"

#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/isa/entries.h"

namespace tessera::kernels::cpu {
namespace {

#define GENERIC_ENTRY(name) {"cpu." #name, generic::name},
#define AVX2_ENTRY(name) {"cpu." #name, avx2::name},
#define AVX512_ENTRY(name) {"cpu." #name, avx512::name},
constexpr Entry kGenericEntries[] = {TESSERA_ISA_ENTRIES(GENERIC_ENTRY)};
constexpr Entry kAvx2Entries[] = {TESSERA_ISA_ENTRIES(AVX2_ENTRY)};
constexpr Entry kAvx512Entries[] = {TESSERA_ISA_ENTRIES(AVX512_ENTRY)};

std::span<const Entry> isa_entries(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return kGenericEntries;
    case Isa::kAvx2:
      return kAvx2Entries;
    case Isa::kAvx512:
      return kAvx512Entries;
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
      {norm_rows(), {}},
      {pool_rows(), {}},
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
Rates rates_of(int lanes, int flops_per_lane) {
  Rates rates;
  rates.flops_per_ps = 0.003 * lanes * flops_per_lane;
  return rates;
}

}  // namespace

const Table& table(Isa isa) {
  static const Table tables[] = {
      Table("cpu.generic", families(Isa::kGeneric), rates_of(4, 2)),
      Table("cpu.avx2", families(Isa::kAvx2), rates_of(8, 4)),
      Table("cpu.avx512", families(Isa::kAvx512), rates_of(16, 4)),
  };
  return tables[static_cast<int>(isa)];
}

const Table& table() { return table(best_isa()); }

}  // namespace tessera::kernels::cpu
