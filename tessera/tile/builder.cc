#include "tessera/tile/builder.h"

#include <algorithm>

#include "tessera/tile/verify.h"

namespace tessera::tile {

int Builder::axis(std::string name, Expr extent) {
  program_.axes.push_back({std::move(name), std::move(extent)});
  return static_cast<int>(program_.axes.size()) - 1;
}

int Builder::tensor(Tensor tensor) {
  program_.tensors.push_back(std::move(tensor));
  return static_cast<int>(program_.tensors.size()) - 1;
}

int Builder::make(DType dtype, std::vector<int> axes) {
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  program_.values.push_back({dtype, std::move(axes)});
  return static_cast<int>(program_.values.size()) - 1;
}

int Builder::emit(Instruction i, DType dtype, std::vector<int> axes) {
  i.out = {make(dtype, std::move(axes))};
  bodies_.back().push_back(std::move(i));
  return bodies_.back().back().out[0];
}

std::vector<int> Builder::axes_of(const std::vector<int>& values) const {
  std::vector<int> all;
  for (int v : values) all.insert(all.end(), axes(v).begin(), axes(v).end());
  return all;
}

std::vector<int> Builder::axes_of(const std::vector<Subscript>& at) {
  std::vector<int> all;
  for (const Subscript& s : at) {
    if (s.value != kNone) {
      all.insert(all.end(), axes(s.value).begin(), axes(s.value).end());
      continue;
    }
    auto part = affine(program_, s.at);
    if (!part) {
      fail(part.error());
      continue;
    }
    for (const auto& [a, coefficient] : part->terms) all.push_back(a);
  }
  return all;
}

int Builder::constant(DType dtype, double value) {
  if (!is_float(dtype)) return whole(dtype, static_cast<int64_t>(value));
  return emit({.kind = Kind::kConstant, .number = value}, dtype, {});
}

int Builder::whole(DType dtype, int64_t value) {
  return emit({.kind = Kind::kConstant, .whole = value}, dtype, {});
}

int Builder::index(int axis) {
  return emit({.kind = Kind::kIndex, .axis = axis}, DType::kI64, {axis});
}

int Builder::size(Expr size) {
  return emit({.kind = Kind::kSize, .size = std::move(size)}, DType::kI64, {});
}

int Builder::load(int tensor, std::vector<Subscript> at, std::optional<double> pad) {
  std::vector<int> axes = axes_of(at);
  return emit({.kind = Kind::kLoad, .tensor = tensor, .at = std::move(at), .pad = pad},
              program_.tensor(tensor).dtype, std::move(axes));
}

void Builder::store(int tensor, std::vector<Subscript> at, int value) {
  bodies_.back().push_back(
      {.kind = Kind::kStore, .in = {value}, .tensor = tensor, .at = std::move(at)});
}

int Builder::map(Function function, std::initializer_list<int> in) {
  const std::vector<int> list(in);
  const DType like = dtype(list[function == Function::kSelect ? 1 : 0]);
  return emit({.kind = Kind::kMap, .in = list, .function = function},
              info(function).yields_bool ? DType::kBool : like, axes_of(list));
}

int Builder::convert(int value, DType to) {
  if (dtype(value) == to) return value;
  return emit({.kind = Kind::kMap, .in = {value}, .function = Function::kConvert}, to, axes(value));
}

int Builder::reduce(Function function, int value, std::vector<int> over) {
  std::vector<int> left;
  for (int a : axes(value))
    if (std::ranges::count(over, a) == 0) left.push_back(a);
  return emit({.kind = Kind::kReduce, .in = {value}, .function = function, .over = std::move(over)},
              dtype(value), std::move(left));
}

int Builder::dot(int a, int b, int c, std::vector<int> over, DType sum) {
  std::vector<int> left;
  for (int axis : axes_of(std::vector<int>{a, b}))
    if (std::ranges::count(over, axis) == 0) left.push_back(axis);
  Instruction i{.kind = Kind::kDot, .in = {a, b}, .over = std::move(over)};
  if (c != kNone) i.in.push_back(c);
  return emit(std::move(i), sum, std::move(left));
}

std::vector<int> Builder::loop(int axis, std::vector<int> in,
                               const std::vector<std::vector<int>>& carried, const Body& body) {
  Instruction i{.kind = Kind::kFor, .in = std::move(in), .axis = axis};
  for (size_t k = 0; k < i.in.size(); ++k) i.carried.push_back(make(dtype(i.in[k]), carried[k]));
  bodies_.emplace_back();
  i.yields = body(i.carried);
  i.body = std::move(bodies_.back());
  bodies_.pop_back();
  for (int v : i.carried) i.out.push_back(make(dtype(v), axes(v)));
  bodies_.back().push_back(std::move(i));
  return bodies_.back().back().out;
}

Result<Program> Builder::finish() {
  if (error_) return error(std::move(*error_));
  program_.body = std::move(bodies_.front());
  TRY(verify(program_));
  return std::move(program_);
}

}  // namespace tessera::tile
