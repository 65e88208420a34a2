// Operator kinds: one table row each. Rows live in rows_<family>.cc; table.cc lists the families.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/op/attrs.h"
#include "tessera/op/tensor.h"
#include "tessera/op/type.h"

namespace tessera::op {

enum class OpClass : uint8_t {
  kPrimitive,  // small set, closed under differentiation
  kComposite,  // has a decomposition into primitives (ir/composites); kernels may claim it whole
  kHost,       // strings, sequences, optionals, data-dependent host work: no layout, no gradient
};

// The elements of a small tensor of whole numbers in row-major order, where known as expressions
// over symbols (shapes that flow as data). Of floats, up to the sign of zero.
using Contents = std::vector<Expr>;
// Larger integer tensors are not followed.
inline constexpr size_t kMaxContents = 1024;

// What a shape rule sees. Inputs that the node leaves out are null.
struct InferContext {
  std::string_view op;
  const Attrs& attrs;
  std::span<const Type* const> inputs;
  std::span<const Contents* const> contents;  // per input; null where not known
  std::span<const Tensor* const> constants;   // per input; null unless the input is a constant
  std::span<const std::vector<Type>> bodies;  // types of the outputs of each body graph
  std::function<Expr()> fresh;  // a new symbol: a size known only after the node has run

  size_t size() const { return inputs.size(); }
  bool has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const Type& in(size_t i) const { return *inputs[i]; }  // @pre has(i)
  const Contents* content(size_t i) const { return i < contents.size() ? contents[i] : nullptr; }
  // The elements of input i if it is an integer tensor whose elements are all numbers.
  std::optional<Ints> ints(size_t i) const;
  // A shape of `rank` fresh symbols.
  Shape fresh_shape(size_t rank) const;
  // An error that names the operator.
  template <class... Args>
  tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kInvalidArgument, "{}: {}", op,
                 fmt::format(format, std::forward<Args>(args)...));
  }
};

using InferFn = Result<std::vector<Type>> (*)(const InferContext&);
// Elements of output 0 as expressions, when they follow from the inputs' contents.
using ContentsFn = std::optional<Contents> (*)(const InferContext&, const Type& output);

enum class AttrKind : uint8_t {
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kDType,
  kType,
  kTensor
};

struct AttrDef {
  std::string_view name;
  AttrKind kind;
  bool required = false;
};

inline constexpr int kVariadic = -1;

// Multiplications and additions of one node (a multiply-add is two); types are static.
using FlopsFn = Flops (*)(const Attrs&, std::span<const Type* const> inputs,
                          std::span<const Type> outputs);

struct OpDef {
  std::string_view name;
  OpClass kind;
  int min_inputs;
  int max_inputs;  // kVariadic: any number
  int min_outputs;
  int max_outputs;
  std::vector<AttrDef> attrs;
  InferFn infer;
  ContentsFn contents = nullptr;
  FlopsFn flops = nullptr;  // null: one per output element
  int bodies = 0;           // number of body graphs
};

// Sequences, optionals and maps go only through operators of containers, control flow and identity.
Status check_kinds(const OpDef& op, std::span<const Type* const> inputs);

// The row, or null. Rows live as long as the process.
const OpDef* find(std::string_view name);
std::span<const OpDef* const> all_ops();  // sorted by name

// Families: add a row to one of these, or a family here and in table.cc.
std::span<const OpDef> elementwise_rows();
std::span<const OpDef> shape_rows();
std::span<const OpDef> move_rows();
std::span<const OpDef> index_rows();
std::span<const OpDef> rnn_rows();
std::span<const OpDef> attention_rows();
std::span<const OpDef> reduce_rows();
std::span<const OpDef> dot_rows();
std::span<const OpDef> control_rows();
std::span<const OpDef> ml_rows();
std::span<const OpDef> signal_rows();
std::span<const OpDef> random_rows();
std::span<const OpDef> string_rows();
std::span<const OpDef> quantize_rows();
std::span<const OpDef> sequence_rows();
std::span<const OpDef> activation_rows();
std::span<const OpDef> norm_rows();
std::span<const OpDef> conv_rows();
std::span<const OpDef> pool_rows();
std::span<const OpDef> batch_norm_rows();
std::span<const OpDef> image_rows();

}  // namespace tessera::op
