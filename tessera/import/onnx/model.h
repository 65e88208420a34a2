// ONNX to ir: the public face of the importer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/graph.h"

namespace tessera::import::onnx {

struct ImportOptions {
  // Sizes that the caller fixes: by symbol ("batch") and by input name with a whole shape.
  std::map<std::string, int64_t, std::less<>> dims;
  std::map<std::string, op::Dims, std::less<>> shapes;
  // Folder that external data must lie in; empty: external data is refused.
  std::string folder;
};

struct ImportedModel {
  ir::Graph graph;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ai.onnx
  std::string producer;
  int64_t parameters = 0;  // elements of all initializers
};

// Reads a model that lies in memory; constants point into `bytes`, kept alive by `keep`.
// kInvalidArgument for what is not a valid model (names the node), kDataLoss for what cannot be
// read, kUnimplemented for operators and versions that Tessera does not know.
Result<ImportedModel> import_model(std::string_view bytes, std::shared_ptr<const void> keep,
                                   const ImportOptions& options);
// Maps the file; external data is looked for beside it.
Result<ImportedModel> import_file(const std::string& path, ImportOptions options);

// Test data: a TensorProto, SequenceProto or OptionalProto file, read by the type it should have.
Result<op::Value> read_value(std::string_view bytes, std::shared_ptr<const void> keep,
                             const op::Type& type);
// A TensorProto with this content (the types that numpy lacks; strings too).
std::string write_tensor(const op::Tensor& tensor, std::string_view name);

// ONNX's numbering of element types.
Result<DType> dtype_from_onnx(int32_t data_type);
int32_t dtype_to_onnx(DType dtype);

}  // namespace tessera::import::onnx
