// Random groups of element-wise operators, in random layouts, against the reference step by step.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/budget.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

struct Choice {
  const char* op;
  int inputs;
  bool floats = false;  // of floats only, and approximate
  bool jumps = false;   // a small difference of the inputs may become a large one
  int bools = 0;        // the first so many inputs are bool
};
// What keeps values in a range in which differences do not grow.
constexpr Choice kChoices[] = {{"add", 2},
                               {"sub", 2},
                               {"mul", 2},
                               {"max", 2},
                               {"min", 2},
                               {"neg", 1},
                               {"abs", 1},
                               {"relu", 1},
                               {"tanh", 1, true},
                               {"sigmoid", 1, true},
                               {"gelu", 1, true},
                               {"hard_swish", 1, true},
                               {"erf", 1, true},
                               {"silu", 1, true},
                               {"select", 3, false, false, 1},
                               {"not", 1, false, false, 1},
                               {"and", 2, false, false, 2},
                               {"lt", 2, false, true},
                               {"ge", 2, false, true},
                               {"eq", 2, false, true},
                               {"convert", 1, false, true}};

class Group {
 public:
  Group(std::mt19937_64& random, Dims dims) : random_(random), dims_(std::move(dims)) {}

  std::vector<std::optional<Tensor>> in;
  op::Problem problem;
  std::vector<Tensor> values;  // by the numbers of op::Step, after finish()

  // A random DAG of `steps` operators over `type` behind the anchor.
  bool make(DType type, int steps) {
    for (int i = 0; i < 2 + steps / 3; ++i) add_input(type);
    Step anchor = random_step(type, {0, 1});
    for (size_t i = 0; i < anchor.in.size(); ++i) anchor.in[i] = static_cast<int>(i);
    if (!run(anchor)) return false;
    for (int i = 0; i < steps; ++i) {
      std::vector<int> pool;
      for (size_t v = 0; v < results_.size(); ++v) pool.push_back(-1 - static_cast<int>(v));
      for (size_t v = 0; v < in.size(); ++v) pool.push_back(static_cast<int>(v));
      if (!run(random_step(type, pool))) return false;
    }
    return finish();
  }

 private:
  // Inputs from 0 on; results -1, -2, ... until their numbers are known.
  struct Step {
    std::string op;
    op::Attrs attrs;
    std::vector<int> in;
    bool exact = true;
  };

  const Tensor& value(int v) const {
    return v >= 0 ? *in[static_cast<size_t>(v)] : results_[static_cast<size_t>(-1 - v)];
  }

  int add_input(DType type) {
    const Dims d = random_() % 3 ? dims_ : broadcastable(random_, dims_);
    in.emplace_back(random_tensor(type, d, random_, {.special = random_() % 8 == 0}));
    return static_cast<int>(in.size()) - 1;
  }

  bool exact(int v) const { return v >= 0 || exact_[static_cast<size_t>(-1 - v)]; }

  int any(DType type, const std::vector<int>& pool, bool exactly) {
    for (int tries = 0; tries < 8; ++tries) {
      const int v = pool[random_() % pool.size()];
      if (value(v).dtype() == type && (exact(v) || !exactly)) return v;
    }
    return add_input(type);
  }

  Step random_step(DType type, const std::vector<int>& pool) {
    for (;;) {
      const Choice& c = kChoices[random_() % std::size(kChoices)];
      if ((c.floats && !is_float(type)) || in.size() > 20) continue;
      if (results_.empty() && (c.bools > 0 || c.jumps)) continue;
      Step s{c.op, {}, {}};
      for (int i = 0; i < c.inputs; ++i)
        s.in.push_back(any(i < c.bools ? DType::kBool : type, pool, c.jumps));
      if (s.op == "convert")
        s.attrs.set("to", pick(random_, {DType::kF32, DType::kI32, DType::kF16, DType::kI8}));
      bool all = type != DType::kF16 && !c.floats;
      for (int v : s.in) all &= exact(v);
      s.exact = all;
      return s;
    }
  }

  bool run(const Step& s) {
    ir::Node node;
    node.op = op::find(s.op);
    node.attrs = s.attrs;
    node.outputs.resize(1);
    std::vector<op::Value> args;
    for (int v : s.in) args.emplace_back(value(v));
    std::vector<const op::Value*> pointers;
    for (size_t i = 0; i < args.size(); ++i) {
      node.inputs.push_back(static_cast<ir::ValueId>(i));
      pointers.push_back(&args[i]);
    }
    auto result = ir::reference::evaluate(node, pointers, {});
    if (!result) return false;
    results_.push_back((*result)[0].tensor());
    steps_.push_back(s);
    exact_.push_back(s.exact);
    return true;
  }

  static op::Operand operand(const Tensor& t) {
    op::Operand o;
    o.dtype = t.dtype();
    o.dims = t.dims();
    return o;
  }

  // Row-major, channels-last, or with gaps between rows.
  void place(op::Operand& o) {
    const auto pixels = op::channels_last(o.rank());
    if (!pixels.empty() && random_() % 2) {
      o.layout = pixels;
    } else if (random_() % 4 == 0 && o.rank() > 0) {
      Dims padded = o.dims;
      for (int64_t& d : padded) d += 1 + static_cast<int64_t>(random_() % 2);
      if (random_() % 2) padded.push_back(2);
      o.strides = op::strides_of(padded);
      o.strides.resize(o.dims.size());
    }
  }

  bool finish() {
    op::Problem& p = problem;
    const int count = static_cast<int>(in.size());
    auto number = [&](int v) { return v >= 0 ? v : count - 1 - v; };
    p.op = op::find(steps_[0].op);
    p.attrs = steps_[0].attrs;
    for (const auto& t : in) {
      p.in.push_back(operand(*t));
      place(p.in.back());
      values.push_back(*t);
    }
    values.insert(values.end(), results_.begin(), results_.end());
    p.result = operand(results_[0]);
    p.arity = steps_[0].in.size();
    for (size_t i = 1; i < steps_.size(); ++i) {
      p.steps.push_back({op::find(steps_[i].op), steps_[i].attrs, {}, operand(results_[i])});
      for (int v : steps_[i].in) p.steps.back().in.push_back(number(v));
    }
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].dims() == dims_ && (i + 1 == results_.size() || random_() % 6 == 0) &&
          p.results.size() < 4) {
        p.results.push_back(count + static_cast<int>(i));
        p.out.push_back(operand(results_[i]));
        place(p.out.back());
      }
    return !p.results.empty();
  }

  std::mt19937_64& random_;
  Dims dims_;
  std::vector<Step> steps_;
  std::vector<Tensor> results_;
  std::vector<bool> exact_;
};

// Differences that one rounding to half precision in between may make.
bool near(const Tensor& got, const Tensor& want, double roundoff, int64_t& at) {
  for (at = 0; at < want.count(); ++at) {
    if (!is_float(want.dtype())) {
      if (got.i64(at) != want.i64(at)) return false;
      continue;
    }
    const double g = got.f64(at), w = want.f64(at);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (!(std::fabs(g - w) <= 64 * roundoff * (1 + std::fabs(w)))) return false;
  }
  return true;
}

int run_all(Group& g, std::mt19937_64& random, double roundoff) {
  int ran = 0;
  for (Isa isa : available_isas())
    for (const op::Claim& claim : table(isa).probe(g.problem)) {
      if (!claim.supported()) {
        EXPECT_FALSE(claim.refusal.empty());
        continue;
      }
      const auto got = run_claim(table(isa), g.problem, claim, g.in, random);
      if (!got) {
        ADD_FAILURE() << g.problem.str() << ": " << got.error().message;
        continue;
      }
      ++ran;
      for (size_t o = 0; o < got->size(); ++o) {
        const Tensor& want = g.values[static_cast<size_t>(g.problem.results[o])];
        int64_t at = 0;
        if (near((*got)[o], want, roundoff, at)) continue;
        ADD_FAILURE() << name_of(isa) << " " << g.problem.str() << " output " << o << " element "
                      << at << " is " << (*got)[o].f64(at) << ", want " << want.f64(at);
      }
    }
  return ran;
}

TEST(Chain, RandomGroupsMatchTheReference) {
  std::mt19937_64 random(11);
  int ran = 0;
  for (int i = 0; i < 400; ++i) {
    const int64_t most = i % 8 == 0 ? 40000 : 5000;
    Group g(random, random_dims(random, static_cast<int>(random() % 5), most));
    const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF32, DType::kF64,
                                     DType::kI32, DType::kI64, DType::kI8, DType::kF16});
    if (!g.make(type, static_cast<int>(size_between(random, 1, 14)))) continue;
    ran += run_all(g, random, unit_roundoff(type == DType::kF16 ? type : DType::kF32));
  }
  EXPECT_GE(ran, 400);
}

TEST(Chain, WalksRowsLongerThanABlock) {
  std::mt19937_64 random(12);
  for (const Dims& dims : {Dims{3, 2500}, Dims{2, 2, 1031}, Dims{1, 5, 700}, Dims{4, 3, 5, 129}})
    for (int i = 0; i < 6; ++i) {
      Group g(random, dims);
      if (g.make(DType::kF32, 5)) {
        EXPECT_GE(run_all(g, random, unit_roundoff(DType::kF32)), 1);
      }
    }
}

TEST(Chain, SaysWhatItRefuses) {
  auto operand = [](const Dims& dims, DType type = DType::kF32) {
    op::Operand o;
    o.dtype = type;
    o.dims = dims;
    return o;
  };
  op::Problem p;
  p.op = op::find("add");
  p.in = {operand({4, 8}), operand({8})};
  p.out = {operand({4, 8})};
  p.arity = 2;
  p.result = p.out[0];
  p.steps = {{op::find("relu"), {}, {2}, p.out[0]}};
  p.results = {3};
  auto refusal = [](const op::Problem& problem) { return table().probe(problem)[0].refusal; };
  EXPECT_EQ(refusal(p), "");
  op::Problem other = p;
  other.steps[0].op = op::find("softmax");
  EXPECT_EQ(refusal(other), "softmax is not element-wise");
  other = p;
  other.in[1] = operand({5});
  EXPECT_EQ(refusal(other), "input 1 is [5] in layout '': need strides that reach [4,8]");
  other = p;
  other.in[0].layout = "mn: n/4 m n%4";
  EXPECT_EQ(refusal(other),
            "input 0 is [4,8] in layout 'mn: n/4 m n%4': need strides that reach [4,8]");
  other = p;
  other.out[0] = operand({4, 8}, DType::kF64);
  EXPECT_EQ(refusal(other), "output 0 is f64, need f32");
  other = p;
  other.results = {2};
  EXPECT_EQ(refusal(other), "");  // what steps yield may go unread
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
