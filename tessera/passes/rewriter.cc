#include "tessera/passes/rewriter.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace tessera::passes {
namespace {

using Wanted = std::vector<bool>;

// The run-time symbols inside of a graph's types.
void collect_symbols(const ir::Graph& graph, std::set<std::string>& names);

void collect_symbols(const std::vector<op::Expr>& list, std::set<std::string>& names) {
  for (const op::Expr& e : list)
    if (!e.is_constant())
      for (std::string& s : e.symbols())
        if (s.starts_with('_')) names.insert(std::move(s));
}

void collect_symbols(const ir::ValueInfo& info, std::set<std::string>& names) {
  if (info.type.ranked()) collect_symbols(*info.type.shape, names);
  if (info.contents) collect_symbols(*info.contents, names);
}

void collect_symbols(const ir::Graph& graph, std::set<std::string>& names) {
  for (const ir::ValueInfo& info : graph.values) collect_symbols(info, names);
  for (const ir::Node& node : graph.nodes)
    for (const ir::Graph& body : node.bodies) collect_symbols(body, names);
}

// Where the value of each run-time symbol comes from: the first node that has it as a size.
std::unordered_map<std::string, size_t> sources_of(const ir::Graph& graph) {
  std::unordered_map<std::string, size_t> sources;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ir::ValueId id : graph.nodes[n].outputs) {
      if (id == ir::kAbsent || !graph.type(id).ranked()) continue;
      for (const op::Expr& d : *graph.type(id).shape)
        if (auto name = d.as_symbol(); name && name->starts_with('_')) sources.emplace(*name, n);
    }
  return sources;
}

}  // namespace

std::vector<bool> needed_nodes(const ir::Graph& graph) {
  const auto sources = sources_of(graph);
  std::vector<bool> wanted(graph.values.size()), needed(graph.nodes.size());
  auto want_symbols = [&](const std::set<std::string>& names) {
    for (const std::string& s : names)
      if (auto found = sources.find(s); found != sources.end()) needed[found->second] = true;
  };
  auto want = [&](ir::ValueId id) {
    if (id == ir::kAbsent) return;
    wanted[static_cast<size_t>(id)] = true;
    if (sources.empty()) return;
    std::set<std::string> names;
    collect_symbols(graph.value(id), names);
    want_symbols(names);
  };
  for (ir::ValueId id : graph.outputs) want(id);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    for (ir::ValueId id : node.outputs)
      needed[n] = needed[n] || (id != ir::kAbsent && wanted[static_cast<size_t>(id)]);
    if (!needed[n]) continue;
    for (ir::ValueId id : node.outputs) want(id);
    for (ir::ValueId id : node.inputs) want(id);
    if (sources.empty()) continue;
    std::set<std::string> names;
    for (const ir::Graph& body : node.bodies) collect_symbols(body, names);
    want_symbols(names);
  }
  return needed;
}

std::vector<std::string> merged_origin(const ir::Node& node,
                                       std::span<const ir::Node* const> others) {
  std::vector<std::string> names;
  auto add = [&](const ir::Node& from) {
    for (const std::string& name : from.origin)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const ir::Node* other : others)
    if (other) add(*other);
  add(node);
  return names;
}

// ---- Site ----

Site::Site(Rewriter& rewriter, const ir::Node& current)
    : node(current), rewriter_(rewriter), first_value_(rewriter.graph_.values.size()) {}

const ir::Graph& Site::graph() const { return rewriter_.graph_; }

const ir::Node* Site::producer(ir::ValueId id) const {
  if (id == ir::kAbsent) return nullptr;
  const int32_t at = value(id).producer;
  return at < 0 ? nullptr : &graph().nodes[static_cast<size_t>(at)];
}

const ir::Node* Site::producer(ir::ValueId id, std::string_view op) const {
  const ir::Node* made = producer(id);
  return made && made->op->name == op ? made : nullptr;
}

int Site::uses(ir::ValueId id) const {
  return static_cast<size_t>(id) < rewriter_.uses_.size() ? rewriter_.uses_[static_cast<size_t>(id)]
                                                          : 0;
}

const op::Tensor* Site::constant(ir::ValueId id) const {
  return id != ir::kAbsent && value(id).constant ? &*value(id).constant : nullptr;
}

std::optional<op::Ints> Site::ints(ir::ValueId id) const {
  if (id == ir::kAbsent) return std::nullopt;
  const ir::ValueInfo& info = value(id);
  if (info.constant && is_int(info.constant->dtype())) return info.constant->to_i64s();
  if (!info.contents) return std::nullopt;
  op::Ints result;
  for (const op::Expr& e : *info.contents) {
    if (!e.is_constant()) return std::nullopt;
    result.push_back(*e.constant());
  }
  return result;
}

ir::Builder& Site::build(std::span<const ir::Node* const> others) {
  builder_.emplace(rewriter_.graph_, merged_origin(node, others));
  return *builder_;
}

// Sizes that are known only at run time may be told in other words.
bool Site::fits(ir::ValueId from, ir::ValueId to) const {
  const op::Type &a = type(from), &b = type(to);
  if (a == b) return true;
  const bool emitted = static_cast<size_t>(to) >= first_value_ && !constant(to);
  if (!emitted || !a.ranked() || !b.ranked() || a.dtype != b.dtype || a.rank() != b.rank())
    return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.dim(i).is_constant() && b.dim(i).is_constant() && !(a.dim(i) == b.dim(i))) return false;
  return true;
}

bool Site::replace(std::span<const ir::ValueId> values, std::string text) {
  for (ir::ValueId id : node.outputs)
    if (id != ir::kAbsent && type(id).is_tensor() && !type(id).ranked()) return false;
  return rename(values, std::move(text));
}

bool Site::rename(std::span<const ir::ValueId> values, std::string text) {
  if (builder_ && !builder_->ok()) return false;
  if (values.size() != node.outputs.size()) return false;
  for (size_t i = 0; i < values.size(); ++i)
    if (node.outputs[i] != ir::kAbsent &&
        (values[i] == ir::kAbsent ? uses(node.outputs[i]) > 0 : !fits(node.outputs[i], values[i])))
      return false;
  ir::Graph& g = rewriter_.graph_;
  rewriter_.uses_.resize(g.values.size());
  rewriter_.forward_.resize(g.values.size(), ir::kAbsent);
  for (size_t i = 0; i < values.size(); ++i) {
    if (node.outputs[i] == ir::kAbsent || values[i] == ir::kAbsent) continue;
    forward(node.outputs[i], values[i], uses(node.outputs[i]));
  }
  // Its own use ends with this node.
  for (const auto& [value, id] : stand_ins_) {
    const int own = static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), value));
    const int others = uses(value) - own;
    forward(value, id, others);
    for (int use = others; use > 0; --use) rewriter_.release(value);
  }
  rewriter_.fired_.push_back(
      {rewriter_.pass_, builder_ ? builder_->origin() : node.origin, std::move(text)});
  return true;
}

void Site::forward(ir::ValueId from, ir::ValueId to, int uses) {
  ir::ValueInfo &old = rewriter_.graph_.value(from), &fresh = rewriter_.graph_.value(to);
  fresh.type = old.type;
  if (!fresh.contents) fresh.contents = old.contents;
  if (fresh.name.empty()) fresh.name = std::move(old.name);
  old.name.clear();
  rewriter_.forward_[static_cast<size_t>(from)] = to;
  for (; uses > 0; --uses) rewriter_.acquire(to);
}

bool Site::stand_in(ir::ValueId value, ir::ValueId id) {
  if ((builder_ && !builder_->ok()) || !fits(value, id)) return false;
  stand_ins_.emplace_back(value, id);
  return true;
}

bool Site::miss(std::string reason, std::span<const ir::Node* const> others) {
  rewriter_.missed_.push_back({rewriter_.pass_, merged_origin(node, others), std::move(reason)});
  return false;
}

// ---- Rewriter ----

ir::ValueId Rewriter::current(ir::ValueId id) const {
  if (id == ir::kAbsent || static_cast<size_t>(id) >= forward_.size()) return id;
  const ir::ValueId to = forward_[static_cast<size_t>(id)];
  return to == ir::kAbsent ? id : to;
}

void Rewriter::count_uses(const std::vector<ir::Node>& nodes, const std::vector<bool>& needed) {
  uses_.assign(graph_.values.size(), 0);
  for (size_t n = 0; n < nodes.size(); ++n)
    if (needed[n])
      for (ir::ValueId id : nodes[n].inputs)
        if (id != ir::kAbsent) ++uses_[static_cast<size_t>(id)];
  for (ir::ValueId id : graph_.outputs) ++uses_[static_cast<size_t>(id)];
}

bool Rewriter::unused(const ir::Node& node) const {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) {
    return id == ir::kAbsent || uses_[static_cast<size_t>(id)] == 0;
  });
}

// One reader more. What is read again after all needs its inputs again.
void Rewriter::acquire(ir::ValueId id) {
  if (id == ir::kAbsent) return;
  const int32_t at = graph_.value(id).producer;
  const bool revived = at >= 0 && unused(graph_.nodes[static_cast<size_t>(at)]);
  ++uses_[static_cast<size_t>(id)];
  if (revived)
    for (ir::ValueId in : graph_.nodes[static_cast<size_t>(at)].inputs) acquire(in);
}

// One reader less. A node that nobody reads reads nothing.
void Rewriter::release(ir::ValueId id) {
  if (id == ir::kAbsent || --uses_[static_cast<size_t>(id)] > 0) return;
  const int32_t at = graph_.value(id).producer;
  if (at < 0 || !unused(graph_.nodes[static_cast<size_t>(at)])) return;
  for (ir::ValueId in : graph_.nodes[static_cast<size_t>(at)].inputs) release(in);
}

void Rewriter::keep(ir::Node node) {
  for (ir::ValueId id : node.outputs)
    if (id != ir::kAbsent) graph_.value(id).producer = static_cast<int32_t>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
}

void Rewriter::undo(size_t nodes, size_t values) {
  graph_.nodes.erase(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(nodes), graph_.nodes.end());
  graph_.values.erase(graph_.values.begin() + static_cast<std::ptrdiff_t>(values),
                      graph_.values.end());
}

bool Rewriter::defer(std::span<const ir::ValueId> values, ir::ValueId until) {
  const auto at = static_cast<size_t>(graph_.value(until).producer);
  std::vector<bool> follows(graph_.values.size()), moves(at);
  auto any = [&](const ir::Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId id) {
      return id != ir::kAbsent && follows[static_cast<size_t>(id)];
    });
  };
  for (size_t n = 0; n < at; ++n) {
    const ir::Node& node = graph_.nodes[n];
    const bool reads = std::any_of(values.begin(), values.end(), [&](ir::ValueId id) {
      return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
    });
    if (!reads && !any(node)) continue;
    moves[n] = true;
    for (ir::ValueId id : node.outputs) {
      if (id == ir::kAbsent) continue;
      follows[static_cast<size_t>(id)] = true;
      if (!graph_.type(id).ranked()) return false;
      for (const op::Expr& d : *graph_.type(id).shape)
        if (const auto name = d.as_symbol(); name && name->starts_with('_')) return false;
    }
  }
  if (any(graph_.nodes[at])) return false;
  std::vector<ir::Node> moved;
  auto to = graph_.nodes.begin();
  for (size_t n = 0; n <= at; ++n) {
    if (n < at && moves[n])
      moved.push_back(std::move(graph_.nodes[n]));
    else if (ir::Node& node = graph_.nodes[n]; &*to++ != &node)
      *(to - 1) = std::move(node);
  }
  std::move(moved.begin(), moved.end(), to);
  for (size_t n = 0; n <= at; ++n)
    for (ir::ValueId id : graph_.nodes[n].outputs)
      if (id != ir::kAbsent) graph_.value(id).producer = static_cast<int32_t>(n);
  return true;
}

void Rewriter::walk(const Rule& rule) {
  const std::vector<bool> needed = needed_nodes(graph_);
  count_uses(graph_.nodes, needed);
  forward_.assign(graph_.values.size(), ir::kAbsent);
  for (ir::ValueInfo& info : graph_.values) info.producer = -1;
  std::vector<ir::Node> before = std::move(graph_.nodes);
  graph_.nodes.clear();
  graph_.nodes.reserve(before.size() + kRoom);
  for (size_t n = 0; n < before.size(); ++n) {
    if (!needed[n]) continue;
    for (ir::ValueId& id : before[n].inputs) id = current(id);
    if (graph_.nodes.capacity() < graph_.nodes.size() + kRoom)
      graph_.nodes.reserve(2 * graph_.nodes.size() + kRoom);
    if (graph_.values.capacity() < graph_.values.size() + kRoom)
      graph_.values.reserve(2 * graph_.values.size() + kRoom);
    const size_t nodes = graph_.nodes.size(), values = graph_.values.size();
    Site site(*this, before[n]);
    if (rule(site)) {
      for (ir::ValueId id : before[n].inputs) release(id);
    } else {
      undo(nodes, values);
      keep(std::move(before[n]));
    }
  }
  for (ir::ValueId& id : graph_.outputs) id = current(id);
}

}  // namespace tessera::passes
