// Tensors laid out as DLPack to op::Tensor and back, without copies where that is possible.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <dlpack/dlpack.h>

#include "tessera/base/result.h"
#include "tessera/op/tensor.h"

namespace tessera::dlpack {

// Type codes up to DLPack 1.1; none for strings and for types that the other side lacks.
std::optional<DLDataType> to_dl(DType dtype);
std::optional<DType> from_dl(DLDataType dtype);
// "float32", "code 3, 64 bits, 1 lane"
std::string to_string(DLDataType dtype);

// Borrowed where it is compact, row-major and aligned to its elements, else copied; sub-byte types
// must be compact. kInvalidArgument for negative sizes and missing pointers, kUnimplemented for
// types and devices other than the host's.
Result<op::Tensor> to_tensor(const DLTensor& tensor, std::shared_ptr<const void> keep);

// Shares the tensor's bytes until its deleter is called. kUnimplemented for strings.
Result<DLManagedTensor*> to_managed(op::Tensor tensor);

// Copies elements into memory of the caller's. kInvalidArgument, with both sides, where dtype or
// sizes differ.
Status copy_into(const op::Tensor& tensor, const DLTensor& target);

// The value with bytes of its own: what it shares with the inputs' memory, or with others who hold
// it, is copied.
Result<op::Value> detach(op::Value value, std::span<const op::Tensor> inputs);

}  // namespace tessera::dlpack
