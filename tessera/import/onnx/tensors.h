// TensorProto to op::Tensor and back.
#pragma once

#include <memory>
#include <string>

#include "tessera/import/onnx/proto.h"
#include "tessera/ir/graph.h"
#include "tessera/op/tensor.h"

namespace tessera::import::onnx {

// Where a tensor's bytes may come from.
struct TensorSource {
  std::shared_ptr<const void> keep;  // keeps the model's bytes alive
  std::string folder;                // of external data; empty: none allowed
};

// Raw data is borrowed from the file; other encodings are decoded.
Result<op::Tensor> to_tensor(const TensorProto& proto, const TensorSource& source);
Result<op::Tensor> to_dense(const SparseTensorProto& proto, const TensorSource& source);
// Symbols of the model keep their names; unnamed sizes become fresh ones.
Result<op::Type> to_type(const TypeProto& proto, ir::SymbolSource& symbols);

}  // namespace tessera::import::onnx
