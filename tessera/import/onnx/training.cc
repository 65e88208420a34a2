// ai.onnx.preview.training: one step of an optimizer, and gradients.
#include "tessera/import/onnx/importer.h"
#include "tessera/ir/gradient.h"

namespace tessera::import::onnx {
namespace {

// Inputs are R, T, then for each kind of state all tensors: X of each, G of each, ...
struct Step {
  NodeContext& c;
  ir::Builder& b;
  size_t kinds, count;

  ValueId state(size_t kind, size_t i) const { return c.in(2 + kind * count + i); }
  ValueId number(ValueId like, double v) const { return b.scalar_like(like, v); }
  // The learning rate and such, in the type of a tensor.
  ValueId as(ValueId scalar, ValueId like) const { return b.convert(scalar, b.dtype(like)); }
  // G + norm_coefficient X
  ValueId regularized(size_t i) const {
    const ValueId x = state(0, i), g = state(1, i);
    return b.add(b.mul(number(x, c.f("norm_coefficient", 0)), x), g);
  }
  ValueId started(ValueId) const { return b.op("gt", {c.in(1), b.scalar_like(c.in(1), 0)}); }
  void out(size_t kind, size_t i, ValueId id) const { c.out(kind * count + i, id); }
};

Result<Step> step_of(NodeContext& c, size_t kinds) {
  const size_t states = c.input_count() < 2 ? 0 : c.input_count() - 2;
  if (states == 0 || states % kinds != 0)
    return error(Code::kInvalidArgument, "{}: {} inputs, need R, T and {} for each tensor",
                 c.node.op_type, c.input_count(), kinds);
  for (size_t i = 0; i < c.input_count(); ++i)
    if (!c.has(i))
      return error(Code::kInvalidArgument, "{}: input {} is missing", c.node.op_type, i);
  return Step{c, c.b, kinds, states / kinds};
}

// H += G^2; X -= R / (1 + T decay) G / (sqrt(H) + epsilon)
Status adagrad(NodeContext& c) {
  TRY_ASSIGN(const Step s, step_of(c, 3));
  ir::Builder& b = c.b;
  for (size_t i = 0; i < s.count; ++i) {
    const ValueId x = s.state(0, i), g = s.regularized(i);
    const ValueId decay = b.mul(s.as(c.in(1), x), s.number(x, c.f("decay_factor", 0)));
    const ValueId rate = b.div(s.as(c.in(0), x), b.add(s.number(x, 1), decay));
    const ValueId h = b.add(s.state(2, i), b.mul(g, g));
    const ValueId scale = b.add(b.unary("sqrt", h), s.number(x, c.f("epsilon", 1e-6f)));
    s.out(0, i, b.sub(x, b.div(b.mul(rate, g), scale)));
    s.out(1, i, h);
  }
  return {};
}

// V = alpha V + (1 - alpha) G; H = beta H + (1 - beta) G^2; r = R sqrt(1 - beta^T) / (1 - alpha^T),
// or R at T = 0; X = (1 - norm_coefficient_post) (X - r V / (sqrt(H) + epsilon))
Status adam(NodeContext& c) {
  TRY_ASSIGN(const Step s, step_of(c, 4));
  ir::Builder& b = c.b;
  const double alpha = c.f("alpha", 0.9f), beta = c.f("beta", 0.999f);
  for (size_t i = 0; i < s.count; ++i) {
    const ValueId x = s.state(0, i), g = s.regularized(i), one = s.number(x, 1),
                  t = s.as(c.in(1), x), r = s.as(c.in(0), x);
    auto blend = [&](double share, ValueId old, ValueId now) {
      return b.add(b.mul(s.number(x, share), old), b.mul(s.number(x, 1 - share), now));
    };
    const ValueId v = blend(alpha, s.state(2, i), g), h = blend(beta, s.state(3, i), b.mul(g, g));
    const ValueId corrected =
        b.div(b.mul(r, b.unary("sqrt", b.sub(one, b.op("pow", {s.number(x, beta), t})))),
              b.sub(one, b.op("pow", {s.number(x, alpha), t})));
    const ValueId rate = b.select(s.started(x), corrected, r);
    const ValueId next = b.sub(
        x, b.div(b.mul(rate, v), b.add(b.unary("sqrt", h), s.number(x, c.f("epsilon", 1e-6f)))));
    const double post = c.f("norm_coefficient_post", 0);
    s.out(0, i, post == 0 ? next : b.mul(s.number(x, 1 - post), next));
    s.out(1, i, v);
    s.out(2, i, h);
  }
  return {};
}

// V = alpha V + beta G, beta 1 at T = 0; X -= R V, or with Nesterov's momentum X -= R (G + alpha V)
Status momentum(NodeContext& c) {
  TRY_ASSIGN(const Step s, step_of(c, 3));
  ir::Builder& b = c.b;
  const std::string mode = c.s("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return c.fail("mode is '{}', need 'standard' or 'nesterov'", mode);
  for (size_t i = 0; i < s.count; ++i) {
    const ValueId x = s.state(0, i), g = s.regularized(i), alpha = s.number(x, c.f("alpha", 0));
    const ValueId beta = b.select(s.started(x), s.number(x, c.f("beta", 1)), s.number(x, 1));
    const ValueId v = b.add(b.mul(alpha, s.state(2, i)), b.mul(beta, g));
    const ValueId way = mode == "nesterov" ? b.add(g, b.mul(alpha, v)) : v;
    s.out(0, i, b.sub(x, b.mul(s.as(c.in(0), x), way)));
    s.out(1, i, v);
  }
  return {};
}

// d y / d xs of values of this graph. The inputs are the values of xs, then of zs; where one is not
// the value of that name, y is computed anew from it.
Status gradient(NodeContext& c) {
  std::vector<ValueId> named;
  op::Strings names = c.strings("xs");
  const size_t count = names.size();
  for (const std::string& z : c.strings("zs")) names.push_back(z);
  if (count == 0 || names.size() != c.input_count() || c.output_count() > count)
    return c.fail("has {} inputs and {} outputs for {} xs and {} zs", c.input_count(),
                  c.output_count(), count, names.size() - count);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!c.has(i)) return c.fail("input {} is missing", i);
    TRY_ASSIGN(const ValueId id, c.importer.lookup(names[i]));
    named.push_back(id);
  }
  TRY_ASSIGN(const ValueId target, c.importer.lookup(c.s("y", "")));
  const ValueId y = ir::substituted(c.b, target, named, c.inputs);
  TRY_ASSIGN(
      std::vector<ValueId> slopes,
      ir::gradients(c.b, y,
                    {c.inputs.begin(), c.inputs.begin() + static_cast<std::ptrdiff_t>(count)}));
  for (size_t i = 0; i < slopes.size(); ++i) c.out(i, slopes[i]);
  return {};
}

constexpr Converter kRows[] = {
    {"ai.onnx.preview.training", "Adagrad", adagrad},
    {"ai.onnx.preview.training", "Adam", adam},
    {"ai.onnx.preview.training", "Momentum", momentum},
    {"ai.onnx.preview.training", "Gradient", gradient},
};

}  // namespace

std::span<const Converter> training_converters() { return kRows; }

}  // namespace tessera::import::onnx
