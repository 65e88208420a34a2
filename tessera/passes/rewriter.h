// How passes change a graph. A walk shows a rule the nodes in order; the rule may put other nodes
// in the place of the one it sees. What nobody needs is dropped on the way.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/ir/graph.h"

namespace tessera::passes {

// What a pass did, or why it did not.
struct Event {
  std::string_view pass;
  std::vector<std::string> origin;  // of all nodes that took part
  std::string text;                 // "mul + conv"; of what did not happen, the reason
};

class Rewriter;

// A node and what was emitted before it. Pointers to nodes and references to values hold while the
// rule runs.
class Site {
 public:
  const ir::Node& node;

  const ir::Graph& graph() const;
  const ir::ValueInfo& value(ir::ValueId id) const { return graph().value(id); }
  const op::Type& type(ir::ValueId id) const { return graph().type(id); }
  bool is(std::string_view op) const { return node.op->name == op; }
  // kAbsent where the node has no such input.
  ir::ValueId in(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : ir::kAbsent; }
  ir::ValueId out() const { return node.outputs[0]; }
  // Null for inputs, constants and kAbsent.
  const ir::Node* producer(ir::ValueId id) const;
  // The producer, if it is of this operator; else null.
  const ir::Node* producer(ir::ValueId id, std::string_view op) const;
  // Readers of a value; being an output counts.
  int uses(ir::ValueId id) const;
  // The elements of a constant; null if it is none.
  const op::Tensor* constant(ir::ValueId id) const;
  // Elements of a small integer tensor that are all numbers.
  std::optional<op::Ints> ints(ir::ValueId id) const;

  // Emits nodes that come from this node and `others`.
  ir::Builder& build(std::span<const ir::Node* const> others = {});
  ir::Builder& build(std::initializer_list<const ir::Node*> others) {
    return build(std::span(others.begin(), others.size()));
  }
  // The node's results are these values from now on; `text` tells what happened. False, and nothing
  // has happened, where emitting failed, a type is another, or a rank is unknown. kAbsent for a
  // result that nobody reads.
  bool replace(std::span<const ir::ValueId> values, std::string text);
  bool replace(ir::ValueId id, std::string text) {
    return replace(std::span(&id, 1), std::move(text));
  }
  // As replace, where the operator itself says that these are its results, of whatever rank.
  bool rename(std::span<const ir::ValueId> values, std::string text);
  // Later readers of `value`, which is not this node's, read `id` instead, if this node is
  // replaced. False where the types differ. @pre all readers but this node come after it
  bool stand_in(ir::ValueId value, ir::ValueId id);
  // Remembers why the rule does not fire here. Always false.
  bool miss(std::string reason, std::span<const ir::Node* const> others = {});

 private:
  friend class Rewriter;
  Site(Rewriter& rewriter, const ir::Node& current);
  bool fits(ir::ValueId from, ir::ValueId to) const;
  Rewriter& rewriter_;
  size_t first_value_;  // what is emitted here comes from this index on
  std::vector<std::pair<ir::ValueId, ir::ValueId>> stand_ins_;
  void forward(ir::ValueId from, ir::ValueId to, int uses);
  std::optional<ir::Builder> builder_;
};

// True if it fired: it has called replace() with success.
using Rule = std::function<bool(Site&)>;

// Which nodes are needed: those that outputs follow from, and those that say what a symbol of a
// needed value is.
std::vector<bool> needed_nodes(const ir::Graph& graph);

class Rewriter {
 public:
  Rewriter(ir::Graph& graph, std::string_view pass, std::vector<Event>& fired,
           std::vector<Event>& missed)
      : graph_(graph), pass_(pass), fired_(fired), missed_(missed) {}

  const ir::Graph& graph() const { return graph_; }
  // Shows the rule every needed node of the graph (not of bodies). A rule emits at most kRoom nodes
  // and values at a site.
  void walk(const Rule& rule);

  // Moves whatever reads one of `values`, directly or not, behind the node that yields `until`,
  // which itself stays. False, and nothing has happened, where that node needs what would be moved,
  // or that yields run-time sizes. Not during a walk.
  bool defer(std::span<const ir::ValueId> values, ir::ValueId until);

  static constexpr size_t kRoom = 256;

 private:
  friend class Site;
  void count_uses(const std::vector<ir::Node>& nodes, const std::vector<bool>& needed);
  void acquire(ir::ValueId id);
  void release(ir::ValueId id);
  bool unused(const ir::Node& node) const;
  void keep(ir::Node node);
  void undo(size_t nodes, size_t values);
  ir::ValueId current(ir::ValueId id) const;

  ir::Graph& graph_;
  std::string_view pass_;
  std::vector<Event>& fired_;
  std::vector<Event>& missed_;
  std::vector<int> uses_;             // by value
  std::vector<ir::ValueId> forward_;  // by value: what it is now; kAbsent: itself
};

// The names of all, each once, in order of appearance.
std::vector<std::string> merged_origin(const ir::Node& node,
                                       std::span<const ir::Node* const> others);

}  // namespace tessera::passes
