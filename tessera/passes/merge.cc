#include "tessera/passes/merge.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/ir/builder.h"
#include "tessera/op/elementwise.h"
#include "tessera/passes/common.h"
#include "tessera/passes/constants.h"
#include "tessera/passes/problem.h"

namespace tessera::passes {
namespace {

constexpr size_t kNone = SIZE_MAX;
// Joined weights are kept beside those of the file: that is worth this part of the time at least.
constexpr int64_t kLeastPart = 100;

// A product with constant weights and the element-wise operators behind it, each of which alone
// reads the one before. Nodes by index.
struct Member {
  size_t product = 0;
  std::vector<size_t> chain = {};
  int64_t columns = 0;
  bool copied = false;  // who reads the result needs it by itself
};
using Members = std::vector<Member>;

bool is_conv(const ir::Node& node) { return node.op->name == "conv"; }

// The axis of the columns in the weights, and in the result.
int weight_axis(const ir::Node& product) {
  return is_conv(product) || product.attrs.i("transpose_b") != 0 ? 0 : 1;
}
int result_axis(const ir::Node& product, int rank) { return is_conv(product) ? 1 : rank - 1; }

class Merger {
 public:
  Merger(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts, const Price& price,
         MergeReport& report)
      : graph_(graph), bindings_(bindings), accepts_(accepts), price_(price), report_(report) {
    readers_.resize(graph.values.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (ir::ValueId id : graph.nodes[n].inputs)
        if (id != ir::kAbsent) readers_[at(id)].push_back(n);
    for (ir::ValueId id : graph.outputs) readers_[at(id)].push_back(kNone);
  }

  void run() {
    std::vector<Members> chosen;
    for (const Members& bundle : bundles())
      if (Members some = worth_merging(bundle); !some.empty()) chosen.push_back(std::move(some));
    if (!chosen.empty()) rebuild(chosen);
  }

 private:
  static size_t at(ir::ValueId id) { return static_cast<size_t>(id); }
  const ir::Node& node(size_t n) const { return graph_.nodes[n]; }
  const op::Tensor* constant(ir::ValueId id) const {
    return id != ir::kAbsent && graph_.value(id).constant ? &*graph_.value(id).constant : nullptr;
  }
  // Behind so many steps.
  ir::ValueId result(const Member& m, size_t steps) const {
    return node(steps == 0 ? m.product : m.chain[steps - 1]).outputs[0];
  }
  const op::Tensor* bias(const Member& m) const {
    const auto& in = node(m.product).inputs;
    return in.size() > 2 ? constant(in[2]) : nullptr;
  }

  // ---- which products

  bool mergeable(const ir::Node& n) const {
    const op::Tensor* w = n.inputs.size() > 1 ? constant(n.inputs[1]) : nullptr;
    if (!w || w->dtype() != DType::kF32 || n.inputs[0] == ir::kAbsent) return false;
    const op::Type &x = graph_.type(n.inputs[0]), &y = graph_.type(n.outputs[0]);
    if (!y.ranked() || y.rank() < 2 || x.dtype != DType::kF32 || y.dtype != DType::kF32)
      return false;
    if (!is_conv(n)) return n.op->name == "dot" && w->rank() == 2 && n.attrs.i("transpose_a") == 0;
    const bool bias_known =
        n.inputs.size() < 3 || n.inputs[2] == ir::kAbsent || constant(n.inputs[2]);
    return bias_known && n.attrs.i("groups", 1) == 1;
  }

  Member member_of(size_t n) const {
    const ir::Node& product = node(n);
    Member m{n, {}, constant(product.inputs[1])->dim(weight_axis(product)), false};
    ir::ValueId last = product.outputs[0];
    const auto& shape = graph_.type(last).shape;
    for (;;) {
      const std::vector<size_t>& readers = readers_[at(last)];
      if (readers.size() != 1 || readers[0] == kNone) break;
      const ir::Node& next = node(readers[0]);
      if (!op::elementwise(*next.op) || graph_.type(next.outputs[0]).shape != shape) break;
      m.chain.push_back(readers[0]);
      last = next.outputs[0];
    }
    for (size_t reader : readers_[at(last)])
      m.copied = m.copied || reader == kNone || node(reader).op->name == "concat";
    return m;
  }

  // Products of a value that differ in the numbers and columns of their weights alone.
  std::vector<Members> bundles() const {
    std::vector<Members> list;
    std::vector<size_t> firsts;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!mergeable(node(n))) continue;
      const auto place = static_cast<size_t>(
          std::find_if(firsts.begin(), firsts.end(),
                       [&](size_t first) { return alike(node(first), node(n)); }) -
          firsts.begin());
      if (place == firsts.size()) {
        firsts.push_back(n);
        list.emplace_back();
      }
      list[place].push_back(member_of(n));
    }
    std::erase_if(list, [](const Members& bundle) { return bundle.size() < 2; });
    return list;
  }

  bool alike(const ir::Node& a, const ir::Node& b) const {
    if (a.op != b.op || a.inputs[0] != b.inputs[0] || !same_attrs(a.attrs, b.attrs)) return false;
    op::Dims x = constant(a.inputs[1])->dims(), y = constant(b.inputs[1])->dims();
    const auto axis = static_cast<size_t>(weight_axis(a));
    x[axis] = y[axis];
    return x == y;
  }

  // All of them, or those whose results nobody needs by themselves: what saves more.
  Members worth_merging(const Members& bundle) {
    Members best, near;
    std::copy_if(bundle.begin(), bundle.end(), std::back_inserter(near),
                 [](const Member& m) { return !m.copied; });
    std::string tried;
    int64_t gain = 0;
    for (const Members* some_of : {&bundle, static_cast<const Members*>(&near)}) {
      const Members& some = *some_of;
      if (some.size() < 2 || (some_of == &near && near.size() == bundle.size())) continue;
      const auto apart = cost(some, false), together = cost(some, true);
      if (!apart || !together) continue;
      tried = fmt::format("{} products: {} ns together, {} ns apart", some.size(), *together / 1000,
                          *apart / 1000);
      if (*apart - *together <= std::max(gain, *apart / kLeastPart)) continue;
      gain = *apart - *together;
      best = some;
    }
    Event e{"merge", {}, std::move(tried)};
    for (const Member& m : best.empty() ? bundle : best)
      e.origin.insert(e.origin.end(), node(m.product).origin.begin(), node(m.product).origin.end());
    if (!e.text.empty()) (best.empty() ? report_.missed : report_.fired).push_back(std::move(e));
    return best;
  }

  // ---- what the chains have in common

  // The numbers of a step's constant operand, one for each column; nothing if it varies otherwise.
  std::optional<std::vector<double>> by_column(const Member& m, size_t k) const {
    const int rank = graph_.type(result(m, k)).rank();
    for (ir::ValueId id : node(m.chain[k]).inputs)
      if (const op::Tensor* c = constant(id); c && c->dtype() == DType::kF32)
        return along_axis(*c, rank, result_axis(node(m.product), rank), m.columns);
    return std::nullopt;
  }

  bool same_step(const Member& a, const Member& b, size_t k) const {
    const ir::Node &x = node(a.chain[k]), &y = node(b.chain[k]);
    if (x.op != y.op || !same_attrs(x.attrs, y.attrs) || x.inputs.size() != y.inputs.size())
      return false;
    if (x.inputs.size() != 2) return x.inputs.size() == 1;
    return (x.inputs[0] == result(a, k)) == (y.inputs[0] == result(b, k)) && by_column(a, k) &&
           by_column(b, k);
  }

  size_t common_steps(const Members& members) const {
    for (size_t k = 0;; ++k)
      for (const Member& m : members)
        if (k >= m.chain.size() || k >= members[0].chain.size() || !same_step(members[0], m, k))
          return k;
  }

  // ---- what it costs: a graph of the members alone

  std::optional<int64_t> cost(const Members& members, bool together) const {
    ir::Graph g("members");
    g.symbols = graph_.symbols;
    ir::Builder b(g);
    std::map<ir::ValueId, ir::ValueId> now;
    auto here = [&](const std::vector<ir::ValueId>& ids) {
      std::vector<ir::ValueId> list;
      for (ir::ValueId id : ids) {
        if (id == ir::kAbsent) {
          list.push_back(id);
          continue;
        }
        const auto [found, fresh] = now.try_emplace(id, ir::kAbsent);
        if (fresh)
          found->second =
              constant(id) ? g.add_constant(*constant(id)) : g.add_input("", graph_.type(id));
        list.push_back(found->second);
      }
      return list;
    };
    const size_t steps = together ? common_steps(members) : 0;
    if (together) {
      const ir::ValueId x = here({node(members[0].product).inputs[0]})[0];
      const std::vector<ir::ValueId> parts = emit(b, x, members, steps, false);
      for (size_t m = 0; m < parts.size(); ++m) now[result(members[m], steps)] = parts[m];
    }
    std::set<size_t> rest;  // in their order
    for (const Member& m : members) {
      if (!together) rest.insert(m.product);
      rest.insert(m.chain.begin() + static_cast<int64_t>(steps), m.chain.end());
    }
    for (size_t n : rest)
      now[node(n).outputs[0]] = b.op(node(n).op->name, here(node(n).inputs), node(n).attrs);
    std::vector<bool> copied;
    for (const Member& m : members) {
      const ir::ValueId id = now[result(m, m.chain.size())];
      if (std::find(g.outputs.begin(), g.outputs.end(), id) != g.outputs.end()) continue;
      g.outputs.push_back(id);
      g.output_names.emplace_back();
      copied.push_back(m.copied);
    }
    if (!b.ok()) return std::nullopt;
    // Joined weights are an input here: they are large.
    const auto weighted = [](op::Problem p) {
      if (p.op->name == "conv" || p.op->name == "dot") p.in[1].constant = true;
      return p;
    };
    fuse(g, bindings_, [&](const op::Problem& p) { return accepts_(weighted(p)); });
    int64_t sum = 0;
    for (const ir::Node& n : g.nodes) {
      // A slice is a view, unless its result is needed by itself.
      const auto left = std::find(g.outputs.begin(), g.outputs.end(), n.outputs[0]);
      if (n.op->name == "slice" &&
          (left == g.outputs.end() || !copied[static_cast<size_t>(left - g.outputs.begin())]))
        continue;
      const auto problem = problem_of(g, n, bindings_);
      const auto price = problem ? price_(weighted(*problem)) : std::nullopt;
      if (!price) return std::nullopt;
      sum += price->value;
    }
    return sum;
  }

  // ---- the product of all

  static ir::ValueId add_constant(ir::Builder& b, Result<op::Tensor> t) {
    if (t) return b.constant(*std::move(t));
    b.fail(std::move(t).error());
    return ir::kAbsent;
  }

  static op::Type type_of(const op::Dims& dims) {
    return op::Type::tensor(DType::kF32, op::Shape(dims.begin(), dims.end()));
  }

  // The part of each member, behind `steps`. Without `numbers` the weights are an input.
  std::vector<ir::ValueId> emit(ir::Builder& b, ir::ValueId x, const Members& members, size_t steps,
                                bool numbers) const {
    const ir::Node product = node(members[0].product);  // nodes move while others are added
    const int axis = weight_axis(product);
    std::vector<op::Tensor> weights, biases;
    int64_t columns = 0;
    bool biased = false;
    for (const Member& m : members) {
      weights.push_back(*constant(node(m.product).inputs[1]));
      auto zeros = op::Tensor::make(DType::kF32, {m.columns});
      if (!zeros) return b.fail(zeros.error()), std::vector<ir::ValueId>();
      biases.push_back(bias(m) ? *bias(m) : *std::move(zeros));
      biased = biased || bias(m);
      columns += m.columns;
    }
    op::Dims dims = weights[0].dims();
    dims[static_cast<size_t>(axis)] = columns;
    std::vector<std::vector<double>> operands(steps);
    for (size_t k = 0; k < steps; ++k)
      for (const Member& m : members)
        if (node(m.chain[k]).inputs.size() == 2) {
          const auto part = by_column(m, k);
          operands[k].insert(operands[k].end(), part->begin(), part->end());
        }
    std::vector<ir::Node> common;
    std::vector<bool> swapped;
    for (size_t k = 0; k < steps; ++k) {
      common.push_back(node(members[0].chain[k]));
      swapped.push_back(common.back().inputs[0] != result(members[0], k));
    }

    std::vector<ir::ValueId> in{x, numbers ? add_constant(b, joined(weights, axis))
                                           : b.graph().add_input("", type_of(dims))};
    if (biased) in.push_back(add_constant(b, joined(biases, 0)));
    ir::ValueId y = b.op(product.op->name, in, product.attrs);
    const int out_axis = result_axis(product, b.rank(y));
    for (size_t k = 0; k < steps; ++k) {
      std::vector<ir::ValueId> args{y};
      if (!operands[k].empty())
        args.insert(
            args.begin() + !swapped[k],
            add_constant(b, broadcast_along(DType::kF32, operands[k], b.rank(y) - out_axis, 0)));
      y = b.op(common[k].op->name, args, common[k].attrs);
    }
    std::vector<ir::ValueId> parts;
    int64_t begin = 0;
    for (const Member& m : members) {
      parts.push_back(b.slice(y, out_axis, begin, begin + m.columns));
      begin += m.columns;
    }
    return parts;
  }

  std::vector<std::string> origin_of(const Members& members, size_t steps) const {
    std::vector<std::string> names;
    auto add = [&](const ir::Node& n) {
      for (const std::string& name : n.origin)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const Member& m : members) {
      add(node(m.product));
      for (size_t k = 0; k < steps; ++k) add(node(m.chain[k]));
    }
    return names;
  }

  // What is emitted goes where the first of a bundle stood.
  void rebuild(const std::vector<Members>& chosen) {
    const size_t count = graph_.nodes.size();
    std::vector<bool> gone(count);
    std::map<size_t, std::pair<size_t, size_t>> emitted;  // by place
    for (const Members& members : chosen) {
      const size_t steps = common_steps(members), first = graph_.nodes.size();
      const size_t values = graph_.values.size();
      ir::Builder b(graph_, origin_of(members, steps));
      const ir::ValueId x = node(members[0].product).inputs[0];
      const std::vector<ir::ValueId> parts = emit(b, x, members, steps, true);
      if (!b.ok()) {
        graph_.nodes.erase(graph_.nodes.begin() + static_cast<int64_t>(first), graph_.nodes.end());
        graph_.values.erase(graph_.values.begin() + static_cast<int64_t>(values),
                            graph_.values.end());
        continue;
      }
      size_t place = count;
      for (size_t m = 0; m < members.size(); ++m) {
        // The slice yields what the last of the nodes that go did.
        const int32_t slice = graph_.value(parts[m]).producer;
        graph_.nodes[static_cast<size_t>(slice)].outputs[0] = result(members[m], steps);
        place = std::min(place, members[m].product);
        gone[members[m].product] = true;
        for (size_t k = 0; k < steps; ++k) gone[members[m].chain[k]] = true;
      }
      emitted[place] = {first, graph_.nodes.size()};
    }
    std::vector<ir::Node> nodes;
    for (size_t n = 0; n < count; ++n) {
      if (const auto found = emitted.find(n); found != emitted.end())
        for (size_t k = found->second.first; k < found->second.second; ++k)
          nodes.push_back(std::move(graph_.nodes[k]));
      if (!gone[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
    for (ir::ValueInfo& info : graph_.values) info.producer = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      for (ir::ValueId id : graph_.nodes[n].outputs)
        if (id != ir::kAbsent) graph_.value(id).producer = static_cast<int32_t>(n);
    // What is joined is not needed apart.
    std::vector<bool> read(graph_.values.size());
    for (const ir::Node& n : graph_.nodes)
      for (ir::ValueId id : n.inputs)
        if (id != ir::kAbsent) read[at(id)] = true;
    for (ir::ValueId id : graph_.outputs) read[at(id)] = true;
    for (size_t id = 0; id < read.size(); ++id)
      if (!read[id]) graph_.values[id].constant.reset();
  }

  ir::Graph& graph_;
  const op::Bindings& bindings_;
  const Accepts& accepts_;
  const Price& price_;
  MergeReport& report_;
  std::vector<std::vector<size_t>> readers_;  // by value: nodes; kNone: an output
};

}  // namespace

MergeReport merge(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts,
                  const Price& price) {
  MergeReport report;
  for (ir::Node& n : graph.nodes)
    for (ir::Graph& body : n.bodies) {
      MergeReport inner = merge(body, bindings, accepts, price);
      for (auto [from, to] :
           {std::pair{&inner.fired, &report.fired}, {&inner.missed, &report.missed}})
        to->insert(to->end(), from->begin(), from->end());
    }
  Merger(graph, bindings, accepts, price, report).run();
  return report;
}

}  // namespace tessera::passes
