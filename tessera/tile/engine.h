// Tile programs, level "engine": what each engine of a core does, step by step.
//
// A program runs on all cores of one kind at once, each with its own number. A core's engines (what
// copies and what computes, by the chip's names) run beside one another; the steps of one engine
// run in the order of the text, those of different engines in any order but for flags: `set` fires
// when all steps of its engine before it are done, `wait` holds its engine until then. All sizes
// are numbers, or expressions of few symbols.
//
//   engine "copy" on aiv {
//     argument x = 0 : f32[grid]
//     argument y = 1 : f32[grid]
//     buffer t in ub at 0 : f32[2, 1024]
//     for i = 0 to 2 { vector_mte3: set vector_mte2 i }
//     for i = core to (grid + 1023)/1024 by cores {
//       vector_mte2: wait vector_mte3 i%2
//       vector_mte2: copy t[i%2, e] = x[1024*i + e] over e = min(1024, grid - 1024*i)
//       vector_mte2: set vector_mte3 i%2
//       ...
//
// A step computes on elements by axes of its own (`over`): out[f(e)] = in[g(e)] with f and g affine
// in them. So copies that transpose, im2col, broadcasts and reductions are all one thing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"
#include "tessera/tile/functions.h"

namespace tessera::tile::engine {

// A whole number that follows from the values of symbols, in postfix order. Division rounds down
// and yields 0 where the divisor is below 1; "%" goes with it. Overflow wraps.
struct Expr {
  enum class Op : uint8_t { kNumber, kSymbol, kAdd, kSub, kMul, kDiv, kMod, kMin, kMax };
  struct Item {
    Op op = Op::kNumber;
    int64_t value = 0;  // kNumber: it; kSymbol: which
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> items;

  Expr() : Expr(0) {}
  Expr(int64_t number) : items{{Op::kNumber, number}} {}  // NOLINT: a number is an expression
  static Expr symbol(int s);

  bool is_number() const { return items.size() == 1 && items[0].op == Op::kNumber; }
  bool is(int64_t number) const { return is_number() && items[0].value == number; }
  // @pre depth() <= kMaxDepth, and every symbol has a value
  int64_t eval(std::span<const int64_t> symbols) const;
  // Numbers that evaluation holds at once; 0 if this is no expression.
  int depth() const;
  bool operator==(const Expr&) const = default;

  static constexpr int kMaxDepth = 32;
};
// Numbers are computed at once.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator%(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

// Symbols that every program has: the core's number, how many take part, the grid of the launch.
enum : int { kCore, kCores, kGrid, kOwnSymbols };

// Elements with logical sizes: a piece of a memory of the core, or what a launch passes.
struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<Expr> dims;  // of arguments, of the symbols known at launch; else numbers
  std::string space = {};  // memory of the chip; of arguments: empty
  int64_t offset = 0;      // bytes in the space; of arguments: which range of the launch
  // How elements lie: a format's name ("NZ"), of the last two dimensions, those before outermost;
  // or an expression with its letters, the same; empty: row-major.
  std::string layout = {};
  std::vector<int64_t> strides = {};  // elements, instead of a layout

  bool argument() const { return space.empty(); }
};

// offset + sum of coefficients[a] * (axis a of the step).
struct Index {
  Expr offset;
  std::vector<int64_t> coefficients;  // by axis of the step; may be shorter: 0
};

struct Operand {
  enum class Kind : uint8_t { kBuffer, kNumber, kIndex } kind = Kind::kBuffer;
  int buffer = -1;
  std::vector<Index> at = {};  // by dimension of the buffer; kIndex: one, which is the value itself
  double number = 0;           // kNumber, of a float
  int64_t whole = 0;           // kNumber of any other type
};

struct StepAxis {
  std::string name;
  Expr extent;  // below 1: there is nothing to do
};

enum class Kind : uint8_t {
  kCopy,    // out = in[0], which may convert elements where the engine can
  kMatrix,  // out = in[0] in[1], summed over the axes that out lacks; added to out if `add` is not
            // 0
  kMap,     // out = function(in...)
  kReduce,  // out = in[0] folded by `function` over the axes that out lacks; with out if `add`
  kSet,     // flag `id` from `engine` to `other`
  kWait,    // flag `id` from `other` to `engine`
  kFor,     // body for symbol = from, from + by, ... below to
  kDelay,   // nothing, for `from` nanoseconds; of the host's time, too, where values are computed
  kTrap,    // the launch fails with `text`
};

struct Step {
  Kind kind = Kind::kCopy;
  int engine = -1;  // of Program::engines; all but kFor
  std::vector<StepAxis> over = {};
  Operand out = {};
  std::vector<Operand> in = {};
  Function function = Function::kAdd;
  std::string compute = {};  // kMatrix: how the unit takes its operands: "f16", "hf32"
  Expr add = 0;
  bool pads = false;  // kCopy: what lies outside of in[0] reads as `pad`
  double pad = 0;
  int other = -1;
  Expr id = 0;
  int symbol = -1;
  Expr from = 0, to = 0, by = 1;
  std::vector<Step> body = {};
  std::string text = {};
};

struct Program {
  std::string name;
  std::string core;                  // the kind of core it runs on
  std::vector<std::string> engines;  // those that it names, of the chip's engines and units
  // kOwnSymbols, then `constants` of the launch's constant block (i64 each), then those of loops.
  std::vector<std::string> symbols = {"core", "cores", "grid"};
  int constants = 0;
  std::vector<Buffer> buffers;
  std::vector<Step> body;

  const Buffer& buffer(int b) const { return buffers[static_cast<size_t>(b)]; }
  int engine(std::string_view name_of_engine);  // added if it is not there
  int symbol(std::string_view name_of_symbol);  // the same
};

// Limits of programs from outside.
inline constexpr size_t kMaxText = 1 << 20;
inline constexpr int kMaxNesting = 16;
inline constexpr size_t kMaxSteps = 1 << 14;  // of a text, loops and their bodies counted once
inline constexpr size_t kMaxAxes = 12;
inline constexpr size_t kMaxDims = 8;
inline constexpr size_t kMaxItems = 256;  // of an expression

// Programs as text, one behind the other.
// @post parse(print(p)) prints the same again
std::string print(const Program& program);
// kInvalidArgument with line and column. What comes back is not verified.
Result<std::vector<Program>> parse(std::string_view text);

}  // namespace tessera::tile::engine
