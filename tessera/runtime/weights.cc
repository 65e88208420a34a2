#include "tessera/runtime/weights.h"

#include "tessera/base/file.h"

namespace tessera::runtime {

Result<Cell> WeightStore::get(const op::Tensor& tensor) {
  if (tensor.dtype() == DType::kString) return from_tensor(memory_, tensor);
  const std::lock_guard lock(mutex_);
  const std::pair key(static_cast<const void*>(tensor.data()), tensor.type().str());
  if (auto found = cells_.find(key); found != cells_.end()) return found->second;
  TRY_ASSIGN(Cell cell, from_tensor(memory_, tensor));
  bytes_ += tensor.bytes();
  // Also keeps the constant's own bytes, whose address is the key.
  cells_.emplace(key, cell);
  return cell;
}

Result<Cell> WeightStore::packed(const op::ClaimSource& source, const op::Problem& problem,
                                 const op::Claim& claim, int index, const op::Tensor& tensor) {
  const op::Packing& packing = claim.packed[static_cast<size_t>(index)];
  const std::lock_guard lock(mutex_);
  // The form depends on the weight and the attributes, never on the sizes of activations.
  const op::Problem form{
      problem.op, problem.attrs, {problem.in[static_cast<size_t>(packing.input)]}, {}};
  const std::pair key(
      static_cast<const void*>(tensor.data()),
      fmt::format("{} {} {} {}", claim.kernel, index, packing.size.value, form.str()));
  if (auto found = cells_.find(key); found != cells_.end()) return found->second;
  TRY_ASSIGN(Cell cell, allocate(memory_, DType::kU8, {packing.size.value}, "weights"));
  TRY(source.pack(problem, claim, index, tensor.data(), cell.host));
  bytes_ += packing.size;
  cells_.emplace(key, cell);
  // Who reads the constant itself finds it in the file.
  MappedFile::release({tensor.data(), static_cast<size_t>(tensor.bytes().value)});
  return cell;
}

Bytes WeightStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tessera::runtime
