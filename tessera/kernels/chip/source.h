// Kernels of a chip that need not be here, as a claim source: what they cost is what the cost model
// says of the chip's file. Two sets: `own`, what a code generator can emit for the chip's units,
// and `vendor`, what the chip's file says that its maker's library takes.
//
// They can be planned with, not run: prepare() and pack() are kUnimplemented.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/cost/cost.h"
#include "tessera/kernels/chip/formats.h"
#include "tessera/op/problem.h"

namespace tessera::kernels::chip {

enum class Set : uint8_t { kOwn, kVendor };
std::string_view name_of(Set set);

// Layouts of a problem's operands, as problems name them.
struct Wish {
  std::vector<std::string> in, out;
};

// Safe to use from several threads at once.
class Source final : public op::ClaimSource {
 public:
  // `extra`: formats that operators may be asked for beside those that the chip's file names.
  Source(std::shared_ptr<const tessera::chip::Chip> chip, Set set,
         const std::vector<std::string>& extra = {});

  const tessera::chip::Chip& chip() const { return *chip_; }
  Set set() const { return set_; }
  // Whether the chip's device memory holds tensors in that format.
  bool holds(std::string_view format) const { return formats_.find(format) != formats_.end(); }

  std::string_view name() const override { return chip_->id; }
  // One claim, or one refusal.
  std::vector<op::Claim> probe(const op::Problem& problem) const override;
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem& problem,
                                              const op::Claim& claim) const override;
  Status pack(const op::Problem& problem, const op::Claim& claim, int index,
              const std::byte* source, std::byte* target) const override;

  // What the cost model says, remembered. Of conversions ("relayout"), too.
  Result<cost::Estimate> estimate(const op::Problem& problem) const;

  // Assignments of layouts worth asking for, row-major where it may be taken first: of each
  // operand those that the operator's kernels wish for, or the layouts in `arriving` that the
  // operator can keep. A wish may still be refused.
  std::vector<Wish> wishes(const op::Problem& problem,
                           const std::vector<std::string>& arriving = {}) const;

  // Empty if some wish of the problem is taken; else why none is.
  std::string refusal(const op::Problem& problem) const;
  // What the cheapest wish costs.
  std::optional<Picoseconds> least_cost(const op::Problem& problem) const;

 private:
  std::string vendor_refusal(const op::Problem& problem) const;

  std::shared_ptr<const tessera::chip::Chip> chip_;
  Set set_;
  Names formats_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Result<cost::Estimate>, std::less<>> known_;
};

// The row of a chip's `vendor_kernels` that an operator falls under: "matmul", "depthwise_conv".
// Empty: none.
std::string vendor_row(const op::Problem& problem);

}  // namespace tessera::kernels::chip
