// NumPy's .npy files, versions 1 to 3.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/op/tensor.h"

namespace tessera::io {

// A file's content. Little-endian C-order data is borrowed where it is aligned; else it is
// converted or copied. ml_dtypes' types come as raw bytes of their size ("|V2"), for their type is
// not in the file: they are taken as `opaque`, if that is given and has that size. kInvalidArgument
// / kDataLoss / kUnimplemented otherwise.
Result<op::Tensor> parse_npy(std::string_view bytes, std::shared_ptr<const void> keep,
                             std::optional<DType> opaque = {});
// @pre writable_as_npy(tensor.dtype())
std::string write_npy(const op::Tensor& tensor);
// Whether numpy itself has the type.
bool writable_as_npy(DType dtype);

}  // namespace tessera::io
