// Whatever the passes make of a graph, it computes what the interpreter computes: random graphs of
// what they rewrite, in every layout mode.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tessera/ir/builder.h"
#include "tessera/ir/text.h"
#include "tessera/session/model.h"

namespace tessera::session {
namespace {

using op::Dims;
using op::Tensor;

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {
    const int64_t n = pick({1, 1, 2}), c = pick({1, 3, 4, 16, 17, 20}), h = pick({1, 5, 8, 13}),
                  w = pick({1, 6, 8, 11});
    images_.push_back(graph_.add_input("x", type({n, c, h, w})));
    rows_.push_back(graph_.add_input("r", type({pick({1, 3, 7}), pick({1, 5, 16, 33})})));
  }

  ir::Graph make(int nodes) {
    for (int k = 0; k < nodes; ++k) random_() % 4 == 0 ? grow_rows() : grow_image();
    leave(images_);
    leave(rows_);
    // Something in between is wanted, too.
    if (images_.size() > 2 && random_() % 2 == 0) leave_one(images_[images_.size() / 2]);
    return std::move(graph_);
  }

 private:
  using Ids = std::vector<ir::ValueId>;

  template <class T>
  T pick(std::initializer_list<T> list) {
    return *(list.begin() + static_cast<int64_t>(random_() % list.size()));
  }
  ir::ValueId any(const Ids& ids) {
    return ids[ids.size() - 1 - random_() % std::min<size_t>(ids.size(), 4)];
  }

  static op::Type type(Dims dims) {
    op::Type t;
    t.shape = op::Shape(dims.begin(), dims.end());
    return t;
  }
  Dims dims(ir::ValueId id) const { return graph_.type(id).dims(); }

  ir::ValueId weights(Dims shape, double scale) {
    Tensor t = *Tensor::make(DType::kF32, std::move(shape));
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    for (float& v : t.mutable_as<float>()) v = normal(random_);
    return graph_.add_constant(t);
  }
  ir::ValueId ints(const op::Ints& values) { return graph_.add_constant(Tensor::of_i64(values)); }

  void add(Ids& to, const char* name, Ids in, op::Attrs attrs = {}) {
    auto out = graph_.add(*op::find(name), in, std::move(attrs));
    ASSERT_TRUE(out) << out.error().message;
    to.push_back((*out)[0]);
  }

  void grow_image() {
    const ir::ValueId x = any(images_);
    const Dims d = dims(x);
    switch (random_() % 17) {
      case 0:
      case 1:
      case 2: {
        const int64_t groups = random_() % 3 == 0 ? d[1] : 1, kernel = pick({1, 3, 3, 5});
        const int64_t m = groups > 1 ? groups : pick({1, 8, 16, 19});
        op::Attrs attrs;
        attrs.set("groups", groups);
        attrs.set("strides", op::Ints{pick({1, 1, 2}), pick({1, 1, 2})});
        attrs.set("pads_begin", op::Ints{kernel / 2, kernel / 2});
        attrs.set("pads_end", op::Ints{kernel / 2, kernel / 2});
        const int64_t c = d[1] / groups;
        Ids in{x, weights({m, c, kernel, kernel},
                          1 / std::sqrt(static_cast<double>(c * kernel * kernel)))};
        if (random_() % 2) in.push_back(weights({m}, 1));
        return add(images_, "conv", in, std::move(attrs));
      }
      case 3:
        return add(images_, pick({"relu", "sigmoid", "hard_swish", "silu", "tanh"}), {x});
      case 4:
        return add(images_, pick({"add", "mul"}), {x, weights({1, d[1], 1, 1}, 1)});
      case 5:
      case 6:
        for (ir::ValueId other : images_)
          if (other != x && dims(other) == d) return add(images_, "add", {x, other});
        return add(images_, "add", {x, x});
      case 7:
        for (ir::ValueId other : images_) {
          Dims o = dims(other);
          if (other == x || o[0] != d[0] || o[2] != d[2] || o[3] != d[3]) continue;
          op::Attrs attrs;
          attrs.set("axis", int64_t{1});
          return add(images_, "concat", {x, other}, std::move(attrs));
        }
        return;
      case 8: {
        if (d[1] < 2) return;
        const int64_t cut = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(d[1] - 1));
        const bool head = random_() % 2;
        return add(images_, "slice",
                   {x, ints({head ? 0 : cut}), ints({head ? cut : d[1]}), ints({1})});
      }
      case 9: {
        op::Attrs attrs;
        attrs.set("kernel", op::Ints{3, 3});
        attrs.set("strides", op::Ints{pick({1, 2}), pick({1, 2})});
        attrs.set("pads_begin", op::Ints{1, 1});
        attrs.set("pads_end", op::Ints{1, 1});
        return add(images_, pick({"max_pool", "average_pool"}), {x}, std::move(attrs));
      }
      case 10: {
        Ids pooled;
        add(pooled, "global_average_pool", {x});
        add(pooled, "sigmoid", {pooled.back()});
        return add(images_, "mul", {x, pooled.back()});
      }
      case 11: {
        // Channels shuffled: a reshape, a transpose, a reshape.
        if (d[1] % 2) return;
        Ids t;
        op::Attrs attrs;
        attrs.set("perm", op::Ints{0, 2, 1, 3, 4});
        add(t, "reshape", {x, ints({d[0], 2, d[1] / 2, d[2], d[3]})});
        add(t, "transpose", {t.back()}, std::move(attrs));
        return add(images_, "reshape", {t.back(), ints(d)});
      }
      case 13: {
        // Depthwise, then pointwise.
        const int64_t kernel = pick({3, 5}), stride = pick({1, 1, 2});
        op::Attrs attrs;
        attrs.set("groups", d[1]);
        attrs.set("strides", op::Ints{stride, stride});
        attrs.set("pads_begin", op::Ints{kernel / 2, kernel / 2});
        attrs.set("pads_end", op::Ints{kernel / 2, kernel / 2});
        Ids t;
        add(t, "conv", {x, weights({d[1], 1, kernel, kernel}, 0.3)}, std::move(attrs));
        if (random_() % 2) add(t, pick({"relu", "hard_swish", "silu"}), {t.back()});
        return pointwise(images_, t.back(), pick({1, 8, 16, 19}));
      }
      case 14: {
        // Pointwise behind what depends on the image: a scale per channel, a sum that is cut off.
        Ids t;
        add(t, "global_average_pool", {x});
        add(t, "sigmoid", {t.back()});
        add(t, "mul", {x, t.back()});
        if (random_() % 2) {
          add(t, "add", {t.back(), weights({1, d[1], 1, 1}, 1)});
          add(t, "relu", {t.back()});
        }
        return pointwise(images_, t.back(), pick({1, 8, 16, 19}));
      }
      case 15: {
        // Branches that read the same.
        Ids t, ends;
        for (int k = 0; k < 3; ++k) {
          pointwise(t, x, pick({1, 4, 16}));
          if (random_() % 4) add(t, "relu", {t.back()});
          ends.push_back(t.back());
        }
        if (random_() % 2) return add(images_, "concat", ends, axis(1));
        images_.insert(images_.end(), ends.begin(), ends.end());
        return;
      }
      case 12: {
        // Rows of channels, normalised: what vision transformers do. Of few channels the quotient
        // is mostly rounding noise.
        if (d[1] < 8) return;
        Ids t;
        op::Attrs there, back;
        there.set("perm", op::Ints{0, 2, 3, 1});
        back.set("perm", op::Ints{0, 3, 1, 2});
        add(t, "transpose", {x}, std::move(there));
        add(t, "layer_norm", {t.back(), weights({d[1]}, 1)}, axis(-1));
        return add(images_, "transpose", {t.back()}, std::move(back));
      }
      default: {
        op::Attrs attrs;
        attrs.set("perm", op::Ints{0, 1, 3, 2});
        return add(images_, "transpose", {x}, std::move(attrs));
      }
    }
  }

  void pointwise(Ids& to, ir::ValueId x, int64_t m) {
    const int64_t c = dims(x)[1];
    Ids in{x, weights({m, c, 1, 1}, 1 / std::sqrt(static_cast<double>(c)))};
    if (random_() % 2) in.push_back(weights({m}, 1));
    add(to, "conv", in);
    if (random_() % 2) add(to, "relu", {to.back()});
  }

  static op::Attrs axis(int64_t a) {
    op::Attrs attrs;
    attrs.set("axis", a);
    return attrs;
  }

  void grow_rows() {
    const ir::ValueId x = any(rows_);
    const Dims d = dims(x);
    switch (random_() % 9) {
      case 0:
      case 1: {
        const int64_t n = pick({1, 7, 16, 40});
        return add(rows_, "dot", {x, weights({d[1], n}, 1 / std::sqrt(static_cast<double>(d[1])))});
      }
      case 2:
        return add(rows_, pick({"gelu", "tanh", "exp"}), {x});
      case 3:
        return add(rows_, "add", {x, weights({d[1]}, 1)});
      case 4:
        return add(rows_, "softmax", {x}, axis(-1));
      case 6: {
        // A gate beside what it lets through, and what comes behind both.
        const int64_t n = pick({7, 16, 40});
        Ids t;
        for (int k = 0; k < 2; ++k) {
          add(t, "dot", {x, weights({d[1], n}, 1 / std::sqrt(static_cast<double>(d[1])))});
          if (random_() % 2) add(t, "add", {t.back(), weights({n}, 1)});
          if (k == 0 && random_() % 2) add(t, "silu", {t.back()});
          if (k == 0) rows_.push_back(t.back());
        }
        add(t, "mul", {rows_.back(), t.back()});
        if (random_() % 2) rows_.pop_back();
        return add(rows_, "dot", {t.back(), weights({n, 16}, 0.3)});
      }
      case 7: {
        // Queries, keys and values of one head.
        Ids t, qkv;
        for (int k = 0; k < 3; ++k) {
          add(t, "dot",
              {x, weights({d[1], k < 2 ? 8 : 5}, 1 / std::sqrt(static_cast<double>(d[1])))});
          if (random_() % 4) add(t, "add", {t.back(), weights({k < 2 ? 8 : 5}, 1)});
          qkv.push_back(t.back());
        }
        op::Attrs attrs;
        attrs.set("transpose_b", int64_t{1});
        add(t, "dot", {qkv[0], qkv[1]}, std::move(attrs));
        add(t, "softmax", {t.back()}, axis(-1));
        return add(rows_, "dot", {t.back(), qkv[2]});
      }
      case 5: {
        if (d[1] < 2) return;
        // Two halves, gated.
        Ids t;
        const int64_t half = d[1] / 2;
        add(t, "slice", {x, ints({0}), ints({half}), ints({1})});
        add(t, "slice", {x, ints({half}), ints({2 * half}), ints({1})});
        add(t, "silu", {t[0]});
        return add(rows_, "mul", {t[2], t[1]});
      }
      default: {
        Ids t;
        op::Attrs attrs;
        attrs.set("perm", op::Ints{1, 0});
        add(t, "transpose", {x}, std::move(attrs));
        add(t, "dot", {x, t.back()});
        return add(rows_, "softmax", {t.back()}, axis(-1));
      }
    }
  }

  void leave_one(ir::ValueId id) {
    if (std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end()) return;
    graph_.outputs.push_back(id);
    graph_.output_names.push_back(fmt::format("y{}", graph_.outputs.size()));
  }
  void leave(const Ids& ids) { leave_one(ids.back()); }

  std::mt19937_64 random_;
  ir::Graph graph_{"random"};
  Ids images_, rows_;
};

Tensor random_tensor(const Dims& dims, uint64_t seed) {
  Tensor t = *Tensor::make(DType::kF32, dims);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (float& v : t.mutable_as<float>()) v = normal(random);
  return t;
}

// The largest difference over the largest magnitude; infinite where one has NaN alone.
double difference(const Tensor& a, const Tensor& b) {
  double worst = 0, scale = 1e-3;
  for (int64_t k = 0; k < a.count(); ++k) {
    const double x = a.f64(k), y = b.f64(k);
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (std::isnan(y) || x == y) continue;
    worst = std::max(worst, std::abs(x - y));
    scale = std::max(scale, std::abs(y));
  }
  return worst / scale;
}

// Launches of a kernel whose group begins with this operator.
int launches(const plan::Plan& plan, std::string_view kernel, std::string_view op = "") {
  int count = 0;
  for (const plan::Instruction& i : plan.main.body)
    count += i.kernel == kernel && (op.empty() || i.op->name == op);
  return count;
}

// What some passes made of a graph.
struct Made {
  int fed_by_convs = 0, fed_by_functions = 0;
};

void check(uint64_t seed, passes::LayoutMode mode, Made& made) {
  std::mt19937_64 random(seed);
  const ir::Graph graph = RandomGraph(seed).make(3 + static_cast<int>(random() % 14));
  SCOPED_TRACE(
      fmt::format("seed {}, layout {}\n{}", seed, passes::name_of(mode), ir::print(graph)));
  LoadOptions options;
  options.layout = mode;
  auto device = Model::from_graph(graph, options);
  ASSERT_TRUE(device) << device.error().message;
  options.device = "reference";
  auto reference = Model::from_graph(graph, options);
  ASSERT_TRUE(reference) << reference.error().message;
  std::map<std::string, op::Value> inputs;
  for (ir::ValueId id : graph.inputs)
    inputs.emplace(graph.value(id).name,
                   random_tensor(graph.type(id).dims(), seed + static_cast<uint64_t>(id)));
  auto expected = (*reference)->run(inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  const int fed = launches(*(*device)->plan(), "cpu.fed_product"),
            convs = launches(*(*device)->plan(), "cpu.fed_product", "conv");
  made.fed_by_convs += convs;
  made.fed_by_functions += fed - convs;
  // The second run finds what the first one left.
  for (int run = 0; run < 2; ++run) {
    auto got = (*device)->run(inputs);
    ASSERT_TRUE(got) << got.error().message;
    for (size_t k = 0; k < expected->size(); ++k) {
      const Tensor &a = (*got)[k].tensor(), &b = (*expected)[k].tensor();
      ASSERT_EQ(a.dims(), b.dims());
      ASSERT_LT(difference(a, b), 1e-4) << "output " << k << ", run " << run;
    }
  }
}

TEST(Compile, RandomGraphsComputeWhatTheInterpreterDoes) {
  Made made;
  for (uint64_t seed = 1; seed <= 200 && !HasFatalFailure(); ++seed)
    check(seed, passes::LayoutMode::kOptimal, made);
  EXPECT_GT(made.fed_by_convs, 0);
  EXPECT_GT(made.fed_by_functions, 0);
}

TEST(Compile, InEveryLayoutMode) {
  Made made;
  for (uint64_t seed = 1001; seed <= 1030 && !HasFatalFailure(); ++seed)
    for (auto mode : {passes::LayoutMode::kNone, passes::LayoutMode::kGreedy,
                      passes::LayoutMode::kAny, passes::LayoutMode::kPropagate})
      check(seed, mode, made);
}

// Queries, keys and values become one product with weights, whose parts attention reads in place.
TEST(Compile, MergesProductsOfOneValue) {
  ir::Graph graph("heads");
  ir::Builder b(graph);
  const ir::ValueId x = graph.add_input("x", op::Type::tensor(DType::kF32, {2, 16, 32}));
  std::vector<ir::ValueId> heads;
  for (uint64_t k = 0; k < 3; ++k) {
    const ir::ValueId y = b.add(b.op("dot", {x, b.constant(random_tensor({32, 32}, k))}),
                                b.constant(random_tensor({32}, 10 + k)));
    heads.push_back(b.transpose(b.reshape(y, {2, 16, 4, 8}), {0, 2, 1, 3}));
  }
  graph.outputs = {b.op("attention", heads, {{"scale", 0.01}})};
  graph.output_names = {"y"};
  ASSERT_TRUE(b.ok()) << b.status().error().message;
  LoadOptions options;
  auto device = Model::from_graph(graph, options);
  ASSERT_TRUE(device) << device.error().message;
  const plan::Plan& plan = *(*device)->plan();
  EXPECT_EQ(plan.main.body.size(), 2u);
  EXPECT_EQ(launches(plan, "cpu.gemm"), 1);
  options.device = "reference";
  auto reference = Model::from_graph(graph, options);
  const std::map<std::string, op::Value> inputs{{"x", random_tensor({2, 16, 32}, 20)}};
  auto got = (*device)->run(inputs), expected = (*reference)->run(inputs);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_LT(difference((*got)[0].tensor(), (*expected)[0].tensor()), 1e-5);
}

}  // namespace
}  // namespace tessera::session
