// The claim source for code that is compiled from tile programs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "tessera/codegen/mlir/cache.h"
#include "tessera/codegen/mlir/mode.h"
#include "tessera/codegen/mlir/target.h"
#include "tessera/kernels/rates.h"
#include "tessera/tile/schedule.h"

namespace tessera::codegen::mlir {

// Kernels are called "mlir." and the program's name. Thread-safe.
class Source final : public op::ClaimSource {
 public:
  Source(Mode mode, Target target, kernels::Rates rates, Cache cache);

  std::string_view name() const override { return "mlir"; }
  std::vector<op::Claim> probe(const op::Problem& problem) const override;
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem& problem,
                                              const op::Claim& claim) const override;
  Status pack(const op::Problem& problem, const op::Claim& claim, int index,
              const std::byte* source, std::byte* target) const override;

  Counters counters() const;

 private:
  // What is known of a program, whatever the sizes.
  struct Compiled {
    std::string refusal;  // there is none
    std::string text;     // in MLIR
    tile::Schedule schedule;
    std::vector<tile::Expr> constants;
    std::shared_ptr<const op::Binary> binary;  // null: not compiled yet
    bool sought = false;                       // in the cache
  };
  // Also looks into the cache. @pre mutex_ is held
  Compiled& code_of(const tile::Program& program) const;
  Status compile(Compiled& code) const;
  std::string key_of(const Compiled& code) const;
  op::Claim answer(const op::Problem& problem) const;

  Mode mode_;
  Target target_;
  kernels::Rates rates_;
  Cache cache_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Compiled> codes_;               // by the program's text
  mutable std::unordered_map<std::string, op::Claim> answers_;  // by the problem
  mutable Counters counters_;
};

}  // namespace tessera::codegen::mlir
