#include "tessera/tile/testing/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "tessera/base/budget.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/layout/bound.h"
#include "tessera/op/layouts.h"

namespace tessera::tile::testing {
namespace {

op::Operand operand_of(const op::Tensor& t) {
  op::Operand o;
  o.dtype = t.dtype();
  o.dims = t.dims();
  return o;
}

Result<std::vector<op::Tensor>> evaluate(std::string_view op, const op::Attrs& attrs, int outputs,
                                         const std::vector<op::Tensor>& in) {
  ir::Node node;
  node.op = op::find(op);
  if (!node.op) return error(Code::kNotFound, "no operator '{}'", op);
  node.attrs = attrs;
  node.outputs.resize(static_cast<size_t>(outputs));
  std::vector<op::Value> values(in.begin(), in.end());
  std::vector<const op::Value*> pointers;
  for (size_t i = 0; i < values.size(); ++i) {
    node.inputs.push_back(static_cast<ir::ValueId>(i));
    pointers.push_back(&values[i]);
  }
  TRY_ASSIGN(auto results, ir::reference::evaluate(node, pointers, {}));
  std::vector<op::Tensor> tensors;
  for (const op::Value& v : results) tensors.push_back(v.tensor());
  return tensors;
}

double roundoff_of(DType dtype) {
  return is_float(dtype) ? std::max(unit_roundoff(dtype), unit_roundoff(DType::kF32)) : 0;
}

struct Choice {
  std::string_view op;
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
                               {"sign", 1, false, true},
                               {"tanh", 1, true},
                               {"sigmoid", 1, true},
                               {"gelu", 1, true},
                               {"hard_swish", 1, true},
                               {"elu", 1, true},
                               {"softplus", 1, true},
                               {"erf", 1, true},
                               {"silu", 1, true},
                               {"floor", 1, false, true},
                               {"round", 1, false, true},
                               {"select", 3, false, false, 1},
                               {"not", 1, false, false, 1},
                               {"and", 2, false, false, 2},
                               {"xor", 2, false, false, 2},
                               {"lt", 2, false, true},
                               {"ge", 2, false, true},
                               {"eq", 2, false, true},
                               {"convert", 1, false, true}};

// Grows a group operator by operator. Inputs are numbered from 0 on, results -1, -2, ... until the
// number of inputs is known.
class Grower {
 public:
  Grower(std::mt19937_64& random, Dims dims, DType dtype)
      : random_(random), dims_(std::move(dims)), dtype_(dtype) {}

  std::vector<op::Tensor> in;

  // A result that is there already.
  void start(const op::Tensor& result) {
    results_.push_back(result);
    exact_.push_back(false);
  }
  bool step() {
    std::vector<int> pool;
    for (size_t v = 0; v < results_.size(); ++v) pool.push_back(-1 - static_cast<int>(v));
    for (size_t v = 0; v < in.size(); ++v) pool.push_back(static_cast<int>(v));
    return run(draw(pool));
  }
  bool first() {
    add_input();
    add_input();
    Step s = draw({0, 1});
    for (size_t i = 0; i < s.in.size(); ++i) s.in[i] = static_cast<int>(i);
    return run(s);
  }

  struct Step {
    std::string_view op;
    op::Attrs attrs;
    std::vector<int> in;
    bool exact = true;
  };
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<op::Tensor>& results() const { return results_; }
  int number(int v) const { return v >= 0 ? v : static_cast<int>(in.size()) - 1 - v; }

 private:
  const op::Tensor& value(int v) const {
    return v >= 0 ? in[static_cast<size_t>(v)] : results_[static_cast<size_t>(-1 - v)];
  }
  int add_input() {
    const Dims d = random_() % 3 ? dims_ : broadcastable(random_, dims_);
    in.push_back(random_tensor(random_, dtype_, d, random_() % 8 == 0));
    return static_cast<int>(in.size()) - 1;
  }
  bool exact(int v) const { return v >= 0 || exact_[static_cast<size_t>(-1 - v)]; }

  int any(DType dtype, const std::vector<int>& pool, bool exactly) {
    for (int tries = 0; tries < 8; ++tries) {
      const int v = pool[random_() % pool.size()];
      if (value(v).dtype() == dtype && (exact(v) || !exactly)) return v;
    }
    if (dtype == dtype_) return add_input();
    in.push_back(random_tensor(random_, dtype, dims_));
    return static_cast<int>(in.size()) - 1;
  }

  Step draw(const std::vector<int>& pool) {
    for (;;) {
      const Choice& c = kChoices[random_() % std::size(kChoices)];
      if ((c.floats && !is_float(dtype_)) || in.size() > 20) continue;
      if (results_.empty() && (c.bools > 0 || c.jumps)) continue;
      if (c.op == "sign" && is_unsigned_int(dtype_)) continue;
      Step s{c.op, {}, {}};
      for (int i = 0; i < c.inputs; ++i)
        s.in.push_back(any(i < c.bools ? DType::kBool : dtype_, pool, c.jumps));
      if (s.op == "convert") {
        constexpr DType kTo[] = {DType::kF32, DType::kI32, DType::kF16, DType::kI8, DType::kBF16};
        s.attrs.set("to", kTo[random_() % std::size(kTo)]);
      }
      s.exact = !c.floats && (!is_float(dtype_) || bits_of(dtype_) >= 32);
      for (int v : s.in) s.exact &= exact(v);
      return s;
    }
  }

  bool run(const Step& s) {
    std::vector<op::Tensor> args;
    for (int v : s.in) args.push_back(value(v));
    auto result = evaluate(s.op, s.attrs, 1, args);
    if (!result) return false;
    results_.push_back((*result)[0]);
    steps_.push_back(s);
    exact_.push_back(s.exact);
    return true;
  }

  std::mt19937_64& random_;
  Dims dims_;
  DType dtype_;
  std::vector<Step> steps_;
  std::vector<op::Tensor> results_;
  std::vector<bool> exact_;
};

double coarsest(const Grower& g, double least) {
  for (const op::Tensor& t : g.results()) least = std::max(least, roundoff_of(t.dtype()));
  return least;
}

// Offsets of elements in row-major order, and the elements up to the last one.
std::pair<std::vector<int64_t>, int64_t> places(const op::Operand& o) {
  std::vector<int64_t> offsets;
  const int64_t count = o.count();
  std::optional<layout::BoundLayout> bound;
  if (!o.layout.empty() && o.strides.empty())
    bound = *layout::BoundLayout::bind(*layout::Layout::parse(o.layout), o.dtype, o.dims);
  const Dims strides = o.strides.empty() ? op::strides_of(o.dims) : o.strides;
  Dims index(o.dims.size(), 0);
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t a = 0; a < index.size(); ++a) at += index[a] * strides[a];
    if (bound) at = bound->offset(index);
    offsets.push_back(at);
    end = std::max(end, at + 1);
    for (size_t a = index.size(); a-- > 0 && ++index[a] == o.dims[a];) index[a] = 0;
  }
  return {std::move(offsets), end};
}

constexpr size_t kGuard = 256;
constexpr std::byte kFill{0xcd};

}  // namespace

Result<Trial> trial_of(std::string_view name, const op::Attrs& attrs, std::vector<op::Tensor> in,
                       int outputs) {
  TRY_ASSIGN(auto results, evaluate(name, attrs, outputs, in));
  Trial t;
  t.problem.op = op::find(name);
  t.problem.attrs = attrs;
  for (const op::Tensor& x : in) {
    t.problem.in.push_back(operand_of(x));
    if (is_int(x.dtype()) && x.rank() <= 1 && x.count() <= 64)
      t.problem.in.back().values = x.to_i64s();
    t.roundoff = std::max(t.roundoff, roundoff_of(x.dtype()));
  }
  for (const op::Tensor& y : results) t.problem.out.push_back(operand_of(y));
  t.in = std::move(in);
  t.want = std::move(results);
  return t;
}

std::optional<Trial> random_group(std::mt19937_64& random, const Dims& dims, DType dtype,
                                  int steps) {
  Grower g(random, dims, dtype);
  if (!g.first()) return std::nullopt;
  for (int i = 0; i < steps; ++i)
    if (!g.step()) return std::nullopt;
  Trial t;
  op::Problem& p = t.problem;
  const auto& results = g.results();
  p.op = op::find(g.steps()[0].op);
  p.attrs = g.steps()[0].attrs;
  p.arity = g.steps()[0].in.size();
  p.result = operand_of(results[0]);
  for (const op::Tensor& x : g.in) {
    p.in.push_back(operand_of(x));
    place(random, p.in.back());
  }
  for (size_t i = 1; i < g.steps().size(); ++i) {
    p.steps.push_back({op::find(g.steps()[i].op), g.steps()[i].attrs, {}, operand_of(results[i])});
    for (int v : g.steps()[i].in) p.steps.back().in.push_back(g.number(v));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const bool last = i + 1 == results.size();
    if (results[i].dims() != dims || (!last && random() % 6) || p.results.size() >= 4) continue;
    p.results.push_back(g.number(-1 - static_cast<int>(i)));
    p.out.push_back(operand_of(results[i]));
    place(random, p.out.back());
    t.want.push_back(results[i]);
  }
  if (p.out.empty()) return std::nullopt;
  t.in = g.in;
  t.roundoff = coarsest(g, roundoff_of(dtype));
  return t;
}

bool append_steps(std::mt19937_64& random, Trial& t, int steps) {
  op::Problem& p = t.problem;
  const op::Tensor anchor = t.want[0];
  Grower g(random, anchor.dims(), anchor.dtype());
  g.start(anchor);
  for (int i = 0; i < steps; ++i)
    if (!g.step()) return false;
  if (g.results().back().dims() != anchor.dims()) return false;
  // The anchor's inputs come first.
  const int arity = static_cast<int>(p.in.size());
  const int inputs = arity + static_cast<int>(g.in.size());
  const auto number = [&](int v) { return v >= 0 ? arity + v : inputs - 1 - v; };
  p.arity = static_cast<size_t>(arity);
  p.result = operand_of(anchor);
  for (const op::Tensor& x : g.in) {
    p.in.push_back(operand_of(x));
    t.in.push_back(x);
  }
  for (size_t i = 0; i < g.steps().size(); ++i) {
    p.steps.push_back(
        {op::find(g.steps()[i].op), g.steps()[i].attrs, {}, operand_of(g.results()[i + 1])});
    for (int v : g.steps()[i].in) p.steps.back().in.push_back(number(v));
  }
  p.results = {inputs + steps};
  p.out = {operand_of(g.results().back())};
  t.want = {g.results().back()};
  t.roundoff = coarsest(g, t.roundoff);
  return true;
}

void place(std::mt19937_64& random, op::Operand& o) {
  const auto pixels = op::channels_last(o.rank());
  if (!pixels.empty() && random() % 2) {
    o.layout = pixels;
  } else if (random() % 4 == 0 && o.rank() > 0) {
    Dims padded = o.dims;
    for (int64_t& d : padded) d += 1 + static_cast<int64_t>(random() % 2);
    if (random() % 2) padded.push_back(2);
    o.strides = op::strides_of(padded);
    o.strides.resize(o.dims.size());
  }
}

Memory::Block Memory::block_of(const op::Operand& o) const {
  Block b;
  b.operand = o;
  b.size = static_cast<size_t>(packed_bytes(o.dtype, places(o).second));
  b.storage.resize(b.size + 2 * kGuard + 64, kFill);
  b.at = kGuard + 64 - reinterpret_cast<uintptr_t>(b.storage.data()) % 64;
  return b;
}

Memory::Memory(const Trial& trial) : trial_(trial) {
  for (size_t i = 0; i < trial.in.size(); ++i) {
    Block b = block_of(trial.problem.in[i]);
    const auto bytes = static_cast<size_t>(bits_of(b.operand.dtype) / 8);
    const auto offsets = places(b.operand).first;
    for (size_t e = 0; e < offsets.size(); ++e)
      std::memcpy(b.storage.data() + b.at + static_cast<size_t>(offsets[e]) * bytes,
                  trial.in[i].data() + e * bytes, bytes);
    in_.push_back(std::move(b));
  }
  for (const op::Operand& o : trial.problem.out) out_.push_back(block_of(o));
}

std::span<std::byte> Memory::of(const op::Argument& a) {
  Block& b = (a.kind == op::Argument::kInput ? in_ : out_)[static_cast<size_t>(a.index)];
  return std::span(b.storage).subspan(b.at, b.size);
}

std::string Memory::fault() const {
  for (size_t o = 0; o < out_.size(); ++o) {
    const Block& b = out_[o];
    const op::Tensor& want = trial_.want[o];
    op::Tensor got = *op::Tensor::make(want.dtype(), want.dims());
    std::vector<std::byte> rest = b.storage;
    const auto bytes = static_cast<size_t>(bits_of(want.dtype()) / 8);
    const auto offsets = places(b.operand).first;
    for (size_t e = 0; e < offsets.size(); ++e) {
      const size_t at = b.at + static_cast<size_t>(offsets[e]) * bytes;
      std::memcpy(got.mutable_data() + e * bytes, b.storage.data() + at, bytes);
      std::fill_n(rest.begin() + static_cast<int64_t>(at), bytes, kFill);
    }
    if (std::ranges::any_of(rest, [](std::byte x) { return x != kFill; }))
      return fmt::format("output {}: wrote beside its elements", o);
    for (int64_t e = 0; e < want.count(); ++e) {
      if (!is_float(want.dtype())) {
        if (got.i64(e) != want.i64(e))
          return fmt::format("output {} element {} is {}, want {}", o, e, got.i64(e), want.i64(e));
        continue;
      }
      const double g = got.f64(e), w = want.f64(e);
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      if (const double bound = 64 * trial_.roundoff * (1 + std::fabs(w));
          !(std::fabs(g - w) <= bound))
        return fmt::format("output {} element {} is {:.9g}, want {:.9g}: off by {:.3g} > {:.3g}", o,
                           e, g, w, std::fabs(g - w), bound);
    }
  }
  return {};
}

op::Tensor random_tensor(std::mt19937_64& random, DType dtype, const Dims& dims, bool special) {
  op::Tensor t = *op::Tensor::make(dtype, dims);
  std::normal_distribution<double> normal;
  constexpr double kSpecial[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e-30};
  for (int64_t i = 0; i < t.count(); ++i) {
    if (is_float(dtype))
      t.set_f64(i, special && random() % 16 == 0 ? kSpecial[random() % std::size(kSpecial)]
                                                 : normal(random));
    else if (dtype == DType::kBool)
      t.set_i64(i, static_cast<int64_t>(random() % 2));
    else
      t.set_i64(i, is_unsigned_int(dtype) ? static_cast<int64_t>(random() % 19)
                                          : static_cast<int64_t>(random() % 19) - 9);
  }
  return t;
}

Dims random_dims(std::mt19937_64& random, int rank, int64_t most) {
  constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 63, 64, 65, 97, 131, 517};
  Dims dims;
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    int64_t d = random() % 40 == 0 ? 0 : kSizes[random() % std::size(kSizes)];
    if (count * d > most) d = 1 + static_cast<int64_t>(random() % 2);
    count *= std::max<int64_t>(d, 1);
    dims.push_back(d);
  }
  return dims;
}

Dims broadcastable(std::mt19937_64& random, const Dims& dims) {
  Dims d(dims.begin() + static_cast<int64_t>(random() % (dims.size() + 1)), dims.end());
  for (int64_t& n : d)
    if (random() % 3 == 0) n = 1;
  return d;
}

}  // namespace tessera::tile::testing
