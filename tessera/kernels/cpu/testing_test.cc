#include "tessera/kernels/cpu/testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "tessera/base/budget.h"
#include "tessera/ir/reference/interpreter.h"

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

tessera_entry entry_named(const std::vector<Entry>& entries, std::string_view name) {
  for (const Entry& e : entries)
    if (e.name == name) return e.function;
  return nullptr;
}

Result<std::vector<Tensor>> reference(const Case& c) {
  ir::Node node;
  node.op = op::find(c.op);
  if (!node.op) return error(Code::kNotFound, "no operator '{}'", c.op);
  node.attrs = c.attrs;
  node.outputs.resize(static_cast<size_t>(c.outputs));
  for (size_t i = 0; i < c.in.size(); ++i)
    node.inputs.push_back(c.in[i] ? static_cast<ir::ValueId>(i) : ir::kAbsent);
  std::vector<op::Value> values;
  for (const auto& t : c.in) values.emplace_back(t.value_or(Tensor()));
  std::vector<const op::Value*> pointers;
  for (size_t i = 0; i < values.size(); ++i) pointers.push_back(c.in[i] ? &values[i] : nullptr);
  TRY_ASSIGN(auto results, ir::reference::evaluate(node, pointers, {}));
  std::vector<Tensor> tensors;
  for (int i = 0; i < c.outputs; ++i) tensors.push_back(results[static_cast<size_t>(i)].tensor());
  return tensors;
}

Tensor magnitudes(const Tensor& t) {
  if (!is_float(t.dtype())) return t;
  Tensor m = *Tensor::make(t.dtype(), t.dims());
  for (int64_t i = 0; i < t.count(); ++i) m.set_f64(i, std::fabs(t.f64(i)));
  return m;
}

// The first element of `got` outside the tolerance, described; empty if none is.
std::string difference(const Tensor& got, const Tensor& want, const Tensor* sums, bool exact,
                       Tolerance tolerance) {
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
    double bound = exact ? 0 : u * (tolerance.rel * std::fabs(w) + tolerance.abs);
    if (!exact && sums)
      bound = ErrorBudget{want.dtype(), accumulate}.bound(w, tolerance.products, sums->f64(i)) +
              u * std::fabs(w);
    if (!(std::fabs(g - w) <= bound))
      return fmt::format("element {} is {:.9g}, want {:.9g}: off by {:.3g} > {:.3g}", i, g, w,
                         std::fabs(g - w), bound);
  }
  return {};
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
    p.in.push_back(std::move(o));
  }
  for (const Tensor& t : outputs) {
    op::Operand o;
    o.dtype = t.dtype();
    o.dims = t.dims();
    p.out.push_back(std::move(o));
  }
  return p;
}

Result<std::vector<Tensor>> run_claim(const Table& table, const op::Problem& problem,
                                      const op::Claim& claim,
                                      const std::vector<std::optional<Tensor>>& inputs,
                                      std::mt19937_64& random) {
  std::vector<std::unique_ptr<Buffer>> in, out, packed;
  for (const auto& t : inputs) {
    in.push_back(std::make_unique<Buffer>(t ? t->bytes().value : 0));
    if (t && t->bytes().value > 0)
      std::memcpy(in.back()->data(), t->data(), static_cast<size_t>(t->bytes().value));
  }
  for (const op::Operand& o : problem.out)
    out.push_back(std::make_unique<Buffer>(packed_bytes(o.dtype, o.count())));
  Buffer workspace(claim.workspace.value);
  for (size_t i = 0; i < claim.packed.size(); ++i) {
    packed.push_back(std::make_unique<Buffer>(claim.packed[i].size.value));
    const auto& source = inputs[static_cast<size_t>(claim.packed[i].input)];
    TRY(table.pack(problem, claim, static_cast<int>(i), source->data(), packed.back()->data()));
  }
  TRY_ASSIGN(auto launches, table.prepare(problem, claim));
  const std::vector<Entry> entries = table.entries();
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
    if (t.bytes().value > 0)
      std::memcpy(t.mutable_data(), out[i]->data(), static_cast<size_t>(t.bytes().value));
    results.push_back(std::move(t));
  }
  return results;
}

int check(const Case& c, std::mt19937_64& random, Tolerance tolerance) {
  const auto want = reference(c);
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
  }
  const op::Problem problem = *problem_of(c, *want);
  int ran = 0;
  for (Isa isa : available_isas()) {
    const std::vector<op::Claim> claims = table(isa).probe(problem);
    for (const op::Claim& claim : claims) {
      const std::string where = fmt::format("{} {} {}", name_of(isa), claim.kernel, problem.str());
      if (!claim.supported()) {
        EXPECT_FALSE(claim.refusal.empty()) << where;
        continue;
      }
      const auto got = run_claim(table(isa), problem, claim, c.in, random);
      if (!got) {
        ADD_FAILURE() << where << ": " << got.error().message;
        continue;
      }
      ran += isa == Isa::kGeneric;
      for (size_t i = 0; i < want->size(); ++i) {
        const std::string text = difference((*got)[i], (*want)[i], sums ? &(*sums)[i] : nullptr,
                                            claim.numeric == op::NumericClass::kExact, tolerance);
        if (!text.empty()) ADD_FAILURE() << where << " output " << i << ": " << text;
      }
    }
  }
  return ran;
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
