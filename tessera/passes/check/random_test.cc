// Random graphs of what networks are made of compute the same before and after all passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tessera/ir/composites.h"
#include "tessera/ir/text.h"
#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

using ir::ValueId;

class Generator {
 public:
  explicit Generator(unsigned seed) : engine_(seed), b_(graph_) {
    const bool open = pick(3) == 0;
    const op::Expr n = open ? op::Expr::symbol("n") : op::Expr(pick(2) + 1);
    values_.push_back(graph_.add_input("x", op::Type::tensor(DType::kF32, {n, 4, 5, 6})));
    values_.push_back(graph_.add_input("y", op::Type::tensor(DType::kF32, {n, 6, 4})));
  }

  ir::Graph make(int nodes) {
    for (int i = 0; i < nodes && b_.ok(); ++i)
      if (const ValueId id = step(any()); id != ir::kAbsent) values_.push_back(id);
    EXPECT_TRUE(b_.ok()) << b_.status().error().message;
    for (int i = 0; i < 3; ++i) graph_.outputs.push_back(i == 0 ? values_.back() : any());
    graph_.output_names = {"a", "b", "c"};
    return std::move(graph_);
  }

 private:
  int64_t pick(int64_t count) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count));
  }
  // Rather a late value, so that chains arise.
  ValueId any() {
    const auto n = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(pick(3) ? n - 1 - pick(std::min<int64_t>(n, 3)) : pick(n))];
  }
  ValueId weight(op::Dims dims) {
    op::Tensor t = random_tensor(std::move(dims), engine_());
    for (float& v : t.mutable_as<float>()) v *= 0.4f;
    return b_.constant(std::move(t));
  }
  int64_t size(ValueId x, int axis) { return b_.type(x).dim(axis).constant().value_or(-1); }

  // A number, one for each channel or column, or one for each element of the last axes.
  ValueId operand(ValueId x) {
    const int rank = b_.rank(x);
    const int kind = static_cast<int>(pick(4));
    if (kind == 0 || rank == 0) return b_.scalar(DType::kF32, 0.5 + static_cast<double>(pick(3)));
    op::Dims dims;
    for (int a = static_cast<int>(pick(rank)); a < rank; ++a)
      dims.push_back(size(x, a) < 0 || (kind < 3 && !dims.empty()) ? 1 : size(x, a));
    return pick(6) ? weight(dims) : b_.unary("tanh", weight(dims));
  }

  ValueId arithmetic(ValueId x) {
    constexpr std::string_view kOps[] = {"add", "sub", "mul"};
    const std::string_view op = kOps[pick(3)];
    if (pick(4) == 0)
      for (ValueId other : values_)
        if (other != x && b_.type(other) == b_.type(x) && pick(2)) return b_.op(op, {x, other});
    if (pick(5) == 0) return b_.div(x, b_.scalar(DType::kF32, pick(2) ? 2 : 3));
    const ValueId c = operand(x);
    return pick(3) == 0 ? b_.op(op, {c, x}) : b_.op(op, {x, c});
  }

  ValueId unary(ValueId x) {
    constexpr std::string_view kOps[] = {"relu", "neg", "tanh", "abs", "sigmoid", "identity"};
    return b_.unary(kOps[pick(6)], x);
  }

  ValueId conv(ValueId x) {
    if (b_.rank(x) != 4 || size(x, 1) < 0 || size(x, 2) < 0 || size(x, 3) < 0) return unary(x);
    const int64_t C = size(x, 1), G = C % 2 == 0 && pick(2) ? 2 : 1, R = pick(2) ? 1 : 3;
    const int64_t M = G * (1 + pick(3)), P = R / 2;
    op::Attrs attrs{{"groups", G}, {"pads_begin", op::Ints{P, P}}, {"pads_end", op::Ints{P, P}}};
    const bool transposed = pick(4) == 0;
    std::vector<ValueId> in{x, transposed ? weight({C, M / G, R, R}) : weight({M, C / G, R, R})};
    if (pick(2)) in.push_back(weight({M}));
    if (!transposed && pick(3) == 0) in[0] = b_.op("pad", {x, b_.ints({0, 0, 1, 0, 0, 0, 0, 2})});
    return b_.op(transposed ? "conv_transpose" : "conv", in, attrs);
  }

  ValueId batch_norm(ValueId x) {
    if (b_.rank(x) < 2 || size(x, 1) < 0) return unary(x);
    const int64_t C = size(x, 1);
    op::Tensor var = random_tensor({C}, engine_());
    for (float& v : var.mutable_as<float>()) v = 0.5f + v * v;
    return b_.op("batch_norm", {x, weight({C}), weight({C}), weight({C}), b_.constant(var)},
                 {{"epsilon", 1e-3}});
  }

  ValueId dot(ValueId x) {
    const int rank = b_.rank(x);
    if (rank < 2 || size(x, rank - 1) < 0) return unary(x);
    const int64_t K = size(x, rank - 1), N = 1 + pick(5);
    if (pick(2)) return b_.op("dot", {x, weight({N, K})}, {{"transpose_b", int64_t{1}}});
    return b_.op("dot", {x, weight({K, N})});
  }

  ValueId transpose(ValueId x) {
    op::Ints perm;
    for (int a = 0; a < b_.rank(x); ++a) perm.push_back(a);
    std::shuffle(perm.begin(), perm.end(), engine_);
    return b_.transpose(x, perm);
  }

  // Two axes become one, one becomes two, or an axis of 1 comes or goes.
  ValueId reshape(ValueId x) {
    const int rank = b_.rank(x);
    if (rank == 0) return unary(x);
    const int at = static_cast<int>(pick(rank));
    if (pick(3) == 0 && rank < 5) return b_.unsqueeze(x, {at});
    if (size(x, at) == 1) return b_.squeeze(x, {at});
    std::vector<int64_t> shape;
    for (int a = 0; a < rank; ++a) {
      if (a == at && size(x, a) > 0 && size(x, a) % 2 == 0 && rank < 5) {
        shape.insert(shape.end(), {2, size(x, a) / 2});
      } else if (a == at && a + 1 < rank && size(x, a) > 0 && size(x, a + 1) > 0) {
        shape.push_back(size(x, a) * size(x, a + 1));
        ++a;
      } else {
        shape.push_back(size(x, a));  // -1: the one that is open
      }
    }
    if (std::count(shape.begin(), shape.end(), -1) > 1) return unary(x);
    return b_.reshape(x, shape);
  }

  ValueId part(ValueId x) {
    const int rank = b_.rank(x);
    if (rank == 0) return unary(x);
    const int axis = static_cast<int>(pick(rank));
    if (pick(3) == 0) return b_.concat({x, x}, axis);
    const int64_t n = size(x, axis);
    if (n < 2) return unary(x);
    if (pick(3) == 0)
      return b_.gather(x, b_.scalar(DType::kI64, static_cast<double>(pick(n))), axis);
    const int64_t begin = pick(n - 1);
    return b_.slice(x, axis, begin, begin + 1 + pick(n - begin));
  }

  // A composite as its decomposition spells it.
  ValueId spelled(ValueId x) {
    struct Row {
      std::string_view op;
      op::Attrs attrs = {};
      bool scaled = false;
    };
    static const Row rows[] = {{"relu"},
                               {"sigmoid"},
                               {"silu"},
                               {"mish"},
                               {"gelu"},
                               {"gelu", {{"tanh", int64_t{1}}}},
                               {"hard_swish"},
                               {"softmax"},
                               {"log_softmax"},
                               {"layer_norm", {{"epsilon", 0.1}}},
                               {"rms_norm", {{"epsilon", 0.1}}, true}};
    if (pick(8) == 0 && b_.rank(x) == 4 && size(x, 2) > 0 && size(x, 3) > 0)
      return ir::mean(b_, x, {2, 3});
    const Row& row = rows[pick(std::size(rows))];
    const int rank = b_.rank(x);
    if (rank < 2 || size(x, rank - 1) < 1) return unary(x);
    std::vector<ValueId> in{x};
    if (row.scaled) in.push_back(weight({size(x, rank - 1)}));
    return ir::find_composite(row.op)->decompose(b_, row.attrs, in, 1)[0];
  }

  // Heads that look at themselves, causally or not, and at a past or not.
  ValueId attention(ValueId x) {
    const int rank = b_.rank(x);
    if ((rank != 3 && rank != 4) || size(x, rank - 1) < 1 || size(x, rank - 3) < 1) return unary(x);
    const ValueId q = rank == 3 ? b_.unsqueeze(x, {0}) : x;
    std::vector<ValueId> in{q, b_.unary("tanh", q), q};
    if (pick(2) == 0) in.insert(in.end(), {ir::kAbsent, b_.unary("neg", q), b_.unary("abs", q)});
    const std::vector<ValueId> y =
        ir::find_composite("attention")
            ->decompose(b_, {{"causal", pick(2)}, {"scale", 0.5}}, in, 3);
    // Keys with their past are read elsewhere, too.
    return pick(3) == 0 ? b_.concat({y[1], y[0]}, 2) : y[0];
  }

  // Pairs of channels turned by their step: as a composite, by halves, or as a sum with what is
  // turned a quarter.
  ValueId rotary(ValueId x) {
    if (b_.rank(x) != 4 || size(x, 2) < 1 || size(x, 3) < 1 || size(x, 3) % 2) return unary(x);
    const int64_t S = size(x, 2), E = size(x, 3);
    const ValueId cos = weight({1, S, E / 2}), sin = weight({1, S, E / 2});
    if (pick(2)) return ir::find_composite("rotary")->decompose(b_, {}, {x, cos, sin}, 1)[0];
    const ValueId turned =
        b_.concat({b_.unary("neg", b_.slice(x, 3, E / 2, E)), b_.slice(x, 3, 0, E / 2)}, 3);
    return b_.add(b_.mul(x, b_.concat({cos, cos}, 2)), b_.mul(turned, b_.concat({sin, sin}, -1)));
  }

  ValueId step(ValueId x) {
    switch (pick(14)) {
      case 0:
        return unary(x);
      case 1:
        return conv(x);
      case 2:
        return batch_norm(x);
      case 3:
        return dot(x);
      case 4:
        return transpose(x);
      case 5:
        return reshape(x);
      case 6:
        return part(x);
      case 7:
        return spelled(x);
      case 8:
        return b_.op("softmax", {x}, {{"axis", int64_t{b_.rank(x) > 0 ? -1 : 0}}});
      case 9:
        return attention(x);
      case 10:
        return rotary(x);
      default:
        return arithmetic(x);
    }
  }

  std::mt19937 engine_;
  ir::Graph graph_;
  ir::Builder b_;
  std::vector<ValueId> values_;
};

TEST(Random, GraphsKeepTheirMeaning) {
  std::map<std::string_view, int> fired;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ir::Graph graph = Generator(seed).make(10 + static_cast<int>(seed % 15));
    ir::Graph rewritten = graph;
    for (const Event& e : simplify_checked(rewritten).fired) ++fired[e.pass];
    expect_same(graph, rewritten, {1e-4});
    if (HasFatalFailure()) return;
  }
  // Quantised weights do not come up by chance.
  fired["integer"] = 1;
  for (std::string_view pass : simplify_passes()) EXPECT_GT(fired[pass], 0) << pass;
}

}  // namespace
}  // namespace tessera::passes::check
