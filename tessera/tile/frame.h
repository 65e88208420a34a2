// What the programs of all families have in common: an iteration space, operands with strides along
// its axes, steps behind the anchor, outputs. For those who write programs: this module, and code
// generators.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/tile/builder.h"
#include "tessera/tile/lower.h"

namespace tessera::tile {

// kUnimplemented: there is no program for the problem.
template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return error(Code::kUnimplemented, format, std::forward<Args>(args)...);
}

// Elements between neighbours along each logical axis; kUnimplemented for layouts in which they do
// not lie so.
Result<op::Dims> operand_strides(const op::Operand& operand);

// A program in the making. Its space has the axes `dims`; `of_result` says which of them each
// dimension of the anchor's result walks (kNone: one of extent 1). Axes of extent 1 vanish;
// neighbours with the same tag become one where all operands walk them as one.
//
//   Frame f("name", problem, dims, tags, of_result);
//   TRY(f.input(0, strides));  ...   the anchor's own inputs
//   TRY(f.settle());                 axes and tensors are there
//   ... f.grid(tag), instructions by f.b ..., f.load(0)
//   TRY(f.finish_value(value));      steps and stores behind the anchor's result
//   return f.finish();
class Frame {
 public:
  Frame(std::string name, const op::Problem& problem, op::Dims dims, std::vector<int> tags,
        std::vector<int> of_result);

  // Input i of the anchor walks the space with these strides; 0: it is spread along the axis.
  Status input(size_t i, op::Dims strides);
  // The same for an input that is broadcast to the anchor's result.
  Status input(size_t i);
  // Inputs of steps and outputs follow, broadcast to the anchor's result.
  // `outputs`: how many of the problem's outputs have the shape of the result.
  Status settle(size_t outputs = SIZE_MAX);

  Builder b;
  // The axes that are left, outermost first, of one tag.
  std::vector<int> axes(int tag) const;
  void grid(int tag);
  // The whole of input i, or of output o, by the axes in scope.
  int load(size_t i);
  int load(size_t i, DType as) { return b.convert(load(i), as); }
  void store(size_t o, int value);
  // A loop in a loop for each of the axes; `carried` as in Builder::loop, and `in` may be empty.
  std::vector<int> loops(const std::vector<int>& axes, std::vector<int> in,
                         const std::vector<int>& carried, const Builder::Body& body);
  // Number behind a symbol of this name, which is made if need be; a constant if it is 1.
  Expr symbol(const std::string& name, int64_t value);

  // The anchor's result is this tile: applies the steps and stores the outputs.
  Status finish_value(int value);
  // The same, with what the steps may read of the anchor: its result, and its inputs.
  Status finish_steps(Lowering steps);
  void approximate() { numeric_ = op::NumericClass::kApproximate; }
  void reassociated() { numeric_ = std::max(numeric_, op::NumericClass::kReassociated); }
  Result<Instance> finish();

 private:
  struct Entry {
    op::Argument argument;
    DType dtype;
    op::Dims strides;
    int tensor = kNone;
    std::vector<int> axes = {};
  };
  Result<op::Dims> aligned(const op::Operand& o) const;
  Entry* find(op::Argument::Kind kind, size_t index);
  void merge();
  void declare(Entry& entry, Role role);
  std::vector<Subscript> at(const Entry& entry) const;

  const op::Problem& p_;
  op::Dims dims_;
  std::vector<int> tags_, of_result_;
  op::Dims result_dims_;
  std::vector<Entry> entries_;
  std::vector<int> axes_;
  Instance instance_;
  op::NumericClass numeric_ = op::NumericClass::kExact;
};

}  // namespace tessera::tile
