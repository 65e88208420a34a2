// Operators whose places are data, and those made of them.
#include <algorithm>

#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"
#include "tessera/op/rules.h"

namespace tessera::import::onnx {
namespace {

using op::Attrs;

// One input alone may stand for a whole-number scalar of any shape of one element.
ValueId as_scalar(ir::Builder& b, ValueId id) { return b.reshape(b.convert(id, DType::kI64), {}); }

Status needs(NodeContext& c, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i)
    if (!c.has(i)) return c.fail("input {} is missing", i);
  return {};
}

// The rank of input 0, which conversions into primitives need.
Result<int> known_rank(NodeContext& c) {
  if (!c.type(0).ranked())
    return error(Code::kUnimplemented, "{}: the rank of the input must be known", c.node.op_type);
  return c.type(0).rank();
}

Status gather_elements(NodeContext& c) {
  TRY(needs(c, 2));
  c.out(0, c.b.op("gather_elements", {c.in(0), c.in(1)}, {{"axis", c.i("axis", 0)}}));
  return {};
}

Status gather_nd(NodeContext& c) {
  TRY(needs(c, 2));
  c.out(0, c.b.op("gather_nd", {c.in(0), c.in(1)}, {{"batch_dims", c.i("batch_dims", 0)}}));
  return {};
}

Status scatter_elements(NodeContext& c) {
  TRY(needs(c, 3));
  c.out(0, c.b.op("scatter_elements", {c.in(0), c.in(1), c.in(2)},
                  {{"axis", c.i("axis", 0)}, {"reduction", c.s("reduction", "none")}}));
  return {};
}

Status scatter_nd(NodeContext& c) {
  TRY(needs(c, 3));
  c.out(0, c.b.op("scatter_nd", {c.in(0), c.in(1), c.in(2)},
                  {{"reduction", c.s("reduction", "none")}}));
  return {};
}

// TensorScatter: rows written into a cache from write_indices[batch] on, modulo its length where
// circular.
Status tensor_scatter(NodeContext& c) {
  TRY(needs(c, 2));
  ir::Builder& b = c.b;
  const ValueId cache = c.in(0), update = c.in(1);
  const std::string mode = c.s("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.fail("unknown mode '{}'", mode);
  TRY_ASSIGN(int rank, known_rank(c));
  TRY_ASSIGN(int axis, op::normalize_axis(c.i("axis", -2), rank));
  if (axis == 0) return c.fail("axis 0 is the batch");
  if (b.rank(update) != rank)
    return c.fail("the update has rank {}, the cache {}", b.rank(update), rank);
  ValueId place = ir::index_along(b, update, axis);
  if (c.has(2)) place = b.add(place, b.unsqueeze(c.in(2), ir::range(1, rank)));
  if (mode == "circular") place = b.op("mod", {place, b.reshape(b.dim(cache, axis), {})});
  c.out(0, b.op("scatter_elements", {cache, b.broadcast_to(place, b.shape_of(update)), update},
                {{"axis", int64_t{axis}}}));
  return {};
}

// NonZero. Of a constant-filled list (how exporters count up) it is a range, whose length is known.
Status non_zero(NodeContext& c) {
  TRY(needs(c, 1));
  const ir::Graph& g = c.b.graph();
  const ir::ValueInfo& x = g.value(c.in(0));
  if (x.producer >= 0 && x.type.ranked() && x.type.rank() == 1) {
    const ir::Node& node = g.nodes[static_cast<size_t>(x.producer)];
    const op::Tensor* fill = node.op->name == "broadcast_to" && g.value(node.inputs[0]).constant
                                 ? &*g.value(node.inputs[0]).constant
                                 : nullptr;
    if (fill && fill->count() == 1 && fill->dtype() != DType::kString && fill->f64(0) != 0) {
      c.out(0, c.b.unsqueeze(ir::count_up(c.b, c.b.dim(c.in(0), 0)), {0}));
      return {};
    }
  }
  c.out(0, c.b.op("non_zero", {c.in(0)}));
  return {};
}

// Compress: the condition may be shorter than the axis.
Status compress(NodeContext& c) {
  TRY(needs(c, 2));
  ir::Builder& b = c.b;
  const ValueId at = b.squeeze(b.op("non_zero", {c.in(1)}), {0});
  const ValueId x = c.has_attr("axis") ? c.in(0) : b.reshape(c.in(0), {-1});
  c.out(0, b.gather(x, at, c.i("axis", 0)));
  return {};
}

Status unique(NodeContext& c) {
  TRY(needs(c, 1));
  Attrs attrs{{"sorted", c.i("sorted", 1)}};
  if (c.has_attr("axis")) attrs.set("axis", c.i("axis", 0));
  const auto ids =
      c.b.ops("unique", {c.in(0)}, std::move(attrs), static_cast<int>(c.output_count()));
  for (size_t i = 0; i < ids.size(); ++i) c.out(i, ids[i]);
  return {};
}

// TopK: k is an attribute before opset 10.
Status top_k(NodeContext& c) {
  if (c.opset >= 10) TRY(needs(c, 2));
  const ValueId k = c.opset < 10 ? c.b.ints({c.i("k", 1)}) : c.in(1);
  const auto ids = c.b.ops(
      "top_k", {c.in(0), k},
      {{"axis", c.i("axis", -1)}, {"largest", c.i("largest", 1)}, {"sorted", c.i("sorted", 1)}}, 2);
  c.out(0, ids[0]);
  c.out(1, ids[1]);
  return {};
}

Status arg(NodeContext& c) {
  TRY(needs(c, 1));
  c.out(0, c.b.op(c.node.op_type == "ArgMax" ? "argmax" : "argmin", {c.in(0)},
                  {{"axis", c.i("axis", 0)},
                   {"keepdims", c.i("keepdims", 1)},
                   {"select_last", c.i("select_last_index", 0)}}));
  return {};
}

Status cumulative(NodeContext& c) {
  TRY(needs(c, 2));
  c.out(0, c.b.op("cumulative", {c.in(0), c.in(1)},
                  {{"kind", std::string(c.node.op_type == "CumSum" ? "sum" : "prod")},
                   {"exclusive", c.i("exclusive", 0)},
                   {"reverse", c.i("reverse", 0)}}));
  return {};
}

// Tile: opset 1 repeats one axis, both numbers being inputs.
Status tile(NodeContext& c) {
  ir::Builder& b = c.b;
  if (c.opset >= 6) {
    TRY(needs(c, 2));
    c.out(0, b.op("tile", {c.in(0), c.in(1)}));
    return {};
  }
  TRY(needs(c, 3));
  TRY_ASSIGN(int rank, known_rank(c));
  const ValueId at = b.op("eq", {b.ints(ir::range(0, rank)), as_scalar(b, c.in(2))});
  c.out(0, b.op("tile", {c.in(0), b.select(at, as_scalar(b, c.in(1)), b.scalar(DType::kI64, 1))}));
  return {};
}

// OneHot: an index equals its place along the new axis; negative ones count from the end.
Status one_hot(NodeContext& c) {
  TRY(needs(c, 3));
  ir::Builder& b = c.b;
  TRY_ASSIGN(int rank, known_rank(c));
  TRY_ASSIGN(int axis, op::normalize_axis(c.i("axis", -1), rank + 1));
  const ValueId depth = as_scalar(b, c.in(1));
  ValueId index = b.convert(c.in(0), DType::kI64);
  index = b.select(b.op("lt", {index, b.scalar(DType::kI64, 0)}), b.add(index, depth), index);
  ValueId places = ir::count_up(b, depth);
  if (rank > axis) places = b.unsqueeze(places, ir::range(1, rank - axis + 1));
  const ValueId hit = b.op("eq", {b.unsqueeze(index, {axis}), places});
  auto value = [&](int64_t i) {
    return b.gather(c.in(2), b.constant(op::Tensor::scalar(DType::kI64, i)), 0);
  };
  c.out(0, b.select(hit, value(1), value(0)));
  return {};
}

// column - row, (M, N), of the last two axes of x
ValueId diagonal_of(ir::Builder& b, ValueId x) {
  return b.sub(b.unsqueeze(ir::count_up(b, b.dim(x, -1)), {0}),
               b.unsqueeze(ir::count_up(b, b.dim(x, -2)), {1}));
}

Status eye_like(NodeContext& c) {
  TRY(needs(c, 1));
  ir::Builder& b = c.b;
  DType dtype = c.type(0).dtype;
  if (c.has_attr("dtype")) {
    TRY_ASSIGN(
        dtype,
        dtype_from_onnx(static_cast<int32_t>(std::clamp<int64_t>(c.i("dtype", 1), 0, INT32_MAX))));
  }
  if (c.type(0).ranked() && c.type(0).rank() != 2)
    return c.fail("needs rank 2, got {}", c.type(0).str());
  c.out(0, b.convert(b.op("eq", {diagonal_of(b, c.in(0)),
                                 b.constant(op::Tensor::scalar(DType::kI64, c.i("k", 0)))}),
                     dtype));
  return {};
}

// Trilu: what lies beyond the k-th diagonal becomes zero.
Status trilu(NodeContext& c) {
  TRY(needs(c, 1));
  ir::Builder& b = c.b;
  TRY_ASSIGN(int rank, known_rank(c));
  if (rank < 2) return c.fail("needs rank 2 or more, got {}", c.type(0).str());
  const ValueId k = c.has(1) ? as_scalar(b, c.in(1)) : b.scalar(DType::kI64, 0);
  const ValueId kept = b.op(c.i("upper", 1) ? "ge" : "le", {diagonal_of(b, c.in(0)), k});
  c.out(0, b.select(kept, c.in(0), b.scalar_like(c.in(0), 0)));
  return {};
}

// ReverseSequence: place t of batch n comes from len[n] - 1 - t where that is inside.
Status reverse_sequence(NodeContext& c) {
  TRY(needs(c, 2));
  ir::Builder& b = c.b;
  TRY_ASSIGN(int rank, known_rank(c));
  const int64_t time = c.i("time_axis", 0), batch = c.i("batch_axis", 1);
  if (rank < 2 || time + batch != 1 || time * batch != 0)
    return c.fail("time_axis {}, batch_axis {} of {}", time, batch, c.type(0).str());
  const ValueId t = ir::index_along(b, c.in(0), time);
  std::vector<int64_t> others = ir::range(0, rank);
  others.erase(others.begin() + batch);
  const ValueId mirrored = b.sub(
      b.sub(b.unsqueeze(b.convert(c.in(1), DType::kI64), others), b.scalar(DType::kI64, 1)), t);
  const ValueId from = b.select(b.op("ge", {mirrored, b.scalar(DType::kI64, 0)}), mirrored, t);
  c.out(0, b.op("gather_elements", {c.in(0), b.broadcast_to(from, b.shape_of(c.in(0)))},
                {{"axis", time}}));
  return {};
}

// The sizes of x (N, C, H, W), and constants, as one shape.
ValueId join(ir::Builder& b, std::vector<ValueId> sizes) { return b.concat(std::move(sizes), 0); }
ValueId scaled(ir::Builder& b, std::string_view op, ValueId size, int64_t by) {
  return b.op(op, {size, b.ints({by})});
}

Result<int64_t> block_of(NodeContext& c) {
  const int64_t block = c.i("blocksize", 0);
  if (block < 1 || block > (1 << 15))
    return error(Code::kInvalidArgument, "{}: blocksize is {}", c.node.op_type, block);
  TRY_ASSIGN(int rank, known_rank(c));
  if (rank != 4)
    return error(Code::kInvalidArgument, "{}: needs rank 4, got {}", c.node.op_type,
                 c.type(0).str());
  return block;
}

Status depth_to_space(NodeContext& c) {
  TRY(needs(c, 1));
  TRY_ASSIGN(int64_t r, block_of(c));
  ir::Builder& b = c.b;
  const ValueId x = c.in(0), n = b.dim(x, 0), h = b.dim(x, 2), w = b.dim(x, 3),
                depth = scaled(b, "div", b.dim(x, 1), r * r), block = b.ints({r});
  const std::string mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("unknown mode '{}'", mode);
  const Attrs exact{{"zero_is_zero", int64_t{1}}};
  ValueId y;
  if (mode == "DCR")  // (N, r, r, C, H, W) -> (N, C, H, r, W, r)
    y = b.transpose(b.op("reshape", {x, join(b, {n, block, block, depth, h, w})}, exact),
                    {0, 3, 4, 1, 5, 2});
  else  // (N, C, r, r, H, W)
    y = b.transpose(b.op("reshape", {x, join(b, {n, depth, block, block, h, w})}, exact),
                    {0, 1, 4, 2, 5, 3});
  c.out(0, b.op("reshape", {y, join(b, {n, depth, scaled(b, "mul", h, r), scaled(b, "mul", w, r)})},
                exact));
  return {};
}

Status space_to_depth(NodeContext& c) {
  TRY(needs(c, 1));
  TRY_ASSIGN(int64_t r, block_of(c));
  ir::Builder& b = c.b;
  const ValueId x = c.in(0), n = b.dim(x, 0), depth = b.dim(x, 1), block = b.ints({r});
  const ValueId h = scaled(b, "div", b.dim(x, 2), r), w = scaled(b, "div", b.dim(x, 3), r);
  const Attrs exact{{"zero_is_zero", int64_t{1}}};
  // (N, C, H, r, W, r) -> (N, r, r, C, H, W)
  const ValueId y = b.transpose(
      b.op("reshape", {x, join(b, {n, depth, h, block, w, block})}, exact), {0, 3, 5, 1, 2, 4});
  c.out(0, b.op("reshape", {y, join(b, {n, scaled(b, "mul", depth, r * r), h, w})}, exact));
  return {};
}

// CenterCropPad: what is too long is cut, then what is too short is padded with zeros; the odd one
// at the end.
Status center_crop_pad(NodeContext& c) {
  TRY(needs(c, 2));
  ir::Builder& b = c.b;
  TRY_ASSIGN(int rank, known_rank(c));
  const ValueId axes = b.ints(c.has_attr("axes") ? c.ints("axes") : ir::range(0, rank)),
                zero = b.ints({0}), two = b.ints({2});
  op::Ints normal;
  for (int64_t a : c.has_attr("axes") ? c.ints("axes") : ir::range(0, rank)) {
    TRY_ASSIGN(int at, op::normalize_axis(a, rank));
    normal.push_back(at);
  }
  const ValueId target = b.convert(c.in(1), DType::kI64),
                sizes = b.gather(b.shape_of(c.in(0)), b.ints(normal), 0);
  const ValueId start = b.div(b.max(b.sub(sizes, target), zero), two);
  const ValueId cut = b.op("slice", {c.in(0), start, b.add(start, b.min(sizes, target)), axes});
  const ValueId missing = b.max(b.sub(target, sizes), zero), before = b.div(missing, two);
  c.out(0, b.op("pad", {cut, b.concat({before, b.sub(missing, before)}, 0), kAbsent, axes}));
  return {};
}

Status bit_cast(NodeContext& c) {
  TRY(needs(c, 1));
  TRY_ASSIGN(DType to, dtype_from_onnx(
                           static_cast<int32_t>(std::clamp<int64_t>(c.i("to", 0), 0, INT32_MAX))));
  c.out(0, c.b.op("bit_cast", {c.in(0)}, {{"to", to}}));
  return {};
}

Status det(NodeContext& c) {
  TRY(needs(c, 1));
  c.out(0, c.b.op("det", {c.in(0)}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "ArgMax", arg},
    {"", "ArgMin", arg},
    {"", "BitCast", bit_cast},
    {"", "CenterCropPad", center_crop_pad},
    {"", "Compress", compress},
    {"", "CumProd", cumulative},
    {"", "CumSum", cumulative},
    {"", "DepthToSpace", depth_to_space},
    {"", "Det", det},
    {"", "EyeLike", eye_like},
    {"", "GatherElements", gather_elements},
    {"", "GatherND", gather_nd},
    {"", "NonZero", non_zero},
    {"", "OneHot", one_hot},
    {"", "ReverseSequence", reverse_sequence},
    {"", "Scatter", scatter_elements},
    {"", "ScatterElements", scatter_elements},
    {"", "ScatterND", scatter_nd},
    {"", "SpaceToDepth", space_to_depth},
    {"", "TensorScatter", tensor_scatter},
    {"", "Tile", tile},
    {"", "TopK", top_k},
    {"", "Trilu", trilu},
    {"", "Unique", unique},
};

}  // namespace

std::span<const Converter> index_converters() { return kRows; }

}  // namespace tessera::import::onnx
