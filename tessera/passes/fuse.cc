#include "tessera/passes/fuse.h"

#include <algorithm>

#include "tessera/op/elementwise.h"
#include "tessera/passes/problem.h"

namespace tessera::passes {
namespace {

// Steps of one group: what kernels hold in a constant block.
constexpr size_t kMaxSteps = 24;

class Fuser {
 public:
  Fuser(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts, const Price& price,
        FuseReport& report)
      : graph_(graph), bindings_(bindings), accepts_(accepts), price_(price), report_(report) {
    readers_.resize(graph.values.size());
    leaves_.resize(graph.values.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (ir::ValueId id : graph.nodes[n].inputs)
        if (id != ir::kAbsent && (readers_[at(id)].empty() || readers_[at(id)].back() != n))
          readers_[at(id)].push_back(n);
    for (ir::ValueId id : graph.outputs) leaves_[at(id)] = true;
    group_of_.assign(graph.nodes.size(), kNone);
  }

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (group_of_[n] == kNone && anchors(n)) extend(n);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (group_of_[n] == kNone && step(n)) join(n);
    for (size_t n = 0; price_ && n < graph_.nodes.size(); ++n)
      if (product(n)) feed(n);
    rebuild();
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  static size_t at(ir::ValueId id) { return static_cast<size_t>(id); }

  const ir::Node& node(size_t n) const { return graph_.nodes[n]; }
  ir::ValueId result(size_t n) const { return node(n).outputs[0]; }
  size_t producer(ir::ValueId id) const {
    const int32_t p = id == ir::kAbsent ? -1 : graph_.value(id).producer;
    return p < 0 ? kNone : static_cast<size_t>(p);
  }

  bool yields_one_tensor(size_t n) const {
    const ir::Node& x = node(n);
    if (x.outputs.empty() || x.outputs[0] == ir::kAbsent) return false;
    for (size_t i = 1; i < x.outputs.size(); ++i)
      if (x.outputs[i] != ir::kAbsent) return false;
    const op::Type& type = graph_.type(x.outputs[0]);
    // What follows from sizes is written from them, at no cost.
    return type.is_tensor() && type.ranked() && type.dtype != DType::kString &&
           !graph_.value(x.outputs[0]).contents;
  }

  bool elementwise(size_t n) const { return op::elementwise(*node(n).op) || by_one_scale(n); }
  // A quantisation, or its reverse, with one scale and zero point.
  bool by_one_scale(size_t n) const {
    const ir::Node& x = node(n);
    if (x.op->name != "quantize" && x.op->name != "dequantize") return false;
    return std::all_of(x.inputs.begin() + 1, x.inputs.end(), [&](ir::ValueId id) {
      const op::Type* type = id == ir::kAbsent ? nullptr : &graph_.type(id);
      return !type || (type->is_static() && op::element_count(type->dims()) == 1);
    });
  }

  bool step(size_t n) const { return elementwise(n) && yields_one_tensor(n) && ranked_inputs(n); }
  bool ranked_inputs(size_t n) const {
    for (ir::ValueId id : node(n).inputs)
      if (id != ir::kAbsent && (!graph_.type(id).is_tensor() || !graph_.type(id).ranked()))
        return false;
    return true;
  }
  bool anchors(size_t n) const {
    const op::OpDef& op = *node(n).op;
    return op.kind != op::OpClass::kHost && op.bodies == 0 && !is_view(op) && !elementwise(n) &&
           op.name != "relayout" && yields_one_tensor(n) && ranked_inputs(n);
  }

  bool product(size_t n) const {
    const std::string_view op = node(n).op->name;
    return (op == "conv" || op == "dot") && anchors(n) &&
           (group_of_[n] == kNone || groups_[group_of_[n]].members.front() == n);
  }

  bool same_shape(ir::ValueId a, ir::ValueId b) const {
    return graph_.type(a).shape == graph_.type(b).shape;
  }

  // The one node that reads the value, if that is all that happens to it.
  size_t only_reader(ir::ValueId id) const {
    return !leaves_[at(id)] && readers_[at(id)].size() == 1 ? readers_[at(id)][0] : kNone;
  }

  // Why the members (in order, the anchor first) make no group; empty if they do.
  std::string refusal(const std::vector<size_t>& members) const {
    auto problem = problem_of(graph_, fused(members), bindings_);
    return problem ? accepts_(*problem) : problem.error().message;
  }

  void miss(size_t a, size_t b, const std::string& why) {
    auto label = [&](size_t n) {
      return node(n).origin.empty()
                 ? std::string(node(n).op->name)
                 : fmt::format("{} '{}'", node(n).op->name, node(n).origin.front());
    };
    report_.missed.push_back(fmt::format("{} + {}: {}", label(a), label(b), why));
  }

  void extend(size_t anchor) {
    std::vector<size_t> members{anchor};
    for (size_t last = anchor;;) {
      const size_t next = only_reader(result(last));
      if (next == kNone || !step(next) || group_of_[next] != kNone || members.size() > kMaxSteps)
        break;
      if (!same_shape(result(next), result(anchor))) {
        miss(anchor, next, "another shape");
        break;
      }
      const ir::Node& x = node(next);
      const bool ready = std::all_of(x.inputs.begin(), x.inputs.end(), [&](ir::ValueId id) {
        const size_t p = producer(id);
        return p == kNone || p < anchor || p == last;
      });
      if (!ready) {
        miss(anchor, next, "an operand is computed after the anchor");
        break;
      }
      members.push_back(next);
      if (std::string why = refusal(members); !why.empty()) {
        miss(anchor, next, why);
        members.pop_back();
        break;
      }
      last = next;
    }
    if (members.size() > 1) add(std::move(members), anchor);
  }

  // Joins the node to the element-wise groups that it reads, all at once or the nearest alone.
  void join(size_t n) {
    // What is dequantised is smaller before: each reader does it for itself.
    if (node(n).op->name == "dequantize") return;
    std::vector<size_t> members{n}, sources;
    for (ir::ValueId id : node(n).inputs) {
      const size_t p = producer(id);
      if (p == kNone || !same_shape(id, result(n)) || !step(p)) continue;
      if (group_of_[p] != kNone && groups_[group_of_[p]].anchored) continue;
      sources.push_back(p);
    }
    for (size_t p : sources) {
      std::vector<size_t> with = members;
      if (group_of_[p] == kNone) {
        with.push_back(p);
      } else {
        const std::vector<size_t>& g = groups_[group_of_[p]].members;
        with.insert(with.end(), g.begin(), g.end());
      }
      std::sort(with.begin(), with.end());
      with.erase(std::unique(with.begin(), with.end()), with.end());
      if (with.size() == members.size() || with.size() > kMaxSteps + 1) continue;
      if (!closed(with)) {
        miss(p, n, "a value in between is needed before the group has run");
        continue;
      }
      if (std::string why = refusal(with); !why.empty()) {
        miss(p, n, why);
        continue;
      }
      members = std::move(with);
    }
    if (members.size() == 1) return;
    for (size_t m : members)
      if (group_of_[m] != kNone) groups_[group_of_[m]].members.clear();
    add(std::move(members), n, false);
  }

  std::vector<size_t> with_group(size_t n) const {
    return group_of_[n] == kNone ? std::vector<size_t>{n} : groups_[group_of_[n]].members;
  }

  // Puts what yields the product's left side, and only that, in front of the product's group.
  void feed(size_t n) {
    const ir::ValueId left = node(n).inputs[0];
    const size_t p = producer(left);
    if (p == kNone || only_reader(left) != n) return;
    const std::vector<size_t> before = with_group(p), behind = with_group(n);
    if (before.back() != p || !(step(before.front()) || narrow(before.front())) ||
        !std::all_of(before.begin() + 1, before.end(), [&](size_t m) { return step(m); }))
      return;
    if (!of_single_rows(n))
      return miss(p, n, "more than a pixel of the left side is read at a time");
    std::vector<size_t> all = before;
    all.insert(all.end(), behind.begin(), behind.end());
    const auto whole = cost(all), a = cost(before), b = cost(behind);
    if (!whole) return miss(p, n, refusal(all));
    if (!a || !b) return miss(p, n, "no kernel takes the parts");
    if (whole->value >= a->value + b->value)
      return miss(p, n,
                  fmt::format("{} ns together, {} ns apart", whole->value / 1000,
                              (a->value + b->value) / 1000));
    for (size_t m : all)
      if (group_of_[m] != kNone) groups_[group_of_[m]].members.clear();
    add(std::move(all), n);
  }

  // Reads each row, or pixel, of its left side once.
  bool of_single_rows(size_t n) const {
    if (node(n).op->name == "dot") return true;
    const op::Type& w = graph_.type(node(n).inputs[1]);
    for (int a = 2; a < w.rank(); ++a)
      if (w.dim(a).constant() != 1) return false;
    return true;
  }

  // A convolution of more than one group.
  bool narrow(size_t n) const {
    return node(n).op->name == "conv" && node(n).attrs.i("groups", 1) > 1;
  }

  std::optional<Picoseconds> cost(const std::vector<size_t>& members) const {
    const auto problem = members.size() == 1 ? problem_of(graph_, node(members[0]), bindings_)
                                             : problem_of(graph_, fused(members), bindings_);
    return problem ? price_(*problem) : std::nullopt;
  }

  // The group runs where its last member stood: nobody else may read its values before.
  bool closed(const std::vector<size_t>& members) const {
    for (size_t m : members)
      for (size_t reader : readers_[at(result(m))])
        if (reader < members.back() && !std::binary_search(members.begin(), members.end(), reader))
          return false;
    return true;
  }

  void add(std::vector<size_t> members, size_t place, bool anchored = true) {
    for (size_t m : members) group_of_[m] = groups_.size();
    groups_.push_back({std::move(members), place, anchored});
  }

  // The fused node of these members. Its outputs are values of the graph.
  ir::Node fused(const std::vector<size_t>& members) const {
    ir::Node f;
    f.op = op::find("fused");
    ir::Graph body("fused");
    body.symbols = graph_.symbols;
    std::vector<std::pair<ir::ValueId, ir::ValueId>> inner;  // outer id -> id in the body
    auto copy = [&](ir::ValueId id) {
      const ir::ValueInfo& info = graph_.value(id);
      ir::ValueInfo fresh;
      fresh.name = info.name;
      fresh.type = info.type;
      body.values.push_back(std::move(fresh));
      inner.emplace_back(id, static_cast<ir::ValueId>(body.values.size() - 1));
      return inner.back().second;
    };
    auto find = [&](ir::ValueId id) {
      auto found =
          std::find_if(inner.begin(), inner.end(), [&](auto& pair) { return pair.first == id; });
      return found == inner.end() ? ir::kAbsent : found->second;
    };
    for (size_t m : members) {
      const ir::Node& x = node(m);
      ir::Node copied{x.op, x.attrs, {}, {}, {}, x.origin};
      for (ir::ValueId id : x.inputs) {
        ir::ValueId mapped = ir::kAbsent;
        if (id != ir::kAbsent && (mapped = find(id)) == ir::kAbsent) {
          mapped = copy(id);
          body.inputs.push_back(mapped);
          f.inputs.push_back(id);
        }
        copied.inputs.push_back(mapped);
      }
      copied.outputs.push_back(copy(x.outputs[0]));
      body.value(copied.outputs[0]).producer = static_cast<int32_t>(body.nodes.size());
      body.nodes.push_back(std::move(copied));
      for (const std::string& name : x.origin)
        if (std::find(f.origin.begin(), f.origin.end(), name) == f.origin.end())
          f.origin.push_back(name);
    }
    for (size_t m : members) {
      const ir::ValueId id = result(m);
      const std::vector<size_t>& all = readers_[at(id)];
      const bool outside = leaves_[at(id)] || std::any_of(all.begin(), all.end(), [&](size_t r) {
                             return std::find(members.begin(), members.end(), r) == members.end();
                           });
      if (!outside) continue;
      body.outputs.push_back(find(id));
      body.output_names.push_back("");
      f.outputs.push_back(id);
    }
    f.bodies.push_back(std::move(body));
    return f;
  }

  void rebuild() {
    std::vector<ir::Node> nodes;
    std::vector<ir::Node> made(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].members.empty()) made[g] = fused(groups_[g].members);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const size_t g = group_of_[n];
      if (g == kNone) {
        nodes.push_back(std::move(graph_.nodes[n]));
      } else if (groups_[g].place == n) {
        ++report_.groups;
        report_.steps += static_cast<int>(groups_[g].members.size()) - 1;
        nodes.push_back(std::move(made[g]));
      }
    }
    graph_.nodes = std::move(nodes);
    for (ir::ValueInfo& info : graph_.values) info.producer = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      for (ir::ValueId id : graph_.nodes[n].outputs)
        if (id != ir::kAbsent) graph_.value(id).producer = static_cast<int32_t>(n);
  }

  struct Members {
    std::vector<size_t> members;  // nodes in order; empty: merged into another
    size_t place;                 // the node in whose stead the group stands
    bool anchored;
  };

  ir::Graph& graph_;
  const op::Bindings& bindings_;
  const Accepts& accepts_;
  const Price& price_;
  FuseReport& report_;
  std::vector<std::vector<size_t>> readers_;  // by value
  std::vector<bool> leaves_;                  // by value: an output of the graph
  std::vector<size_t> group_of_;              // by node
  std::vector<Members> groups_;
};

void fuse_into(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts,
               const Price& price, FuseReport& report) {
  for (ir::Node& node : graph.nodes)
    for (ir::Graph& body : node.bodies)
      if (node.op->name != "fused") fuse_into(body, bindings, accepts, price, report);
  Fuser(graph, bindings, accepts, price, report).run();
}

}  // namespace

FuseReport fuse(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts,
                const Price& price) {
  FuseReport report;
  fuse_into(graph, bindings, accepts, price, report);
  return report;
}

}  // namespace tessera::passes
