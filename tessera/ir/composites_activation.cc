// Activations and the softmax family.
#include <numbers>

#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

using Values = std::vector<ValueId>;

// One formula per element, in the wide type.
template <ValueId (*formula)(Builder&, const op::Attrs&, ValueId)>
Values each(Builder& b, const op::Attrs& attrs, const Values& in, int) {
  return {b.convert(formula(b, attrs, widen(b, in[0])), b.dtype(in[0]))};
}

ValueId relu(Builder& b, const op::Attrs&, ValueId x) { return b.max(x, b.scalar_like(x, 0)); }

ValueId negative_part(Builder& b, ValueId x, ValueId below) {
  return b.select(b.op("lt", {x, b.scalar_like(x, 0)}), below, x);
}

ValueId leaky_relu(Builder& b, const op::Attrs& attrs, ValueId x) {
  return negative_part(b, x, b.mul(x, b.scalar_like(x, attrs.f("alpha", 0.01))));
}

ValueId elu(Builder& b, const op::Attrs& attrs, ValueId x) {
  const ValueId below = b.sub(b.unary("exp", x), b.scalar_like(x, 1));
  return negative_part(b, x, b.mul(b.scalar_like(x, attrs.f("alpha", 1)), below));
}

ValueId sigmoid(Builder& b, const op::Attrs&, ValueId x) {
  const ValueId one = b.scalar_like(x, 1);
  return b.div(one, b.add(one, b.unary("exp", b.unary("neg", x))));
}

ValueId silu(Builder& b, const op::Attrs& attrs, ValueId x) {
  const double alpha = attrs.f("alpha", 1);
  return b.mul(x, b.op("sigmoid", {alpha == 1 ? x : b.mul(x, b.scalar_like(x, alpha))}));
}

ValueId hard_sigmoid(Builder& b, const op::Attrs& attrs, ValueId x) {
  const ValueId line = b.add(b.mul(x, b.scalar_like(x, attrs.f("alpha", 0.2))),
                             b.scalar_like(x, attrs.f("beta", 0.5)));
  return b.min(b.max(line, b.scalar_like(x, 0)), b.scalar_like(x, 1));
}

ValueId hard_swish(Builder& b, const op::Attrs&, ValueId x) {
  return b.mul(x, b.op("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

// The tanh formula: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), of arXiv:1606.08415.
ValueId gelu(Builder& b, const op::Attrs& attrs, ValueId x) {
  const ValueId half = b.mul(x, b.scalar_like(x, 0.5)), one = b.scalar_like(x, 1);
  if (attrs.i("tanh") == 0)
    return b.mul(half,
                 b.add(one, b.unary("erf", b.mul(x, b.scalar_like(x, std::numbers::sqrt2 / 2)))));
  const ValueId cube = b.mul(b.mul(x, x), x);
  const ValueId inner = b.add(x, b.mul(cube, b.scalar_like(x, 0.044715)));
  const double slope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return b.mul(half, b.add(one, b.unary("tanh", b.mul(inner, b.scalar_like(x, slope)))));
}

// max(x, 0) + log(1 + exp(-|x|)): exp cannot overflow.
ValueId softplus(Builder& b, const op::Attrs&, ValueId x) {
  const ValueId tail = b.unary("exp", b.unary("neg", b.unary("abs", x)));
  return b.add(b.max(x, b.scalar_like(x, 0)), b.unary("log", b.add(b.scalar_like(x, 1), tail)));
}

ValueId mish(Builder& b, const op::Attrs&, ValueId x) {
  return b.mul(x, b.unary("tanh", b.op("softplus", {x})));
}

// e / sum(e), e = exp(x - max(x))
ValueId softmax(Builder& b, const op::Attrs& attrs, ValueId x) {
  const std::vector<int64_t> axis{attrs.i("axis", -1)};
  const ValueId e = b.unary("exp", b.sub(x, b.reduce("max", x, axis, true)));
  return b.div(e, b.reduce("sum", e, axis, true));
}

// d - log(sum(exp(d))), d = x - max(x)
ValueId log_softmax(Builder& b, const op::Attrs& attrs, ValueId x) {
  const std::vector<int64_t> axis{attrs.i("axis", -1)};
  const ValueId d = b.sub(x, b.reduce("max", x, axis, true));
  return b.sub(d, b.unary("log", b.reduce("sum", b.unary("exp", d), axis, true)));
}

// 1 where the index along the axis is the least of those that hold the maximum.
ValueId hardmax(Builder& b, const op::Attrs& attrs, ValueId x) {
  const int64_t axis = axis_of(b, x, attrs.i("axis", -1));
  const ValueId at = index_along(b, x, axis);
  const ValueId end = b.scalar(DType::kI64, static_cast<double>(INT32_MAX));
  const ValueId best = b.op("eq", {x, b.reduce("max", x, {axis}, true)});
  const ValueId first = b.reduce("min", b.select(best, at, end), {axis}, true);
  return b.select(b.op("eq", {at, first}), b.scalar_like(x, 1), b.scalar_like(x, 0));
}

constexpr Composite kRows[] = {
    {"relu", each<relu>},
    {"leaky_relu", each<leaky_relu>},
    {"elu", each<elu>},
    {"sigmoid", each<sigmoid>},
    {"silu", each<silu>},
    {"hard_sigmoid", each<hard_sigmoid>},
    {"hard_swish", each<hard_swish>},
    {"gelu", each<gelu>},
    {"softplus", each<softplus>},
    {"mish", each<mish>},
    {"softmax", each<softmax>},
    {"log_softmax", each<log_softmax>},
    {"hardmax", each<hardmax>},
};

}  // namespace

std::span<const Composite> activation_composites() { return kRows; }

}  // namespace tessera::ir
