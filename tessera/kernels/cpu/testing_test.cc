#include "tessera/kernels/cpu/testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "tessera/base/budget.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/narrow_entries.h"

namespace tessera::kernels::cpu::testing {
namespace {

constexpr size_t kGuard = 256;

// Aligned bytes between two guards.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), storage_(bytes_ + 2 * kGuard + 64, std::byte{0xcd}) {
    const auto at = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
    data_ = storage_.data() + kGuard + (64 - at % 64) % 64;
  }
  std::byte* data() const { return data_; }
  uint64_t size() const { return bytes_; }
  bool intact() const {
    for (const std::byte* p = storage_.data(); p < data_; ++p)
      if (*p != std::byte{0xcd}) return false;
    for (const std::byte* p = data_ + bytes_; p < storage_.data() + storage_.size(); ++p)
      if (*p != std::byte{0xcd}) return false;
    return true;
  }

 private:
  size_t bytes_;
  mutable std::vector<std::byte> storage_;
  std::byte* data_;
};

struct Failure {
  std::string message;
};

void fail(const tessera_launch* launch, const char* message) {
  auto* failure = static_cast<Failure*>(launch->fail_context);
  if (failure->message.empty()) failure->message = message;
}

#define EMULATED_ENTRY(name) {"cpu." #name, emulated::name},
constexpr Entry kEmulated[] = {TESSERA_INTEGER_ENTRIES(EMULATED_ENTRY)
                                   TESSERA_NARROW_ENTRIES(EMULATED_ENTRY)};

tessera_entry entry_named(const std::vector<Entry>& entries, std::string_view name) {
  for (const Entry& e : entries)
    if (e.name == name) return e.function;
  return nullptr;
}

Result<std::vector<Tensor>> evaluate(std::string_view op, const op::Attrs& attrs, int outputs,
                                     const std::vector<const Tensor*>& in) {
  ir::Node node;
  node.op = op::find(op);
  if (!node.op) return error(Code::kNotFound, "no operator '{}'", op);
  node.attrs = attrs;
  node.outputs.resize(static_cast<size_t>(outputs));
  for (size_t i = 0; i < in.size(); ++i)
    node.inputs.push_back(in[i] ? static_cast<ir::ValueId>(i) : ir::kAbsent);
  std::vector<op::Value> values;
  for (const Tensor* t : in) values.emplace_back(t ? *t : Tensor());
  std::vector<const op::Value*> pointers;
  for (size_t i = 0; i < values.size(); ++i) pointers.push_back(in[i] ? &values[i] : nullptr);
  TRY_ASSIGN(auto results, ir::reference::evaluate(node, pointers, {}));
  std::vector<Tensor> tensors;
  for (int i = 0; i < outputs; ++i) tensors.push_back(results[static_cast<size_t>(i)].tensor());
  return tensors;
}

size_t anchor_inputs(const Case& c) { return c.steps.empty() ? c.in.size() : c.arity; }

Result<std::vector<Tensor>> reference(const Case& c) {
  std::vector<const Tensor*> in;
  for (size_t i = 0; i < anchor_inputs(c); ++i) in.push_back(c.in[i] ? &*c.in[i] : nullptr);
  return evaluate(c.op, c.attrs, c.outputs, in);
}

// The results of the steps behind the node's.
Result<std::vector<Tensor>> step_results(const Case& c, const Tensor& anchor) {
  std::vector<Tensor> results{anchor};
  for (const CaseStep& step : c.steps) {
    std::vector<const Tensor*> in;
    for (int v : step.in) {
      const size_t at = static_cast<size_t>(std::max(v, 0));
      in.push_back(v < 0 ? nullptr : at < c.in.size() ? &*c.in[at] : &results[at - c.in.size()]);
    }
    TRY_ASSIGN(auto out, evaluate(step.op, step.attrs, 1, in));
    results.push_back(std::move(out[0]));
  }
  results.erase(results.begin());
  return results;
}

Tensor magnitudes(const Tensor& t) {
  if (!is_float(t.dtype())) return t;
  Tensor m = *Tensor::make(t.dtype(), t.dims());
  for (int64_t i = 0; i < t.count(); ++i) m.set_f64(i, std::fabs(t.f64(i)));
  return m;
}

// What the magnitudes that were summed become behind a step: other functions than sums and products
// do not spread differences.
Tensor spread(const Case& c, const CaseStep& step, Tensor sums) {
  if (step.op == "conv" || step.op == "dot") {
    std::vector<Tensor> operands;
    for (size_t i = 1; i < step.in.size(); ++i)
      operands.push_back(magnitudes(*c.in[static_cast<size_t>(step.in[i])]));
    std::vector<const Tensor*> in{&sums};
    for (const Tensor& t : operands) in.push_back(&t);
    return (*evaluate(step.op, step.attrs, 1, in))[0];
  }
  const bool product = step.op == "mul";
  if (!product && step.op != "add" && step.op != "sub") return sums;
  for (int v : step.in)
    if (v >= 0 && static_cast<size_t>(v) < c.in.size()) {
      const Tensor operand = magnitudes(*c.in[static_cast<size_t>(v)]);
      sums = (*evaluate(product ? "mul" : "add", {}, 1, {&sums, &operand}))[0];
    }
  return sums;
}

// Elements between neighbours along each logical axis.
Dims strides_at(const Dims& dims, const Placement& at) {
  const size_t rank = dims.size();
  Dims strides(rank);
  int64_t step = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t a = at.layout.empty() ? rank - 1 - i : i == 0 ? 1 : i + 1 < rank ? rank - i : 0;
    strides[a] = step;
    step *= dims[a];
    if (i == 0) step += at.gap;
  }
  return strides;
}

// Of an operand's buffer.
int64_t span_of(const op::Operand& o) {
  if (o.count() == 0) return 0;
  if (o.layout.empty() && o.strides.empty()) return packed_bytes(o.dtype, o.count());
  const Dims strides = o.strides.empty() ? strides_at(o.dims, {o.layout, 0, {}}) : o.strides;
  int64_t last = 0;
  for (size_t a = 0; a < o.dims.size(); ++a) last += (o.dims[a] - 1) * strides[a];
  return packed_bytes(o.dtype, last + 1);
}

// Moves elements between a packed row-major tensor and an operand's buffer.
void move_elements(const op::Operand& o, std::byte* tensor, std::byte* buffer, bool to_tensor) {
  if (o.layout.empty() && o.strides.empty()) {
    const auto bytes = static_cast<size_t>(packed_bytes(o.dtype, o.count()));
    if (bytes > 0) std::memcpy(to_tensor ? tensor : buffer, to_tensor ? buffer : tensor, bytes);
    return;
  }
  const auto size = static_cast<size_t>(bits_of(o.dtype) / 8);
  const Dims strides = o.strides.empty() ? strides_at(o.dims, {o.layout, 0, {}}) : o.strides;
  Dims index(o.dims.size(), 0);
  for (int64_t i = 0; i < o.count(); ++i, tensor += size) {
    int64_t offset = 0;
    for (size_t a = 0; a < index.size(); ++a) offset += index[a] * strides[a];
    std::byte* at = buffer + static_cast<size_t>(offset) * size;
    std::memcpy(to_tensor ? tensor : at, to_tensor ? at : tensor, size);
    for (size_t a = index.size(); a-- > 0 && ++index[a] == o.dims[a];) index[a] = 0;
  }
}

// Whether what lies between the elements of a strided output is as it was.
bool gaps_untouched(const op::Operand& o, const Buffer& buffer) {
  if (o.strides.empty()) return true;
  Tensor blank = *Tensor::make(o.dtype, o.dims);
  std::fill_n(blank.mutable_data(), blank.bytes().value, std::byte{0xcd});
  move_elements(o, blank.mutable_data(), buffer.data(), false);
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [](std::byte b) { return b == std::byte{0xcd}; });
}

// The first element of `got` outside the tolerance, described; empty if none is.
// With sums, `roundings` are allowed behind them.
// Without, transformed sums need only keep what is not finite.
std::string difference(const Tensor& got, const Tensor& want, const Tensor* sums,
                       op::NumericClass numeric, Tolerance tolerance, double roundings,
                       std::optional<DType> rounded_to) {
  const bool exact = numeric == op::NumericClass::kExact,
             transformed = numeric == op::NumericClass::kTransformed;
  if (got.dtype() != want.dtype() || got.dims() != want.dims()) return "type or shape differs";
  if (!is_float(want.dtype())) {
    for (int64_t i = 0; i < want.count(); ++i)
      if (is_complex(want.dtype())
              ? std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes().value)) != 0
              : got.i64(i) != want.i64(i))
        return is_complex(want.dtype())
                   ? "bytes differ"
                   : fmt::format("element {} is {}, want {}", i, got.i64(i), want.i64(i));
    return {};
  }
  const double u = unit_roundoff(want.dtype());
  const DType accumulate = want.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double g = got.f64(i), w = want.f64(i);
    if ((std::isnan(g) && std::isnan(w)) || g == w) continue;
    if (transformed && !sums) {
      if (std::isfinite(g) && !std::isfinite(w))
        return fmt::format("element {} is {:.9g}, want {:.9g}", i, g, w);
      continue;
    }
    double bound = exact ? 0 : u * (tolerance.rel * std::fabs(w) + tolerance.abs);
    if (!exact && sums)
      bound = ErrorBudget{want.dtype(), accumulate, transformed ? kTransformedForm : kDirectForm,
                          rounded_to}
                  .bound(w, tolerance.products, sums->f64(i)) +
              u * roundings * std::fabs(w);
    if (!(std::fabs(g - w) <= bound))
      return fmt::format("element {} is {:.9g}, want {:.9g}: off by {:.3g} > {:.3g}", i, g, w,
                         std::fabs(g - w), bound);
  }
  return {};
}

}  // namespace

namespace {

op::Operand operand_of(const Tensor& t) {
  op::Operand o;
  o.dtype = t.dtype();
  o.dims = t.dims();
  return o;
}

void place(op::Operand& o, const Placement& at) {
  o.layout = at.layout;
  if (at.gap > 0) o.strides = strides_at(o.dims, at);
  if (!at.strides.empty()) o.strides = at.strides;
}

}  // namespace

Result<op::Problem> problem_of(const Case& c, const std::vector<Tensor>& outputs) {
  op::Problem p;
  p.op = op::find(c.op);
  p.attrs = c.attrs;
  for (size_t i = 0; i < c.in.size(); ++i) {
    op::Operand o;
    o.present = c.in[i].has_value();
    if (o.present) {
      o.dtype = c.in[i]->dtype();
      o.dims = c.in[i]->dims();
      o.constant = i < c.constant.size() && c.constant[i];
      if (c.values_known && (is_int(o.dtype) || o.dtype == DType::kBool) &&
          c.in[i]->count() <= 1024 && c.in[i]->rank() <= 1)
        o.values = c.in[i]->to_i64s();
    }
    if (i < c.placed.size()) place(o, c.placed[i]);
    p.in.push_back(std::move(o));
  }
  for (const Tensor& t : outputs) p.out.push_back(operand_of(t));
  if (!p.out.empty()) place(p.out[0], c.out_placed);
  if (c.steps.empty()) return p;
  p.arity = c.arity;
  p.result = operand_of(outputs[0]);
  p.results = {static_cast<int>(c.in.size() + c.steps.size())};
  p.out.resize(1);
  TRY_ASSIGN(const auto results, step_results(c, outputs[0]));
  for (size_t i = 0; i < c.steps.size(); ++i)
    p.steps.push_back(
        {op::find(c.steps[i].op), c.steps[i].attrs, c.steps[i].in, operand_of(results[i])});
  p.out[0] = operand_of(results.back());
  place(p.out[0], c.out_placed);
  return p;
}

namespace {

// As run_claim; entries of `instead` stand for those of the table with the same names.
Result<std::vector<Tensor>> run_with(std::span<const Entry> instead, const Table& table,
                                     const op::Problem& problem, const op::Claim& claim,
                                     const std::vector<std::optional<Tensor>>& inputs,
                                     std::mt19937_64& random) {
  std::vector<std::unique_ptr<Buffer>> in, out, packed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(std::make_unique<Buffer>(inputs[i] ? span_of(problem.in[i]) : 0));
    if (!inputs[i]) continue;
    Tensor t = *inputs[i];
    move_elements(problem.in[i], t.mutable_data(), in.back()->data(), false);
  }
  for (const op::Operand& o : problem.out) out.push_back(std::make_unique<Buffer>(span_of(o)));
  Buffer workspace(claim.workspace.value);
  for (size_t i = 0; i < claim.packed.size(); ++i) {
    packed.push_back(std::make_unique<Buffer>(claim.packed[i].size.value));
    const auto& source = inputs[static_cast<size_t>(claim.packed[i].input)];
    TRY(table.pack(problem, claim, static_cast<int>(i), source->data(), packed.back()->data()));
  }
  TRY_ASSIGN(auto launches, table.prepare(problem, claim));
  std::vector<Entry> entries(instead.begin(), instead.end());
  for (const Entry& e : table.entries()) entries.push_back(e);
  for (const op::LaunchSpec& spec : launches) {
    const tessera_entry entry = entry_named(entries, spec.entry);
    if (!entry) return error(Code::kInternal, "no entry '{}'", spec.entry);
    std::vector<tessera_range> ranges;
    for (const op::Argument& a : spec.arguments) {
      const Buffer& b = a.kind == op::Argument::kInput    ? *in[static_cast<size_t>(a.index)]
                        : a.kind == op::Argument::kOutput ? *out[static_cast<size_t>(a.index)]
                        : a.kind == op::Argument::kPacked ? *packed[static_cast<size_t>(a.index)]
                                                          : workspace;
      ranges.push_back({b.data() + a.offset, b.size() - static_cast<uint64_t>(a.offset)});
    }
    std::vector<std::byte> constants(spec.constants.size() + 64);
    std::byte* block =
        constants.data() + (64 - reinterpret_cast<uintptr_t>(constants.data()) % 64) % 64;
    if (!spec.constants.empty()) std::memcpy(block, spec.constants.data(), spec.constants.size());
    Failure failure;
    const tessera_launch launch{sizeof(tessera_launch),
                                spec.grid,
                                static_cast<uint32_t>(ranges.size()),
                                static_cast<uint32_t>(spec.constants.size()),
                                ranges.data(),
                                block,
                                fail,
                                &failure};
    for (uint32_t first = 0; first < spec.grid;) {
      const uint32_t count =
          1 + static_cast<uint32_t>(random() % std::min<uint32_t>(spec.grid - first, 7));
      entry(&launch, first, count);
      first += count;
    }
    if (!failure.message.empty()) return error(Code::kInvalidArgument, "{}", failure.message);
  }
  for (auto* list : {&in, &out, &packed})
    for (const auto& b : *list)
      if (!b->intact()) return error(Code::kInternal, "wrote outside of a range");
  if (!workspace.intact()) return error(Code::kInternal, "wrote outside of the workspace");
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    TRY_ASSIGN(Tensor t, Tensor::make(problem.out[i].dtype, problem.out[i].dims));
    move_elements(problem.out[i], t.mutable_data(), out[i]->data(), true);
    if (!gaps_untouched(problem.out[i], *out[i]))
      return error(Code::kInternal, "wrote between the rows of output {}", i);
    results.push_back(std::move(t));
  }
  return results;
}

}  // namespace

Result<std::vector<Tensor>> run_claim(const Table& table, const op::Problem& problem,
                                      const op::Claim& claim,
                                      const std::vector<std::optional<Tensor>>& inputs,
                                      std::mt19937_64& random) {
  return run_with({}, table, problem, claim, inputs, random);
}

namespace {

// What the kernel rounds inputs to, if it takes the problem only because that is allowed.
std::optional<DType> rounding_of(const Table& table, op::Problem problem, std::string_view kernel) {
  const DType allowed = problem.attrs.dtype("compute");
  problem.attrs.set("compute", DType::kF32);
  if (allowed == DType::kF32 || table.ask(problem, kernel).supported()) return std::nullopt;
  return allowed;
}

// How many claims of the first table ran.
int check(std::span<const Table* const> tables, const Case& c, std::mt19937_64& random,
          Tolerance tolerance) {
  auto want = reference(c);
  if (!want && want.error().code == Code::kNotFound) {
    ADD_FAILURE() << want.error().message;
    return 0;
  }
  if (!want) return 0;
  std::optional<std::vector<Tensor>> sums;
  if (tolerance.products > 0) {
    Case absolute = c;
    for (auto& t : absolute.in)
      if (t) t = magnitudes(*t);
    sums = *reference(absolute);
    for (const CaseStep& step : c.steps) (*sums)[0] = spread(c, step, (*sums)[0]);
  }
  const auto made = problem_of(c, *want);
  if (!made) {
    ADD_FAILURE() << made.error().message;
    return 0;
  }
  const op::Problem& problem = *made;
  if (!c.steps.empty()) want = std::vector<Tensor>{step_results(c, (*want)[0])->back()};
  int ran = 0;
  const auto run = [&](std::string_view variant, const Table& by, const op::Claim& claim,
                       std::span<const Entry> instead, std::mt19937_64& cuts) {
    const std::string where = fmt::format("{} {} {}", variant, claim.kernel, problem.str());
    const auto got = run_with(instead, by, problem, claim, c.in, cuts);
    if (!got) {
      ADD_FAILURE() << where << ": " << got.error().message;
      return false;
    }
    for (size_t i = 0; i < want->size(); ++i) {
      const std::string text =
          difference((*got)[i], (*want)[i], sums ? &(*sums)[i] : nullptr, claim.numeric, tolerance,
                     c.steps.empty() ? 1 : tolerance.rel, rounding_of(by, problem, claim.kernel));
      if (!text.empty()) ADD_FAILURE() << where << " output " << i << ": " << text;
    }
    return true;
  };
  for (const Table* table : tables) {
    // What a test draws next is the same with and without the variants of few kernels.
    std::mt19937_64 copy = random;
    const bool few = table->name() == "cpu.avx512vnni" || table->name() == "cpu.avx512bf16" ||
                     table->name() == "cpu.amx";
    for (const op::Claim& claim : table->probe(problem)) {
      if (!claim.supported())
        EXPECT_FALSE(claim.refusal.empty()) << table->name() << claim.kernel << problem.str();
      else if (run(table->name(), *table, claim, {}, few ? copy : random))
        ran += table == tables.front();
    }
  }
  std::mt19937_64 copy = random;
  for (const op::Claim& claim : tables.front()->probe(problem))
    if (claim.supported() &&
        (claim.kernel.starts_with("cpu.integer") || claim.kernel.ends_with("_bf16")))
      run("emulated", *tables.front(), claim, kEmulated, copy);
  return ran;
}

}  // namespace

int check(const Case& c, std::mt19937_64& random, Tolerance tolerance) {
  std::vector<const Table*> tables;
  for (Isa isa : available_isas()) tables.push_back(&table(isa));
  return check(tables, c, random, tolerance);
}

int check(const Table& table, const Case& c, std::mt19937_64& random, Tolerance tolerance) {
  const Table* const tables[] = {&table};
  return check(tables, c, random, tolerance);
}

Tensor random_tensor(DType dtype, const Dims& dims, std::mt19937_64& random, Fill fill) {
  Tensor t = *Tensor::make(dtype, dims);
  if (is_complex(dtype)) {
    for (int64_t i = 0; i < t.bytes().value; ++i)
      t.mutable_data()[i] = static_cast<std::byte>(random() % 60);
    return t;
  }
  std::normal_distribution<double> normal(0, fill.scale);
  for (int64_t i = 0; i < t.count(); ++i) {
    if (is_float(dtype)) {
      double v = normal(random);
      if (fill.positive) v = std::fabs(v);
      if (fill.special && random() % 16 == 0)
        v = pick<double>(random, {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e-30});
      t.set_f64(i, v);
    } else if (dtype == DType::kBool) {
      t.set_i64(i, static_cast<int64_t>(random() % 2));
    } else {
      int64_t v =
          fill.wide ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 19) - 9;
      if (is_unsigned_int(dtype) && !fill.wide) v = std::abs(v);
      if (fill.positive) v = (v & INT64_MAX) % 100 + 1;
      t.set_i64(i, v);
    }
  }
  return t;
}

int64_t size_between(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Dims random_dims(std::mt19937_64& random, int rank, int64_t most) {
  Dims dims;
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    int64_t d = pick<int64_t>(random, {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 97, 128, 131, 517});
    if (random() % 40 == 0) d = 0;
    if (count * d > most) d = 1 + static_cast<int64_t>(random() % 2);
    count *= std::max<int64_t>(d, 1);
    dims.push_back(d);
  }
  std::shuffle(dims.begin(), dims.end(), random);
  return dims;
}

Dims broadcastable(std::mt19937_64& random, const Dims& dims) {
  Dims out(
      dims.begin() + (dims.empty() || random() % 2 ? 0 : size_between(random, 0, std::ssize(dims))),
      dims.end());
  for (int64_t& d : out)
    if (random() % 3 == 0) d = 1;
  return out;
}

}  // namespace tessera::kernels::cpu::testing
