// Constants on a device: in place where the mapped file is aligned, else copied; and the forms that
// kernels pack them into, made once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tessera/op/problem.h"
#include "tessera/runtime/cell.h"

namespace tessera::runtime {

// Thread-safe; shared by all runs on its device.
class WeightStore {
 public:
  explicit WeightStore(Memory memory) : memory_(std::move(memory)) {}

  Result<Cell> get(const op::Tensor& tensor);
  // Entry `index` of the claim's packings of the problem's constant input.
  Result<Cell> packed(const op::ClaimSource& source, const op::Problem& problem,
                      const op::Claim& claim, int index, const op::Tensor& tensor);
  // Bytes of all constants in use on the device, packed forms included; those used in place belong
  // to the mapped file.
  Bytes bytes() const;

 private:
  Memory memory_;
  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, Cell>
      cells_;  // by the constant's bytes and the form
  Bytes bytes_;
};

}  // namespace tessera::runtime
