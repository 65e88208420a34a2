#include "tessera/cli/problem_model.h"

#include "tessera/cost/cost.h"
#include "tessera/ir/graph.h"

namespace tessera::cli {
namespace {

op::Type type_of(const op::Operand& o) {
  return op::Type::tensor(o.dtype, op::Shape(o.dims.begin(), o.dims.end()));
}

Result<ir::Graph> graph_of(const op::Problem& problem) {
  ir::Graph graph(std::string(problem.op->name));
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < problem.in.size(); ++i) {
    const op::Operand& o = problem.in[i];
    inputs.push_back(o.values ? graph.add_constant(op::Tensor::of_i64(*o.values))
                              : graph.add_input(fmt::format("in{}", i), type_of(o)));
  }
  TRY_ASSIGN(graph.outputs, graph.add(*problem.op, std::move(inputs), problem.attrs,
                                      static_cast<int>(problem.out.size())));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    graph.output_names.push_back(fmt::format("out{}", i));
  return graph;
}

}  // namespace

Result<std::unique_ptr<session::Model>> model_of_problem(const std::string& text,
                                                         const ModelOptions& options) {
  TRY_ASSIGN(const op::Problem problem, cost::parse_problem(text));
  if (problem.op->name == "relayout")
    return error(Code::kInvalidArgument,
                 "'{}' changes a layout: bench --convert TYPE --from LAYOUT --to LAYOUT times that",
                 text.substr(0, 80));
  TRY_ASSIGN(ir::Graph graph, graph_of(problem));
  TRY_ASSIGN(const session::LoadOptions load, load_options(options));
  return session::Model::from_graph(std::move(graph), load);
}

}  // namespace tessera::cli
