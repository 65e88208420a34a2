#include "tessera/passes/assign.h"

#include <algorithm>
#include <map>
#include <optional>

#include "tessera/layout/convert.h"

namespace tessera::passes {
namespace {

constexpr std::string_view kNames[] = {"none", "greedy", "any", "propagate", "optimal"};

// Operators whose kernels gain most by a layout.
bool heavy(const ir::Node& node) {
  const op::OpDef& op = node.op->name == "fused" ? *node.bodies[0].nodes[0].op : *node.op;
  return op.name == "conv" || op.name == "conv_transpose" || op.name == "dot" ||
         op.name == "attention";
}

class Assigner {
 public:
  Assigner(ir::Graph& graph, Sources sources, const AssignOptions& options, AssignReport& report)
      : graph_(graph), sources_(sources), options_(options), report_(report) {
    for (const ir::Node& node : graph.nodes) {
      std::vector<std::string> arriving;
      if (!node.inputs.empty() && node.inputs[0] != ir::kAbsent)
        if (const auto p = producer(node.inputs[0]))
          for (const Choice& c : choices_[p->node]) arriving.push_back(c.out[p->input]);
      choices_.push_back(choices(graph, node, options.bindings, sources, arriving));
    }
    chosen_.assign(graph.nodes.size(), 0);
    readers_.resize(graph.values.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (size_t i = 0; i < graph.nodes[n].inputs.size(); ++i)
        if (const ir::ValueId id = graph.nodes[n].inputs[i]; id != ir::kAbsent)
          readers_[at(id)].push_back({n, i});
    leaves_.resize(graph.values.size());
    for (ir::ValueId id : graph.outputs) leaves_[at(id)] = true;
  }

  Status run() {
    int64_t bound = 0;
    switch (options_.mode) {
      case LayoutMode::kNone:
        break;
      case LayoutMode::kGreedy:
        for (size_t n = 0; n < chosen_.size(); ++n) follow(n);
        break;
      case LayoutMode::kAny:
        choose_heavy();
        for (size_t n = 0; n < chosen_.size(); ++n)
          if (!heavy(graph_.nodes[n])) follow(n);
        break;
      case LayoutMode::kPropagate:
        propagate();
        break;
      case LayoutMode::kOptimal:
        bound = solve();
        break;
    }
    const int64_t cost = total();
    report_.cost += Picoseconds(cost);
    report_.lower_bound += Picoseconds(std::min(bound, cost));
    return apply();
  }

 private:
  struct Reader {
    size_t node, input;
  };

  static size_t at(ir::ValueId id) { return static_cast<size_t>(id); }
  const Choice& choice(size_t n) const { return choices_[n][static_cast<size_t>(chosen_[n])]; }
  bool constant(ir::ValueId id) const { return graph_.value(id).constant.has_value(); }

  // The node that yields the value and which of its outputs it is; nothing for inputs.
  std::optional<Reader> producer(ir::ValueId id) const {
    const int32_t p = graph_.value(id).producer;
    if (p < 0) return std::nullopt;
    const ir::Node& node = graph_.nodes[static_cast<size_t>(p)];
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (node.outputs[k] == id) return Reader{static_cast<size_t>(p), k};
    return std::nullopt;
  }
  const std::string& produced(ir::ValueId id) const {
    static const std::string row_major;
    const auto p = producer(id);
    return p ? choice(p->node).out[p->input] : row_major;
  }

  // What a conversion of the value costs.
  int64_t conversion(ir::ValueId id, const std::string& from, const std::string& to) {
    if (from == to || constant(id)) return 0;
    if (std::find(options_.fixed.begin(), options_.fixed.end(), id) != options_.fixed.end())
      return kForbidden;
    auto [found, fresh] = conversions_.try_emplace({id, from, to}, 0);
    if (!fresh) return found->second;
    ir::Node node;
    node.op = op::find("relayout");
    node.inputs = node.outputs = {id};
    found->second = kForbidden;
    if (auto problem = problem_of(graph_, node, options_.bindings)) {
      problem->in[0].layout = from;
      problem->out[0].layout = to;
      if (auto claim = cheapest(*problem, sources_)) {
        found->second = claim->cost.value;
      } else {
        // The host does it, by single elements.
        found->second = 10'000'000 + problem->in[0].count() * 10'000;
      }
    }
    return found->second;
  }

  // Layouts in which the node's readers and the outside want the value.
  std::vector<std::string> demands(ir::ValueId id) const {
    std::vector<std::string> list;
    auto add = [&](const std::string& layout) {
      if (std::find(list.begin(), list.end(), layout) == list.end()) list.push_back(layout);
    };
    if (leaves_[at(id)]) add("");
    for (const Reader& r : readers_[at(id)]) add(choice(r.node).in[r.input]);
    return list;
  }

  int64_t total() {
    int64_t sum = 0;
    for (size_t n = 0; n < chosen_.size(); ++n) sum += choice(n).cost.value;
    for (size_t id = 0; id < graph_.values.size(); ++id)
      for (const std::string& to : demands(static_cast<ir::ValueId>(id)))
        sum += conversion(static_cast<ir::ValueId>(id), produced(static_cast<ir::ValueId>(id)), to);
    return std::min(sum, kForbidden);
  }

  // ---- the rivals

  void follow(size_t n) {
    int64_t least = INT64_MAX;
    const ir::Node& node = graph_.nodes[n];
    int best = 0;
    for (size_t c = 0; c < choices_[n].size(); ++c) {
      int64_t cost = choices_[n][c].cost.value;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != ir::kAbsent)
          cost += conversion(node.inputs[i], produced(node.inputs[i]), choices_[n][c].in[i]);
      if (cost < least) {
        least = cost;
        best = static_cast<int>(c);
      }
    }
    chosen_[n] = best;
  }

  void choose_heavy() {
    for (size_t n = 0; n < chosen_.size(); ++n) {
      if (!heavy(graph_.nodes[n])) continue;
      const auto best = std::min_element(choices_[n].begin(), choices_[n].end(),
                                         [](auto& a, auto& b) { return a.cost < b.cost; });
      chosen_[n] = static_cast<int>(best - choices_[n].begin());
    }
  }

  void propagate() {
    choose_heavy();
    std::vector<bool> decided(chosen_.size());
    for (size_t n = 0; n < decided.size(); ++n) decided[n] = heavy(graph_.nodes[n]);
    auto take = [&](size_t n, auto fits) {
      for (size_t c = 0; c < choices_[n].size() && !decided[n]; ++c)
        if (fits(choices_[n][c])) {
          chosen_[n] = static_cast<int>(c);
          decided[n] = true;
        }
    };
    for (int round = 0; round < 2; ++round) {
      for (size_t n = 0; n < decided.size(); ++n) {
        if (decided[n] || graph_.nodes[n].inputs.empty() ||
            graph_.nodes[n].inputs[0] == ir::kAbsent)
          continue;
        const auto p = producer(graph_.nodes[n].inputs[0]);
        if (p && decided[p->node])
          take(n, [&](const Choice& c) { return c.in[0] == choice(p->node).out[p->input]; });
      }
      for (size_t n = decided.size(); n-- > 0;) {
        if (decided[n] || graph_.nodes[n].outputs.empty() ||
            graph_.nodes[n].outputs[0] == ir::kAbsent)
          continue;
        for (const Reader& r : readers_[at(graph_.nodes[n].outputs[0])])
          if (decided[r.node])
            take(n, [&](const Choice& c) { return c.out[0] == choice(r.node).in[r.input]; });
      }
    }
  }

  // ---- the exact one

  int64_t solve() {
    std::vector<int> domains, variable(chosen_.size(), -1);
    std::vector<Factor> factors;
    int64_t constant_cost = 0;
    for (size_t n = 0; n < chosen_.size(); ++n) {
      if (choices_[n].size() == 1) {
        constant_cost += choices_[n][0].cost.value;
        continue;
      }
      variable[n] = static_cast<int>(domains.size());
      domains.push_back(static_cast<int>(choices_[n].size()));
      Factor f{{variable[n]}, {}};
      for (const Choice& c : choices_[n]) f.costs.push_back(c.cost.value);
      factors.push_back(std::move(f));
    }
    for (size_t v = 0; v < graph_.values.size(); ++v)
      constant_cost += add_value(static_cast<ir::ValueId>(v), variable, domains, factors);
    report_.variables += static_cast<int>(domains.size());
    const Assignment best = minimise(domains, std::move(factors));
    report_.width = std::max(report_.width, best.width);
    for (size_t n = 0; n < chosen_.size(); ++n)
      if (variable[n] >= 0) chosen_[n] = best.values[static_cast<size_t>(variable[n])];
    return best.lower_bound + constant_cost;
  }

  // The tables of a value's conversions; what is decided already is returned.
  int64_t add_value(ir::ValueId id, const std::vector<int>& variable, std::vector<int>& domains,
                    std::vector<Factor>& factors) {
    if (constant(id)) return 0;
    const std::vector<Reader>& readers = readers_[at(id)];
    const auto from = producer(id);
    const int source = from ? variable[from->node] : -1;
    const bool decided = source < 0 && std::all_of(readers.begin(), readers.end(),
                                                   [&](auto& r) { return variable[r.node] < 0; });
    if (decided) {
      int64_t sum = 0;
      for (const std::string& to : demands(id)) sum += conversion(id, produced(id), to);
      return sum;
    }
    if (readers.size() + (leaves_[at(id)] ? 1 : 0) == 0) return 0;
    auto layouts_out = [&](size_t c) -> const std::string& {
      return choices_[from->node][c].out[from->input];
    };
    // One reader: its layout against the producer's.
    if (readers.size() == 1 && !leaves_[at(id)]) {
      const Reader r = readers[0];
      if (variable[r.node] == source && source >= 0) return 0;
      add_pair(source, variable[r.node], domains, factors, [&](size_t a, size_t b) {
        return conversion(id, source < 0 ? produced(id) : layouts_out(a),
                          choices_[r.node][b].in[r.input]);
      });
      return 0;
    }
    // Several: a variable for the set of layouts kept.
    std::vector<std::string> layouts{""};
    for (const Reader& r : readers)
      for (const Choice& c : choices_[r.node])
        if (std::find(layouts.begin(), layouts.end(), c.in[r.input]) == layouts.end())
          layouts.push_back(c.in[r.input]);
    const size_t sets = size_t{1} << layouts.size();
    const int kept = static_cast<int>(domains.size());
    domains.push_back(static_cast<int>(sets));
    auto holds = [&](size_t set, const std::string& layout) {
      const size_t k =
          static_cast<size_t>(std::find(layouts.begin(), layouts.end(), layout) - layouts.begin());
      return (set >> k & 1) != 0;
    };
    add_pair(source, kept, domains, factors, [&](size_t a, size_t set) {
      int64_t sum = 0;
      for (const std::string& to : layouts)
        if (holds(set, to)) sum += conversion(id, source < 0 ? produced(id) : layouts_out(a), to);
      return std::min(sum, kForbidden);
    });
    if (leaves_[at(id)])
      add_pair(-1, kept, domains, factors,
               [&](size_t, size_t set) { return holds(set, "") ? 0 : kForbidden; });
    for (const Reader& r : readers)
      add_pair(variable[r.node], kept, domains, factors, [&](size_t b, size_t set) {
        return holds(set, choices_[r.node][variable[r.node] < 0 ? 0 : b].in[r.input]) ? 0
                                                                                      : kForbidden;
      });
    return 0;
  }

  // A table over two variables, of which either may be decided (-1; then it has one value).
  template <class Cost>
  static void add_pair(int a, int b, const std::vector<int>& domains, std::vector<Factor>& factors,
                       Cost cost) {
    const size_t as = a < 0 ? 1 : static_cast<size_t>(domains[static_cast<size_t>(a)]),
                 bs = b < 0 ? 1 : static_cast<size_t>(domains[static_cast<size_t>(b)]);
    Factor f;
    const bool swap = a >= 0 && b >= 0 && b < a;
    for (int v : swap ? std::vector{b, a} : std::vector{a, b})
      if (v >= 0) f.variables.push_back(v);
    for (size_t x = 0; x < (swap ? bs : as); ++x)
      for (size_t y = 0; y < (swap ? as : bs); ++y)
        f.costs.push_back(swap ? cost(y, x) : cost(x, y));
    factors.push_back(std::move(f));
  }

  // ---- writing it down

  Status apply() {
    for (size_t n = 0; n < chosen_.size(); ++n)
      for (size_t k = 0; k < graph_.nodes[n].outputs.size(); ++k)
        if (const ir::ValueId id = graph_.nodes[n].outputs[k]; id != ir::kAbsent)
          graph_.value(id).layout = choice(n).out[k];
    std::map<std::pair<ir::ValueId, std::string>, ir::ValueId> converted;
    std::vector<ir::Node> nodes;
    auto in_layout = [&](ir::ValueId id, const std::string& layout) -> Result<ir::ValueId> {
      if (id == ir::kAbsent || graph_.value(id).layout == layout) return id;
      auto [found, fresh] = converted.try_emplace({id, layout}, ir::kAbsent);
      if (!fresh) return found->second;
      ir::ValueInfo info;
      info.type = graph_.type(id);
      info.layout = layout;
      if (constant(id)) {
        TRY_ASSIGN(info.constant, relaid(*graph_.value(id).constant, layout));
      } else {
        ir::Node relayout;
        relayout.op = op::find("relayout");
        relayout.inputs = {id};
        relayout.outputs = {static_cast<ir::ValueId>(graph_.values.size())};
        nodes.push_back(std::move(relayout));
        ++report_.conversions;
      }
      graph_.values.push_back(std::move(info));
      return found->second = static_cast<ir::ValueId>(graph_.values.size() - 1);
    };
    for (size_t n = 0; n < chosen_.size(); ++n) {
      for (size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        TRY_ASSIGN(graph_.nodes[n].inputs[i],
                   in_layout(graph_.nodes[n].inputs[i], choice(n).in[i]));
      }
      nodes.push_back(std::move(graph_.nodes[n]));
    }
    for (ir::ValueId& id : graph_.outputs) {
      TRY_ASSIGN(id, in_layout(id, ""));
    }
    graph_.nodes = std::move(nodes);
    for (ir::ValueInfo& info : graph_.values) info.producer = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      for (ir::ValueId id : graph_.nodes[n].outputs)
        if (id != ir::kAbsent) graph_.value(id).producer = static_cast<int32_t>(n);
    return {};
  }

  // The constant's bytes in another layout, under its old sizes.
  static Result<op::Tensor> relaid(const op::Tensor& tensor, const std::string& text) {
    TRY_ASSIGN(op::Tensor result, op::Tensor::make(tensor.dtype(), tensor.dims()));
    TRY_ASSIGN(layout::Layout to_layout, layout::Layout::parse(text));
    const int rank = static_cast<int>(tensor.dims().size());
    TRY_ASSIGN(auto from, layout::BoundLayout::bind(layout::Layout::plain(tensor.dtype(), rank),
                                                    tensor.dtype(), tensor.dims()));
    TRY_ASSIGN(auto to, layout::BoundLayout::bind(to_layout, tensor.dtype(), tensor.dims()));
    if (to.bytes() != result.bytes())
      return error(Code::kUnimplemented, "a constant of {} in layout '{}', which pads",
                   tensor.type().str(), text);
    TRY(layout::convert(from, {tensor.data(), static_cast<size_t>(from.bytes().value)}, to,
                        {result.mutable_data(), static_cast<size_t>(to.bytes().value)}));
    return result;
  }

  ir::Graph& graph_;
  Sources sources_;
  const AssignOptions& options_;
  AssignReport& report_;
  std::vector<std::vector<Choice>> choices_;  // by node
  std::vector<int> chosen_;                   // by node
  std::vector<std::vector<Reader>> readers_;  // by value
  std::vector<bool> leaves_;                  // by value: an output of the graph
  std::map<std::tuple<ir::ValueId, std::string, std::string>, int64_t> conversions_;
};

Status assign_into(ir::Graph& graph, Sources sources, const AssignOptions& options,
                   AssignReport& report) {
  for (ir::Node& node : graph.nodes)
    for (ir::Graph& body : node.bodies)
      if (node.op->name != "fused") TRY(assign_into(body, sources, options, report));
  return Assigner(graph, sources, options, report).run();
}

}  // namespace

std::string_view name_of(LayoutMode mode) { return kNames[static_cast<size_t>(mode)]; }

std::optional<LayoutMode> layout_mode_from_name(std::string_view name) {
  for (size_t m = 0; m < std::size(kNames); ++m)
    if (kNames[m] == name) return static_cast<LayoutMode>(m);
  return std::nullopt;
}

Result<AssignReport> assign(ir::Graph& graph, Sources sources, const AssignOptions& options) {
  AssignReport report;
  TRY(assign_into(graph, sources, options, report));
  return report;
}

}  // namespace tessera::passes
