// A layout is an expression: the physical axes of a tensor, outermost first, each an expression of
// its logical axes.
//
//   row-major "m n"                 Ascend NZ "n/16 m/16 m%16 n%16"
//   NC1HWC0 "n c/16 h w c%16"       swizzle "m (n/8)^(m%8) n%8"
//
//   layout  := axis (space axis)*
//   axis    := term ("/" int | "%" int)*
//   term    := primary ("^" primary)*                    bitwise xor
//   primary := letter                                    a logical axis
//            | "(" axis (space axis)* ")"                row-major merge; of one axis: itself
//            | letter "[" lo ":" hi "]" ("|" segment)*   segments of a letter, end to end
//
// Sizes: |letter| = its extent, |e/k| = ceil(|e|/k), |e%k| = k, |(a b)| = |a||b|, and |a^b| is the
// power of two that holds both. "/" and "%" on joined segments act on each segment by itself:
// |s/k| = sum of ceil(length/k), so that every segment starts on a multiple of k; |s%k| = k.
// A letter may occur in several axes: "c/16 h w n c%16 c%16" is block-diagonal.
// A place that no element maps to is padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"

namespace tessera::layout {

// Limits of text and of expressions built in code; beyond them parse and make give
// kInvalidArgument.
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxTerms = 256;
inline constexpr int kMaxLetters = 52;

enum class Padding : uint8_t {
  kZero,  // every place without an element holds zero bits
  kAny,   // unspecified: readers may not use it, writers need not write it
};

enum class ExprKind : uint8_t { kLetter, kMerge, kJoin, kXor, kDiv, kMod };

// Half-open range of positions along a logical axis.
struct Segment {
  int64_t lo = 0;
  int64_t hi = 0;
  bool operator==(const Segment&) const = default;
};

struct Expr {
  ExprKind kind = ExprKind::kLetter;
  int axis = -1;                       // kLetter, kJoin: index of the logical axis
  int64_t by = 0;                      // kDiv, kMod: the divisor, at least 1
  std::vector<Expr> args = {};         // kMerge, kXor: two or more; kDiv, kMod: one
  std::vector<Segment> segments = {};  // kJoin: one or more, disjoint

  friend bool operator==(const Expr& a, const Expr& b);
};

Expr letter(int axis);
Expr merge(std::vector<Expr> args);  // of one argument: the argument itself
Expr join(int axis, std::vector<Segment> segments);
Expr exclusive_or(std::vector<Expr> args);
Expr div(Expr e, int64_t by);
Expr mod(Expr e, int64_t by);

// An immutable value without extents: one layout serves every size of a tensor.
class Layout {
 public:
  Layout() = default;  // rank 0: one element, no physical axis

  // `text` is "<letters>: <expression>" with the letters in logical order, then possibly a padding
  // kind, "; pad=any" or "; pad=zero" (the default): "nchw: n c/16 h w c%16; pad=any". Letters are
  // a-z and A-Z, each at most once.
  // @post parse(l.to_string()) == l
  static Result<Layout> parse(std::string_view text);
  // The same without the head: the expression of a tensor whose logical axes are `letters`, in that
  // order.
  static Result<Layout> parse(std::string_view expression, std::string_view letters);
  // Checks what the grammar demands; axes of `letters` that no expression names must have extent 1
  // when bound.
  static Result<Layout> make(std::string letters, std::vector<Expr> axes,
                             Padding padding = Padding::kZero);

  // "a b c ...": a physical axis per logical axis. Of sub-byte types each row starts on a byte.
  static Layout row_major(int rank);
  // "(a b c ...)": a single physical axis. Of sub-byte types nothing is skipped: how ONNX and numpy
  // pack int4.
  static Layout dense(int rank);
  // Row-major as files and users hold it: dense for sub-byte types, row_major for all others.
  static Layout plain(DType dtype, int rank);

  int rank() const { return static_cast<int>(letters_.size()); }
  int physical_rank() const { return static_cast<int>(axes_.size()); }
  const std::string& letters() const { return letters_; }
  std::span<const Expr> axes() const { return axes_; }
  Padding padding() const { return padding_; }
  Layout with_padding(Padding padding) const;

  // Equal to row_major(rank()) but for the letters' names.
  bool is_row_major() const;

  std::string to_string() const;   // with head and padding kind
  std::string expression() const;  // "n c/16 h w c%16"

  // Letters are names only: "mn: m n" == "ab: a b".
  friend bool operator==(const Layout& a, const Layout& b);

 private:
  std::string letters_;
  std::vector<Expr> axes_;
  Padding padding_ = Padding::kZero;
};

}  // namespace tessera::layout
