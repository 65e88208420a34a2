// reduce(x, axes) over any axes and global pooling: row cpu.reduce.
#include <algorithm>
#include <numeric>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/reduce_args.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

struct Plan {
  ReduceKind kind = ReduceKind::kSum;
  std::vector<int> axes;
  bool mean = false;
};

struct Name {
  std::string_view name;
  ReduceKind kind;
  bool floats;
};
constexpr Name kKinds[] = {{"sum", ReduceKind::kSum, true},  {"prod", ReduceKind::kProd, true},
                           {"max", ReduceKind::kMax, true},  {"min", ReduceKind::kMin, true},
                           {"and", ReduceKind::kAnd, false}, {"or", ReduceKind::kOr, false}};

// Products leave the range of f32 long before their end does.
Compute compute_of(DType d, ReduceKind kind) {
  if (is_float(d))
    return d == DType::kF64 || kind == ReduceKind::kProd ? Compute::kF64 : Compute::kF32;
  return is_unsigned_int(d) ? Compute::kU64 : Compute::kI64;
}

int32_t stored(DType d, Compute c) {
  const bool same =
      (c == Compute::kF32 && d == DType::kF32) || (c == Compute::kF64 && d == DType::kF64) ||
      (c == Compute::kI64 && d == DType::kI64) || (c == Compute::kU64 && d == DType::kU64);
  return same ? -1 : static_cast<int32_t>(d);
}

// The lowest and highest of narrow integers, where nothing is reduced, are not those of 64 bits.
bool empty_extreme(const Problem& p, ReduceKind kind) {
  return (kind == ReduceKind::kMax || kind == ReduceKind::kMin) && !is_float(p.in[0].dtype) &&
         bits_of(p.in[0].dtype) < 64 && p.in[0].count() == 0;
}

bool is_reduced(const Plan& plan, size_t axis) {
  return std::binary_search(plan.axes.begin(), plan.axes.end(), static_cast<int>(axis));
}

// The axes of packed x in the order in which they lie in memory, outermost first.
std::vector<size_t> memory_order(const Operand& x, const Dims& strides) {
  std::vector<size_t> order(strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (x.count() == 0) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

// Why operands that need not be row-major cannot be taken: x is packed, y too, and the kept axes
// follow each other in y as they do in x.
std::string not_in_order(const Problem& p, const Plan& plan) {
  for (const Operand* o : {&p.in[0], &p.out[0]})
    if (!o->strides.empty() || !logical_strides(*o))
      return fmt::format("an operand lies in layout '{}', need packed axes", o->layout);
  const Dims x = *logical_strides(p.in[0]), y = *logical_strides(p.out[0]);
  const bool kept_rank = p.out[0].rank() == p.in[0].rank();
  Dims in_y(x.size(), 0);  // strides of x's axes in y
  for (size_t a = 0, next = 0; a < x.size(); ++a)
    if (kept_rank || !is_reduced(plan, a)) in_y[a] = y[next++];
  int64_t last = INT64_MAX;
  for (size_t a : memory_order(p.in[0], x)) {
    if (is_reduced(plan, a) || p.in[0].dims[a] <= 1) continue;
    if (in_y[a] > last) return "the kept axes lie in another order in output 0";
    last = in_y[a];
  }
  return {};
}

bool fill(const Problem& p, const Plan& plan, ReduceArgs& args) {
  const Dims& x = p.in[0].dims;
  const Dims strides = *logical_strides(p.in[0]);
  Dims dims[2];
  std::vector<Dims> walks[2]{{{}}, {{}}};  // kept, reduced
  for (size_t a : memory_order(p.in[0], strides)) {
    const bool reduced = is_reduced(plan, a);
    dims[reduced].push_back(x[a]);
    walks[reduced][0].push_back(strides[a]);
  }
  int64_t count = 1;
  for (int64_t d : dims[1]) count *= d;
  merge_axes(dims[0], walks[0]);
  merge_axes(dims[1], walks[1]);
  if (dims[0].size() > kMaxSpaceRank || dims[1].size() > kMaxSpaceRank) return false;
  args.kind = plan.kind;
  args.compute = compute_of(p.in[0].dtype, plan.kind);
  args.in_dtype = stored(p.in[0].dtype, args.compute);
  args.out_dtype = stored(p.out[0].dtype, args.compute);
  args.in_bytes = bits_of(p.in[0].dtype) / 8;
  args.out_bytes = bits_of(p.out[0].dtype) / 8;
  args.kept_rank = static_cast<int32_t>(dims[0].size());
  args.reduced_rank = static_cast<int32_t>(dims[1].size());
  std::copy(dims[0].begin(), dims[0].end(), args.kept_dims);
  std::copy(walks[0][0].begin(), walks[0][0].end(), args.kept_strides);
  std::copy(dims[1].begin(), dims[1].end(), args.reduced_dims);
  std::copy(walks[1][0].begin(), walks[1][0].end(), args.reduced_strides);
  args.outputs = p.out[0].count();
  args.chunk = std::max<int64_t>(1, 32768 / std::max<int64_t>(count, 1));
  args.scale = plan.mean ? 1.0 / static_cast<double>(count) : 1;
  return true;
}

Claim answer(const Problem& p, const Plan& plan, bool floats_defined) {
  Reason why;
  const DType d = p.in[0].dtype;
  why.need(bits_of(d) >= 8 && !is_complex(d), "input 0 is {}, need real numbers of whole bytes",
           name_of(d));
  why.need(!is_float(d) || floats_defined, "input 0 is {}, need integers or bool", name_of(d));
  why.need(d == p.out[0].dtype, "types {} and {} differ", name_of(d), name_of(p.out[0].dtype));
  why.need(!empty_extreme(p, plan.kind), "nothing to take the extreme of");
  why.need(!p.out.empty() && p.out[0].present, "nobody reads output 0");
  why.need(op::element_count(p.in[0].dims) && op::element_count(p.out[0].dims),
           "impossible sizes {}", op::to_string(p.in[0].dims));
  if (why.fine()) {
    const std::string text = not_in_order(p, plan);
    why.need(text.empty(), "{}", text);
  }
  ReduceArgs args{};
  if (why.fine())
    why.need(fill(p, plan, args), "more than {} axes that do not merge", kMaxSpaceRank);
  if (!why.fine()) return why.refusal();
  const bool sums = plan.kind == ReduceKind::kSum || plan.kind == ReduceKind::kProd;
  return claim(static_cast<double>(p.in[0].count()), bytes_of(p), 0.2,
               sums && is_float(d) ? NumericClass::kReassociated : NumericClass::kExact);
}

Result<std::vector<LaunchSpec>> launch_of(const Problem& p, const Plan& plan) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  ReduceArgs args{};
  fill(p, plan, args);
  LaunchSpec launch;
  launch.entry = "cpu.reduce";
  launch.grid = items(args.outputs, args.chunk);
  launch.arguments = {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}};
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// ---- reduce

Result<Plan> plan_of(const Problem& p) {
  Plan plan;
  const std::string name = p.attrs.s("kind");
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Name& k) { return k.name == name; });
  if (kind == std::end(kKinds)) return error(Code::kInvalidArgument, "unknown kind '{}'", name);
  plan.kind = kind->kind;
  if (p.has(1) && !p.in[1].values) return error(Code::kInvalidArgument, "axes are not known");
  TRY_ASSIGN(plan.axes,
             op::normalize_axes(p.has(1) ? *p.in[1].values : op::Ints{}, p.in[0].rank()));
  return plan;
}

Claim probe_reduce(const Problem& p) {
  const auto plan = plan_of(p);
  if (!plan) return Claim::refuse("", plan.error().message);
  return answer(p, *plan, plan->kind != ReduceKind::kAnd && plan->kind != ReduceKind::kOr);
}

Result<std::vector<LaunchSpec>> prepare_reduce(const Problem& p, const Claim&) {
  TRY_ASSIGN(const Plan plan, plan_of(p));
  return launch_of(p, plan);
}

// ---- global pooling

Plan global_plan(const Problem& p) {
  Plan plan;
  for (int a = 2; a < p.in[0].rank(); ++a) plan.axes.push_back(a);
  plan.mean = p.op->name == "global_average_pool";
  plan.kind = plan.mean ? ReduceKind::kSum : ReduceKind::kMax;
  return plan;
}

Claim probe_global(const Problem& p) {
  if (!is_float(p.in[0].dtype))
    return Claim::refuse("", fmt::format("input 0 is {}, need floats", name_of(p.in[0].dtype)));
  return answer(p, global_plan(p), true);
}

Result<std::vector<LaunchSpec>> prepare_global(const Problem& p, const Claim&) {
  return launch_of(p, global_plan(p));
}

constexpr Row kRows[] = {
    {"reduce", "cpu.reduce", probe_reduce, prepare_reduce},
    {"global_average_pool", "cpu.reduce", probe_global, prepare_global},
    {"global_max_pool", "cpu.reduce", probe_global, prepare_global},
};

}  // namespace

std::span<const Row> reduce_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
