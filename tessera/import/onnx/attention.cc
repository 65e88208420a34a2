// Attention, FlexAttention, LinearAttention and RotaryEmbedding.
#include <cmath>

#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

// (B, S, heads * E) -> (B, heads, S, E)
Result<ValueId> split_heads(NodeContext& c, ValueId x, int64_t heads) {
  ir::Builder& b = c.b;
  const op::Expr hidden = b.type(x).dim(2);
  if (heads < 1)
    return error(Code::kInvalidArgument, "{}: {} heads for the rank-3 input {}", c.node.op_type,
                 heads, b.type(x).str());
  if (const auto size = hidden.constant(); size && *size % heads != 0)
    return error(Code::kInvalidArgument, "{}: the last size of {} is no multiple of {} heads",
                 c.node.op_type, b.type(x).str(), heads);
  const int64_t size = hidden.is_constant() ? *hidden.constant() / heads : -1;
  return b.transpose(b.reshape(x, {0, 0, heads, size}), {0, 2, 1, 3});
}

// (B, heads, S, E) -> (B, S, heads * E)
ValueId join_heads(ir::Builder& b, ValueId x) {
  if (!b.ok()) return kAbsent;
  const op::Expr hidden = b.type(x).dim(1) * b.type(x).dim(3);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {0, 0, hidden.constant().value_or(-1)});
}

Status check_rank(NodeContext& c, size_t i, int low, int high) {
  if (!c.has(i)) return c.fail("input {} is missing", i);
  if (!c.type(i).ranked()) return c.fail("input {} must have a known rank", i);
  if (c.type(i).rank() < low || c.type(i).rank() > high)
    return c.fail("input {} is {}, need rank {} to {}", i, c.type(i).str(), low, high);
  return {};
}

Status attention(NodeContext& c) {
  for (size_t i = 0; i < 3; ++i) TRY(check_rank(c, i, 3, 4));
  const bool packed = c.type(0).rank() == 3;
  std::vector<ValueId> inputs = c.inputs;
  for (size_t i = 0; i < 3; ++i) {
    if ((c.type(i).rank() == 3) != packed)
      return c.fail("inputs 0 and {} are {} and {}: need one rank", i, c.type(0).str(),
                    c.type(i).str());
    if (!packed) continue;
    TRY_ASSIGN(inputs[i],
               split_heads(c, inputs[i], c.i(i == 0 ? "q_num_heads" : "kv_num_heads", 0)));
  }
  op::Attrs attrs{{"causal", c.i("is_causal", 0)}, {"softcap", c.f("softcap", 0)}};
  if (c.has_attr("scale")) attrs.set("scale", c.f("scale", 1));
  if (c.has_attr("softmax_precision")) {
    TRY_ASSIGN(DType precision, dtype_from_onnx(static_cast<int32_t>(c.i("softmax_precision", 1))));
    if (!is_float(precision))
      return c.fail("softmax_precision is {}, need a float type", name_of(precision));
    attrs.set("softmax", precision);
  }
  const int64_t mode = c.i("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return c.fail("qk_matmul_output_mode is {}, need 0 to 3", mode);
  attrs.set("scores_mode", mode);
  c.outputs =
      c.b.ops("attention", std::move(inputs), std::move(attrs), static_cast<int>(c.output_count()));
  if (packed) c.out(0, join_heads(c.b, c.outputs[0]));
  return {};
}

// A modifier: a body of one input, inlined.
Result<ValueId> modified(NodeContext& c, std::string_view name, ValueId x) {
  const AttributeProto* a = c.node.find(name);
  if (!a || !a->g) return x;
  TRY(c.b.status());
  TRY_ASSIGN(Importer::Body body, c.importer.import_body(*a->g, {c.b.type(x)}));
  if (body.graph.outputs.size() != 1)
    return error(Code::kInvalidArgument, "{}: {} yields {} values, need 1", c.node.op_type, name,
                 body.graph.outputs.size());
  std::vector<ValueId> inputs{x};
  TRY_ASSIGN(const std::vector<ValueId> captured, c.importer.lookup_all(body.captures));
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return ir::inlined(c.b, body.graph, inputs)[0];
}

// softmax(scale q k^T) v; with modifiers of scores or probabilities, the parts.
Status flex_attention(NodeContext& c) {
  ir::Builder& b = c.b;
  for (size_t i = 0; i < 3; ++i) TRY(check_rank(c, i, 4, 4));
  const DType own = c.type(0).dtype;
  DType type = own == DType::kF64 ? own : DType::kF32;
  if (c.has_attr("softmax_precision")) {
    TRY_ASSIGN(type, dtype_from_onnx(static_cast<int32_t>(c.i("softmax_precision", 1))));
    if (!is_float(type)) return c.fail("softmax_precision is {}, need a float type", name_of(type));
  }
  if (!c.has_attr("score_mod") && !c.has_attr("prob_mod")) {
    op::Attrs attrs{{"softmax", type}};
    if (c.has_attr("scale")) attrs.set("scale", c.f("scale", 1));
    c.out(0, b.op("attention", {c.in(0), c.in(1), c.in(2)}, std::move(attrs)));
    return {};
  }
  const DType compute = ir::wider(ir::wide(own), type);
  const auto size = c.type(0).dim(3).constant();
  if (!size && !c.has_attr("scale")) return c.fail("needs a scale where the head size is unknown");
  const double scale =
      c.has_attr("scale") ? c.f("scale", 1) : 1 / std::sqrt(static_cast<double>(*size));
  const ValueId q = b.mul(b.convert(c.in(0), compute), b.scalar(compute, scale));
  const ValueId scores =
      b.convert(ir::heads_dot(b, q, b.transpose(b.convert(c.in(1), compute), {0, 1, 3, 2})), type);
  TRY_ASSIGN(const ValueId masked, modified(c, "score_mod", scores));
  TRY_ASSIGN(const ValueId p,
             modified(c, "prob_mod", b.op("softmax", {masked}, {{"axis", int64_t{-1}}})));
  TRY(b.status());
  c.out(0, b.convert(ir::heads_dot(b, b.convert(p, compute), b.convert(c.in(2), compute)), own));
  return {};
}

// Packed (B, T, heads * size) inputs; the update rule says which of decay and beta there are.
Status linear_attention(NodeContext& c) {
  ir::Builder& b = c.b;
  const std::string rule = c.s("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return c.fail("unknown update_rule '{}'", rule);
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (gated != c.has(4))
    return c.fail("update_rule '{}' {} decay", rule, gated ? "needs" : "forbids");
  if (delta != c.has(5))
    return c.fail("update_rule '{}' {} beta", rule, delta ? "needs" : "forbids");
  const int64_t heads = c.i("q_num_heads", 0), kv_heads = c.i("kv_num_heads", 0);
  std::vector<ValueId> inputs = c.inputs;
  inputs.resize(6, kAbsent);
  for (size_t i = 0; i < 3; ++i) {
    TRY(check_rank(c, i, 3, 3));
    TRY_ASSIGN(inputs[i], split_heads(c, inputs[i], i == 0 ? heads : kv_heads));
  }
  if (gated) {
    TRY(check_rank(c, 4, 3, 3));
    TRY_ASSIGN(inputs[4], split_heads(c, inputs[4], kv_heads));
  }
  if (delta) {
    TRY(check_rank(c, 5, 3, 3));
    const auto size = c.type(5).dim(2).constant();
    if (!size) return c.fail("beta is {}: its last size must be known", c.type(5).str());
    TRY_ASSIGN(inputs[5], split_heads(c, inputs[5], *size));
  }
  op::Attrs attrs;
  if (const double scale = c.f("scale", 0); scale != 0) attrs.set("scale", scale);
  c.outputs = b.ops("linear_attention", std::move(inputs), std::move(attrs),
                    static_cast<int>(c.output_count()));
  c.out(0, join_heads(b, c.outputs[0]));
  return {};
}

Status rotary(NodeContext& c) {
  TRY(check_rank(c, 0, 3, 4));
  const bool packed = c.type(0).rank() == 3;
  std::vector<ValueId> inputs = c.inputs;
  if (packed) {
    TRY_ASSIGN(inputs[0], split_heads(c, inputs[0], c.i("num_heads", 0)));
  }
  const ValueId y =
      c.b.op("rotary", std::move(inputs),
             {{"interleaved", c.i("interleaved", 0)}, {"dim", c.i("rotary_embedding_dim", 0)}});
  c.out(0, packed ? join_heads(c.b, y) : y);
  return {};
}

constexpr Converter kRows[] = {
    {"", "Attention", attention},
    {"", "LinearAttention", linear_attention},
    {"", "RotaryEmbedding", rotary},
    {"ai.onnx.preview", "FlexAttention", flex_attention},
};

}  // namespace

std::span<const Converter> attention_converters() { return kRows; }

}  // namespace tessera::import::onnx
