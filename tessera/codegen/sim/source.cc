#include "tessera/codegen/sim/source.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/codegen/sim/dot.h"
#include "tessera/codegen/sim/vectors.h"
#include "tessera/op/elementwise.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/engine_chip.h"
#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::codegen::sim {
namespace {

namespace engine = tile::engine;

constexpr size_t kKept = 4096;  // problems

op::LaunchSpec launch_of(const engine::Program& program, std::vector<op::Argument> arguments) {
  const std::string text = print(program);
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  op::LaunchSpec spec;
  auto binary = std::make_shared<const op::Binary>(
      op::Binary{"engine", {first, first + text.size()}, {program.name}, text});
  spec.entry = binary->entries[0];
  spec.binary = std::move(binary);
  spec.arguments = std::move(arguments);
  return spec;
}

double bytes_of(const op::Problem& p) {
  double bytes = 0;
  for (const auto* side : {&p.in, &p.out})
    for (const op::Operand& o : *side)
      if (o.present) bytes += static_cast<double>(packed_bytes(o.dtype, o.count()));
  return bytes;
}

std::string key_of(const op::Problem& p) {
  std::string text = fmt::format("{} {}", p.str(), p.anchor_inputs());
  for (const op::Operand& o : p.in) {
    text += o.constant ? " c" : " v";
    if (o.values) text += fmt::format("{}", fmt::join(*o.values, ","));
  }
  return text;
}

// An input as a packed tensor of another type.
Result<tile::Instance> conversion(const op::Operand& from, DType to) {
  TRY_ASSIGN(const op::Dims strides, tile::operand_strides(from));
  tile::Builder b("convert");
  tile::Instance instance;
  std::vector<tile::Subscript> at;
  tile::Tensor x{.name = "x", .role = tile::Role::kIn, .dtype = from.dtype, .dims = {}},
      y{.name = "y", .role = tile::Role::kOut, .dtype = to, .dims = {}};
  // One axis where it lies packed.
  const bool packed = strides == op::strides_of(from.dims);
  const op::Dims dims = packed ? op::Dims{from.count()} : from.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::string name(1, static_cast<char>('i' + d));
    const int a = b.axis(name, tile::Expr(dims[d]));
    b.grid(a);
    at.push_back({b.at(a)});
    x.dims.emplace_back(dims[d]);
    y.dims.emplace_back(dims[d]);
    if (!packed) x.strides.emplace_back(strides[d]);
  }
  const int in = b.tensor(std::move(x)), out = b.tensor(std::move(y));
  b.store(out, at, b.convert(b.load(in, at), to));
  TRY_ASSIGN(instance.program, b.finish());
  return instance;
}

// The steps behind an anchor, as a problem of their own: its result comes first, then the bias of a
// convolution, if there is one, then what the steps read beside.
op::Problem steps_of(const op::Problem& p) {
  op::Problem q;
  q.op = p.op;
  q.in.push_back(p.anchor_result());
  q.in[0].layout.clear();
  q.in[0].strides.clear();
  if (p.op->name == "conv" && p.has(2)) {
    op::Operand bias = p.in[2];
    const auto spatial = static_cast<size_t>(p.in[0].rank() - 2);
    bias.layout.clear();
    bias.dims.insert(bias.dims.end(), spatial, 1);
    if (!bias.strides.empty()) bias.strides.insert(bias.strides.end(), spatial, 0);
    q.in.push_back(std::move(bias));
  }
  q.out = p.out;
  q.result = q.in[0];
  if (!p.fused()) return q;
  q.arity = q.in.size();
  for (size_t i = p.arity; i < p.in.size(); ++i) q.in.push_back(p.in[i]);
  const int shift = static_cast<int>(q.in.size()) - static_cast<int>(p.in.size());
  const auto renumber = [&](int v) { return v < 0 ? v : v + shift; };
  q.steps = p.steps;
  for (op::Step& s : q.steps)
    for (int& v : s.in) v = renumber(v);
  q.results = p.results;
  for (int& v : q.results) v = renumber(v);
  return q;
}

// The program of steps_of(), element by element in the order in which output 0 lies.
Result<tile::Instance> behind_anchor(const op::Problem& q) {
  const op::Dims& dims = q.in[0].dims;
  TRY_ASSIGN(const op::Dims lead, tile::operand_strides(q.out[0]));
  std::vector<size_t> order(dims.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lead[a] > lead[b]; });
  op::Dims space;
  std::vector<int> of_result(dims.size());
  for (size_t a = 0; a < order.size(); ++a) {
    space.push_back(dims[order[a]]);
    of_result[order[a]] = static_cast<int>(a);
  }
  tile::Frame f("behind", q, std::move(space), std::vector<int>(dims.size(), 0),
                std::move(of_result));
  for (size_t i = 0; i < q.anchor_inputs(); ++i) TRY(f.input(i));
  TRY(f.settle());
  f.grid(0);
  int value = f.load(0);
  if (q.anchor_inputs() > 1) {
    const DType wide = tile::is_narrow(q.in[0].dtype) ? DType::kF32 : q.in[0].dtype;
    value = f.b.convert(f.b.add(f.b.convert(value, wide), f.load(1, wide)), q.in[0].dtype);
  }
  f.reassociated();
  TRY(f.finish_value(value));
  return f.finish();
}

}  // namespace

double Source::seconds(double flops, double bytes, std::string_view compute) const {
  double best = 0;
  for (const auto& [name, unit] : chip_->units)
    for (const auto& [type, rate] : unit.rates)
      if (compute.empty() ? unit.kind == chip::UnitKind::kVector : type == compute)
        best = std::max(best, 2 * rate.macs_per_cycle.value * chip_->clock_of(unit) *
                                  static_cast<double>(chip_->count_of(unit)));
  const double bandwidth = std::max(1e6, chip_->bandwidth_of(chip_->device_memory()));
  return std::max(flops / std::max(best, 1e6), bytes / bandwidth);
}

Result<Source::Compiled> Source::vectors(const op::Problem& p) const {
  constexpr std::string_view kMoves[] = {"transpose", "slice",    "broadcast_to",
                                         "concat",    "relayout", "identity"};
  std::vector<tile::Instance> instances;
  if (std::ranges::find(kMoves, p.op->name) != std::end(kMoves)) {
    TRY_ASSIGN(instances, tile::moves(p));
  } else {
    const bool slides = p.op->name == "conv" || p.op->name.ends_with("_pool");
    TRY_ASSIGN(tile::Instance one, slides ? tile::windows(p) : tile::instance_of(p));
    instances.push_back(std::move(one));
  }
  Compiled c;
  c.claim.bytes = bytes_of(p);
  for (const op::Operand& o : p.out) c.claim.flops += static_cast<double>(o.count());
  c.claim.cost = Picoseconds(static_cast<int64_t>(
      (seconds(c.claim.flops, c.claim.bytes, "") +
       static_cast<double>(instances.size()) * chip_->launch.seconds.value.value) *
      1e12));
  for (const tile::Instance& instance : instances) {
    TRY_ASSIGN(const engine::Program program, sim::vectors(instance, *chip_));
    c.claim.numeric = std::max(c.claim.numeric, instance.numeric);
    c.launches.push_back(launch_of(program, instance.arguments));
  }
  return c;
}

Result<Source::Compiled> Source::products(const op::Problem& p) const {
  op::Operand out = p.anchor_result();
  const bool is_conv = p.op->name == "conv";
  const bool behind = p.fused() || (is_conv && p.has(2));
  if (behind) {
    out.layout.clear();
    out.strides.clear();
    for (const op::Step& s : p.steps)
      for (int v : s.in)
        if (v >= 0 && static_cast<size_t>(v) < p.arity)
          return tile::refuse("{} reads input {}, which is the anchor's", s.op->name, v);
  }
  TRY_ASSIGN(const std::string compute, compute_type(*chip_, p));
  TRY_ASSIGN(Multiplication m, is_conv ? conv(*chip_, p, out) : dot(*chip_, p, out));
  Compiled c;
  c.claim.numeric = op::NumericClass::kReassociated;
  c.claim.flops = m.flops;
  c.claim.bytes = bytes_of(p);
  int64_t workspace = 0;
  const auto reserve = [&](const op::Operand& o, DType type) {
    const int64_t offset = workspace;
    workspace += (packed_bytes(type, o.count()) + 511) / 512 * 512;
    return op::Argument{op::Argument::kWorkspace, 0, offset};
  };
  double launches = 1;
  std::vector<op::Argument> arguments = {{op::Argument::kInput, 0, 0},
                                         {op::Argument::kInput, 1, 0}};
  for (size_t i = 0; i < 2; ++i) {
    const auto& to = i == 0 ? m.convert_a : m.convert_b;
    if (!to) continue;
    TRY_ASSIGN(tile::Instance instance, conversion(p.in[i], *to));
    TRY_ASSIGN(engine::Program program, sim::vectors(instance, *chip_));
    arguments[i] = reserve(p.in[i], *to);
    c.launches.push_back(
        launch_of(program, {{op::Argument::kInput, static_cast<int>(i), 0}, arguments[i]}));
    ++launches;
  }
  if (m.packs_b) {
    c.claim.packed.push_back({1, m.packed_size});
    arguments[1] = {op::Argument::kPacked, 0, 0};
  }
  arguments.push_back(behind ? reserve(out, out.dtype) : op::Argument{op::Argument::kOutput, 0, 0});
  const op::Argument result = arguments.back();
  c.launches.push_back(launch_of(m.program, std::move(arguments)));
  if (behind) {
    const op::Problem rest = steps_of(p);
    TRY_ASSIGN(tile::Instance instance, behind_anchor(rest));
    TRY_ASSIGN(engine::Program program, sim::vectors(instance, *chip_));
    for (op::Argument& a : instance.arguments) {
      if (a.kind != op::Argument::kInput) continue;
      // Of the rest: the result, the bias perhaps, then what the steps read.
      const auto own = static_cast<int>(rest.anchor_inputs());
      if (a.index == 0)
        a = result;
      else
        a.index = a.index < own ? 2 : a.index - own + static_cast<int>(p.arity);
    }
    c.claim.numeric = std::max(c.claim.numeric, instance.numeric);
    c.launches.push_back(launch_of(program, std::move(instance.arguments)));
    c.claim.bytes += 2 * static_cast<double>(packed_bytes(out.dtype, out.count()));
    ++launches;
  }
  c.claim.workspace = Bytes(workspace);
  c.claim.cost = Picoseconds(static_cast<int64_t>((seconds(c.claim.flops, c.claim.bytes, compute) +
                                                   launches * chip_->launch.seconds.value.value) *
                                                  1e12));
  return c;
}

Result<Source::Compiled> Source::compile(const op::Problem& p) const {
  if (p.op->name != "dot" && p.op->name != "conv") return vectors(p);
  auto c = products(p);
  if (c) return c;
  // Where no unit multiplies that type, vectors may.
  auto v = vectors(p);
  return v ? std::move(v) : std::move(c);
}

std::shared_ptr<const Source::Compiled> Source::compiled(const op::Problem& p) const {
  std::string key = key_of(p);
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
  }
  const std::string kernel =
      fmt::format("sim.{}", op::elementwise(*p.op) ? "elementwise" : p.op->name);
  auto made = compile(p);
  auto result = std::make_shared<Compiled>();
  if (made) {
    *result = *std::move(made);
    result->claim.kernel = kernel;
  } else {
    result->claim = op::Claim::refuse(kernel, made.error().message);
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kKept) known_.clear();
  return known_.emplace(std::move(key), std::move(result)).first->second;
}

std::vector<op::Claim> Source::probe(const op::Problem& p) const { return {compiled(p)->claim}; }

Result<std::vector<op::LaunchSpec>> Source::prepare(const op::Problem& p,
                                                    const op::Claim& claim) const {
  const auto c = compiled(p);
  if (!c->claim.supported())
    return error(Code::kInternal, "{} without a claim: {}", claim.kernel, c->claim.refusal);
  return c->launches;
}

Status Source::pack(const op::Problem& p, const op::Claim&, int, const std::byte* source,
                    std::byte* target) const {
  TRY_ASSIGN(const std::string compute, compute_type(*chip_, p));
  const DType to = engine::stored_type(compute).value_or(p.in[1].dtype);
  return p.op->name == "conv" ? pack_conv(p, to, source, target) : pack_dot(p, to, source, target);
}

}  // namespace tessera::codegen::sim
