#include "tessera/passes/pbqp/pbqp.h"

#include <algorithm>
#include <limits>

#include "llvm/CodeGen/PBQP/CostAllocator.h"
#include "llvm/CodeGen/PBQP/Graph.h"
#include "llvm/CodeGen/PBQP/Math.h"
#include "llvm/CodeGen/PBQP/ReductionRules.h"
#include "llvm/CodeGen/PBQP/Solution.h"

namespace tessera::passes::pbqp {
namespace {

using llvm::PBQP::GraphBase;
using NodeId = GraphBase::NodeId;
using EdgeId = GraphBase::EdgeId;

// What a graph asks of its solver: types, and to be told of changes.
struct Listener {
  using RawVector = llvm::PBQP::Vector;
  using RawMatrix = llvm::PBQP::Matrix;
  using Vector = RawVector;
  using Matrix = RawMatrix;
  using CostAllocator = llvm::PBQP::PoolCostAllocator<Vector, Matrix>;
  struct NodeMetadata {};
  struct EdgeMetadata {};
  struct GraphMetadata {};

  void handleAddNode(NodeId) {}
  void handleSetNodeCosts(NodeId, const Vector&) {}
  void handleAddEdge(EdgeId) {}
  void handleUpdateCosts(EdgeId, const Matrix&) {}
  void handleDisconnectEdge(EdgeId, NodeId) {}
};
using Graph = llvm::PBQP::Graph<Listener>;

float cost_in(const Factor& f, size_t at) {
  const int64_t cost = f.costs[at];
  return cost >= kForbidden ? std::numeric_limits<float>::infinity() : static_cast<float>(cost);
}

void add_costs(Graph& graph, NodeId node, const Factor& f) {
  Listener::Vector costs = graph.getNodeCosts(node);
  for (unsigned i = 0; i < costs.getLength(); ++i) costs[i] += cost_in(f, i);
  graph.setNodeCosts(node, costs);
}

// Edges run from the smaller variable to the larger, as the table's rows to its columns.
void add_costs(Graph& graph, NodeId a, NodeId b, const Factor& f) {
  const unsigned rows = graph.getNodeCosts(a).getLength(), cols = graph.getNodeCosts(b).getLength();
  const EdgeId edge = graph.findEdge(a, b);
  Listener::Matrix costs =
      edge == Graph::invalidEdgeId() ? Listener::Matrix(rows, cols, 0) : graph.getEdgeCosts(edge);
  for (unsigned i = 0; i < rows; ++i)
    for (unsigned j = 0; j < cols; ++j) costs[i][j] += cost_in(f, i * cols + j);
  if (edge == Graph::invalidEdgeId())
    graph.addEdge(a, b, costs);
  else
    graph.updateEdgeCosts(edge, costs);
}

// The order in which nodes left the graph.
std::vector<NodeId> reduce(Graph& graph, std::vector<NodeId> left, bool& exact) {
  std::vector<NodeId> order;
  while (!left.empty()) {
    const auto node = std::min_element(left.begin(), left.end(), [&](NodeId a, NodeId b) {
      return graph.getNodeDegree(a) < graph.getNodeDegree(b);
    });
    const unsigned degree = graph.getNodeDegree(*node);
    if (degree == 1) llvm::PBQP::applyR1(graph, *node);
    if (degree == 2) llvm::PBQP::applyR2(graph, *node);
    if (degree > 2) graph.disconnectAllNeighborsFromNode(*node);
    exact = exact && degree <= 2;
    order.push_back(*node);
    left.erase(node);
  }
  return order;
}

}  // namespace

Answer solve(const std::vector<int>& domains, const std::vector<Factor>& factors) {
  Graph graph((Listener::GraphMetadata()));
  std::vector<NodeId> nodes;
  for (int values : domains)
    nodes.push_back(graph.addNode(Listener::Vector(static_cast<unsigned>(values), 0)));
  const auto node = [&](const Factor& f, size_t k) {
    return nodes[static_cast<size_t>(f.variables[k])];
  };
  for (const Factor& f : factors) {
    if (f.variables.size() == 1) add_costs(graph, node(f, 0), f);
    if (f.variables.size() == 2) add_costs(graph, node(f, 0), node(f, 1), f);
  }
  Answer answer;
  const llvm::PBQP::Solution solution =
      llvm::PBQP::backpropagate(graph, reduce(graph, nodes, answer.exact));
  for (NodeId n : nodes) answer.values.push_back(static_cast<int>(solution.getSelection(n)));
  return answer;
}

}  // namespace tessera::passes::pbqp
