#include "tessera/op/problem.h"

namespace tessera::op {
namespace {

std::string text(const Attr& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* f = std::get_if<double>(&value)) return fmt::format("{:g}", *f);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  if (const auto* v = std::get_if<Ints>(&value)) return fmt::format("{}", fmt::join(*v, ","));
  if (const auto* v = std::get_if<Floats>(&value)) return fmt::format("{:g}", fmt::join(*v, ","));
  if (const auto* v = std::get_if<Strings>(&value)) return fmt::format("{}", fmt::join(*v, ","));
  if (const auto* d = std::get_if<DType>(&value)) return std::string(name_of(*d));
  if (const auto* t = std::get_if<Type>(&value)) return t->str();
  return "tensor";
}

std::string text(const Operand& o) {
  return o.present ? fmt::format("{}[{}]", name_of(o.dtype), fmt::join(o.dims, ",")) : "none";
}

}  // namespace

std::string Problem::str() const {
  std::string s(op->name);
  for (const Operand& o : in) s += "_" + text(o);
  s += "_out";
  for (const Operand& o : out) s += "_" + text(o);
  for (const auto& [name, value] : attrs.all()) s += fmt::format("_{}={}", name, text(value));
  return s;
}

}  // namespace tessera::op
