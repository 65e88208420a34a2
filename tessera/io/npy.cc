#include "tessera/io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

namespace tessera::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// numpy's codes, little-endian or one byte wide.
struct Code_ {
  std::string_view code;
  DType dtype;
};
constexpr Code_ kCodes[] = {{"|b1", DType::kBool}, {"|i1", DType::kI8},   {"|u1", DType::kU8},
                            {"<i2", DType::kI16},  {"<i4", DType::kI32},  {"<i8", DType::kI64},
                            {"<u2", DType::kU16},  {"<u4", DType::kU32},  {"<u8", DType::kU64},
                            {"<f2", DType::kF16},  {"<f4", DType::kF32},  {"<f8", DType::kF64},
                            {"<c8", DType::kC64},  {"<c16", DType::kC128}};

// The text after `'key':` in the header's dictionary, up to the comma or the closing bracket.
std::optional<std::string_view> field(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) return std::nullopt;
  size_t begin = header.find(':', at + key.size());
  if (begin == header.npos) return std::nullopt;
  begin = header.find_first_not_of(" :", begin);
  if (begin == header.npos) return std::nullopt;
  const bool tuple = header[begin] == '(';
  const size_t end = tuple ? header.find(')', begin) : header.find_first_of(",}", begin);
  if (end == header.npos) return std::nullopt;
  return tuple ? header.substr(begin + 1, end - begin - 1) : header.substr(begin, end - begin);
}

Result<op::Dims> dims_of(std::string_view list) {
  op::Dims dims;
  for (const char *p = list.data(), *end = p + list.size(); p != end;) {
    if (*p == ' ' || *p == ',' || *p == 'L') {
      ++p;
      continue;
    }
    int64_t value = 0;
    auto [next, failure] = std::from_chars(p, end, value);
    if (failure != std::errc() || value < 0)
      return error(Code::kInvalidArgument, ".npy: bad shape ({})", list);
    dims.push_back(value);
    p = next;
  }
  return dims;
}

// "|V2" for a type of two bytes that numpy lacks.
bool is_raw(std::string_view code, DType dtype) {
  return bits_of(dtype) >= 8 && !writable_as_npy(dtype) && code.size() > 2 && code[1] == 'V' &&
         code.substr(2) == std::to_string(bits_of(dtype) / 8);
}

}  // namespace

bool writable_as_npy(DType dtype) {
  return std::any_of(std::begin(kCodes), std::end(kCodes),
                     [=](auto& row) { return row.dtype == dtype; });
}

Result<op::Tensor> parse_npy(std::string_view bytes, std::shared_ptr<const void> keep,
                             std::optional<DType> opaque) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 10)
    return error(Code::kDataLoss, "not a .npy file");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3)
    return error(Code::kUnimplemented, ".npy version {} is not one of 1 to 3", major);
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes)
    return error(Code::kDataLoss, "the .npy header is cut short");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  const size_t start = 8 + length_bytes;
  if (length > bytes.size() - start)
    return error(Code::kDataLoss, "the .npy header promises {} bytes, the file has {}", length,
                 bytes.size() - start);
  const std::string_view header = bytes.substr(start, length), data = bytes.substr(start + length);
  const auto descr = field(header, "'descr'"), order = field(header, "'fortran_order'"),
             shape = field(header, "'shape'");
  if (!descr || !order || !shape)
    return error(Code::kDataLoss, "the .npy header lacks a field: {}", header);
  std::string code(*descr);
  std::erase_if(code, [](char c) { return c == '\'' || c == '"' || c == ' '; });
  const bool swapped = code.starts_with('>');
  if (swapped) code[0] = '<';
  auto row =
      std::find_if(std::begin(kCodes), std::end(kCodes), [&](auto& r) { return r.code == code; });
  if (row == std::end(kCodes) && !(opaque && is_raw(code, *opaque)))
    return error(Code::kUnimplemented, ".npy type {} has no counterpart here", *descr);
  const DType dtype = row == std::end(kCodes) ? *opaque : row->dtype;
  TRY_ASSIGN(op::Dims dims, dims_of(*shape));
  TRY_ASSIGN(int64_t count, op::element_count(dims));
  const int64_t needed = packed_bytes(dtype, count);
  if (needed < 0 || static_cast<uint64_t>(needed) > data.size())
    return error(Code::kDataLoss, ".npy: {} {} needs {} bytes, the file has {}",
                 op::to_string(dims), name_of(dtype), needed, data.size());
  const bool fortran = order->starts_with("True");
  const size_t size = static_cast<size_t>(bits_of(dtype)) / 8,
               part = is_complex(dtype) ? size / 2 : size;
  if (!swapped && (!fortran || dims.size() < 2) &&
      reinterpret_cast<uintptr_t>(data.data()) % part == 0)
    return op::Tensor::borrow(dtype, dims, data.data(), std::move(keep));

  TRY_ASSIGN(op::Tensor t, op::Tensor::make(dtype, dims));
  if (count == 0) return t;
  op::Dims index(dims.size(), 0);
  op::Dims strides = op::strides_of(dims);
  if (fortran) {
    int64_t stride = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      strides[i] = stride;
      stride *= dims[i];
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = 0;
    for (size_t a = 0; a < dims.size(); ++a) from += index[a] * strides[a];
    std::byte* to = t.mutable_data() + static_cast<size_t>(i) * size;
    std::memcpy(to, data.data() + static_cast<size_t>(from) * size, size);
    if (swapped)
      for (size_t p = 0; p < size; p += part) std::reverse(to + p, to + p + part);
    for (size_t a = dims.size(); a-- > 0;) {
      if (++index[a] < dims[a]) break;
      index[a] = 0;
    }
  }
  return t;
}

std::string write_npy(const op::Tensor& tensor) {
  auto row = std::find_if(std::begin(kCodes), std::end(kCodes),
                          [&](auto& r) { return r.dtype == tensor.dtype(); });
  std::string shape;
  for (int64_t d : tensor.dims()) shape += fmt::format("{},", d);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", row->code, shape);
  header.append(64 - (10 + header.size() + 1) % 64, ' ').push_back('\n');
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  const uint16_t length = static_cast<uint16_t>(header.size());
  out.append(reinterpret_cast<const char*>(&length), 2).append(header);
  out.append(reinterpret_cast<const char*>(tensor.data()),
             static_cast<size_t>(tensor.bytes().value));
  return out;
}

}  // namespace tessera::io
