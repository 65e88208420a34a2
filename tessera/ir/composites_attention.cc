// Attention and what goes with it. Letters as in op/rows_attention.cc; T counts all keys, past ones
// too.
#include <cmath>
#include <limits>

#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

using Values = std::vector<ValueId>;

bool has(const Values& in, size_t i) { return i < in.size() && in[i] != kAbsent; }

// scale, or 1 / sqrt(size of the last axis)
ValueId scale_of(Builder& b, const op::Attrs& attrs, ValueId q, DType type) {
  if (attrs.has("scale")) return b.scalar(type, attrs.f("scale"));
  if (const auto size = b.type(q).dim(3).constant())
    return b.scalar(type, 1 / std::sqrt(static_cast<double>(*size)));
  return b.div(b.scalar(type, 1), b.unary("sqrt", b.convert(b.squeeze(b.dim(q, 3), {0}), type)));
}

// The mask with as many columns as there are keys; what is added hides.
ValueId widened_mask(Builder& b, ValueId mask, ValueId keys) {
  const int rank = b.rank(mask);
  if (rank < 1 || b.type(mask).dim(rank - 1) == b.type(keys).dim(2)) return mask;
  const bool boolean = b.dtype(mask) == DType::kBool;
  const ValueId hidden =
      b.scalar_like(mask, boolean ? 0 : -std::numeric_limits<double>::infinity());
  const ValueId missing = b.sub(b.dim(keys, 2), b.dim(mask, rank - 1));
  return b.op("pad", {mask, b.concat({b.ints({0}), missing}, 0), hidden, b.ints({rank - 1})},
              {{"mode", std::string("constant")}});
}

struct Hidden {
  Builder& b;
  ValueId scores;
  void unless(ValueId visible) {
    scores =
        b.select(visible, scores, b.scalar_like(scores, -std::numeric_limits<double>::infinity()));
  }
};

Values attention(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  const DType own = b.dtype(in[0]), type = wider(wide(own), attrs.dtype("softmax", own));
  const ValueId q = b.convert(in[0], type);
  const ValueId k = has(in, 4) ? b.concat({in[4], in[1]}, 2) : in[1];
  const ValueId v = has(in, 5) ? b.concat({in[5], in[2]}, 2) : in[2];
  if (!b.ok()) return Values(static_cast<size_t>(outputs), kAbsent);
  const int64_t mode = attrs.i("scores_mode");
  Hidden s{b, heads_dot(b, b.mul(q, scale_of(b, attrs, q, type)),
                        b.transpose(b.convert(k, type), {0, 1, 3, 2}))};
  ValueId kept = s.scores;  // (B,H,S,T)
  if (const double cap = attrs.f("softcap"); cap > 0)
    s.scores = b.mul(b.unary("tanh", b.div(s.scores, b.scalar(type, cap))), b.scalar(type, cap));
  if (mode == 1) kept = s.scores;
  if (has(in, 3)) {
    const ValueId mask = widened_mask(b, in[3], k);
    if (b.dtype(mask) == DType::kBool)
      s.unless(mask);
    else
      s.scores = b.add(s.scores, b.convert(mask, type));
  }
  if (attrs.i("causal") != 0) {
    ValueId row = index_along(b, s.scores, 2);
    if (has(in, 4)) row = b.add(row, b.dim(in[4], 2));
    s.unless(b.op("le", {index_along(b, s.scores, 3), row}));
  }
  if (has(in, 6))
    s.unless(b.op("lt", {index_along(b, s.scores, 3),
                         b.reshape(b.convert(in[6], DType::kI64), {-1, 1, 1, 1})}));
  if (mode == 2) kept = s.scores;
  const ValueId p = b.op("softmax", {s.scores}, {{"axis", int64_t{-1}}});
  if (mode == 3) kept = p;
  Values results{b.convert(heads_dot(b, p, b.convert(v, type)), own), k, v, b.convert(kept, own)};
  results.resize(static_cast<size_t>(outputs));
  return results;
}

// (x1, x2) -> (cos x1 - sin x2, sin x1 + cos x2)
Values rotary(Builder& b, const op::Attrs& attrs, const Values& in, int) {
  if (!b.ok() || !b.type(in[0]).ranked()) return {kAbsent};
  const auto size = b.type(in[0]).dim(3).constant();
  if (!size) {
    b.fail({Code::kUnimplemented, "rotary: the head size must be known"});
    return {kAbsent};
  }
  const int64_t dim = attrs.i("dim") > 0 ? attrs.i("dim") : *size, half = dim / 2;
  const ValueId x = widen(b, in[0]);
  const bool interleaved = attrs.i("interleaved") != 0;
  auto table = [&](ValueId t) {  // (B,1,S,dim/2)
    if (has(in, 3)) t = b.gather(t, in[3], 0);
    return b.unsqueeze(b.convert(t, b.dtype(x)), {1});
  };
  const ValueId cos = table(in[1]), sin = table(in[2]);
  const ValueId turned = dim == *size ? x : b.slice(x, 3, 0, dim);
  ValueId x1, x2;
  if (interleaved) {
    const ValueId pairs = b.reshape(turned, {0, 0, 0, half, 2});
    x1 = b.squeeze(b.slice(pairs, 4, 0, 1), {4});
    x2 = b.squeeze(b.slice(pairs, 4, 1, 2), {4});
  } else {
    x1 = b.slice(turned, 3, 0, half);
    x2 = b.slice(turned, 3, half, dim);
  }
  const ValueId real = b.sub(b.mul(cos, x1), b.mul(sin, x2)),
                imaginary = b.add(b.mul(sin, x1), b.mul(cos, x2));
  ValueId y = interleaved
                  ? b.reshape(b.concat({b.unsqueeze(real, {4}), b.unsqueeze(imaginary, {4})}, 4),
                              {0, 0, 0, dim})
                  : b.concat({real, imaginary}, 3);
  if (dim != *size) y = b.concat({y, b.slice(x, 3, dim, *size)}, 3);
  return {b.convert(y, b.dtype(in[0]))};
}

// A scan over the steps (axis 2 of every sequence).
Values linear_attention(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  const DType type = wide(b.dtype(in[0]));
  const ValueId q = b.convert(in[0], type), k = b.convert(in[1], type), v = b.convert(in[2], type);
  if (!b.ok() || !b.type(q).ranked() || !b.type(k).ranked() || !b.type(v).ranked())
    return Values(static_cast<size_t>(outputs), kAbsent);
  const ValueId scaled = b.mul(q, scale_of(b, attrs, q, type));
  const ValueId state_shape = b.concat({b.dim(k, 0), b.dim(k, 1), b.dim(k, 3), b.dim(v, 3)}, 0);
  Values inputs{
      has(in, 3) ? b.convert(in[3], type) : b.broadcast_to(b.scalar(type, 0), state_shape), scaled,
      k, v};
  for (size_t i : {4, 5})
    if (has(in, i)) inputs.push_back(b.convert(in[i], type));
  if (!b.ok()) return Values(static_cast<size_t>(outputs), kAbsent);

  Graph body("step");
  body.symbols = b.graph().symbols;
  Builder s(body, b.origin());
  Values at;
  for (size_t i = 0; i < inputs.size(); ++i) {
    op::Type t = b.type(inputs[i]);
    if (i > 0) t.shape->erase(t.shape->begin() + 2);
    at.push_back(body.add_input("x" + std::to_string(i), std::move(t)));
  }
  ValueId state = at[0];                        // (B,Hk,E,F)
  const ValueId row = s.unsqueeze(at[2], {2});  // (B,Hk,1,E)
  ValueId value = s.unsqueeze(at[3], {2});      // (B,Hk,1,F)
  if (has(in, 4)) state = s.mul(state, s.unary("exp", s.unsqueeze(at[4], {3})));
  if (has(in, 5))
    value = s.mul(s.unsqueeze(at.back(), {3}), s.sub(value, s.op("dot", {row, state})));
  state = s.add(state, s.op("dot", {s.unsqueeze(at[2], {3}), value}));
  const ValueId y = s.squeeze(heads_dot(s, s.unsqueeze(at[1], {2}), state), {2});  // (B,H,F)
  if (!s.ok()) {
    b.fail(s.status().error());
    return Values(static_cast<size_t>(outputs), kAbsent);
  }
  body.outputs = {state, y};
  body.output_names = {"state", "y"};
  std::vector<Graph> bodies;
  bodies.push_back(std::move(body));
  const auto scanned = static_cast<int64_t>(inputs.size()) - 1;
  const Values results = b.ops("scan", inputs,
                               {{"states", int64_t{1}},
                                {"scanned", scanned},
                                {"input_axes", op::Ints(inputs.size() - 1, 2)},
                                {"output_axes", op::Ints{2}},
                                {"input_reverse", op::Ints{}},
                                {"output_reverse", op::Ints{}}},
                               2, std::move(bodies));
  const DType kept = has(in, 3) ? b.dtype(in[3]) : b.dtype(in[0]);
  Values out{b.convert(results[1], b.dtype(in[0])), b.convert(results[0], kept)};
  out.resize(static_cast<size_t>(outputs));
  return out;
}

constexpr Composite kRows[] = {
    {"attention", attention}, {"rotary", rotary}, {"linear_attention", linear_attention}};

}  // namespace

std::span<const Composite> attention_composites() { return kRows; }

}  // namespace tessera::ir
