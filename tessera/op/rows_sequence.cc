// Sequences and optionals: containers of tensors, handled on the host.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;
using Types = Result<std::vector<Type>>;

Result<Type> element_of(const InferContext& c, size_t i, TypeKind kind = TypeKind::kSequence) {
  const Type& t = c.in(i);
  if (t.kind != kind || !t.element)
    return c.fail("input {} is {}, need {}", i, t.str(),
                  kind == TypeKind::kSequence ? "a sequence" : "an optional");
  return *t.element;
}

// What a sequence of `a` holds after a `b` came in.
Result<Type> admit(const InferContext& c, const Type& a, const Type& b) {
  if (a.kind != b.kind || (a.is_tensor() && a.dtype != b.dtype))
    return c.fail("a sequence of {} cannot hold {}", a.str(), b.str());
  return join_types(c, a, b);
}

Status check_position(const InferContext& c, size_t i) {
  if (!c.has(i)) return {};
  const Type& t = c.in(i);
  if (t.is_tensor() && is_int(t.dtype) && (!t.ranked() || t.rank() <= 1)) return {};
  return c.fail("a position is one integer, got {}", t.str());
}

// sequence_construct(x, ...)
Types construct_rule(const InferContext& c) {
  for (size_t i = 0; i < c.size(); ++i)
    if (!c.has(i)) return c.fail("input {} is missing", i);
  Type element = c.in(0);
  for (size_t i = 1; i < c.size(); ++i) {
    TRY_ASSIGN(element, admit(c, element, c.in(i)));
  }
  return std::vector<Type>{Type::sequence(std::move(element))};
}

// sequence_empty{dtype}
Types empty_rule(const InferContext& c) {
  return std::vector<Type>{Type::sequence(Type::unranked(c.attrs.dtype("dtype")))};
}

// sequence_at(s, position)
Types at_rule(const InferContext& c) {
  TRY_ASSIGN(Type element, element_of(c, 0));
  TRY(check_position(c, 1));
  return std::vector<Type>{open_sizes(c, std::move(element))};
}

// sequence_insert(s, x, position?): at the end if absent
Types insert_rule(const InferContext& c) {
  TRY_ASSIGN(Type element, element_of(c, 0));
  TRY(check_position(c, 2));
  TRY_ASSIGN(element, admit(c, element, c.in(1)));
  return std::vector<Type>{Type::sequence(std::move(element))};
}

// sequence_erase(s, position?): the last if absent
Types erase_rule(const InferContext& c) {
  TRY(element_of(c, 0));
  TRY(check_position(c, 1));
  return std::vector<Type>{c.in(0)};
}

// sequence_length(s)
Types length_rule(const InferContext& c) {
  TRY(element_of(c, 0));
  return std::vector<Type>{Type::tensor(DType::kI64, {})};
}

// sequence_concat(s){axis, new_axis}: along an axis, or stacked along a new one
Types concat_rule(const InferContext& c) {
  TRY_ASSIGN(Type element, element_of(c, 0));
  if (!element.is_tensor()) return c.fail("needs a sequence of tensors, got {}", c.in(0).str());
  if (!element.ranked()) return std::vector<Type>{element};
  const bool stack = c.attrs.i("new_axis") != 0;
  auto axis = normalize_axis(c.attrs.i("axis"), element.rank() + stack);
  if (!axis) return error(std::move(axis).error().at(c.op));
  Type out = open_sizes(c, std::move(element));
  if (stack)
    out.shape->insert(out.shape->begin() + *axis, c.fresh());
  else
    (*out.shape)[static_cast<size_t>(*axis)] = c.fresh();
  return std::vector<Type>{std::move(out)};
}

// sequence_split(x, sizes?){axis, keepdims}: sizes is one size for all parts (the last may be
// smaller) or a list; absent: parts of size 1, without the axis if keepdims is 0.
Types split_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor()) return c.fail("needs a tensor, got {}", x.str());
  if (c.has(1) &&
      (!c.in(1).is_tensor() || !is_int(c.in(1).dtype) || (c.in(1).ranked() && c.in(1).rank() > 1)))
    return c.fail("the sizes are {}, need one integer or a list", c.in(1).str());
  if (!x.ranked()) return std::vector<Type>{Type::sequence(x)};
  auto axis = normalize_axis(c.attrs.i("axis"), x.rank());
  if (!axis) return error(std::move(axis).error().at(c.op));
  Type part = x;
  if (c.has(1))
    (*part.shape)[static_cast<size_t>(*axis)] = c.fresh();
  else if (c.attrs.i("keepdims", 1))
    (*part.shape)[static_cast<size_t>(*axis)] = Expr(1);
  else
    part.shape->erase(part.shape->begin() + *axis);
  return std::vector<Type>{Type::sequence(std::move(part))};
}

// sequence_map(s, x..., captures...){mapped} { body(item, x or its item..., captures...) ->
// (result...) }: `mapped` inputs, of which sequences are taken apart; each result becomes a
// sequence.
Types map_rule(const InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  TRY(element_of(c, 0));
  const int64_t mapped = c.attrs.i("mapped");
  for (size_t i = 1; i < c.size(); ++i)
    if (!c.has(i)) return c.fail("input {} is missing", i);
  if (mapped < 1 || mapped > static_cast<int64_t>(c.size()))
    return c.fail("maps over {} of {} inputs", mapped, c.size());
  std::vector<Type> types;
  for (const Type& t : c.bodies[0]) types.push_back(Type::sequence(open_sizes(c, t)));
  return types;
}

// optional(x?){type}: the type of the element where there is none
Types optional_rule(const InferContext& c) {
  if (c.has(0)) return std::vector<Type>{Type::optional(c.in(0))};
  const Attr* type = c.attrs.find("type");
  if (!type) return c.fail("needs an input or a type");
  return std::vector<Type>{Type::optional(std::get<Type>(*type))};
}

// optional_has(x?): whether there is an element; what is not an optional is one
Types has_rule(const InferContext&) { return std::vector<Type>{Type::tensor(DType::kBool, {})}; }

// optional_get(x): the element; what is not an optional is its own
Types get_rule(const InferContext& c) {
  if (c.in(0).kind != TypeKind::kOptional) return std::vector<Type>{c.in(0)};
  TRY_ASSIGN(Type element, element_of(c, 0, TypeKind::kOptional));
  return std::vector<Type>{std::move(element)};
}

}  // namespace

std::span<const OpDef> sequence_rows() {
  static const std::vector<OpDef> rows{
      {"sequence_construct", kHost, 1, kVariadic, 1, 1, {}, construct_rule},
      {"sequence_empty", kHost, 0, 0, 1, 1, {{"dtype", AttrKind::kDType, true}}, empty_rule},
      {"sequence_at", kHost, 2, 2, 1, 1, {}, at_rule},
      {"sequence_insert", kHost, 2, 3, 1, 1, {}, insert_rule},
      {"sequence_erase", kHost, 1, 2, 1, 1, {}, erase_rule},
      {"sequence_length", kHost, 1, 1, 1, 1, {}, length_rule},
      {"sequence_concat",
       kHost,
       1,
       1,
       1,
       1,
       {{"axis", AttrKind::kInt, true}, {"new_axis", AttrKind::kInt}},
       concat_rule},
      {"sequence_split",
       kHost,
       1,
       2,
       1,
       1,
       {{"axis", AttrKind::kInt}, {"keepdims", AttrKind::kInt}},
       split_rule},
      {"sequence_map",
       kHost,
       1,
       kVariadic,
       1,
       kVariadic,
       {{"mapped", AttrKind::kInt, true}},
       map_rule,
       nullptr,
       nullptr,
       1},
      {"optional", kHost, 0, 1, 1, 1, {{"type", AttrKind::kType}}, optional_rule},
      {"optional_has", kHost, 0, 1, 1, 1, {}, has_rule},
      {"optional_get", kHost, 1, 1, 1, 1, {}, get_rule},
  };
  return rows;
}

}  // namespace tessera::op
