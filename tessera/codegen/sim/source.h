// The claim source for simulated chips: problems become engine programs for one chip, by what its
// file says.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/op/problem.h"

namespace tessera::codegen::sim {

// Kernels are called "sim." and the operator. Thread-safe.
class Source final : public op::ClaimSource {
 public:
  explicit Source(std::shared_ptr<const chip::Chip> chip) : chip_(std::move(chip)) {}

  std::string_view name() const override { return "sim"; }
  std::vector<op::Claim> probe(const op::Problem& problem) const override;
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem& problem,
                                              const op::Claim& claim) const override;
  Status pack(const op::Problem& problem, const op::Claim& claim, int index,
              const std::byte* source, std::byte* target) const override;

 private:
  struct Compiled {
    op::Claim claim;
    std::vector<op::LaunchSpec> launches;
  };
  // Null launches where the claim is a refusal.
  std::shared_ptr<const Compiled> compiled(const op::Problem& problem) const;
  Result<Compiled> compile(const op::Problem& problem) const;
  Result<Compiled> vectors(const op::Problem& problem) const;
  Result<Compiled> products(const op::Problem& problem) const;
  double seconds(double flops, double bytes, std::string_view compute) const;

  std::shared_ptr<const chip::Chip> chip_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const Compiled>> known_;  // by the problem
};

}  // namespace tessera::codegen::sim
