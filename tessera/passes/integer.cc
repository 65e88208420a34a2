#include "tessera/passes/integer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tessera::passes {
namespace {

// Of this many products of differences of bytes, each at most 255 * 255, the sum fits an i32.
constexpr int64_t kMostProducts = INT32_MAX / (255 * 255);

bool is_byte(DType d) { return d == DType::kU8 || d == DType::kI8; }

int64_t count_of(const op::Type& type) {
  return type.is_static() ? op::element_count(type.dims()).value_or(-1) : -1;
}

// A dequantised value: bytes with their scale and zero point.
struct Quantised {
  const ir::Node* node = nullptr;
  ir::ValueId x = ir::kAbsent, scale = ir::kAbsent, zero = ir::kAbsent;
  bool one = false;     // one scale and zero point, else as many as the axis is long
  int64_t axis = 0;     // from 0 on
  bool turned = false;  // x is to be transposed, a matrix
  std::vector<const ir::Node*> nodes = {};
};

std::optional<Quantised> quantised(const Site& at, ir::ValueId id) {
  const ir::Node* node = at.producer(id);
  if (!node) return std::nullopt;
  // Weights of a Gemm are stored the other way round.
  if (node->op->name == "transpose" && at.type(id).ranked() && at.type(id).rank() == 2 &&
      node->attrs.ints("perm") == op::Ints{1, 0}) {
    auto inner = quantised(at, node->inputs[0]);
    if (!inner) return std::nullopt;
    inner->turned = !inner->turned;
    inner->axis = 1 - inner->axis;
    inner->nodes.push_back(node);
    return inner;
  }
  if (node->op->name != "dequantize" || node->attrs.dtype("to") != DType::kF32) return std::nullopt;
  Quantised q{node, node->inputs[0], node->inputs[1]};
  q.nodes = {node};
  if (node->inputs.size() > 2) q.zero = node->inputs[2];
  const op::Type &x = at.type(q.x), &scale = at.type(q.scale);
  if (!x.is_tensor() || !is_byte(x.dtype) || !x.ranked() || scale.dtype != DType::kF32)
    return std::nullopt;
  const int64_t scales = count_of(scale),
                zeros = q.zero == ir::kAbsent ? scales : count_of(at.type(q.zero));
  if (scales < 0 || zeros != scales) return std::nullopt;
  q.one = scales == 1;
  if (q.one) return q;
  if (node->attrs.i("block") != 0 || scale.rank() != 1) return std::nullopt;
  q.axis = x.rank() == 1 ? 0 : node->attrs.i("axis", 1);
  if (q.axis < 0) q.axis += x.rank();
  return q;
}

// Products that are summed for one element of the result; nothing where that is not known.
std::optional<int64_t> depth(const Site& at, bool conv) {
  const op::Type& w = at.type(at.in(1));
  if (!w.ranked() || w.rank() == 0) return std::nullopt;
  if (!conv) {
    const bool last = w.rank() == 1 || at.node.attrs.i("transpose_b") != 0;
    const auto k = w.dim(w.rank() - (last ? 1 : 2)).constant();
    return k ? std::optional<int64_t>(*k) : std::nullopt;
  }
  int64_t all = 1;
  for (int a = 1; a < w.rank(); ++a) {
    const auto size = w.dim(a).constant();
    if (!size || __builtin_mul_overflow(all, *size, &all)) return std::nullopt;
  }
  return all;
}

bool product(Site& at) {
  const bool conv = at.is("conv");
  if (!conv && !at.is("dot")) return false;
  if (at.node.attrs.has("accumulate") || at.node.attrs.i("transpose_a") != 0) return false;
  const auto x = quantised(at, at.in(0));
  auto w = quantised(at, at.in(1));
  if (!x || !w || x->turned) return false;
  const op::Type type = at.type(at.in(1));
  if (at.node.attrs.i("transpose_b") != 0) {
    if (type.rank() != 2) return false;
    w->turned = !w->turned;
    w->axis = 1 - w->axis;
  }
  std::vector<const ir::Node*> others = x->nodes;
  others.insert(others.end(), w->nodes.begin(), w->nodes.end());
  if (!x->one) return at.miss("the left side has several scales", others);
  if (!w->one && (conv ? w->axis != 0 : type.rank() != 2 || w->axis != 1))
    return at.miss("the weights have scales along another axis than the channels", others);
  const auto products = depth(at, conv);
  if (!products || *products > kMostProducts) return at.miss("the sum may not fit 32 bits", others);
  const int rank = type.rank();

  ir::Builder& b = at.build(others);
  ir::ValueId weights = w->x;
  if (w->turned) weights = b.transpose(weights, {1, 0});
  op::Attrs attrs;
  if (conv) attrs = at.node.attrs;
  auto one = [&](ir::ValueId id) { return b.reshape(id, {}); };
  const ir::ValueId x_zero = x->zero == ir::kAbsent ? x->zero : one(x->zero),
                    w_zero = w->zero == ir::kAbsent || !w->one ? w->zero : one(w->zero);
  const ir::ValueId sum = b.op(conv ? "conv_integer" : "dot_integer",
                               {x->x, weights, x_zero, w_zero}, std::move(attrs));
  // A number per channel beside the result.
  auto along = [&](ir::ValueId id) {
    if (!conv) return id;
    std::vector<int64_t> shape(static_cast<size_t>(rank) - 1, 1);
    shape[0] = -1;
    return b.reshape(id, shape);
  };
  const ir::ValueId x_scale = one(x->scale), w_scale = w->one ? one(w->scale) : along(w->scale),
                    scale = b.mul(x_scale, w_scale);
  ir::ValueId y = b.mul(b.convert(sum, DType::kF32), scale);
  if (conv && at.in(2) != ir::kAbsent) y = b.add(y, along(at.in(2)));
  return at.replace(y, fmt::format("dequantize {}", at.node.op->name));
}

// The same bytes, or the same value.
bool same(const Site& at, ir::ValueId a, ir::ValueId b) {
  if (a == b) return true;
  if (a == ir::kAbsent || b == ir::kAbsent) return false;
  const op::Tensor *s = at.constant(a), *t = at.constant(b);
  return s && t && s->dtype() == t->dtype() && s->bytes().value == t->bytes().value &&
         std::memcmp(s->data(), t->data(), static_cast<size_t>(s->bytes().value)) == 0;
}

// Whether (x - z) s / s is x - z again, up to what rounding takes away: the scale and 255 times it
// are normal numbers.
bool invertible(const Site& at, ir::ValueId scale) {
  const op::Tensor* s = at.constant(scale);
  if (!s || s->count() != 1) return false;
  const double v = std::fabs(s->f64(0));
  return v >= 1e-37 && v <= 1e35;
}

// Maxima are the same before and after, where the scale is positive.
bool moves(const Site& at, const ir::Node& node) {
  static constexpr std::string_view kMoves[] = {"reshape", "transpose", "slice",
                                                "squeeze", "unsqueeze", "identity"};
  if (node.op->name == "max_pool")
    return node.outputs.size() == 1 && at.constant(at.in(1)) &&
           at.constant(at.in(1))->count() == 1 && at.constant(at.in(1))->f64(0) > 0;
  return std::ranges::find(kMoves, node.op->name) != std::end(kMoves);
}

bool round_trip(Site& at) {
  if (!at.is("quantize")) return false;
  const ir::Node* mover = nullptr;
  const ir::Node* inner = at.producer(at.in(0));
  if (inner && moves(at, *inner) && at.uses(at.in(0)) == 1) {
    mover = inner;
    inner = at.producer(mover->inputs[0]);
  }
  if (!inner || inner->op->name != "dequantize") return false;
  const op::Type &x = at.type(inner->inputs[0]), &y = at.type(at.out());
  const ir::ValueId zero = inner->inputs.size() > 2 ? inner->inputs[2] : ir::kAbsent;
  if (!is_byte(x.dtype) || x.dtype != y.dtype || inner->attrs.dtype("to") != DType::kF32 ||
      at.node.attrs.dtype("precision", DType::kF32) != DType::kF32 ||
      at.type(at.in(1)).dtype != DType::kF32 || !same(at, at.in(1), inner->inputs[1]) ||
      !same(at, at.in(2), zero) || !invertible(at, at.in(1)))
    return false;
  if (!mover) return at.replace(inner->inputs[0], "quantize of dequantize");
  ir::Builder& b = at.build({mover, inner});
  std::vector<ir::ValueId> inputs = mover->inputs;
  inputs[0] = inner->inputs[0];
  return at.replace(b.op(mover->op->name, std::move(inputs), mover->attrs),
                    fmt::format("quantize of dequantize through {}", mover->op->name));
}

bool rule(Site& at) { return product(at) || round_trip(at); }

}  // namespace

void integer(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
