#include "tessera/plan/plan.h"

#include <algorithm>

#include "tessera/layout/bound.h"

namespace tessera::plan {
namespace {

void count_in(const Region& region, Plan::Count& count) {
  for (const Instruction& i : region.body) {
    if (i.kind == Instruction::Kind::kLaunch) ++count.launches;
    if (i.kind == Instruction::Kind::kHost)
      ++(i.op->kind == op::OpClass::kHost ? count.host_operators : count.reference);
    for (const Region& r : i.regions) count_in(r, count);
  }
}

Status verify_region(const Plan& plan, const Region& region) {
  auto bad = [&](size_t at, std::string_view what) {
    return error(Code::kInternal, "plan: region '{}', instruction {}: {}", region.name, at, what);
  };
  const int slots = static_cast<int>(region.slots.size());
  std::vector<bool> written(region.slots.size());
  auto root = [&](int id) {
    return region.slots[static_cast<size_t>(id)].alias == kNone
               ? id
               : region.slots[static_cast<size_t>(id)].alias;
  };
  for (size_t s = 0; s < region.slots.size(); ++s) {
    const Slot& slot = region.slots[s];
    if (slot.storage == Storage::kSlab &&
        (slot.first < 0 || slot.last < slot.first ||
         slot.last >= static_cast<int>(std::max<size_t>(region.body.size(), 1))))
      return bad(0, "a life outside of the region");
    if (slot.storage == Storage::kSlab && !slot.type.ranked())
      return bad(0, "a slab slot of unknown rank");
    if ((slot.storage == Storage::kAlias) != (slot.alias != kNone))
      return bad(0, "an alias without a slot behind it, or the reverse");
    if (slot.alias != kNone && (slot.alias < 0 || slot.alias >= slots ||
                                region.slots[static_cast<size_t>(slot.alias)].alias != kNone))
      return bad(0, "an alias of an alias, or out of range");
    if (slot.storage == Storage::kConstant &&
        (slot.constant < 0 || slot.constant >= static_cast<int>(plan.constants.size())))
      return bad(0, "a constant out of range");
    written[s] = slot.storage == Storage::kConstant;
  }
  for (int id : region.inputs) {
    if (id < 0 || id >= slots) return bad(0, "an input out of range");
    written[static_cast<size_t>(id)] = true;
  }
  for (size_t n = 0; n < region.body.size(); ++n) {
    const Instruction& i = region.body[n];
    for (int id : i.in) {
      if (id == kNone) continue;
      if (id < 0 || id >= slots) return bad(n, "an operand out of range");
      const Slot& slot = region.slots[static_cast<size_t>(root(id))];
      if (!written[static_cast<size_t>(root(id))])
        return bad(n, "reads a slot before it is written");
      if (slot.storage == Storage::kSlab &&
          (static_cast<int>(n) < slot.first || static_cast<int>(n) > slot.last))
        return bad(n, "reads a slot after its life");
    }
    for (int id : i.out) {
      if (id == kNone) continue;
      if (id < 0 || id >= slots) return bad(n, "a result out of range");
      written[static_cast<size_t>(root(id))] = true;
    }
    const size_t bodies = i.op ? static_cast<size_t>(i.op->bodies) : 0;
    if (i.kind != Instruction::Kind::kBind && !i.op) return bad(n, "no operator");
    if (!i.steps.empty() || !i.results.empty()) {
      if (i.kind != Instruction::Kind::kLaunch && i.kind != Instruction::Kind::kHost)
        return bad(n, "steps behind something that is no operator");
      if (i.arity < 0 || i.arity > static_cast<int>(i.in.size()))
        return bad(n, "an anchor with more inputs than there are");
      if (i.results.size() != i.out.size()) return bad(n, "another number of results than outputs");
      if (!i.result.is_tensor() || !i.result.ranked()) return bad(n, "an anchor without a shape");
      int values = static_cast<int>(i.in.size()) + 1;
      for (const Step& step : i.steps) {
        if (!step.op || step.op->bodies != 0) return bad(n, "a step without an operator");
        if (!step.type.is_tensor() || !step.type.ranked()) return bad(n, "a step without a shape");
        for (int v : step.in)
          if (v < kNone || v >= values) return bad(n, "a step that reads a later value");
        ++values;
      }
      for (int v : i.results)
        if (v < static_cast<int>(i.in.size()) || v >= values)
          return bad(n, "a result out of range");
    }
    if ((i.kind == Instruction::Kind::kSizes || i.kind == Instruction::Kind::kBind)
            ? !i.regions.empty()
            : i.regions.size() != bodies)
      return bad(n, "another number of regions than the operator has bodies");
    for (const Region& r : i.regions) TRY(verify_region(plan, r));
  }
  for (int id : region.outputs)
    if (id < 0 || id >= slots || !written[static_cast<size_t>(root(id))])
      return bad(region.body.size(), "an output is not written");
  return {};
}

}  // namespace

std::string_view name_of(Storage storage) {
  constexpr std::string_view kNames[] = {"input", "constant", "slab", "heap", "host", "alias"};
  return kNames[static_cast<size_t>(storage)];
}
std::string_view name_of(Instruction::Kind kind) {
  constexpr std::string_view kNames[] = {"launch", "host", "copy", "sizes", "bind",
                                         "branch", "loop", "scan", "map"};
  return kNames[static_cast<size_t>(kind)];
}

Plan::Count Plan::count() const {
  Count c;
  count_in(main, c);
  return c;
}

Status verify(const Plan& plan) { return verify_region(plan, plan.main); }

namespace {

// Whether the strides say no more than the layout does.
bool packed(const op::Operand& o) {
  const int rank = o.rank();
  layout::Layout order = layout::Layout::row_major(rank);
  if (!o.layout.empty()) {
    auto parsed = layout::Layout::parse(o.layout);
    if (!parsed || parsed->rank() != rank) return false;
    order = *std::move(parsed);
  }
  int64_t expected = 1;
  for (size_t k = order.axes().size(); k-- > 0;) {
    if (order.axes()[k].kind != layout::ExprKind::kLetter) return false;
    const size_t axis = static_cast<size_t>(order.axes()[k].axis);
    if (o.dims[axis] != 1 && o.strides[axis] != expected) return false;
    expected *= o.dims[axis];
  }
  return true;
}

}  // namespace

void set_lifetimes(Region& region) {
  auto root = [&](int id) -> Slot& {
    Slot& slot = region.slots[static_cast<size_t>(id)];
    return slot.alias == kNone ? slot : region.slots[static_cast<size_t>(slot.alias)];
  };
  std::vector<bool> written(region.slots.size());
  for (int n = 0; n < static_cast<int>(region.body.size()); ++n) {
    for (int id : region.body[static_cast<size_t>(n)].out) {
      if (id == kNone) continue;
      // Parts of a slot are written one by one.
      Slot& slot = root(id);
      if (!written[static_cast<size_t>(&slot - region.slots.data())]) slot.first = n;
      written[static_cast<size_t>(&slot - region.slots.data())] = true;
      slot.last = n;
    }
    for (int id : region.body[static_cast<size_t>(n)].in)
      if (id != kNone) root(id).last = std::max(root(id).last, n);
  }
  // Written without waiting for what is still under way: these share their bytes with nobody.
  for (const Instruction& i : region.body)
    if (i.kind == Instruction::Kind::kSizes) {
      root(i.out[0]).first = 0;
      root(i.out[0]).last = std::max(0, static_cast<int>(region.body.size()) - 1);
    }
  for (int id : region.outputs) {
    Slot& slot = root(id);
    slot.last = static_cast<int>(region.body.size());
    if (slot.storage == Storage::kSlab) slot.storage = Storage::kHeap;
  }
}

Result<op::Dims> dims_of(const Slot& slot, const op::Bindings& bindings) {
  if (!slot.type.ranked())
    return error(Code::kInvalidArgument, "the rank of '{}' is not known", slot.name);
  op::Dims dims;
  for (const op::Expr& e : *slot.type.shape) {
    TRY_ASSIGN(int64_t d, e.eval(bindings));
    if (d < 0)
      return error(Code::kOutOfRange, "dim {} of '{}' is {} = {}, need at least 0", dims.size(),
                   slot.name, e.str(), d);
    dims.push_back(d);
  }
  return dims;
}

Result<Bytes> bytes_of(const Slot& slot, const op::Dims& dims) {
  TRY_ASSIGN(const int64_t count, op::element_count(dims));
  // Without a quotient nothing is padded.
  if (slot.layout.find('/') == std::string::npos)
    return Bytes(packed_bytes(slot.type.dtype, count));
  TRY_ASSIGN(const layout::Layout layout, layout::Layout::parse(slot.layout));
  TRY_ASSIGN(const auto bound, layout::BoundLayout::bind(layout, slot.type.dtype, dims));
  return bound.bytes();
}

Status check_basis(const Plan& plan, const Basis& now, const op::Bindings& sizes) {
  const auto differs = [](std::string_view what, std::string_view then, std::string_view here) {
    return error(Code::kFailedPrecondition, "the plan is for {} {}, this is {}", what, then, here);
  };
  if (!plan.basis)
    return error(Code::kFailedPrecondition, "the plan does not say what it was made from");
  const Basis& then = *plan.basis;
  if (then.version != now.version) return differs("version", then.version, now.version);
  if (then.model != now.model) return differs("model", then.model, now.model);
  if (then.precision != now.precision)
    return differs("precision", then.precision.empty() ? "of the model" : then.precision,
                   now.precision.empty() ? "that of the model" : now.precision);
  for (const ChipUse& chip : now.chips) {
    const auto found = std::find_if(then.chips.begin(), then.chips.end(),
                                    [&](const ChipUse& c) { return c.place == chip.place; });
    if (found == then.chips.end()) continue;
    if (found->id != chip.id) return differs("chip", found->id, chip.id);
    if (found->hash != chip.hash)
      return differs(fmt::format("chip file {}", chip.id), fmt::format("{:016x}", found->hash),
                     fmt::format("{:016x}", chip.hash));
  }
  for (const auto& [name, size] : sizes) {
    const auto found = plan.planned_for.find(name);
    if (found != plan.planned_for.end() && found->second != size)
      return differs(fmt::format("size {} =", name), std::to_string(found->second),
                     std::to_string(size));
  }
  return {};
}

Result<op::Problem> problem_of(const Plan& plan, const Region& region,
                               const Instruction& instruction, const op::Bindings& bindings) {
  op::Problem problem{instruction.op, instruction.attrs, {}, {}};
  auto operand = [&](int id) -> Result<op::Operand> {
    op::Operand o;
    if (id == kNone) {
      o.present = false;
      return o;
    }
    const Slot& slot = region.slots[static_cast<size_t>(id)];
    if (!slot.type.is_tensor())
      return error(Code::kInvalidArgument, "'{}' is {}", slot.name, slot.type.str());
    o.dtype = slot.type.dtype;
    TRY_ASSIGN(o.dims, dims_of(slot, bindings));
    o.layout = slot.layout;
    if (slot.view) {
      for (const op::Expr& e : slot.view->strides) {
        TRY_ASSIGN(int64_t stride, e.eval(bindings));
        o.strides.push_back(stride);
      }
      if (packed(o)) o.strides.clear();
    }
    if (slot.contents) {
      op::Ints values;
      for (const op::Expr& e : *slot.contents) {
        auto v = e.eval(bindings);
        if (!v) break;
        values.push_back(*v);
      }
      if (values.size() == slot.contents->size()) o.values = std::move(values);
    }
    const int root = slot.alias == kNone ? id : slot.alias;
    const Slot& holder = region.slots[static_cast<size_t>(root)];
    o.constant = holder.storage == Storage::kConstant;
    if (o.constant && !o.values && is_int(o.dtype) &&
        o.count() <= static_cast<int64_t>(op::kMaxContents))
      o.values = plan.constants[static_cast<size_t>(holder.constant)].tensor.to_i64s();
    return o;
  };
  for (int id : instruction.in) {
    TRY_ASSIGN(op::Operand o, operand(id));
    problem.in.push_back(std::move(o));
  }
  for (int id : instruction.out) {
    TRY_ASSIGN(op::Operand o, operand(id));
    problem.out.push_back(std::move(o));
  }
  if (instruction.steps.empty()) return problem;
  auto result = [&](const op::Type& type) -> Result<op::Operand> {
    op::Operand o;
    o.dtype = type.dtype;
    for (const op::Expr& e : *type.shape) {
      TRY_ASSIGN(int64_t d, e.eval(bindings));
      o.dims.push_back(d);
    }
    return o;
  };
  problem.arity = static_cast<size_t>(instruction.arity);
  problem.results = instruction.results;
  TRY_ASSIGN(problem.result, result(instruction.result));
  for (const Step& step : instruction.steps) {
    TRY_ASSIGN(op::Operand o, result(step.type));
    problem.steps.push_back({step.op, step.attrs, step.in, std::move(o)});
  }
  return problem;
}

}  // namespace tessera::plan
