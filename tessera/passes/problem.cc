#include "tessera/passes/problem.h"

#include <algorithm>

namespace tessera::passes {
namespace {

// Evaluates sizes; what is not bound is 1.
class Sizes {
 public:
  explicit Sizes(const op::Bindings& bindings) : bindings_(bindings) {}

  Result<int64_t> operator()(const op::Expr& e) {
    if (auto constant = e.constant()) return *constant;
    for (const std::string& s : e.symbols()) bindings_.emplace(s, 1);
    return e.eval(bindings_);
  }

 private:
  op::Bindings bindings_;
};

Result<op::Operand> operand(const op::Type& type, Sizes& sizes) {
  if (!type.is_tensor() || !type.ranked())
    return error(Code::kInvalidArgument, "a value is {}, need a tensor of known rank", type.str());
  op::Operand o;
  o.dtype = type.dtype;
  for (const op::Expr& e : *type.shape) {
    TRY_ASSIGN(int64_t d, sizes(e));
    o.dims.push_back(std::max<int64_t>(d, 0));
  }
  return o;
}

Result<op::Operand> operand(const ir::ValueInfo& info, Sizes& sizes) {
  TRY_ASSIGN(op::Operand o, operand(info.type, sizes));
  o.layout = info.layout;
  o.constant = info.constant.has_value();
  if (o.constant && is_int(o.dtype) && o.count() <= static_cast<int64_t>(op::kMaxContents)) {
    o.values = info.constant->to_i64s();
  } else if (info.contents) {
    op::Ints values;
    for (const op::Expr& e : *info.contents) {
      auto v = sizes(e);
      if (!v) break;
      values.push_back(*v);
    }
    if (values.size() == info.contents->size()) o.values = std::move(values);
  }
  return o;
}

Result<std::vector<op::Operand>> operands(const ir::Graph& graph,
                                          const std::vector<ir::ValueId>& ids, Sizes& sizes) {
  std::vector<op::Operand> list;
  for (ir::ValueId id : ids) {
    if (id == ir::kAbsent) {
      list.emplace_back().present = false;
      continue;
    }
    TRY_ASSIGN(op::Operand o, operand(graph.value(id), sizes));
    list.push_back(std::move(o));
  }
  return list;
}

}  // namespace

bool is_view(const op::OpDef& op) {
  return op.name == "reshape" || op.name == "identity" || op.name == "unsqueeze" ||
         op.name == "squeeze" || op.name == "flatten";
}

Group group_of(const ir::Node& node) {
  const ir::Graph& body = node.bodies[0];
  Group group;
  group.anchor = &body.nodes[0];
  std::vector<int> value_of(body.values.size(), -1);
  for (ir::ValueId id : group.anchor->inputs) {
    if (id == ir::kAbsent) {
      group.in.push_back(ir::kAbsent);
      continue;
    }
    const auto at = std::find(body.inputs.begin(), body.inputs.end(), id) - body.inputs.begin();
    value_of[static_cast<size_t>(id)] = static_cast<int>(group.in.size());
    group.in.push_back(node.inputs[static_cast<size_t>(at)]);
  }
  group.arity = group.in.size();
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    int& value = value_of[static_cast<size_t>(body.inputs[i])];
    if (value >= 0) continue;
    value = static_cast<int>(group.in.size());
    group.in.push_back(node.inputs[i]);
  }
  int next = static_cast<int>(group.in.size());
  for (const ir::Node& n : body.nodes) {
    const op::Type& type = body.type(n.outputs[0]);
    if (&n == group.anchor) {
      group.result = &type;
    } else {
      group.steps.push_back({&n, {}, &type});
      for (ir::ValueId id : n.inputs)
        group.steps.back().in.push_back(id == ir::kAbsent ? -1 : value_of[static_cast<size_t>(id)]);
    }
    value_of[static_cast<size_t>(n.outputs[0])] = next++;
  }
  for (ir::ValueId id : body.outputs) group.results.push_back(value_of[static_cast<size_t>(id)]);
  return group;
}

Result<op::Problem> problem_of(const ir::Graph& graph, const ir::Node& node,
                               const op::Bindings& bindings) {
  Sizes sizes(bindings);
  op::Problem p{node.op, node.attrs, {}, {}};
  TRY_ASSIGN(p.out, operands(graph, node.outputs, sizes));
  if (node.op->name != "fused") {
    TRY_ASSIGN(p.in, operands(graph, node.inputs, sizes));
    return p;
  }
  const Group group = group_of(node);
  p.op = group.anchor->op;
  p.attrs = group.anchor->attrs;
  p.arity = group.arity;
  p.results = group.results;
  TRY_ASSIGN(p.in, operands(graph, group.in, sizes));
  TRY_ASSIGN(p.result, operand(*group.result, sizes));
  for (const Group::Step& step : group.steps) {
    TRY_ASSIGN(op::Operand out, operand(*step.type, sizes));
    p.steps.push_back({step.node->op, step.node->attrs, step.in, std::move(out)});
  }
  return p;
}

}  // namespace tessera::passes
