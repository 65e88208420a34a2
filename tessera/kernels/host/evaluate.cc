#include "tessera/kernels/host/evaluate.h"

#include "tessera/ir/reference/interpreter.h"

namespace tessera::kernels::host {

Result<std::vector<op::Value>> evaluate(const op::OpDef& op, const op::Attrs& attrs,
                                        std::span<const op::Value* const> inputs, int outputs,
                                        const Options& options) {
  ir::Node node;
  node.op = &op;
  node.attrs = attrs;
  for (size_t i = 0; i < inputs.size(); ++i)
    node.inputs.push_back(inputs[i] ? static_cast<ir::ValueId>(i) : ir::kAbsent);
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(i);
  ir::reference::Options reference;
  reference.memory_limit = options.memory_limit;
  reference.deadline = options.deadline;
  return ir::reference::evaluate(node, inputs, reference);
}

}  // namespace tessera::kernels::host
