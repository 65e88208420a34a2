#include "tessera/import/onnx/tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include "tessera/base/element.h"
#include "tessera/base/file.h"
#include "tessera/import/onnx/model.h"

namespace tessera::import::onnx {
namespace {

using op::Dims;
using op::Tensor;

constexpr int64_t kMaxDense = int64_t{1}
                              << 30;  // bytes that a sparse tensor may take when made dense

// By ONNX's numbers, 0 to 26.
constexpr std::array<std::optional<DType>, 27> kTypes{
    std::nullopt,       DType::kF32,  DType::kU8,       DType::kI8,         DType::kU16,
    DType::kI16,        DType::kI32,  DType::kI64,      DType::kString,     DType::kBool,
    DType::kF16,        DType::kF64,  DType::kU32,      DType::kU64,        DType::kC64,
    DType::kC128,       DType::kBF16, DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2,
    DType::kF8E5M2FNUZ, DType::kU4,   DType::kI4,       DType::kF4E2M1,     DType::kF8E8M0,
    DType::kU2,         DType::kI2};

bool whole_number(std::string_view text, int64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

Result<Tensor> external(const TensorProto& proto, DType dtype, const Dims& dims, int64_t bytes,
                        const TensorSource& source) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& [key, value] : proto.external_data) {
    int64_t* number = key == "offset" ? &offset : key == "length" ? &length : nullptr;
    if (key == "location") location = value;
    if (number && !whole_number(value, *number))
      return error(Code::kInvalidArgument, "tensor '{}': external {} '{}' is not a number",
                   proto.name, key, value);
  }
  if (source.folder.empty())
    return error(Code::kInvalidArgument,
                 "tensor '{}': external data '{}', but the model has no folder", proto.name,
                 location);
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::weakly_canonical(source.folder, ignored);
  const fs::path path = fs::weakly_canonical(folder / fs::path(location), ignored);
  const auto relative = path.lexically_relative(folder);
  if (location.empty() || location.find('\0') != location.npos ||
      fs::path(location).is_absolute() || relative.empty() || *relative.begin() == "..")
    return error(Code::kInvalidArgument,
                 "tensor '{}': external data '{}' lies outside the model's folder", proto.name,
                 location);
  if (!fs::is_regular_file(path, ignored))
    return error(Code::kNotFound, "tensor '{}': no file '{}' beside the model", proto.name,
                 location);
  TRY_ASSIGN(auto file, MappedFile::open(path.string()));
  auto shared = std::make_shared<MappedFile>(std::move(file));
  const int64_t size = static_cast<int64_t>(shared->bytes().size());
  if (offset < 0 || offset > size || bytes > size - offset || (length >= 0 && length < bytes))
    return error(Code::kInvalidArgument,
                 "tensor '{}': {} bytes at offset {} of '{}', which has {} (length {})", proto.name,
                 bytes, offset, location, size, length);
  return Tensor::borrow(dtype, dims, shared->bytes().data() + offset, shared);
}

// Reads the elements of a typed list in order; each list holds them at a width of its own.
Result<Tensor> from_lists(const TensorProto& proto, DType dtype, const Dims& dims, int64_t count) {
  TypedList list = kInt32Data;
  int width = 0;  // bytes of an element of a fixed-width list; 0: varints
  switch (dtype) {
    case DType::kF32:
    case DType::kC64:
      list = kFloatData;
      width = 4;
      break;
    case DType::kF64:
    case DType::kC128:
      list = kDoubleData;
      width = 8;
      break;
    case DType::kI64:
      list = kInt64Data;
      break;
    case DType::kU64:
    case DType::kU32:
      list = kUint64Data;
      break;
    default:
      break;
  }
  // Sub-byte types come packed, a byte in each int32; complex numbers as two elements.
  const bool packed = bits_of(dtype) < 8;
  const int64_t elements =
      packed ? packed_bytes(dtype, count) : count * (is_complex(dtype) ? 2 : 1);
  // Do not allocate what the file cannot hold.
  int64_t present = static_cast<int64_t>(proto.varints.size());
  for (std::string_view run : proto.packed[list])
    present += static_cast<int64_t>(run.size()) / std::max(width, 1);
  if (present < elements)
    return error(Code::kInvalidArgument, "tensor '{}': {} elements promised, at most {} given",
                 proto.name, elements, present);
  TRY_ASSIGN(Tensor t, Tensor::make(dtype, dims));
  std::byte* out = t.mutable_data();
  const int bytes = packed ? 1 : bits_of(dtype) / 8 / (is_complex(dtype) ? 2 : 1);
  int64_t at = 0;
  auto put = [&](uint64_t bits) {
    if (at < elements) std::memcpy(out + at * bytes, &bits, static_cast<size_t>(bytes));
    ++at;
  };
  for (std::string_view run : proto.packed[list]) {
    const char *p = run.data(), *end = p + run.size();
    if (width > 0) {
      for (; end - p >= width; p += width) {
        uint64_t bits = 0;
        std::memcpy(&bits, p, static_cast<size_t>(width));
        put(bits);
      }
      continue;
    }
    try {
      while (p != end) put(protozero::decode_varint(&p, end));
    } catch (const protozero::exception& e) {
      return error(Code::kDataLoss, "tensor '{}': {}", proto.name, e.what());
    }
  }
  for (uint64_t bits : proto.varints) put(bits);
  if (at != elements)
    return error(Code::kInvalidArgument, "tensor '{}': {} elements for {} of {}", proto.name, at,
                 elements, op::to_string(dims));
  return t;
}

}  // namespace

Result<DType> dtype_from_onnx(int32_t data_type) {
  if (data_type < 0 || data_type >= static_cast<int32_t>(kTypes.size()) ||
      !kTypes[static_cast<size_t>(data_type)])
    return error(Code::kInvalidArgument, "element type {} is not one of ONNX's", data_type);
  return *kTypes[static_cast<size_t>(data_type)];
}

int32_t dtype_to_onnx(DType dtype) {
  auto at = std::find(kTypes.begin(), kTypes.end(), std::optional(dtype));
  return static_cast<int32_t>(at - kTypes.begin());
}

Result<Tensor> to_tensor(const TensorProto& proto, const TensorSource& source) {
  auto dtype = dtype_from_onnx(proto.data_type);
  if (!dtype) return error(std::move(dtype).error().at(fmt::format("tensor '{}'", proto.name)));
  auto count = op::element_count(proto.dims);
  if (!count) return error(std::move(count).error().at(fmt::format("tensor '{}'", proto.name)));
  if (*dtype == DType::kString) {
    if (static_cast<int64_t>(proto.string_data.size()) != *count)
      return error(Code::kInvalidArgument, "tensor '{}': {} strings for {}", proto.name,
                   proto.string_data.size(), op::to_string(proto.dims));
    return Tensor::strings(proto.dims, {proto.string_data.begin(), proto.string_data.end()});
  }
  const int64_t bytes = packed_bytes(*dtype, *count);
  if (bytes < 0)
    return error(Code::kOutOfRange, "tensor '{}': {} {} is beyond any memory", proto.name,
                 op::to_string(proto.dims), name_of(*dtype));
  if (proto.external) return external(proto, *dtype, proto.dims, bytes, source);
  if (!proto.has_raw) return from_lists(proto, *dtype, proto.dims, *count);
  if (static_cast<int64_t>(proto.raw_data.size()) != bytes)
    return error(Code::kInvalidArgument, "tensor '{}': {} bytes of data, {} {} needs {}",
                 proto.name, proto.raw_data.size(), op::to_string(proto.dims), name_of(*dtype),
                 bytes);
  return Tensor::borrow(*dtype, proto.dims, proto.raw_data.data(), source.keep);
}

Result<Tensor> to_dense(const SparseTensorProto& proto, const TensorSource& source) {
  TRY_ASSIGN(Tensor values, to_tensor(proto.values, source));
  TRY_ASSIGN(Tensor indices, to_tensor(proto.indices, source));
  auto bad = [&](std::string_view what) {
    return error(Code::kInvalidArgument, "sparse tensor '{}': {}", proto.values.name, what);
  };
  if (indices.dtype() != DType::kI64 || values.rank() != 1)
    return bad("needs i64 indices and a list of values");
  const int64_t rank = static_cast<int64_t>(proto.dims.size());
  const bool linear = indices.rank() == 1;
  if (linear ? indices.dim(0) != values.dim(0)
             : indices.rank() != 2 || indices.dim(0) != values.dim(0) || indices.dim(1) != rank)
    return bad("indices and values do not fit each other");
  if (values.dtype() == DType::kString) return bad("strings cannot be sparse");
  TRY_ASSIGN(int64_t count, op::element_count(proto.dims));
  if (const int64_t bytes = packed_bytes(values.dtype(), count); bytes < 0 || bytes > kMaxDense)
    return error(Code::kResourceExhausted, "sparse tensor '{}': {} {} is more than is made dense",
                 proto.values.name, op::to_string(proto.dims), name_of(values.dtype()));
  TRY_ASSIGN(Tensor dense, Tensor::make(values.dtype(), proto.dims));
  const Dims strides = op::strides_of(proto.dims);
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis) {
      const int64_t index = indices.i64(linear ? i : i * rank + axis);
      if (index < 0 || index >= (linear ? dense.count() : proto.dims[static_cast<size_t>(axis)]))
        return bad("an index is out of range");
      at += linear ? index : index * strides[static_cast<size_t>(axis)];
    }
    store_bits(dense.dtype(), dense.mutable_data(), at,
               load_bits(values.dtype(), values.data(), i));
  }
  return dense;
}

Result<op::Type> to_type(const TypeProto& proto, ir::SymbolSource& symbols) {
  switch (proto.kind) {
    case TypeProto::kNone:
      return error(Code::kInvalidArgument, "a type is missing");
    case TypeProto::kTensor:
    case TypeProto::kSparse: {
      TRY_ASSIGN(DType dtype, dtype_from_onnx(proto.elem_type));
      if (!proto.has_shape) return op::Type::unranked(dtype);
      op::Shape shape;
      for (const DimProto& d : proto.shape) {
        if (d.value && *d.value < -1)
          return error(Code::kInvalidArgument, "dim {} is {}", shape.size(), *d.value);
        if (d.value && *d.value >= 0)
          shape.push_back(*d.value);
        else if (d.param.empty() || d.param == "?" || d.value)
          shape.push_back(symbols.fresh());
        else
          shape.push_back(op::Expr::symbol(std::string(d.param)));
      }
      return op::Type::tensor(dtype, std::move(shape));
    }
    case TypeProto::kSequence:
    case TypeProto::kOptional:
    case TypeProto::kMap: {
      op::Type type;
      type.kind = proto.kind == TypeProto::kSequence   ? op::TypeKind::kSequence
                  : proto.kind == TypeProto::kOptional ? op::TypeKind::kOptional
                                                       : op::TypeKind::kMap;
      if (type.kind == op::TypeKind::kMap) {
        TRY_ASSIGN(type.dtype, dtype_from_onnx(proto.elem_type));
      }
      if (!proto.element) return error(Code::kInvalidArgument, "an element type is missing");
      TRY_ASSIGN(op::Type element, to_type(*proto.element, symbols));
      type.element = std::make_shared<const op::Type>(std::move(element));
      return type;
    }
  }
  return error(Code::kInternal, "unknown kind of type");
}

Result<op::Value> read_value(std::string_view bytes, std::shared_ptr<const void> keep,
                             const op::Type& type) {
  const TensorSource source{keep, ""};
  switch (type.kind) {
    case op::TypeKind::kTensor: {
      TRY_ASSIGN(TensorProto proto, parse_tensor(bytes));
      TRY_ASSIGN(Tensor t, to_tensor(proto, source));
      return op::Value(std::move(t));
    }
    case op::TypeKind::kSequence: {
      TRY_ASSIGN(SequenceProto proto, parse_sequence(bytes));
      op::Sequence sequence{*type.element, {}};
      for (std::string_view element : proto.elements) {
        TRY_ASSIGN(op::Value v, read_value(element, keep, *type.element));
        sequence.items.push_back(std::move(v));
      }
      return op::Value(std::move(sequence));
    }
    case op::TypeKind::kOptional: {
      TRY_ASSIGN(SequenceProto proto, parse_optional(bytes));
      op::Optional optional{*type.element, nullptr};
      if (!proto.elements.empty()) {
        TRY_ASSIGN(op::Value v, read_value(proto.elements[0], keep, *type.element));
        optional.value = std::make_shared<const op::Value>(std::move(v));
      }
      return op::Value(std::move(optional));
    }
    case op::TypeKind::kMap:
      return error(Code::kUnimplemented, "a map cannot be read from a file");
  }
  return error(Code::kInternal, "unknown kind of type");
}

std::string write_tensor(const Tensor& tensor, std::string_view name) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_packed_int64(1, tensor.dims().begin(), tensor.dims().end());
  writer.add_int32(2, dtype_to_onnx(tensor.dtype()));
  if (tensor.dtype() == DType::kString)
    for (const std::string& s : tensor.text()) writer.add_bytes(6, s);
  if (!name.empty()) writer.add_string(8, name.data(), name.size());
  if (tensor.dtype() != DType::kString)
    writer.add_bytes(9, reinterpret_cast<const char*>(tensor.data()),
                     static_cast<size_t>(tensor.bytes().value));
  return bytes;
}

}  // namespace tessera::import::onnx
