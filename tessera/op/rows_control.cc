// Control flow: if, loop, scan. Bodies capture nothing; outer values are passed as extra inputs.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

Status check_scalar(const InferContext& c, size_t i, std::string_view what, bool boolean) {
  if (!c.has(i)) return c.fail("the {} is missing", what);
  const Type& t = c.in(i);
  const bool fits = t.is_tensor() && (boolean ? t.dtype == DType::kBool : is_int(t.dtype));
  if (!fits || (t.is_static() && element_count(t.dims()).value_or(0) != 1))
    return c.fail("the {} is {}, need one {}", what, t.str(), boolean ? "bool" : "integer");
  return {};
}

Status check_captures(const InferContext& c, size_t from) {
  for (size_t i = from; i < c.size(); ++i)
    if (!c.has(i)) return c.fail("input {} is missing", i);
  return {};
}

// if(condition, captures...) { then; else }: both bodies take the captures as inputs.
Result<std::vector<Type>> if_rule(const InferContext& c) {
  TRY(check_scalar(c, 0, "condition", true));
  TRY(check_captures(c, 1));
  if (c.bodies[0].size() != c.bodies[1].size())
    return c.fail("then yields {} values, else {}", c.bodies[0].size(), c.bodies[1].size());
  std::vector<Type> types;
  for (size_t i = 0; i < c.bodies[0].size(); ++i) {
    const Type &a = c.bodies[0][i], &b = c.bodies[1][i];
    if (a.is_tensor() && b.is_tensor() && a.dtype != b.dtype)
      return c.fail("output {} is {} in one branch and {} in the other", i, a.str(), b.str());
    types.push_back(open_sizes(c, join_types(c, a, b)));
  }
  return types;
}

// loop(trips?, condition?, carried..., captures...) { body(iteration, condition, carried...,
// captures...) -> (condition, carried..., scanned...) }: carried = attribute; outputs are the last
// carried values, then each scanned value stacked along a new first axis.
Result<std::vector<Type>> loop_rule(const InferContext& c) {
  const size_t carried = static_cast<size_t>(c.attrs.i("carried"));
  const std::vector<Type>& body = c.bodies[0];
  if (body.size() < carried + 1)
    return c.fail("the body yields {} values, need at least {}", body.size(), carried + 1);
  if (carried > c.size()) return c.fail("{} carried values, {} inputs", carried, c.size());
  if (c.size() < carried + 2) return c.fail("{} inputs, need at least {}", c.size(), carried + 2);
  if (c.has(0)) TRY(check_scalar(c, 0, "trip count", false));
  if (c.has(1)) TRY(check_scalar(c, 1, "condition", true));
  TRY(check_captures(c, 2));
  std::vector<Type> types;
  for (size_t i = 0; i < carried; ++i) {
    if (!c.has(i + 2)) return c.fail("carried value {} is missing", i);
    types.push_back(open_sizes(c, join_types(c, c.in(i + 2), body[i + 1])));
  }
  Expr trips;
  const bool counted = c.size() > 1 && body.size() > carried + 1;
  if (counted) trips = c.fresh();
  for (size_t i = carried + 1; i < body.size(); ++i) {
    Type t = open_sizes(c, body[i]);
    if (!t.is_tensor()) return c.fail("a scanned value must be a tensor, got {}", t.str());
    if (t.ranked()) t.shape->insert(t.shape->begin(), trips);
    types.push_back(t);
  }
  return types;
}

// scan(state..., scanned inputs..., captures...) { body(state..., slices..., captures...) ->
// (state..., slices...) }. Attributes: states, scanned, and per scanned input and output its axis
// and direction (1: backwards).
Result<std::vector<Type>> scan_rule(const InferContext& c) {
  const size_t states = static_cast<size_t>(c.attrs.i("states")),
               scanned = static_cast<size_t>(c.attrs.i("scanned"));
  const std::vector<Type>& body = c.bodies[0];
  if (states > c.size() || scanned > c.size())
    return c.fail("{} states and {} scanned inputs of {}", states, scanned, c.size());
  TRY(check_captures(c, 0));
  if (body.size() < states || c.size() < states + scanned || scanned == 0)
    return c.fail("{} states and {} scanned inputs do not fit {} inputs and {} results", states,
                  scanned, c.size(), body.size());
  std::vector<Type> types;
  for (size_t i = 0; i < states; ++i) {
    if (!c.has(i)) return c.fail("state {} is missing", i);
    types.push_back(open_sizes(c, join_types(c, c.in(i), body[i])));
  }
  const Type& first = c.in(states);
  Expr length = c.fresh();
  const Ints in_axes = c.attrs.ints("input_axes"), out_axes = c.attrs.ints("output_axes");
  if (first.ranked()) {
    auto axis = normalize_axis(in_axes.empty() ? 0 : in_axes[0], first.rank());
    if (!axis) return error(std::move(axis).error().at(c.op));
    length = first.dim(*axis);
  }
  for (size_t i = states; i < body.size(); ++i) {
    Type t = open_sizes(c, body[i]);
    if (!t.is_tensor()) return c.fail("a scanned value must be a tensor, got {}", t.str());
    if (t.ranked()) {
      auto axis =
          normalize_axis(i - states < out_axes.size() ? out_axes[i - states] : 0, t.rank() + 1);
      if (!axis) return error(std::move(axis).error().at(c.op));
      t.shape->insert(t.shape->begin() + *axis, length);
    }
    types.push_back(t);
  }
  return types;
}

// fused(inputs...) { anchor, steps... }: the body computed as one. Its first node is the anchor;
// element-wise operators that read its result follow. Everything from outside is an input.
Result<std::vector<Type>> fused_rule(const InferContext& c) {
  if (c.bodies[0].empty()) return c.fail("the body yields nothing");
  return c.bodies[0];
}

}  // namespace

std::span<const OpDef> control_rows() {
  static const std::vector<OpDef> rows{
      {"fused",
       OpClass::kComposite,
       0,
       kVariadic,
       1,
       kVariadic,
       {},
       fused_rule,
       nullptr,
       nullptr,
       1},
      {"if", OpClass::kPrimitive, 1, kVariadic, 0, kVariadic, {}, if_rule, nullptr, nullptr, 2},
      {"loop",
       OpClass::kPrimitive,
       2,
       kVariadic,
       0,
       kVariadic,
       {{"carried", AttrKind::kInt, true}},
       loop_rule,
       nullptr,
       nullptr,
       1},
      {"scan",
       OpClass::kPrimitive,
       1,
       kVariadic,
       0,
       kVariadic,
       {{"states", AttrKind::kInt, true},
        {"scanned", AttrKind::kInt, true},
        {"input_axes", AttrKind::kInts},
        {"output_axes", AttrKind::kInts},
        {"input_reverse", AttrKind::kInts},
        {"output_reverse", AttrKind::kInts}},
       scan_rule,
       nullptr,
       nullptr,
       1},
  };
  return rows;
}

}  // namespace tessera::op
