// The graph: values and nodes in topological order. Body graphs (of if, loop, scan, fused groups)
// capture nothing: what they use from outside is an input of the node and of the body.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/op/def.h"

namespace tessera::ir {

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;  // an optional input left out, an output nobody wants

struct ValueInfo {
  std::string name;  // as in the source model; unique in the graph or empty
  op::Type type;
  std::optional<op::Contents>
      contents;  // elements of a small integer tensor, where they follow from sizes
  std::optional<op::Tensor> constant;  // a handle: the bytes stay in the weight store
  int32_t producer = -1;               // index of the node; -1: an input or a constant
  std::string placement;               // place, once assigned
  std::string layout;                  // layout expression, once assigned; empty: row-major
};

class Graph;

struct Node {
  const op::OpDef* op = nullptr;
  op::Attrs attrs;
  std::vector<ValueId> inputs;   // kAbsent where an optional one is left out
  std::vector<ValueId> outputs;  // kAbsent where nobody reads one
  std::vector<Graph> bodies;
  std::vector<std::string> origin;  // names of the source nodes; passes merge them
};

// Names for sizes that are known only at run time: "_0", "_1", ... One source serves a graph and
// its bodies.
class SymbolSource {
 public:
  op::Expr fresh() { return op::Expr::symbol("_" + std::to_string(next_++)); }
  void skip_to(int64_t next) { next_ = std::max(next_, next); }

 private:
  int64_t next_ = 0;
};

class Graph {
 public:
  explicit Graph(std::string graph_name = "main") : name(std::move(graph_name)) {}

  std::string name;
  std::vector<ValueInfo> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;  // as many as outputs (one value may be several outputs)
  std::shared_ptr<SymbolSource> symbols = std::make_shared<SymbolSource>();

  const ValueInfo& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueInfo& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const op::Type& type(ValueId id) const { return value(id).type; }

  ValueId add_input(std::string name, op::Type type);
  ValueId add_constant(op::Tensor tensor, std::string name = "");

  // Appends a node after checking it against its row and inferring its output types. `outputs` is
  // how many results the node has (absent ones included). Errors name the operator and, if given,
  // the origin.
  Result<std::vector<ValueId>> add(const op::OpDef& op, std::vector<ValueId> node_inputs,
                                   op::Attrs attrs = {}, int output_count = 1,
                                   std::vector<Graph> bodies = {},
                                   std::vector<std::string> origin = {});
};

// Output types, and the contents of output 0, of a node with these inputs.
struct Inferred {
  std::vector<op::Type> types;
  std::optional<op::Contents> contents;
};
Result<Inferred> infer(const Graph& graph, const op::OpDef& op, std::span<const ValueId> inputs,
                       const op::Attrs& attrs, std::span<const Graph> bodies, int output_count);

// Counts, attribute names and kinds against the row.
Status check_signature(const op::OpDef& op, size_t inputs, int outputs, const op::Attrs& attrs,
                       size_t bodies);

// Everything a graph must satisfy: ids in range, defined before use, signatures, inferred types
// equal to the stored ones.
Status verify(const Graph& graph);

}  // namespace tessera::ir
