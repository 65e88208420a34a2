// Operators of com.microsoft that ONNX Runtime's optimiser writes in place of standard ones, as
// what they stand for. SimplifiedLayerNormalization, its RMS norm, has the standard domain.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

ConvertFn standard(std::span<const Converter> family, std::string_view name) {
  for (const Converter& row : family)
    if (row.op_type == name && row.domain.empty()) return row.convert;
  return nullptr;
}

// What an attribute "activation" names; the parameters are those of the standard operator, in
// order.
Result<ValueId> activated(NodeContext& c, ValueId x, const op::Floats& params) {
  ir::Builder& b = c.b;
  const std::string name = c.s("activation", "");
  auto param = [&](size_t i, double otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return b.unary("relu", x);
  if (name == "Sigmoid") return b.unary("sigmoid", x);
  if (name == "Tanh") return b.unary("tanh", x);
  if (name == "LeakyRelu") return b.op("leaky_relu", {x}, {{"alpha", param(0, 0.01)}});
  if (name == "HardSigmoid")
    return b.op("hard_sigmoid", {x}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  if (name == "Clip" && params.size() == 2)
    return b.min(b.max(x, b.scalar_like(x, params[0])), b.scalar_like(x, params[1]));
  return error(Code::kUnimplemented, "{}: activation '{}' with {} parameters is not known",
               c.node.op_type, name, params.size());
}

// conv(x, w, bias?) + sum?, activation
Status fused_conv(NodeContext& c) {
  const ValueId sum = c.in(3);
  c.inputs.resize(std::min<size_t>(c.inputs.size(), 3));
  TRY(standard(conv_converters(), "Conv")(c));
  if (c.outputs.empty()) return c.fail("has no output");
  ValueId y = c.outputs[0];
  if (sum != kAbsent) y = c.b.add(y, sum);
  TRY_ASSIGN(y, activated(c, y, c.floats("activation_params")));
  c.out(0, y);
  return {};
}

Status fused_gemm(NodeContext& c) {
  TRY(standard(elementwise_converters(), "Gemm")(c));
  op::Floats params;
  for (std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.has_attr(name)) params.push_back(c.f(name, 0));
  if (c.outputs.empty()) return c.fail("has no output");
  TRY_ASSIGN(const ValueId y, activated(c, c.outputs[0], params));
  c.out(0, y);
  return {};
}

// alpha a b, with the last two axes of either swapped
Status fused_matmul(NodeContext& c) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  ir::Builder& b = c.b;
  if (c.i("transBatchA", 0) || c.i("transBatchB", 0))
    return error(Code::kUnimplemented, "{}: turned batch axes", c.node.op_type);
  std::vector<ValueId> in = c.inputs;
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!c.i(i == 0 ? "transA" : "transB", 0)) continue;
    if (!c.type(i).ranked() || c.type(i).rank() < 2)
      return c.fail("input {} is {}, need a known rank of 2 or more", i, c.type(i).str());
    op::Ints perm;
    for (int a = 0; a < c.type(i).rank(); ++a) perm.push_back(a);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    in[i] = b.transpose(in[i], std::move(perm));
  }
  ValueId y = b.op("dot", in);
  if (const double alpha = c.f("alpha", 1); alpha != 1) y = b.mul(y, b.scalar_like(y, alpha));
  c.out(0, y);
  return {};
}

Status gelu_of_sum(NodeContext& c, bool tanh) {
  const ValueId x = c.has(1) ? c.b.add(c.in(0), c.in(1)) : c.in(0);
  c.out(0, c.b.op("gelu", {x}, {{"tanh", int64_t{tanh}}}));
  return {};
}
Status gelu(NodeContext& c) { return gelu_of_sum(c, false); }
Status fast_gelu(NodeContext& c) { return gelu_of_sum(c, true); }

// x sigmoid(alpha x)
Status quick_gelu(NodeContext& c) {
  c.out(0, c.b.op("silu", {c.in(0)}, {{"alpha", c.f("alpha", 1.702f)}}));
  return {};
}

// norm(x + skip + bias?), and in the end the sum
Status skip_norm(NodeContext& c, bool rms) {
  ir::Builder& b = c.b;
  const size_t bias = rms ? 3 : 4;
  if (!c.has(2)) return c.fail("input 2 is missing");
  ValueId sum = b.add(c.in(0), c.in(1));
  if (c.has(bias)) sum = b.add(sum, c.in(bias));
  const op::Attrs attrs{{"epsilon", c.f("epsilon", rms ? 1e-5f : 1e-12f)}, {"axis", int64_t{-1}}};
  if (rms) {
    if (c.wants(1) || c.wants(2)) return c.fail("statistics are not computed");
    c.out(0, b.op("rms_norm", {sum, c.in(2)}, attrs));
  } else {
    std::vector<ValueId> in{sum, c.in(2)};
    if (c.has(3)) in.push_back(c.in(3));
    const std::vector<ValueId> all = b.ops("layer_norm", in, attrs, 3);
    for (size_t i = 0; i < all.size(); ++i) c.out(i, all[i]);
  }
  c.out(3, sum);
  return {};
}
Status skip_layer_norm(NodeContext& c) { return skip_norm(c, false); }
Status skip_rms_norm(NodeContext& c) { return skip_norm(c, true); }

Status rms_norm(NodeContext& c) {
  if (c.wants(1)) return c.fail("statistics are not computed");
  return standard(norm_converters(), "RMSNormalization")(c);
}

// x, positions (B, S), tables of cos and sin
Status rotary(NodeContext& c) {
  if (c.input_count() != 4) return c.fail("has {} inputs, need 4", c.input_count());
  if (!c.type(1).ranked() || c.type(1).rank() != 2)
    return error(Code::kUnimplemented, "{}: positions are {}, need (batch, sequence)",
                 c.node.op_type, c.type(1).str());
  if (c.f("scale", 1) != 1) return error(Code::kUnimplemented, "{}: a scale", c.node.op_type);
  c.inputs = {c.in(0), c.in(2), c.in(3), c.in(1)};
  return standard(attention_converters(), "RotaryEmbedding")(c);
}

constexpr Converter kRows[] = {
    {"", "SimplifiedLayerNormalization", rms_norm},
    {"com.microsoft", "FusedConv", fused_conv},
    {"com.microsoft", "FusedGemm", fused_gemm},
    {"com.microsoft", "FusedMatMul", fused_matmul},
    {"com.microsoft", "Gelu", gelu},
    {"com.microsoft", "BiasGelu", gelu},
    {"com.microsoft", "FastGelu", fast_gelu},
    {"com.microsoft", "QuickGelu", quick_gelu},
    {"com.microsoft", "SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", skip_rms_norm},
    {"com.microsoft", "RotaryEmbedding", rotary},
};

}  // namespace

std::span<const Converter> microsoft_converters() { return kRows; }

}  // namespace tessera::import::onnx
