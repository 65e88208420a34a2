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
  Assigner(ir::Graph& graph, const Offers& offers, const AssignOptions& options,
           AssignReport& report)
      : graph_(graph), offers_(offers), options_(options), report_(report) {
    const auto arriving = [&](ir::ValueId id) {
      std::vector<Form> forms;
      if (const auto p = producer(id))
        for (const Choice& c : choices_[p->node]) forms.push_back({c.place, c.out[p->input]});
      return forms;
    };
    for (const ir::Node& node : graph.nodes)
      choices_.push_back(offers.choices(graph, node, arriving));
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
  Form produced(ir::ValueId id) const {
    const auto p = producer(id);
    return p ? Form{choice(p->node).place, choice(p->node).out[p->input]} : Form{};
  }
  static Form wanted(const Choice& c, size_t input) { return {c.place, c.in[input]}; }

  // What a conversion of the value costs.
  int64_t conversion(ir::ValueId id, const Form& from, const Form& to) {
    if (from == to || constant(id)) return 0;
    if (std::find(options_.fixed.begin(), options_.fixed.end(), id) != options_.fixed.end())
      return kForbidden;
    auto [found, fresh] = conversions_.try_emplace({id, from, to}, 0);
    if (!fresh) return found->second;
    const auto cost = offers_.conversion(graph_, id, from, to);
    return found->second = cost ? cost->value : kForbidden;
  }

  // Forms in which the node's readers and the outside want the value.
  std::vector<Form> demands(ir::ValueId id) const {
    std::vector<Form> list;
    auto add = [&](Form form) {
      if (std::find(list.begin(), list.end(), form) == list.end()) list.push_back(std::move(form));
    };
    if (leaves_[at(id)]) add({});
    for (const Reader& r : readers_[at(id)]) add(wanted(choice(r.node), r.input));
    return list;
  }

  int64_t total() {
    int64_t sum = 0;
    for (size_t n = 0; n < chosen_.size(); ++n) sum += choice(n).cost.value;
    for (size_t id = 0; id < graph_.values.size(); ++id)
      for (const Form& to : demands(static_cast<ir::ValueId>(id)))
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
          cost += conversion(node.inputs[i], produced(node.inputs[i]), wanted(choices_[n][c], i));
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
          take(n, [&](const Choice& c) {
            return wanted(c, 0) == produced(graph_.nodes[n].inputs[0]);
          });
      }
      for (size_t n = decided.size(); n-- > 0;) {
        if (decided[n] || graph_.nodes[n].outputs.empty() ||
            graph_.nodes[n].outputs[0] == ir::kAbsent)
          continue;
        for (const Reader& r : readers_[at(graph_.nodes[n].outputs[0])])
          if (decided[r.node])
            take(n, [&](const Choice& c) {
              return Form{c.place, c.out[0]} == wanted(choice(r.node), r.input);
            });
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
      for (const Form& to : demands(id)) sum += conversion(id, produced(id), to);
      return sum;
    }
    if (readers.size() + (leaves_[at(id)] ? 1 : 0) == 0) return 0;
    auto source_form = [&](size_t c) -> Form {
      if (source < 0) return produced(id);
      return {choices_[from->node][c].place, choices_[from->node][c].out[from->input]};
    };
    // One reader: its layout against the producer's.
    if (readers.size() == 1 && !leaves_[at(id)]) {
      const Reader r = readers[0];
      if (variable[r.node] == source && source >= 0) return 0;
      add_pair(source, variable[r.node], domains, factors, [&](size_t a, size_t b) {
        const size_t reader = variable[r.node] < 0 ? 0 : b;
        return conversion(id, source_form(a), wanted(choices_[r.node][reader], r.input));
      });
      return 0;
    }
    // Several: a variable for the set of forms kept, of which there are no more than who wants one.
    std::vector<Form> forms{{}};
    for (const Reader& r : readers)
      for (const Choice& c : choices_[r.node])
        if (const Form form = wanted(c, r.input);
            std::find(forms.begin(), forms.end(), form) == forms.end())
          forms.push_back(form);
    const std::vector<uint64_t> sets =
        sets_of(forms.size(), readers.size() + (leaves_[at(id)] ? 1 : 0));
    const int kept = static_cast<int>(domains.size());
    domains.push_back(static_cast<int>(sets.size()));
    auto holds = [&](size_t set, const Form& form) {
      const size_t k =
          static_cast<size_t>(std::find(forms.begin(), forms.end(), form) - forms.begin());
      return (sets[set] >> k & 1) != 0;
    };
    add_pair(source, kept, domains, factors, [&](size_t a, size_t set) {
      int64_t sum = 0;
      for (const Form& to : forms)
        if (holds(set, to)) sum += conversion(id, source_form(a), to);
      return std::min(sum, kForbidden);
    });
    if (leaves_[at(id)])
      add_pair(-1, kept, domains, factors,
               [&](size_t, size_t set) { return holds(set, {}) ? 0 : kForbidden; });
    for (const Reader& r : readers)
      add_pair(variable[r.node], kept, domains, factors, [&](size_t b, size_t set) {
        const Choice& c = choices_[r.node][variable[r.node] < 0 ? 0 : b];
        return holds(set, wanted(c, r.input)) ? 0 : kForbidden;
      });
    return 0;
  }

  // All sets of 1 to `most` of so many forms, as bits; smaller ones only where that would be too
  // many.
  std::vector<uint64_t> sets_of(size_t forms, size_t most) {
    constexpr size_t kMostSets = 512;
    constexpr size_t kMostForms = 64;
    std::vector<uint64_t> sets, last{0};
    for (size_t size = 1; size <= std::min(most, forms); ++size) {
      std::vector<uint64_t> larger;
      for (const uint64_t set : last)
        for (size_t k = 0; k < std::min(forms, kMostForms); ++k)
          if (set >> k == 0) larger.push_back(set | uint64_t{1} << k);
      if (sets.size() + larger.size() > kMostSets && size > 1) {
        report_.exact = false;
        break;
      }
      sets.insert(sets.end(), larger.begin(), larger.end());
      last = std::move(larger);
    }
    return sets;
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

  std::string name_of_place(int place) const {
    return place == 0 ? "" : options_.places[static_cast<size_t>(place - 1)];
  }

  Status apply() {
    std::vector<int> place(graph_.values.size());  // by value
    for (size_t n = 0; n < chosen_.size(); ++n)
      for (size_t k = 0; k < graph_.nodes[n].outputs.size(); ++k)
        if (const ir::ValueId id = graph_.nodes[n].outputs[k]; id != ir::kAbsent) {
          graph_.value(id).layout = choice(n).out[k];
          graph_.value(id).placement = name_of_place(choice(n).place);
          place[at(id)] = choice(n).place;
        }
    std::map<std::pair<ir::ValueId, Form>, ir::ValueId> converted;
    std::vector<ir::Node> nodes;
    auto in_form = [&](ir::ValueId id, const Form& form) -> Result<ir::ValueId> {
      if (id == ir::kAbsent) return id;
      // One change at a time, layouts on the device.
      while (Form{place[at(id)], graph_.value(id).layout} != form) {
        const bool moves = place[at(id)] != form.place &&
                           (place[at(id)] != 0 || graph_.value(id).layout == form.layout);
        const Form next =
            moves ? Form{form.place, graph_.value(id).layout} : Form{place[at(id)], form.layout};
        auto [found, fresh] = converted.try_emplace({id, next}, ir::kAbsent);
        if (!fresh) {
          id = found->second;
          continue;
        }
        ir::ValueInfo info;
        info.type = graph_.type(id);
        info.layout = next.layout;
        info.placement = name_of_place(next.place);
        if (constant(id)) {
          if (options_.pack && !moves) {
            TRY_ASSIGN(info.constant, relaid(*graph_.value(id).constant, next.layout));
          } else {
            info.constant = graph_.value(id).constant;
          }
        } else {
          ir::Node relayout;
          relayout.op = op::find("relayout");
          relayout.inputs = {id};
          relayout.outputs = {static_cast<ir::ValueId>(graph_.values.size())};
          nodes.push_back(std::move(relayout));
          ++(moves ? report_.copies : report_.conversions);
        }
        graph_.values.push_back(std::move(info));
        place.push_back(next.place);
        id = found->second = static_cast<ir::ValueId>(graph_.values.size() - 1);
      }
      return id;
    };
    for (size_t n = 0; n < chosen_.size(); ++n) {
      for (size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        TRY_ASSIGN(graph_.nodes[n].inputs[i],
                   in_form(graph_.nodes[n].inputs[i], wanted(choice(n), i)));
      }
      nodes.push_back(std::move(graph_.nodes[n]));
    }
    for (ir::ValueId& id : graph_.outputs) {
      TRY_ASSIGN(id, in_form(id, {}));
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
  const Offers& offers_;
  const AssignOptions& options_;
  AssignReport& report_;
  std::vector<std::vector<Choice>> choices_;  // by node
  std::vector<int> chosen_;                   // by node
  std::vector<std::vector<Reader>> readers_;  // by value
  std::vector<bool> leaves_;                  // by value: an output of the graph
  std::map<std::tuple<ir::ValueId, Form, Form>, int64_t> conversions_;
};

Status assign_into(ir::Graph& graph, const Offers& offers, const AssignOptions& options,
                   AssignReport& report) {
  for (ir::Node& node : graph.nodes)
    for (ir::Graph& body : node.bodies)
      if (node.op->name != "fused") TRY(assign_into(body, offers, options, report));
  return Assigner(graph, offers, options, report).run();
}

}  // namespace

std::string_view name_of(LayoutMode mode) { return kNames[static_cast<size_t>(mode)]; }

std::optional<LayoutMode> layout_mode_from_name(std::string_view name) {
  for (size_t m = 0; m < std::size(kNames); ++m)
    if (kNames[m] == name) return static_cast<LayoutMode>(m);
  return std::nullopt;
}

Result<AssignReport> assign(ir::Graph& graph, const Offers& offers, const AssignOptions& options) {
  AssignReport report;
  TRY(assign_into(graph, offers, options, report));
  return report;
}

Result<AssignReport> assign(ir::Graph& graph, Sources sources, const AssignOptions& options) {
  return assign(graph, SourceOffers(sources, options.bindings), options);
}

}  // namespace tessera::passes
