#include "tessera/op/type.h"

#include <algorithm>

namespace tessera::op {

bool Type::is_static() const {
  return ranked() &&
         std::all_of(shape->begin(), shape->end(), [](auto& d) { return d.is_constant(); });
}

Dims Type::dims() const {
  Dims result;
  for (const Expr& d : *shape) result.push_back(*d.constant());
  return result;
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == TypeKind::kTensor) return a.dtype == b.dtype && a.shape == b.shape;
  if (a.kind == TypeKind::kMap && a.dtype != b.dtype) return false;
  return (a.element == nullptr) == (b.element == nullptr) &&
         (!a.element || *a.element == *b.element);
}

std::string Type::str() const {
  const std::string inner = element ? element->str() : "";
  switch (kind) {
    case TypeKind::kTensor:
      return std::string(name_of(dtype)) + (shape ? to_string(*shape) : "[*]");
    case TypeKind::kSequence:
      return "seq<" + inner + ">";
    case TypeKind::kOptional:
      return "opt<" + inner + ">";
    case TypeKind::kMap:
      return fmt::format("map<{},{}>", name_of(dtype), inner);
  }
  return "";
}

namespace {

constexpr int kMaxTypeDepth = 16;

Result<Type> parse_type(std::string_view text, int depth) {
  auto bad = [&] {
    return error(Code::kInvalidArgument, "'{}' is not a type such as f32[1,3,n] or seq<f32[*]>",
                 text);
  };
  if (depth > kMaxTypeDepth) return bad();
  for (auto [prefix, kind] : {std::pair<std::string_view, TypeKind>{"seq<", TypeKind::kSequence},
                              {"opt<", TypeKind::kOptional},
                              {"map<", TypeKind::kMap}}) {
    if (!text.starts_with(prefix)) continue;
    if (!text.ends_with('>')) return bad();
    std::string_view inner = text.substr(4, text.size() - 5);
    Type result;
    result.kind = kind;
    if (kind == TypeKind::kMap) {
      const size_t comma = inner.find(',');
      auto key = dtype_from_name(inner.substr(0, comma));
      if (comma == inner.npos || !key) return bad();
      result.dtype = *key;
      inner = inner.substr(comma + 1);
    }
    TRY_ASSIGN(Type element, parse_type(inner, depth + 1));
    result.element = std::make_shared<const Type>(std::move(element));
    return result;
  }
  const size_t open = text.find('[');
  auto dtype = dtype_from_name(text.substr(0, open));
  if (!dtype) return bad();
  if (open == text.npos) return Type::tensor(*dtype, {});
  if (!text.ends_with(']')) return bad();
  std::string_view list = text.substr(open + 1, text.size() - open - 2);
  if (list == "*") return Type::unranked(*dtype);
  Shape shape;
  size_t begin = 0;
  int nesting = 0;
  for (size_t i = 0; i <= list.size() && !list.empty(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    nesting += (c == '(') - (c == ')');
    if (c != ',' || (nesting != 0 && i < list.size())) continue;
    TRY_ASSIGN(Expr d, Expr::parse(list.substr(begin, i - begin)));
    shape.push_back(d);
    begin = i + 1;
  }
  return Type::tensor(*dtype, std::move(shape));
}

}  // namespace

Result<Type> Type::parse(std::string_view text) { return parse_type(text, 0); }

Result<int64_t> element_count(const Dims& dims) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return error(Code::kOutOfRange, "dim {} is {}, need at least 0", i, dims[i]);
    empty |= dims[i] == 0;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(dims[i], 1), &count);
  }
  if (overflow)
    return error(Code::kOutOfRange, "a tensor of {} elements is beyond any memory",
                 to_string(dims));
  return empty ? 0 : count;
}

Expr element_count(const Shape& shape) {
  Expr product(1);
  for (const Expr& d : shape) product = product * d;
  return product;
}

std::string to_string(const Dims& dims) {
  if (dims.empty()) return "scalar";
  return fmt::format("{}", fmt::join(dims, "x"));
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Expr& d : shape) text += (text.size() > 1 ? "," : "") + d.str();
  return text + "]";
}

}  // namespace tessera::op
