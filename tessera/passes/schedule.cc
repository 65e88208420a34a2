#include "tessera/passes/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "tessera/passes/choices.h"

namespace tessera::passes {
namespace {

using plan::Instruction;
using plan::kNone;
using plan::Slot;
using plan::Storage;
using Kind = plan::Instruction::Kind;

bool follows_from_sizes(const ir::ValueInfo& value) {
  return value.contents && !value.constant && value.type.is_tensor() && value.type.ranked() &&
         value.type.rank() <= 1;
}

bool on_host(const op::Type& type) { return !type.is_tensor() || type.dtype == DType::kString; }

class Scheduler {
 public:
  Scheduler(plan::Plan& plan, std::span<const op::ClaimSource* const> sources,
            const ScheduleOptions& options)
      : plan_(plan), sources_(sources), options_(options) {}

  Result<plan::Region> region(const ir::Graph& graph, std::set<std::string> known) {
    plan::Region region;
    region.name = graph.name;
    Context c{graph, region, std::vector<int>(graph.values.size(), kNone), std::move(known), {}};
    for (ir::ValueId id : graph.inputs) {
      const ir::ValueInfo& info = graph.value(id);
      region.inputs.push_back(
          add_slot(c, id, on_host(info.type) ? Storage::kHost : Storage::kInput));
      learn(c, info.type);
    }
    c.entry = c.known;
    const Fate fate = fate_of(graph, c.known);
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (fate.needed[n]) TRY(node(c, graph.nodes[n], fate.sizes[n]));
    for (ir::ValueId id : graph.outputs) {
      TRY_ASSIGN(int slot, operand(c, id));
      region.outputs.push_back(slot);
    }
    plan::set_lifetimes(region);
    return region;
  }

 private:
  struct Context {
    const ir::Graph& graph;
    plan::Region& region;
    std::vector<int> slot_of;     // by value
    std::set<std::string> known;  // symbols bound so far
    std::set<std::string> entry;  // those that the region's inputs bind
  };

  // Every symbol that is a whole size gets its value here.
  static std::vector<std::string> learn(Context& c, const op::Type& type) {
    std::vector<std::string> learned;
    if (type.ranked())
      for (const op::Expr& d : *type.shape)
        if (auto name = d.as_symbol(); name && c.known.insert(*name).second)
          learned.push_back(*name);
    return learned;
  }

  static bool sizes_known(const std::set<std::string>& symbols, const op::Type& type) {
    if (!type.ranked()) return false;
    for (const op::Expr& d : *type.shape)
      for (const std::string& s : d.symbols())
        if (!symbols.count(s)) return false;
    return true;
  }

  // The slab is laid out when the region is entered.
  static Storage storage_of(const Context& c, const op::Type& type) {
    return on_host(type)                ? Storage::kHost
           : sizes_known(c.entry, type) ? Storage::kSlab
                                        : Storage::kHeap;
  }

  // What becomes of each node: `sizes` where its result is written from sizes, `needed` where it is
  // planned at all.
  struct Fate {
    std::vector<bool> sizes, needed;
  };

  static Fate fate_of(const ir::Graph& graph, std::set<std::string> known) {
    Fate fate{std::vector<bool>(graph.nodes.size()), std::vector<bool>(graph.nodes.size())};
    std::unordered_map<std::string, ir::ValueId> source;  // the result whose size a symbol is
    auto all_known = [&](const std::vector<op::Expr>& list) {
      for (const op::Expr& e : list)
        for (const std::string& s : e.symbols())
          if (!known.count(s)) return false;
      return true;
    };
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const ir::Node& node = graph.nodes[n];
      if (node.outputs.size() == 1 && node.outputs[0] != ir::kAbsent) {
        const ir::ValueInfo& info = graph.value(node.outputs[0]);
        fate.sizes[n] =
            follows_from_sizes(info) && all_known(*info.contents) && all_known(*info.type.shape);
      }
      for (ir::ValueId id : node.outputs) {
        if (id == ir::kAbsent || !graph.type(id).ranked()) continue;
        for (const op::Expr& d : *graph.type(id).shape)
          if (auto name = d.as_symbol(); name && known.insert(*name).second)
            source.emplace(*name, id);
      }
    }
    std::vector<bool> wanted(graph.values.size());
    auto want_sources = [&](const std::vector<op::Expr>& list) {
      for (const op::Expr& e : list)
        for (const std::string& s : e.symbols())
          if (auto found = source.find(s); found != source.end())
            wanted[static_cast<size_t>(found->second)] = true;
    };
    for (ir::ValueId id : graph.outputs) wanted[static_cast<size_t>(id)] = true;
    for (size_t n = graph.nodes.size(); n-- > 0;) {
      const ir::Node& node = graph.nodes[n];
      for (ir::ValueId id : node.outputs)
        fate.needed[n] = fate.needed[n] || (id != ir::kAbsent && wanted[static_cast<size_t>(id)]);
      if (!fate.needed[n]) continue;
      for (ir::ValueId id : node.outputs) {
        if (id == ir::kAbsent) continue;
        if (graph.type(id).ranked()) want_sources(*graph.type(id).shape);
        if (graph.value(id).contents) want_sources(*graph.value(id).contents);
      }
      if (fate.sizes[n]) continue;
      for (ir::ValueId id : node.inputs) {
        if (id == ir::kAbsent) continue;
        wanted[static_cast<size_t>(id)] = true;
        if (graph.value(id).contents) want_sources(*graph.value(id).contents);
      }
    }
    return fate;
  }

  int add_slot(Context& c, ir::ValueId id, Storage storage) {
    const ir::ValueInfo& info = c.graph.value(id);
    Slot slot;
    slot.name = info.name;
    slot.type = info.type;
    slot.storage = storage;
    slot.contents = info.contents;
    slot.layout = info.layout;
    c.region.slots.push_back(std::move(slot));
    return c.slot_of[static_cast<size_t>(id)] = static_cast<int>(c.region.slots.size()) - 1;
  }

  // The slot of a value that exists; constants get theirs when first used.
  Result<int> operand(Context& c, ir::ValueId id) {
    if (id == ir::kAbsent) return kNone;
    int& slot = c.slot_of[static_cast<size_t>(id)];
    if (slot != kNone) return slot;
    const ir::ValueInfo& info = c.graph.value(id);
    if (!info.constant)
      return error(Code::kInternal, "value '{}' ({}) is not planned", info.name, id);
    slot = add_slot(c, id, Storage::kConstant);
    c.region.slots[static_cast<size_t>(slot)].constant = constant(*info.constant, info.name);
    return slot;
  }

  int constant(const op::Tensor& tensor, const std::string& name) {
    const auto key = std::pair<const void*, std::string>(
        tensor.dtype() == DType::kString ? static_cast<const void*>(&tensor.text()) : tensor.data(),
        tensor.type().str());
    auto [found, fresh] = constants_.emplace(key, static_cast<int>(plan_.constants.size()));
    if (fresh || tensor.count() == 0) {
      found->second = static_cast<int>(plan_.constants.size());
      plan_.constants.push_back({name, tensor.type(), tensor});
    }
    return found->second;
  }

  Status node(Context& c, const ir::Node& n, bool from_sizes) {
    if (from_sizes) {
      Instruction i;
      i.kind = Kind::kSizes;
      i.op = n.op;
      i.origin = n.origin;
      i.out = {add_slot(c, n.outputs[0], storage_of(c, c.graph.type(n.outputs[0])))};
      c.region.body.push_back(std::move(i));
      return {};
    }
    Instruction i;
    i.op = n.op;
    i.attrs = n.attrs;
    i.origin = n.origin;
    const bool fused = n.op->name == "fused";
    if (fused) set_group(i, group_of(n));
    for (ir::ValueId id : fused ? group_of(n).in : n.inputs) {
      TRY_ASSIGN(int slot, operand(c, id));
      i.in.push_back(slot);
    }
    if (!options_.reference_only && keeps_bytes(c.graph, n) && alias(c, n, i)) return {};

    bool device = true;
    for (int id : i.in)
      device = device && (id == kNone || !on_host(c.region.slots[static_cast<size_t>(id)].type));
    for (ir::ValueId id : n.outputs)
      if (id != ir::kAbsent) i.place = c.graph.value(id).placement;
    for (ir::ValueId id : n.outputs) {
      if (id == ir::kAbsent) {
        i.out.push_back(kNone);
        continue;
      }
      const op::Type& type = c.graph.type(id);
      const bool known = sizes_known(c.known, type);
      device = device && !on_host(type) && known;
      i.out.push_back(add_slot(c, id, i.place.empty() ? storage_of(c, type) : Storage::kHost));
    }
    i.symbols = symbols_of(c, i);
    if (n.op->name == "relayout" && i.place != c.graph.value(n.inputs[0]).placement) {
      i.kind = Kind::kCopy;
    } else if (control(*n.op)) {
      i.kind = *control(*n.op);
      for (int id : i.out)
        if (id != kNone && c.region.slots[static_cast<size_t>(id)].storage == Storage::kSlab)
          c.region.slots[static_cast<size_t>(id)].storage = Storage::kHeap;
      for (const ir::Graph& body : n.bodies) {
        TRY_ASSIGN(plan::Region r, region(body, c.known));
        i.regions.push_back(std::move(r));
      }
    } else {
      TRY(choose(c, i, device));
    }
    c.region.body.push_back(std::move(i));
    bind(c, n);
    return {};
  }

  static void set_group(Instruction& i, const Group& group) {
    i.op = group.anchor->op;
    i.attrs = group.anchor->attrs;
    i.arity = static_cast<int>(group.arity);
    i.result = *group.result;
    i.results = group.results;
    for (const Group::Step& step : group.steps)
      i.steps.push_back({step.node->op, step.node->attrs, step.in, *step.type});
  }

  static std::optional<Kind> control(const op::OpDef& op) {
    for (auto [name, kind] : {std::pair<std::string_view, Kind>{"if", Kind::kBranch},
                              {"loop", Kind::kLoop},
                              {"scan", Kind::kScan},
                              {"sequence_map", Kind::kMap}})
      if (op.name == name) return kind;
    return std::nullopt;
  }

  bool keeps_bytes(const ir::Graph& graph, const ir::Node& n) const {
    return n.inputs.size() > 0 && n.inputs[0] != ir::kAbsent && n.outputs[0] != ir::kAbsent &&
           graph.value(n.inputs[0]).placement == graph.value(n.outputs[0]).placement &&
           (same_bytes(graph, n, graph.value(n.inputs[0]).layout,
                       graph.value(n.outputs[0]).layout) ||
            (options_.keeps_bytes && options_.keeps_bytes(graph, n)));
  }

  bool alias(Context& c, const ir::Node& n, const Instruction& i) {
    const op::Type& type = c.graph.type(n.outputs[0]);
    const Slot& source = c.region.slots[static_cast<size_t>(i.in[0])];
    if (on_host(type) || !sizes_known(c.known, type) || source.storage == Storage::kHost)
      return false;
    const int root = source.alias == kNone ? i.in[0] : source.alias;
    const int slot = add_slot(c, n.outputs[0], Storage::kAlias);
    c.region.slots[static_cast<size_t>(slot)].alias = root;
    return true;
  }

  static std::vector<std::string> symbols_of(const Context& c, const Instruction& i) {
    std::set<std::string> names;
    auto add = [&](const std::vector<op::Expr>& list) {
      for (const op::Expr& e : list)
        for (std::string& s : e.symbols()) names.insert(std::move(s));
    };
    for (const std::vector<int>* side : {&i.in, &i.out})
      for (int id : *side) {
        if (id == kNone) continue;
        const Slot& slot = c.region.slots[static_cast<size_t>(id)];
        if (slot.type.ranked()) add(*slot.type.shape);
        if (slot.contents) add(*slot.contents);
      }
    if (!i.steps.empty()) add(*i.result.shape);
    for (const plan::Step& step : i.steps) add(*step.type.shape);
    return {names.begin(), names.end()};
  }

  // A kernel for these sizes, or the host with the reasons of those that refused.
  Status choose(Context& c, Instruction& i, bool device) {
    i.kind = Kind::kHost;
    if (i.op->kind == op::OpClass::kHost) {
      i.reason = "a host operator";
      return {};
    }
    if (options_.reference_only) {
      i.reason = "the reference was asked for";
      return {};
    }
    if (!device) {
      i.reason = "its sizes are known only when it has run";
      return {};
    }
    op::Bindings bindings = options_.bindings;
    for (const std::string& s : i.symbols)
      bindings.emplace(s, 1);  // not yet known: decided as if 1, checked when bound
    auto problem = plan::problem_of(plan_, c.region, i, bindings);
    if (!problem)
      return error(std::move(problem).error().at(
          i.origin.empty() ? std::string(i.op->name) : fmt::format("op '{}'", i.origin[0])));
    if (!i.place.empty()) {
      i.reason = options_.refusal ? options_.refusal(*problem) : std::string();
      if (i.reason.empty()) i.reason = "it costs less there";
      return {};
    }
    const op::Claim* best = nullptr;
    std::vector<std::vector<op::Claim>> claims;
    for (const op::ClaimSource* source : sources_) claims.push_back(source->probe(*problem));
    for (const auto& list : claims)
      for (const op::Claim& claim : list) {
        if (claim.supported() && (!best || claim.cost < best->cost)) best = &claim;
        if (!claim.supported())
          i.reason += (i.reason.empty() ? "" : "; ") + claim.kernel + ": " + claim.refusal;
      }
    if (!best) {
      if (i.reason.empty()) i.reason = "no kernel for this operator";
      return {};
    }
    i.kind = Kind::kLaunch;
    i.kernel = best->kernel;
    i.reason.clear();
    return {};
  }

  void bind(Context& c, const ir::Node& n) {
    for (ir::ValueId id : n.outputs) {
      if (id == ir::kAbsent) continue;
      std::vector<std::string> learned = learn(c, c.graph.type(id));
      if (learned.empty()) continue;
      std::sort(learned.begin(), learned.end());
      Instruction i;
      i.kind = Kind::kBind;
      i.in = {c.slot_of[static_cast<size_t>(id)]};
      i.symbols = std::move(learned);
      c.region.body.push_back(std::move(i));
    }
  }

  plan::Plan& plan_;
  std::span<const op::ClaimSource* const> sources_;
  const ScheduleOptions& options_;
  std::map<std::pair<const void*, std::string>, int> constants_;
};

}  // namespace

Result<plan::Plan> schedule(const ir::Graph& graph, std::span<const op::ClaimSource* const> sources,
                            const ScheduleOptions& options) {
  plan::Plan result;
  result.device = options.device;
  result.planned_for = options.bindings;
  std::set<std::string> known;
  TRY_ASSIGN(result.main, Scheduler(result, sources, options).region(graph, std::move(known)));
  TRY(plan::verify(result));
  return result;
}

}  // namespace tessera::passes
