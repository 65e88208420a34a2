// Activations: composites of one formula per element, and the softmax family along an axis.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum AttrKind;

Result<std::vector<Type>> float_like(const InferContext& c) {
  if (!c.in(0).is_tensor() || !is_float(c.in(0).dtype))
    return c.fail("needs a tensor of floats, got {}", c.in(0).str());
  return std::vector<Type>{c.in(0)};
}

Result<std::vector<Type>> along_axis(const InferContext& c) {
  TRY_ASSIGN(auto types, float_like(c));
  if (c.in(0).ranked())
    if (auto axis = normalize_axis(c.attrs.i("axis", -1), c.in(0).rank()); !axis)
      return error(std::move(axis).error().at(c.op));
  return types;
}

OpDef activation(std::string_view name, std::vector<AttrDef> attrs = {},
                 InferFn infer = float_like) {
  return {name, OpClass::kComposite, 1, 1, 1, 1, std::move(attrs), infer};
}

}  // namespace

std::span<const OpDef> activation_rows() {
  static const std::vector<OpDef> rows{
      activation("relu", {}, same_as_input),          // max(x, 0); any real type
      activation("leaky_relu", {{"alpha", kFloat}}),  // x >= 0 ? x : alpha x
      activation("elu", {{"alpha", kFloat}}),         // x >= 0 ? x : alpha (exp(x) - 1)
      activation("sigmoid"),                          // 1 / (1 + exp(-x))
      activation("silu", {{"alpha", kFloat}}),        // x sigmoid(alpha x), alpha 1 by default
      activation("hard_sigmoid", {{"alpha", kFloat},
                                  {"beta", kFloat}}),  // min(max(alpha x + beta, 0), 1); 0.2, 0.5
      activation("hard_swish"),                        // x hard_sigmoid(x; 1/6, 0.5)
      activation("gelu", {{"tanh", kInt}}),  // x/2 (1 + erf(x / sqrt 2)), or the tanh formula
      activation("softplus"),                // log(1 + exp(x))
      activation("mish"),                    // x tanh(softplus(x))
      activation("softmax", {{"axis", kInt}}, along_axis),  // along one axis, -1 by default
      activation("log_softmax", {{"axis", kInt}}, along_axis),
      activation("hardmax", {{"axis", kInt}}, along_axis),  // 1 at the first maximum, else 0
  };
  return rows;
}

}  // namespace tessera::op
