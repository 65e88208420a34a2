#include "tessera/op/tensor.h"

#include <cstdlib>
#include <limits>
#include <new>

#include "tessera/base/element.h"
#include "tessera/op/index.h"

namespace tessera::op {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

Result<Tensor> Tensor::make(DType dtype, Dims dims) {
  TRY_ASSIGN(int64_t count, element_count(dims));
  Tensor t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.count_ = count;
  if (dtype == DType::kString) {
    t.strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count));
    return t;
  }
  const int64_t bytes = packed_bytes(dtype, count);
  if (bytes < 0 || bytes > int64_t{1} << 62)
    return error(Code::kOutOfRange, "a tensor of {} {} is beyond any memory", to_string(t.dims_),
                 name_of(dtype));
  // calloc: large blocks come zeroed from the system without being touched.
  void* raw = std::calloc(static_cast<size_t>(bytes) + kAlignment, 1);
  if (!raw)
    return error(Code::kResourceExhausted, "no memory for {} ({} {})", to_string(Bytes(bytes)),
                 to_string(t.dims_), name_of(dtype));
  const auto address = reinterpret_cast<uintptr_t>(raw);
  t.data_ = reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
  t.keep_ =
      std::shared_ptr<const void>(raw, [](const void* p) { std::free(const_cast<void*>(p)); });
  return t;
}

Tensor Tensor::borrow(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> keep) {
  Tensor t;
  t.dtype_ = dtype;
  t.count_ = element_count(dims).value_or(0);
  t.dims_ = std::move(dims);
  t.data_ = static_cast<const std::byte*>(data);
  t.keep_ = std::move(keep);
  return t;
}

Result<Tensor> Tensor::strings(Dims dims, std::vector<std::string> values) {
  TRY_ASSIGN(int64_t count, element_count(dims));
  if (static_cast<size_t>(count) != values.size())
    return error(Code::kInvalidArgument, "{} strings for a tensor of {}", values.size(),
                 to_string(dims));
  TRY_ASSIGN(Tensor t, make(DType::kString, std::move(dims)));
  *t.strings_ = std::move(values);
  return t;
}

Tensor Tensor::of_i64(std::span<const int64_t> values) {
  Tensor t = *make(DType::kI64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_as<int64_t>().begin());
  return t;
}

Type Tensor::type() const { return Type::tensor(dtype_, Shape(dims_.begin(), dims_.end())); }

double Tensor::f64(int64_t i) const { return load_f64(dtype_, data_, i); }
int64_t Tensor::i64(int64_t i) const { return load_i64(dtype_, data_, i); }
void Tensor::set_f64(int64_t i, double v) { store_f64(dtype_, mutable_data(), i, v); }
void Tensor::set_i64(int64_t i, int64_t v) { store_i64(dtype_, mutable_data(), i, v); }

void Tensor::set_lowest(int64_t i) {
  if (is_signed_int(dtype_))
    set_i64(i, std::numeric_limits<int64_t>::min() >> (64 - bits_of(dtype_)));
  else
    set_f64(i, is_float(dtype_) ? -std::numeric_limits<double>::infinity() : 0);
}

Tensor Tensor::reshaped(Dims dims) const {
  Tensor t = *this;
  t.dims_ = std::move(dims);
  return t;
}

std::vector<int64_t> Tensor::to_i64s() const {
  std::vector<int64_t> values(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) values[static_cast<size_t>(i)] = i64(i);
  return values;
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims own = strides_of(from);
  Dims strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    strides[to.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

Type Value::type() const {
  if (is_tensor()) return tensor().type();
  if (is_sequence()) return Type::sequence(sequence().element);
  if (is_optional()) return Type::optional(optional().element);
  const Map& map = *std::get<3>(data);
  Type type;
  type.kind = TypeKind::kMap;
  type.dtype = map.keys.dtype();
  type.element = std::make_shared<const Type>(map.values.empty() ? Type::unranked(DType::kF32)
                                                                 : map.values[0].type());
  return type;
}

Bytes Value::bytes() const {
  if (is_tensor()) return tensor().bytes();
  Bytes sum;
  if (is_sequence())
    for (const Value& item : sequence().items) sum += item.bytes();
  if (is_optional() && optional().value) sum += optional().value->bytes();
  return sum;
}

}  // namespace tessera::op
