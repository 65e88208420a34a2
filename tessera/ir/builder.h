// Short notation for building graphs in decompositions and importers. The first error sticks: later
// calls are no-ops that yield kAbsent, and status() tells it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::ir {

class Builder {
 public:
  explicit Builder(Graph& graph, std::vector<std::string> origin = {})
      : graph_(graph), origin_(std::move(origin)) {}

  Graph& graph() { return graph_; }
  const std::vector<std::string>& origin() const { return origin_; }
  Status status() const { return error_ ? Status(tl::unexpected(*error_)) : Status(); }
  bool ok() const { return !error_; }
  void fail(Error e) {
    if (!error_) error_ = std::move(e);
  }
  // The value, or kAbsent after remembering the error.
  ValueId take(Result<ValueId> r) {
    if (r) return *r;
    fail(r.error());
    return kAbsent;
  }

  const op::Type& type(ValueId id) const;  // kAbsent after an error: an f32 scalar
  DType dtype(ValueId id) const { return type(id).dtype; }
  int rank(ValueId id) const { return type(id).ranked() ? type(id).rank() : -1; }

  // One node with one output, or with several.
  ValueId op(std::string_view name, std::vector<ValueId> inputs, op::Attrs attrs = {});
  std::vector<ValueId> ops(std::string_view name, std::vector<ValueId> inputs, op::Attrs attrs,
                           int outputs, std::vector<Graph> bodies = {});

  ValueId constant(op::Tensor t) { return graph_.add_constant(std::move(t)); }
  ValueId ints(const std::vector<int64_t>& values);  // i64[n]
  ValueId scalar(DType dtype, double value);         // rank 0
  ValueId scalar_like(ValueId id, double value) { return scalar(dtype(id), value); }

  ValueId add(ValueId a, ValueId b) { return op("add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op("sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op("mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op("div", {a, b}); }
  ValueId max(ValueId a, ValueId b) { return op("max", {a, b}); }
  ValueId min(ValueId a, ValueId b) { return op("min", {a, b}); }
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return op("select", {condition, a, b});
  }
  ValueId unary(std::string_view name, ValueId a) { return op(name, {a}); }
  // To another dtype; the value itself when it has it already.
  ValueId convert(ValueId a, DType to);
  ValueId reshape(ValueId a, const std::vector<int64_t>& shape) {
    return op("reshape", {a, ints(shape)});
  }
  ValueId transpose(ValueId a, std::vector<int64_t> perm) {
    return op("transpose", {a}, {{"perm", std::move(perm)}});
  }
  // reduce over axes (empty: all)
  ValueId reduce(std::string_view kind, ValueId a, const std::vector<int64_t>& axes, bool keepdims);
  ValueId unsqueeze(ValueId a, const std::vector<int64_t>& axes) {
    return op("unsqueeze", {a, ints(axes)});
  }
  ValueId squeeze(ValueId a, const std::vector<int64_t>& axes) {
    return op("squeeze", {a, ints(axes)});
  }
  ValueId concat(std::vector<ValueId> parts, int64_t axis) {
    return op("concat", std::move(parts), {{"axis", axis}});
  }
  // a[..., start:end, ...] on one axis
  ValueId slice(ValueId a, int64_t axis, int64_t start, int64_t end) {
    return op("slice", {a, ints({start}), ints({end}), ints({axis})});
  }
  ValueId gather(ValueId a, ValueId indices, int64_t axis) {
    return op("gather", {a, indices}, {{"axis", axis}});
  }
  ValueId broadcast_to(ValueId a, ValueId shape) { return op("broadcast_to", {a, shape}); }
  // The size of an axis, i64[1]: a constant where it is a number. Join sizes with concat(..., 0) to
  // a shape.
  ValueId dim(ValueId a, int64_t axis);
  // The shape, i64[rank]: a constant where all sizes are numbers.
  ValueId shape_of(ValueId a);

 private:
  Graph& graph_;
  std::vector<std::string> origin_;
  std::optional<Error> error_;
};

// A composite's body: builds the outputs from the inputs (kAbsent where left out).
using DecomposeFn = std::vector<ValueId> (*)(Builder& b, const op::Attrs& attrs,
                                             const std::vector<ValueId>& inputs, int outputs);

struct Composite {
  std::string_view op;
  DecomposeFn decompose;
};

// Families of composites; composites.cc lists them.
std::span<const Composite> activation_composites();
std::span<const Composite> attention_composites();
std::span<const Composite> rnn_composites();
std::span<const Composite> norm_composites();
std::span<const Composite> move_composites();
std::span<const Composite> quantize_composites();
std::span<const Composite> conv_composites();
std::span<const Composite> pool_composites();
std::span<const Composite> batch_norm_composites();
std::span<const Composite> image_composites();
const Composite* find_composite(std::string_view op);

// A graph with the composite's inputs as inputs and its decomposition inside.
Result<Graph> decompose(const Node& node, const std::vector<op::Type>& input_types);

}  // namespace tessera::ir
