// Normalisations.
#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

Result<op::Attrs> statistics(NodeContext& c) {
  TRY_ASSIGN(DType stash, dtype_from_onnx(static_cast<int32_t>(c.i("stash_type", 1))));
  if (!is_float(stash))
    return error(Code::kInvalidArgument, "{}: stash_type is {}, need a float type", c.node.op_type,
                 name_of(stash));
  return op::Attrs{{"epsilon", c.f("epsilon", 1e-5f)}, {"stash", stash}};
}

Status layer_norm(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs, statistics(c));
  attrs.set("axis", c.i("axis", -1));
  if (c.input_count() > 3) return c.fail("has {} inputs, need 2 or 3", c.input_count());
  c.outputs = c.b.ops("layer_norm", c.inputs, std::move(attrs), static_cast<int>(c.output_count()));
  return {};
}

Status rms_norm(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs, statistics(c));
  attrs.set("axis", c.i("axis", -1));
  c.out(0, c.b.op("rms_norm", c.inputs, std::move(attrs)));
  return {};
}

// Before opset 21 there is one scale and bias per group: each is repeated for the group's channels.
Status group_norm(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(op::Attrs attrs, statistics(c));
  const int64_t groups = c.i("num_groups", 0);
  if (groups < 1) return c.fail("num_groups is {}, need 1 or more", groups);
  attrs.set("groups", groups);
  std::vector<ValueId> inputs = c.inputs;
  if (c.opset < 21 && inputs.size() == 3) {
    if (!c.type(0).ranked() || c.type(0).rank() < 2)
      return c.fail("needs a known rank of 2 or more, got {}", c.type(0).str());
    const ValueId size = b.op("div", {b.dim(c.in(0), 1), b.ints({groups})});
    for (size_t i : {size_t{1}, size_t{2}})
      inputs[i] = b.reshape(
          b.broadcast_to(b.reshape(inputs[i], {groups, 1}), b.concat({b.ints({groups}), size}, 0)),
          {-1});
  }
  c.out(0, b.op("group_norm", std::move(inputs), std::move(attrs)));
  return {};
}

// x / norm(x), and 0 where the norm is 0
Status lp_norm(NodeContext& c) {
  ir::Builder& b = c.b;
  const int64_t p = c.i("p", 2), axis = c.i("axis", -1);
  if (p != 1 && p != 2) return c.fail("p is {}, need 1 or 2", p);
  const ValueId x = ir::widen(b, c.in(0)), zero = b.scalar_like(x, 0);
  const ValueId norm = p == 1 ? b.reduce("sum", b.unary("abs", x), {axis}, true)
                              : b.unary("sqrt", b.reduce("sum", b.mul(x, x), {axis}, true));
  const ValueId none = b.op("eq", {norm, zero});
  const ValueId y = b.div(x, b.select(none, b.scalar_like(x, 1), norm));
  c.out(0, b.convert(b.select(none, zero, y), b.dtype(c.in(0))));
  return {};
}

// (x - mean) / (sqrt(mean(x^2) - mean^2) + 1e-9)
Status mean_variance(NodeContext& c) {
  ir::Builder& b = c.b;
  if (!c.type(0).ranked()) return c.fail("needs a known rank");
  op::Ints axes = c.ints("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = ir::axis_of(b, c.in(0), axis);
  TRY(b.status());
  const ValueId x = ir::widen(b, c.in(0)), mean = ir::mean(b, x, axes);
  const ValueId variance = b.sub(ir::mean(b, b.mul(x, x), axes), b.mul(mean, mean));
  const ValueId deviation = b.unary("sqrt", b.max(variance, b.scalar_like(x, 0)));
  c.out(0, b.convert(b.div(b.sub(x, mean), b.add(deviation, b.scalar_like(x, 1e-9))),
                     b.dtype(c.in(0))));
  return {};
}

constexpr Converter kRows[] = {
    {"", "LayerNormalization", layer_norm},           {"", "RMSNormalization", rms_norm},
    {"", "GroupNormalization", group_norm},           {"", "LpNormalization", lp_norm},
    {"", "MeanVarianceNormalization", mean_variance},
};

}  // namespace

std::span<const Converter> norm_converters() { return kRows; }

}  // namespace tessera::import::onnx
