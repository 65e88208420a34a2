// The kernel table: one row per kernel and operator. Device kernels come first; the reference
// interpreter, which the executor calls on the host, is the answer of last resort and has no row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/kernels/rates.h"
#include "tessera/op/problem.h"
#include "tessera/tessera_plugin.h"

namespace tessera::kernels {

struct Entry {
  std::string_view name;  // unique in the table: "cpu.gemm.avx512"
  tessera_entry function;
};

struct Row {
  std::string_view op;      // the operator it covers
  std::string_view kernel;  // its name in plans and reports
  op::Claim (*probe)(const op::Problem& problem);
  Result<std::vector<op::LaunchSpec>> (*prepare)(const op::Problem& problem,
                                                 const op::Claim& claim);
  Status (*pack)(const op::Problem& problem, int index, const std::byte* source,
                 std::byte* target) = nullptr;
  bool fuses = false;  // takes steps behind its operator; without: refused before probe is asked
  // What f32 operands may be rounded to before they are multiplied. Other than f32: refused before
  // probe is asked unless the problem's attribute "compute" names it.
  DType computes = DType::kF32;
};

// Rows and the functions that their launches name.
struct Family {
  std::span<const Row> rows;
  std::span<const Entry> entries;
};

// A ClaimSource over families of rows.
class Table final : public op::ClaimSource {
 public:
  Table(std::string_view name, std::vector<Family> families, Rates rates = {});

  std::string_view name() const override { return name_; }
  std::vector<op::Claim> probe(const op::Problem& problem) const override;
  op::Claim ask(const op::Problem& problem, std::string_view kernel) const override;
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem& problem,
                                              const op::Claim& claim) const override;
  Status pack(const op::Problem& problem, const op::Claim& claim, int index,
              const std::byte* source, std::byte* target) const override;

  std::vector<Entry> entries() const;
  const Rates& rates() const { return rates_; }
  // The same kernels at other rates.
  Table with(Rates rates) const { return Table(name_, families_, std::move(rates)); }

 private:
  op::Claim answer(const Row& row, const op::Problem& problem) const;
  const Row* find(const op::Problem& problem, std::string_view kernel) const;

  std::string_view name_;
  std::vector<Family> families_;
  Rates rates_;
};

// Cheapest supported claim, or null.
const op::Claim* cheapest(std::span<const op::Claim> claims);

}  // namespace tessera::kernels
