// For tests: one operator on given tensors.
#pragma once

#include <initializer_list>

#include "tessera/ir/builder.h"
#include "tessera/ir/reference/interpreter.h"

namespace tessera::ir::reference {

inline Tensor tensor(DType dtype, Dims dims, std::vector<double> values) {
  Tensor t = *Tensor::make(dtype, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i) t.set_f64(static_cast<int64_t>(i), values[i]);
  return t;
}
inline Tensor f32(Dims dims, std::vector<double> values) {
  return tensor(DType::kF32, std::move(dims), std::move(values));
}
inline Tensor i64(Dims dims, std::vector<double> values) {
  return tensor(DType::kI64, std::move(dims), std::move(values));
}

// Values from a fixed sequence in [low, high).
inline Tensor random(DType dtype, Dims dims, uint64_t seed, double low = -1, double high = 1) {
  Tensor t = *Tensor::make(dtype, std::move(dims));
  uint64_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < t.count(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    t.set_f64(i,
              low + (high - low) * static_cast<double>(state >> 40) / static_cast<double>(1 << 24));
  }
  return t;
}

inline std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.count(); ++i) values.push_back(t.f64(i));
  return values;
}

// The operator's outputs; absent inputs are null. `decomposed`: by its decomposition even if it has
// a row.
inline Result<std::vector<Value>> run_op(std::string_view name,
                                         const std::vector<std::optional<Tensor>>& inputs,
                                         op::Attrs attrs = {}, int outputs = 1,
                                         bool decomposed = false) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Value> values;
  for (const auto& input : inputs) {
    ids.push_back(input ? graph.add_input("x" + std::to_string(ids.size()), input->type())
                        : kAbsent);
    if (input) values.emplace_back(*input);
  }
  Builder builder(graph);
  graph.outputs = builder.ops(name, ids, std::move(attrs), outputs);
  TRY(builder.status());
  graph.output_names.resize(graph.outputs.size());
  if (!decomposed) return run(graph, values, {});
  std::vector<op::Type> types;
  for (const auto& input : inputs) types.push_back(input ? input->type() : op::Type());
  TRY_ASSIGN(Graph body, decompose(graph.nodes[0], types));
  return run(body, values, {});
}

}  // namespace tessera::ir::reference
