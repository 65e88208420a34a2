// ONNX's messages as views into the mapped file: nothing is copied but the structure. Field numbers
// are those of onnx.proto (IR version 13). Reading is depth-limited and checks every length.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::import::onnx {

struct GraphProto;

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::string_view raw_data;
  bool has_raw = false;
  std::vector<std::string_view>
      packed[5];  // float, int32, int64, double, uint64: packed runs as they stand in the file
  std::vector<uint64_t> varints;  // unpacked elements of the integer lists, in order
  std::vector<std::string_view> string_data;
  bool external = false;
  std::vector<std::pair<std::string_view, std::string_view>>
      external_data;  // location, offset, length, checksum
};
enum TypedList { kFloatData, kInt32Data, kInt64Data, kDoubleData, kUint64Data };

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum Kind { kNone, kTensor, kSequence, kMap, kOptional, kSparse } kind = kNone;
  int32_t elem_type = 0;  // of a tensor; a map's key
  bool has_shape = false;
  std::vector<DimProto> shape;
  std::shared_ptr<const TypeProto> element;
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct AttributeProto {
  std::string_view name, ref_attr_name, s;
  int32_t type = 0;
  float f = 0;
  int64_t i = 0;
  std::optional<TensorProto> t;
  std::optional<SparseTensorProto> sparse;
  std::shared_ptr<const GraphProto> g;
  std::optional<TypeProto> tp;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorProto> tensors;
  std::vector<std::shared_ptr<const GraphProto>> graphs;
  std::vector<TypeProto> type_protos;
};

struct NodeProto {
  std::vector<std::string_view> input, output;
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attribute;

  const AttributeProto* find(std::string_view attribute_name) const;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> node;
  std::vector<TensorProto> initializer;
  std::vector<SparseTensorProto> sparse_initializer;
  std::vector<ValueInfoProto> input, output, value_info;
};

struct OpsetProto {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> input, output, attribute;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> node;
  std::vector<OpsetProto> opset_import;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name;
  std::vector<OpsetProto> opset_import;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
};

// kDataLoss for what is not a well-formed message. The views point into `bytes`.
Result<ModelProto> parse_model(std::string_view bytes);
Result<TensorProto> parse_tensor(std::string_view bytes);
Result<TypeProto> parse_type(std::string_view bytes);
// SequenceProto, OptionalProto as in test data: element kind and the raw messages of the elements.
struct SequenceProto {
  int32_t elem_type = 0;  // 1 tensor, 2 sparse tensor, 3 sequence, 4 map, 5 optional
  std::vector<std::string_view> elements;
};
Result<SequenceProto> parse_sequence(std::string_view bytes);
Result<SequenceProto> parse_optional(
    std::string_view bytes);  // at most one element; elem_type 0: none

}  // namespace tessera::import::onnx
