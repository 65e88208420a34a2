// Integer expressions over symbols: the sizes of tensors. Kept in a normal form (a sum of products
// of atoms), so that equal sizes compare equal: (2*s + 2*s)/4 == s. Products too large to multiply
// out stay "mul(a, b)".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::op {

// Values of symbols when a plan is bound.
using Bindings = std::map<std::string, int64_t, std::less<>>;

// A size. Arithmetic saturates at the ends of int64 (a size there is refused by element_count()).
class Expr {
 public:
  Expr() = default;
  Expr(int64_t constant) : constant_(constant) {}  // NOLINT: a number is a size
  static Expr symbol(std::string name);

  bool is_constant() const { return terms_ == nullptr; }
  std::optional<int64_t> constant() const {
    return is_constant() ? std::optional(constant_) : std::nullopt;
  }
  // The name, if the expression is a bare symbol.
  std::optional<std::string> as_symbol() const;
  // Names of all symbols inside, sorted, each once.
  std::vector<std::string> symbols() const;

  // kInvalidArgument if a symbol is unbound or two sizes do not broadcast; kOutOfRange on overflow.
  Result<int64_t> eval(const Bindings& bindings) const;
  // The expression with the bound symbols replaced; the others stay.
  Expr substitute(const std::map<std::string, Expr, std::less<>>& values) const;

  // How long the expression is: the letters of its atoms.
  size_t weight() const;
  // "2*s + 1", "floordiv(h - 1, 2) + 1"; parse(str()) == *this.
  std::string str() const;
  static Result<Expr> parse(std::string_view text);

  friend bool operator==(const Expr& a, const Expr& b);
  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);

  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  struct Term {
    std::vector<AtomPtr> atoms;  // sorted by text; a power repeats its atom
    int64_t coefficient = 1;
  };
  using Terms = std::vector<Term>;

 private:
  friend Expr make_function(int function, const Expr& a, const Expr& b);
  friend std::optional<Expr> exact_quotient(const Expr& a, const Expr& b);
  friend bool non_negative(const Expr& a);
  friend std::pair<Expr, Expr> divide(const Expr& a, int64_t divisor);
  friend Expr floor_div(const Expr& a, const Expr& b);
  friend Expr mod(const Expr& a, const Expr& b);
  static Expr from(int64_t constant, Terms terms);

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null: a constant
};

// floor_div and mod as Python's; divisors are positive. broadcast(a, b) is the common size of two
// axes that must be equal or 1, checked when evaluated.
Expr floor_div(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr broadcast(const Expr& a, const Expr& b);
// True where `a` is at least 0 for all symbols that are: sizes. False: not known.
bool non_negative(const Expr& a);
// a / b if that is an integer polynomial, e.g. (12*s)/(4*s) == 3.
std::optional<Expr> exact_quotient(const Expr& a, const Expr& b);

}  // namespace tessera::op
