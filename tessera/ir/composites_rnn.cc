// Recurrent layers as a scan over the steps; per direction, with the product by W taken out of it.
// Letters as in op/rows_rnn.cc.
#include <cmath>

#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

using Values = std::vector<ValueId>;

bool has(const Values& in, size_t i) { return i < in.size() && in[i] != kAbsent; }

struct Activations {
  op::Strings names;
  op::Floats alpha, beta;
  double clip;

  ValueId apply(Builder& b, size_t i, ValueId x) const {
    if (std::isfinite(clip)) x = b.min(b.max(x, b.scalar_like(x, -clip)), b.scalar_like(x, clip));
    return unclipped(b, i, x);
  }
  ValueId unclipped(Builder& b, size_t i, ValueId x) const {
    auto number = [&](double v) { return b.scalar_like(x, v); };
    const std::string& name = names[i];
    const double a = alpha[i], c = beta[i];
    if (name == "tanh") return b.unary("tanh", x);
    if (name == "sigmoid" || name == "relu" || name == "softplus") return b.op(name, {x});
    if (name == "elu" || name == "leaky_relu") return b.op(name, {x}, {{"alpha", a}});
    if (name == "hard_sigmoid") return b.op(name, {x}, {{"alpha", a}, {"beta", c}});
    if (name == "affine") return b.add(b.mul(x, number(a)), number(c));
    if (name == "scaled_tanh") return b.mul(b.unary("tanh", b.mul(x, number(c))), number(a));
    if (name == "softsign") return b.div(x, b.add(number(1), b.unary("abs", x)));
    if (name == "thresholded_relu") return b.select(b.op("ge", {x, number(a)}), x, number(0));
    b.fail({Code::kInvalidArgument, fmt::format("unknown activation '{}'", name)});
    return kAbsent;
  }
};

// What a step sees, in the body graph: xw (N, G*H) holds W x and the biases of W.
struct Step {
  Builder& b;
  const Activations& f;
  ValueId xw, h, c, rt, rb, p;  // h, c (N, H); rt (H, G*H); rb (G*H) and p (3*H) or kAbsent
  int64_t H;
  bool flag;

  ValueId part(ValueId x, int64_t gate, int64_t gates = 1) const {
    return b.slice(x, b.rank(x) - 1, gate * H, (gate + gates) * H);
  }
  ValueId recurrence(ValueId state, int64_t gate, int64_t gates) const {
    const ValueId y = b.op("dot", {state, part(rt, gate, gates)});
    return rb == kAbsent ? y : b.add(y, part(rb, gate, gates));
  }
  ValueId blend(ValueId share, ValueId x, ValueId y) const {  // (1 - share) x + share y
    return b.add(b.mul(b.sub(b.scalar_like(share, 1), share), x), b.mul(share, y));
  }
};
using Cell = void (*)(Step&);  // replaces h and c

void rnn_cell(Step& s) { s.h = s.f.apply(s.b, 0, s.b.add(s.xw, s.recurrence(s.h, 0, 1))); }

void gru_cell(Step& s) {
  Builder& b = s.b;
  const ValueId zr = s.f.apply(b, 0, b.add(s.part(s.xw, 0, 2), s.recurrence(s.h, 0, 2)));
  const ValueId z = s.part(zr, 0), r = s.part(zr, 1);
  const ValueId back =
      s.flag ? b.mul(r, s.recurrence(s.h, 2, 1)) : s.recurrence(b.mul(r, s.h), 2, 1);
  s.h = s.blend(z, s.f.apply(b, 1, b.add(s.part(s.xw, 2), back)), s.h);
}

void lstm_cell(Step& s) {
  Builder& b = s.b;
  const ValueId gates = b.add(s.xw, s.recurrence(s.h, 0, 4));
  auto peep = [&](int64_t gate, ValueId cell) {
    const ValueId x = s.part(gates, gate);
    return s.p == kAbsent ? x : b.add(x, b.mul(s.part(s.p, gate), cell));
  };
  const ValueId i = s.f.apply(b, 0, peep(0, s.c));
  const ValueId f = s.flag ? b.sub(b.scalar_like(i, 1), i) : s.f.apply(b, 0, peep(2, s.c));
  s.c = b.add(b.mul(f, s.c), b.mul(i, s.f.apply(b, 1, s.part(gates, 3))));
  s.h = b.mul(s.f.apply(b, 0, peep(1, s.c)), s.f.unclipped(b, 2, s.c));
}

// Row d of a stacked parameter.
ValueId direction(Builder& b, ValueId x, int64_t d) {
  return b.squeeze(b.slice(x, 0, d, d + 1), {0});
}

// One direction: (y (T,N,H), last h, last c).
Values sequence(Builder& b, const Values& in, const Activations& f, int64_t d, bool reverse,
                int64_t H, int64_t G, Cell cell, bool flag) {
  const bool lstm = G == 4;
  ValueId xw = b.op("dot", {in[0], b.transpose(direction(b, in[1], d), {1, 0})});  // (T, N, G*H)
  const ValueId bias = has(in, 3) ? direction(b, in[3], d) : kAbsent;
  if (bias != kAbsent) xw = b.add(xw, b.slice(bias, 0, 0, G * H));
  const ValueId zero =
      b.broadcast_to(b.scalar_like(xw, 0), b.concat({b.dim(in[0], 1), b.ints({H})}, 0));
  Values states{has(in, 5) ? direction(b, in[5], d) : zero};
  if (lstm) states.push_back(has(in, 6) ? direction(b, in[6], d) : zero);
  Values scanned{xw};
  if (has(in, 4)) {
    const ValueId length = b.reshape(b.convert(in[4], DType::kI64), {1, -1, 1});
    scanned.push_back(b.op("lt", {index_along(b, xw, 0), length}));  // (T, N, 1)
  }
  Values outer{b.transpose(direction(b, in[2], d), {1, 0})};
  if (bias != kAbsent) outer.push_back(b.slice(bias, 0, G * H, 2 * G * H));
  if (has(in, 7)) outer.push_back(direction(b, in[7], d));
  if (!b.ok()) return Values(3, kAbsent);

  Graph body("step");
  body.symbols = b.graph().symbols;
  auto argument = [&](ValueId id, bool slice) {
    op::Type type = b.type(id);
    if (slice) type.shape->erase(type.shape->begin());
    return body.add_input("x" + std::to_string(body.inputs.size()), std::move(type));
  };
  Builder s(body, b.origin());
  const ValueId h = argument(states[0], false), c = lstm ? argument(states[1], false) : kAbsent;
  Step step{s, f, argument(xw, true), h, c, kAbsent, kAbsent, kAbsent, H, flag};
  const ValueId visible = has(in, 4) ? argument(scanned[1], true) : kAbsent;
  step.rt = argument(outer[0], false);
  if (bias != kAbsent) step.rb = argument(outer[1], false);
  if (has(in, 7)) step.p = argument(outer.back(), false);
  cell(step);
  ValueId y = step.h;
  if (visible != kAbsent) {
    y = s.select(visible, step.h, s.scalar_like(step.h, 0));
    step.h = s.select(visible, step.h, h);
    if (lstm) step.c = s.select(visible, step.c, c);
  }
  body.outputs = lstm ? Values{step.h, step.c, y} : Values{step.h, y};
  body.output_names.resize(body.outputs.size());
  if (!s.ok()) {
    b.fail(s.status().error());
    return Values(3, kAbsent);
  }
  Values inputs = states;
  inputs.insert(inputs.end(), scanned.begin(), scanned.end());
  inputs.insert(inputs.end(), outer.begin(), outer.end());
  std::vector<Graph> bodies;
  bodies.push_back(std::move(body));
  const int64_t back = reverse;
  const Values results = b.ops("scan", std::move(inputs),
                               {{"states", static_cast<int64_t>(states.size())},
                                {"scanned", static_cast<int64_t>(scanned.size())},
                                {"input_axes", op::Ints(scanned.size(), 0)},
                                {"output_axes", op::Ints{0}},
                                {"input_reverse", op::Ints(scanned.size(), back)},
                                {"output_reverse", op::Ints{back}}},
                               lstm ? 3 : 2, std::move(bodies));
  return {results.back(), results[0], lstm ? results[1] : kAbsent};
}

Values layer(Builder& b, const op::Attrs& attrs, const Values& in, int outputs, int64_t G,
             size_t functions, Cell cell) {
  Values none(static_cast<size_t>(outputs), kAbsent);
  if (!b.ok()) return none;
  const auto H = b.type(in[2]).ranked() ? b.type(in[2]).dim(2).constant() : std::nullopt;
  if (!H || !b.type(in[0]).ranked()) {
    b.fail({Code::kUnimplemented, "a recurrent layer needs a known rank and hidden size"});
    return none;
  }
  const std::string way = attrs.s("direction", "forward");
  const bool flag = attrs.i("linear_before_reset") != 0 || attrs.i("input_forget") != 0;
  Values y, h, c;
  for (int64_t d = 0; d < (way == "bidirectional" ? 2 : 1); ++d) {
    Activations f{{}, {}, {}, attrs.f("clip", INFINITY)};
    for (size_t i = 0; i < functions; ++i) {
      const size_t at = static_cast<size_t>(d) * functions + i;
      f.names.push_back(attrs.strings("activations")[at]);
      f.alpha.push_back(attrs.floats("alpha")[at]);
      f.beta.push_back(attrs.floats("beta")[at]);
    }
    const Values one = sequence(b, in, f, d, d == 1 || way == "reverse", *H, G, cell, flag);
    y.push_back(b.unsqueeze(one[0], {1}));
    h.push_back(b.unsqueeze(one[1], {0}));
    if (G == 4) c.push_back(b.unsqueeze(one[2], {0}));
  }
  Values results{b.concat(y, 1), b.concat(h, 0), G == 4 ? b.concat(c, 0) : kAbsent};
  results.resize(static_cast<size_t>(outputs));
  return results;
}

Values rnn(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  return layer(b, attrs, in, outputs, 1, 1, rnn_cell);
}
Values gru(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  return layer(b, attrs, in, outputs, 3, 2, gru_cell);
}
Values lstm(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  return layer(b, attrs, in, outputs, 4, 3, lstm_cell);
}

constexpr Composite kRows[] = {{"rnn", rnn}, {"gru", gru}, {"lstm", lstm}};

}  // namespace

std::span<const Composite> rnn_composites() { return kRows; }

}  // namespace tessera::ir
