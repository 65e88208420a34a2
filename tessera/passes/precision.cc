#include "tessera/passes/precision.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tessera::passes {
namespace {

// What is multiplied: of attention, neither mask nor lengths.
std::span<const ir::ValueId> factors(const ir::Node& node) {
  const std::span<const ir::ValueId> all(node.inputs);
  return node.op->name == "attention" ? all.first(std::min<size_t>(3, all.size())) : all;
}

bool all_f32(const ir::Graph& graph, const ir::Node& node) {
  const auto inputs = factors(node);
  return std::all_of(inputs.begin(), inputs.end(), [&](ir::ValueId id) {
    return id == ir::kAbsent || (graph.type(id).is_tensor() && graph.type(id).dtype == DType::kF32);
  });
}

// Whether no finite weight becomes infinite.
bool holds(DType type, const ir::Graph& graph, const ir::Node& node) {
  constexpr float kLargestF16 = 65504;
  if (type != DType::kF16 || node.inputs[1] == ir::kAbsent) return true;
  const auto& constant = graph.value(node.inputs[1]).constant;
  if (!constant) return true;
  const std::span weights(reinterpret_cast<const float*>(constant->data()),
                          static_cast<size_t>(constant->count()));
  return std::all_of(weights.begin(), weights.end(),
                     [](float w) { return !(std::fabs(w) > kLargestF16) || std::isinf(w); });
}

}  // namespace

Result<Precision> precision_from_name(std::string_view name) {
  const bool forced = name.ends_with('!');
  const auto type = dtype_from_name(forced ? name.substr(0, name.size() - 1) : name);
  if (!type || (*type != DType::kF32 && *type != DType::kF16 && *type != DType::kBF16))
    return error(Code::kInvalidArgument,
                 "precision '{}' is none of f32, f16, bf16 (or f16!, bf16!: whatever it costs)",
                 name);
  return Precision{*type, forced};
}

int precision(ir::Graph& graph, Precision wanted) {
  if (wanted.type == DType::kF32) return 0;
  int marked = 0;
  for (ir::Node& node : graph.nodes) {
    for (ir::Graph& body : node.bodies) marked += precision(body, wanted);
    const bool multiplies =
        node.op->name == "dot" || node.op->name == "conv" || node.op->name == "attention";
    if (!multiplies || !all_f32(graph, node) || !holds(wanted.type, graph, node)) continue;
    node.attrs.set("compute", wanted.type);
    if (wanted.forced) node.attrs.set("compute_forced", int64_t{1});
    ++marked;
  }
  return marked;
}

}  // namespace tessera::passes
