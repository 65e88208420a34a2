// Tile programs, level "program": what is computed, tile by tile, whatever the tiles' sizes.
//
// A program computes on tensors by axes: letters with an extent. A tile is a value with some of the
// axes that are in scope; a loop over an axis, or the grid, brings it into scope and cuts it, and a
// value holds the elements of one piece of each of its axes at a time. How axes are cut is the
// schedule's business (schedule.h), and no element depends on it but for the order of sums: an
// index beyond an axis's extent does not exist. It is neither loaded nor stored, and reductions do
// not see it.
//
//   program @"softmax"(x: in f32[M,N], y: out f32[M,N]) {
//     axes m = M, n = N
//     grid m
//     %0 = constant f32 -inf
//     %2 = for n (%1 = %0) : f32(m) {
//       %3 = load x[m, n] : f32(m, n)
//       %4 = reduce max(%3) over n : f32(m)
//       %5 = max(%1, %4) : f32(m)
//       yield %5
//     }
//     ...
//   }
//
// M, N: symbols, known when the program is launched; constants may stand in their place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/op/expr.h"
#include "tessera/op/problem.h"
#include "tessera/tile/functions.h"

namespace tessera::tile {

using op::Expr;

inline constexpr int kNone = -1;

struct Axis {
  std::string name;
  Expr extent;  // of symbols
};

enum class Role : uint8_t { kIn, kOut, kInOut };

// An argument of the program.
struct Tensor {
  std::string name;
  Role role = Role::kIn;
  DType dtype = DType::kF32;
  std::vector<Expr> dims;
  // How elements lie: a layout expression (layout/layout.h), or elements between neighbours along
  // each axis, or, where both are empty, row-major and packed.
  std::string layout = {};
  std::vector<Expr> strides = {};
};

// A tile, or with no axes one element. The order of axes is how an emitter should hold it,
// outermost first; it means nothing else.
struct Value {
  DType dtype = DType::kF32;
  std::vector<int> axes;
};

// An index into one dimension: an expression, affine in the axes in scope, or a value of whole
// numbers.
struct Subscript {
  Expr at;
  int value = kNone;
};

enum class Kind : uint8_t {
  kConstant,  // one element
  kIndex,     // i64: the index along `axis`
  kSize,      // i64: the number that `size` is
  kLoad,      // elements of `tensor` at `at`; `pad` where that lies outside of it
  kMap,       // `function` of the inputs' elements, each input spread over the axes it lacks
  kReduce,    // `function` folds the axes `over`
  kDot,       // sum over `over` of in[0] in[1], plus in[2] if it is there
  kFor,       // the tiles of `axis` in order, with values carried from one to the next
  kStore,     // in[0], spread, to `tensor` at `at`
};

struct Instruction {
  Kind kind = Kind::kConstant;
  std::vector<int> in = {};   // values read; of kFor: what is carried into the first trip
  std::vector<int> out = {};  // values made
  Function function = Function::kAdd;
  double number = 0;  // kConstant of a float
  int64_t whole = 0;  // kConstant of any other type
  int axis = kNone;
  Expr size = {};  // of symbols
  std::vector<int> over = {};
  int tensor = kNone;
  std::vector<Subscript> at = {};
  std::optional<double> pad = {};
  std::vector<int> carried = {};  // kFor: in[i] as the body sees it
  std::vector<Instruction> body = {};
  std::vector<int> yields = {};  // what the body makes of carried[i]
};

struct Program {
  std::string name;
  std::vector<Axis> axes;
  std::vector<Tensor> tensors;
  std::vector<int> grid;   // axes cut into work items, the last one fastest
  std::vector<int> whole;  // axes in scope everywhere that are never cut
  std::vector<Value> values;
  std::vector<Instruction> body;

  const Axis& axis(int a) const { return axes[static_cast<size_t>(a)]; }
  const Tensor& tensor(int t) const { return tensors[static_cast<size_t>(t)]; }
  const Value& value(int v) const { return values[static_cast<size_t>(v)]; }
  int find_axis(std::string_view axis_name) const;  // kNone if there is none

  // All names that must be given a number to run the program, sorted.
  std::vector<std::string> symbols() const;
};

// A subscript's expression as sum(coefficient[a] * axis a) + offset, with coefficients and offset
// of symbols.
struct Affine {
  std::vector<std::pair<int, Expr>> terms;  // axis, coefficient; by axis
  Expr offset;
};
// kInvalidArgument if it is not affine in the axes.
Result<Affine> affine(const Program& program, const Expr& at);

// Calls visit(instruction) for all instructions, loops before their bodies.
void for_each(const std::vector<Instruction>& body,
              const std::function<void(const Instruction&)>& visit);
// Calls visit(value) for all that the instruction itself reads; what a loop yields is read by it.
void for_each_read(const Instruction& i, const std::function<void(int)>& visit);

// A program with all that one problem needs to be launched by it.
struct Instance {
  Program program;
  op::Bindings symbols;                 // values of program.symbols()
  std::vector<op::Argument> arguments;  // what program.tensors are of the problem
  op::NumericClass numeric = op::NumericClass::kExact;
};

}  // namespace tessera::tile
