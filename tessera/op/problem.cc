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
  if (!o.present) return "none";
  std::string s = fmt::format("{}[{}]", name_of(o.dtype), fmt::join(o.dims, ","));
  if (!o.layout.empty()) s += "{" + o.layout + "}";
  if (!o.strides.empty()) s += fmt::format("s[{}]", fmt::join(o.strides, ","));
  return s;
}

}  // namespace

std::string Problem::str() const {
  std::string s(op->name);
  for (const Operand& o : in) s += "_" + text(o);
  s += "_out";
  for (const Operand& o : out) s += "_" + text(o);
  for (const auto& [name, value] : attrs.all()) s += fmt::format("_{}={}", name, text(value));
  for (const Step& step : steps) {
    s += fmt::format("_then_{}({})", step.op->name, fmt::join(step.in, ","));
    for (const auto& [name, value] : step.attrs.all())
      s += fmt::format("_{}={}", name, text(value));
  }
  if (fused()) s += fmt::format("_results={}", fmt::join(results, ","));
  return s;
}

}  // namespace tessera::op
