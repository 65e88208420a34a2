// Normalisation by channel, and dropout. N, C: batch and channels.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// The mean over all axes but the channels: (C)
ValueId mean_by_channel(ir::Builder& b, ValueId x) {
  op::Ints perm{1, 0};
  for (int i = 2; i < b.rank(x); ++i) perm.push_back(i);
  const ValueId rows = b.reshape(b.transpose(x, perm), {0, 1, -1});  // (C, 1, N...)
  return b.reshape(b.op("global_average_pool", {rows}), {-1});
}

// Where scale, bias, mean and variance have other types than x, all is computed in the widest of
// them.
DType compute_type(const NodeContext& c, bool training) {
  bool same = true, wide = false;
  for (size_t i = 0; i < 5; ++i) {
    same &= c.type(i).dtype == c.type(0).dtype;
    wide |= c.type(i).dtype == DType::kF64;
  }
  if (wide) return DType::kF64;
  return same && !training ? c.type(0).dtype : DType::kF32;
}

// Before opset 14, a node that yields statistics is in training mode. Before 9, spatial=0 keeps
// statistics per element of (C, ...), so that all of it counts as channels.
Status batch_normalization(NodeContext& c) {
  if (c.input_count() != 5) return c.fail("has {} inputs, need 5", c.input_count());
  ir::Builder& b = c.b;
  const bool statistics = c.wants(1) || c.wants(2) || c.wants(3) || c.wants(4);
  const bool training =
      c.opset >= 14 ? c.i("training_mode", 0) != 0 : statistics && !c.i("is_test", 0);
  if (statistics && !training) return c.fail("yields statistics, but is not in training mode");
  if (!c.type(0).ranked()) return c.fail("needs an input of known rank");
  const bool flatten = c.opset < 9 && !c.i("spatial", 1);
  const DType dtype = c.type(0).dtype, computed = compute_type(c, training);
  std::vector<ValueId> in;
  for (ValueId id : c.inputs) in.push_back(b.convert(id, computed));
  const ValueId shape = b.op("shape_of", {c.in(0)}), statistics_shape = b.op("shape_of", {c.in(3)});
  const bool reshaped = flatten || b.rank(in[0]) < 2;
  if (reshaped) in[0] = flatten ? b.reshape(in[0], {0, -1}) : b.reshape(in[0], {-1, 1});
  if (flatten)
    for (size_t i = 1; i < 5; ++i) in[i] = b.reshape(in[i], {-1});
  ValueId mean = in[3], var = in[4];
  if (training) {
    op::Ints by_channel(static_cast<size_t>(b.rank(in[0]) - 1), 1);
    by_channel[0] = -1;
    mean = mean_by_channel(b, in[0]);
    const ValueId centred = b.sub(in[0], b.reshape(mean, by_channel));
    var = mean_by_channel(b, b.mul(centred, centred));
    const double momentum = c.f("momentum", 0.9f);
    auto running = [&](size_t i, ValueId current) {
      const ValueId value = b.add(b.mul(in[i], b.scalar(computed, momentum)),
                                  b.mul(current, b.scalar(computed, 1 - momentum)));
      return b.convert(flatten ? b.op("reshape", {value, statistics_shape}) : value,
                       c.type(i).dtype);
    };
    auto saved = [&](ValueId current) {
      return b.convert(flatten ? b.op("reshape", {current, statistics_shape}) : current,
                       c.type(3).dtype);
    };
    if (c.wants(1)) c.out(1, running(3, mean));
    if (c.wants(2)) c.out(2, running(4, var));
    if (c.wants(3)) c.out(3, saved(mean));
    if (c.wants(4)) c.out(4, saved(var));
  }
  ValueId y =
      b.op("batch_norm", {in[0], in[1], in[2], mean, var}, {{"epsilon", c.f("epsilon", 1e-5f)}});
  if (reshaped) y = b.op("reshape", {y, shape});
  c.out(0, b.convert(y, dtype));
  return {};
}

Status instance_normalization(NodeContext& c) {
  if (c.input_count() != 3) return c.fail("has {} inputs, need 3", c.input_count());
  c.out(0, c.b.op("instance_norm", c.inputs, {{"epsilon", c.f("epsilon", 1e-5f)}}));
  return {};
}

Status lrn(NodeContext& c) {
  c.out(0, c.b.op("lrn", c.inputs,
                  {{"alpha", c.f("alpha", 1e-4f)},
                   {"beta", c.f("beta", 0.75f)},
                   {"bias", c.f("bias", 1)},
                   {"size", c.i("size", 0)}}));
  return {};
}

// Versions 1 and 6 drop unless is_test; 7 and 10 never; from 12 on, input 2 says so. Before 10, the
// mask has the type of the data.
Status dropout(NodeContext& c) {
  ir::Builder& b = c.b;
  if (c.input_count() < 1 || c.input_count() > 3)
    return c.fail("has {} inputs, need 1 to 3", c.input_count());
  ValueId ratio = c.in(1), training = c.in(2);
  if (c.opset < 12) {
    ratio = training = kAbsent;
    if (c.opset < 7 && !c.i("is_test", 0)) {
      ratio = b.scalar(DType::kF32, c.f("ratio", 0.5));
      training = b.scalar(DType::kBool, 1);
    }
  }
  const op::Tensor* known = c.opset < 12 ? nullptr : c.constant(2);
  if (known && known->dtype() == DType::kBool && known->count() == 1 && !known->i64(0))
    training = kAbsent;
  ValueId y, mask = kAbsent;
  if (training == kAbsent) {
    y = b.op("identity", {c.in(0)});
    if (c.wants(1)) mask = b.broadcast_to(b.scalar(DType::kBool, 1), b.op("shape_of", {c.in(0)}));
  } else {
    const std::vector<ValueId> out = b.ops("dropout", {c.in(0), ratio, training},
                                           {{"seed", c.i("seed", 0)}}, c.wants(1) ? 2 : 1);
    y = out[0];
    if (c.wants(1)) mask = out[1];
  }
  c.out(0, y);
  if (c.wants(1)) c.out(1, c.opset < 10 ? b.convert(mask, c.type(0).dtype) : mask);
  return {};
}

constexpr Converter kRows[] = {
    {"", "BatchNormalization", batch_normalization},
    {"", "Dropout", dropout},
    {"", "InstanceNormalization", instance_normalization},
    {"", "LRN", lrn},
};

}  // namespace

std::span<const Converter> batch_norm_converters() { return kRows; }

}  // namespace tessera::import::onnx
