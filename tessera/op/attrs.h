// Attributes of a node: a short sorted list of named values. Everything that may be data is an
// input instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/op/tensor.h"

namespace tessera::op {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;
// A Tensor is a handle: the bytes stay in the weight store.
using Attr = std::variant<int64_t, double, std::string, Ints, Floats, Strings, DType, Type, Tensor>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> list) {
    for (auto& [name, value] : list) set(name, value);
  }

  void set(std::string_view name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // The value, or `otherwise` when absent or of another type (the verifier has checked types
  // against the row).
  int64_t i(std::string_view name, int64_t otherwise = 0) const { return get(name, otherwise); }
  double f(std::string_view name, double otherwise = 0) const { return get(name, otherwise); }
  std::string s(std::string_view name, std::string otherwise = "") const {
    return get(name, std::move(otherwise));
  }
  Ints ints(std::string_view name, Ints otherwise = {}) const {
    return get(name, std::move(otherwise));
  }
  Floats floats(std::string_view name, Floats otherwise = {}) const {
    return get(name, std::move(otherwise));
  }
  Strings strings(std::string_view name, Strings otherwise = {}) const {
    return get(name, std::move(otherwise));
  }
  DType dtype(std::string_view name, DType otherwise = DType::kF32) const {
    return get(name, otherwise);
  }

  const std::vector<std::pair<std::string, Attr>>& all() const { return list_; }
  bool empty() const { return list_.empty(); }

 private:
  template <class T>
  T get(std::string_view name, T otherwise) const {
    const Attr* value = find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    return typed ? *typed : otherwise;
  }

  std::vector<std::pair<std::string, Attr>> list_;  // sorted by name
};

}  // namespace tessera::op
