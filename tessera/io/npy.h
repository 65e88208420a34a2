// NumPy's .npy (versions 1 to 3) and .npz files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/op/tensor.h"

namespace tessera::io {

// A file's content. Little-endian C-order data is borrowed; Fortran order and big-endian are converted. ml_dtypes' types
// come as raw bytes ("|V2") and are refused: their type is not in the file. kInvalidArgument / kDataLoss otherwise.
Result<op::Tensor> parse_npy(std::string_view bytes, std::shared_ptr<const void> keep);
// @pre info(tensor.dtype()).numpy is one of numpy's own (writable_as_npy)
std::string write_npy(const op::Tensor& tensor);
bool writable_as_npy(DType dtype);

}  // namespace tessera::io
