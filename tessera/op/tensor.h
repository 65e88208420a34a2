// Values on the host: what constants are, what the reference interpreter computes on, what users
// hand in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/op/type.h"

namespace tessera::op {

// A dense row-major tensor that shares its storage: copies are cheap, writers own a fresh one from
// make(). Sub-byte types are packed, lowest bits first. Strings live in a vector of their own.
class Tensor {
 public:
  Tensor() = default;
  // Zeroed (strings: empty). kOutOfRange for impossible sizes, kResourceExhausted when memory runs
  // out.
  static Result<Tensor> make(DType dtype, Dims dims);
  // Bytes that `keep` keeps alive; the caller vouches for packed_bytes(dtype, count) readable bytes
  // at `data`.
  static Tensor borrow(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> keep);
  static Result<Tensor> strings(Dims dims, std::vector<std::string> values);
  template <class T>
  static Tensor scalar(DType dtype, T value);
  static Tensor of_i64(std::span<const int64_t> values);  // rank 1

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t count() const { return count_; }
  Bytes bytes() const { return Bytes(dtype_ == DType::kString ? 0 : packed_bytes(dtype_, count_)); }
  Type type() const;

  const std::byte* data() const { return data_; }
  // @pre made by make() and not shared yet with a reader.
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }
  // @pre sizeof(T) * 8 == bits_of(dtype)
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(count_)};
  }
  template <class T>
  std::span<T> mutable_as() {
    return {reinterpret_cast<T*>(mutable_data()), static_cast<size_t>(count_)};
  }
  const std::vector<std::string>& text() const { return *strings_; }  // @pre dtype() == kString
  std::vector<std::string>& mutable_text() { return *strings_; }
  const std::shared_ptr<const void>& storage() const { return keep_; }

  // Element access by dtype: value-preserving within the wider type; floats round to nearest even
  // when stored.
  double f64(int64_t i) const;         // any non-complex number
  int64_t i64(int64_t i) const;        // floats truncate
  void set_f64(int64_t i, double v);   // ints: truncated toward zero, wrapped
  void set_i64(int64_t i, int64_t v);  // ints: wrapped to the width
  void set_lowest(int64_t i);          // -infinity, or the smallest integer

  // The same elements under other dims. @pre equal count
  Tensor reshaped(Dims dims) const;
  // All elements as int64; @pre an integer or bool tensor
  std::vector<int64_t> to_i64s() const;

 private:
  DType dtype_ = DType::kF32;
  Dims dims_{0};
  int64_t count_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> keep_;
  std::shared_ptr<std::vector<std::string>> strings_;
};

// Row-major strides in elements.
Dims strides_of(const Dims& dims);

struct Value;
struct Sequence {
  Type element;  // type of an element, ranks and sizes possibly open
  std::vector<Value> items;
};
struct Optional {
  Type element;
  std::shared_ptr<const Value> value;  // null: none
};
struct Map {
  Tensor keys;  // rank 1: integers or strings
  std::vector<Value> values;
};

// Anything that flows along an edge.
struct Value {
  std::variant<Tensor, std::shared_ptr<const Sequence>, Optional, std::shared_ptr<const Map>> data;

  Value() = default;
  Value(Tensor t) : data(std::move(t)) {}  // NOLINT: a tensor is a value
  Value(Sequence s) : data(std::make_shared<const Sequence>(std::move(s))) {}  // NOLINT
  Value(Optional o) : data(std::move(o)) {}                                    // NOLINT

  bool is_tensor() const { return std::holds_alternative<Tensor>(data); }
  const Tensor& tensor() const { return std::get<Tensor>(data); }  // @pre is_tensor()
  bool is_sequence() const { return data.index() == 1; }
  const Sequence& sequence() const { return *std::get<1>(data); }
  bool is_optional() const { return data.index() == 2; }
  const Optional& optional() const { return std::get<2>(data); }
  Type type() const;
  Bytes bytes() const;  // of all tensors inside
};

template <class T>
Tensor Tensor::scalar(DType dtype, T value) {
  Tensor t = *make(dtype, {});
  if constexpr (std::is_floating_point_v<T>)
    t.set_f64(0, value);
  else
    t.set_i64(0, static_cast<int64_t>(value));
  return t;
}

}  // namespace tessera::op
