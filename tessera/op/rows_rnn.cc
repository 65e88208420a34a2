// Recurrent layers: composites over a whole sequence.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum AttrKind;

// T: steps, N: batch, I: inputs, H: hidden size, G: gates (rnn 1; gru 3: z, r, h; lstm 4: i, o, f,
// c), D: directions. x (T, N, I), w (D, G*H, I), r (D, G*H, H), b? (D, 2*G*H): of w, then of r,
// lengths? (N), h0? (D, N, H); lstm also c0? (D, N, H) and peepholes? (D, 3*H): i, o, f.
// -> y (T, D, N, H), zero beyond a sequence's length; last h (D, N, H); lstm also last c (D, N, H).
// Attributes: direction "forward", "reverse" or "bidirectional"; activations of each direction in
// turn (rnn f; gru f, g; lstm f, g, h) with an alpha and a beta each; clip bounds what goes into
// those of gates, not into the h of lstm; linear_before_reset of gru; input_forget of lstm (f = 1 -
// i).
Result<std::vector<Type>> recurrent(const InferContext& c, int64_t gates, size_t functions) {
  const bool both = c.attrs.s("direction", "forward") == "bidirectional";
  const Expr D(both ? 2 : 1);
  const size_t count = functions * (both ? 2 : 1);
  if (c.attrs.strings("activations").size() != count || c.attrs.floats("alpha").size() != count ||
      c.attrs.floats("beta").size() != count)
    return c.fail("needs {} activations with an alpha and a beta each", count);
  if (!(c.attrs.f("clip", 0) >= 0)) return c.fail("clip is {}, need 0 or more", c.attrs.f("clip"));
  const DType dtype = c.in(0).dtype;
  for (size_t i : {0, 1, 2, 3, 5, 6, 7})
    if (c.has(i) && (!c.in(i).is_tensor() || c.in(i).dtype != dtype || !is_float(dtype)))
      return c.fail("input {} is {}, need floats of one type", i, c.in(i).str());
  if (c.has(4) && (!c.in(4).is_tensor() || !is_int(c.in(4).dtype)))
    return c.fail("lengths are {}, need integers", c.in(4).str());
  const Shape x = c.in(0).ranked() ? *c.in(0).shape : c.fresh_shape(3);
  if (x.size() != 3) return c.fail("x is {}, need rank 3", c.in(0).str());
  const Shape r = c.in(2).ranked() ? *c.in(2).shape : c.fresh_shape(3);
  if (r.size() != 3) return c.fail("r is {}, need rank 3", c.in(2).str());
  const Expr T = x[0], N = x[1], I = x[2], H = r[2], GH = Expr(gates) * H;
  const std::pair<size_t, Shape> expected[] = {
      {1, {D, GH, I}}, {2, {D, GH, H}}, {3, {D, Expr(2) * GH}}, {4, {N}},
      {5, {D, N, H}},  {6, {D, N, H}},  {7, {D, Expr(3) * H}}};
  for (const auto& [i, shape] : expected) {
    if (!c.has(i) || !c.in(i).ranked()) continue;
    bool fits = c.in(i).shape->size() == shape.size();
    for (size_t a = 0; fits && a < shape.size(); ++a) {
      const Expr& d = (*c.in(i).shape)[a];
      fits = !d.is_constant() || !shape[a].is_constant() || d == shape[a];
    }
    if (!fits) return c.fail("input {} is {}, need {}", i, c.in(i).str(), to_string(shape));
  }
  const Type state = Type::tensor(dtype, {D, N, H});
  return std::vector<Type>{Type::tensor(dtype, {T, D, N, H}), state, state};
}

Result<std::vector<Type>> rnn_rule(const InferContext& c) { return recurrent(c, 1, 1); }
Result<std::vector<Type>> gru_rule(const InferContext& c) { return recurrent(c, 3, 2); }
Result<std::vector<Type>> lstm_rule(const InferContext& c) { return recurrent(c, 4, 3); }

// The two matrix products of every step.
Flops recurrent_flops(const Attrs&, std::span<const Type* const> in, std::span<const Type>) {
  const Dims x = in[0]->dims(), w = in[1]->dims(), r = in[2]->dims();
  return Flops(2 * x[0] * x[1] * w[0] * w[1] * (w[2] + r[2]));
}

OpDef row(std::string_view name, int inputs, int outputs, InferFn rule, std::vector<AttrDef> more) {
  std::vector<AttrDef> attrs{{"direction", kString},
                             {"activations", kStrings, true},
                             {"alpha", kFloats, true},
                             {"beta", kFloats, true},
                             {"clip", kFloat}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return {name,    OpClass::kComposite, 3,    inputs,  1,
          outputs, std::move(attrs),    rule, nullptr, recurrent_flops};
}

}  // namespace

std::span<const OpDef> rnn_rows() {
  static const std::vector<OpDef> rows{
      row("rnn", 6, 2, rnn_rule, {}),
      row("gru", 6, 2, gru_rule, {{"linear_before_reset", kInt}}),
      row("lstm", 8, 3, lstm_rule, {{"input_forget", kInt}}),
  };
  return rows;
}

}  // namespace tessera::op
