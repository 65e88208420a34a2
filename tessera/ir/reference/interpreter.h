// The executable meaning of every operator, in plain loops. Primitives and host operators have a
// row here; a composite without one means its decomposition.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/graph.h"

namespace tessera::ir::reference {

using op::Dims;
using op::Tensor;
using op::Value;

struct Options {
  Bytes memory_limit{INT64_MAX};  // on the sum of live values; kResourceExhausted beyond
  std::optional<std::chrono::steady_clock::time_point> deadline;  // kDeadlineExceeded beyond
  // Called with every value a node yields, in order of execution; body graphs included.
  std::function<void(const Graph&, ValueId, const Value&)> observe;
};

// What a reference function sees.
struct Call {
  const Node& node;
  std::span<const Value* const> in;  // null where an optional input is left out
  std::span<const op::Type> out;  // inferred from the inputs; sizes that depend on data are symbols
  const Options& options;

  std::string_view op() const { return node.op->name; }
  const op::Attrs& attrs() const { return node.attrs; }
  bool has(size_t i) const { return i < in.size() && in[i] != nullptr; }
  const Tensor& t(size_t i) const { return in[i]->tensor(); }  // @pre has(i), a tensor
  // A zeroed tensor of output i's type. @pre out[i].is_static()
  Result<Tensor> make(size_t i) const { return Tensor::make(out[i].dtype, out[i].dims()); }
  template <class... Args>
  tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kInvalidArgument, "{}: {}", op(),
                 fmt::format(format, std::forward<Args>(args)...));
  }
};

using Fn = Result<std::vector<Value>> (*)(const Call&);

struct Row {
  std::string_view op;
  Fn fn;
};

// Families: add rows to one, or a family here and in table.cc.
std::span<const Row> elementwise_rows();
std::span<const Row> shape_rows();
std::span<const Row> move_rows();
std::span<const Row> index_rows();
std::span<const Row> sort_rows();
std::span<const Row> convert_rows();
std::span<const Row> rnn_rows();
std::span<const Row> reduce_rows();
std::span<const Row> dot_rows();
std::span<const Row> control_rows();
std::span<const Row> ml_rows();
std::span<const Row> signal_rows();
std::span<const Row> random_rows();
std::span<const Row> string_rows();
std::span<const Row> quantize_rows();
std::span<const Row> sequence_rows();
std::span<const Row> conv_rows();
std::span<const Row> pool_rows();
std::span<const Row> batch_norm_rows();
std::span<const Row> resize_rows();
std::span<const Row> sampling_rows();
std::span<const Row> roi_rows();
std::span<const Row> decode_image_rows();

const Row* find(std::string_view op);

// One node on concrete inputs (null where left out). Uses the row, else the decomposition.
Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value* const> inputs,
                                    const Options& options);

// A graph; inputs in the order of graph.inputs. A value is dropped after its last use.
Result<std::vector<Value>> run(const Graph& graph, std::span<const Value> inputs,
                               const Options& options);

// Checks a value against a declared type: kind, dtype, rank and the sizes that are numbers.
Status check_type(const Value& value, const op::Type& type, std::string_view name);

}  // namespace tessera::ir::reference
