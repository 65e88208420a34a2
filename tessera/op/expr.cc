#include "tessera/op/expr.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace tessera::op {
namespace {

constexpr int kMaxParseDepth = 64;

int64_t saturate(bool negative) {
  return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
int64_t add(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? saturate(a < 0) : r;
}
int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? saturate((a < 0) != (b < 0)) : r;
}

enum Function { kSymbol, kFloorDiv, kMod, kMin, kMax, kBroadcast, kMul };
constexpr std::string_view kFunctionNames[] = {"",    "floordiv",  "mod", "min",
                                               "max", "broadcast", "mul"};

// Beyond these a product is not multiplied out.
constexpr size_t kMaxTerms = 256;
constexpr size_t kMaxDegree = 64;

Result<int64_t> apply(int function, int64_t a, int64_t b) {
  switch (function) {
    case kFloorDiv:
    case kMod: {
      if (b <= 0)
        return error(Code::kOutOfRange, "size {}({}, {}): the divisor must be positive",
                     kFunctionNames[function], a, b);
      const int64_t quotient = a / b - (a % b < 0);
      return function == kFloorDiv ? quotient : a - quotient * b;
    }
    case kMin:
      return std::min(a, b);
    case kMax:
      return std::max(a, b);
    case kMul: {
      int64_t product;
      if (__builtin_mul_overflow(a, b, &product))
        return error(Code::kOutOfRange, "size {} * {} overflows", a, b);
      return product;
    }
    default:
      if (a == b || b == 1) return a;
      if (a == 1) return b;
      return error(Code::kInvalidArgument, "sizes {} and {} do not broadcast", a, b);
  }
}

}  // namespace

struct Expr::Atom {
  int function = kSymbol;
  std::string text;  // canonical; the name of a symbol
  Expr a, b;
};

namespace {

bool less(const std::vector<Expr::AtomPtr>& a, const std::vector<Expr::AtomPtr>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](auto& x, auto& y) { return x->text < y->text; });
}
bool same(const std::vector<Expr::AtomPtr>& a, const std::vector<Expr::AtomPtr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](auto& x, auto& y) { return x->text == y->text; });
}

}  // namespace

Expr Expr::from(int64_t constant, Terms terms) {
  std::sort(terms.begin(), terms.end(), [](auto& x, auto& y) { return less(x.atoms, y.atoms); });
  Terms merged;
  for (Term& term : terms) {
    if (!merged.empty() && same(merged.back().atoms, term.atoms))
      merged.back().coefficient = add(merged.back().coefficient, term.coefficient);
    else
      merged.push_back(std::move(term));
  }
  std::erase_if(merged, [](auto& t) { return t.coefficient == 0; });
  Expr result(constant);
  if (!merged.empty()) result.terms_ = std::make_shared<const Terms>(std::move(merged));
  return result;
}

Expr Expr::symbol(std::string name) {
  auto atom = std::make_shared<Atom>();
  atom->text = std::move(name);
  return from(0, {Term{{std::move(atom)}, 1}});
}

Expr make_function(int function, const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant())
    if (auto value = apply(function, *a.constant(), *b.constant())) return Expr(*value);
  auto atom = std::make_shared<Expr::Atom>();
  atom->function = function;
  atom->a = a;
  atom->b = b;
  atom->text = fmt::format("{}({}, {})", kFunctionNames[function], a.str(), b.str());
  return Expr::from(0, {Expr::Term{{std::move(atom)}, 1}});
}

std::optional<std::string> Expr::as_symbol() const {
  if (is_constant() || constant_ != 0 || terms_->size() != 1) return std::nullopt;
  const Term& term = terms_->front();
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->function != kSymbol)
    return std::nullopt;
  return term.atoms[0]->text;
}

std::vector<std::string> Expr::symbols() const {
  std::set<std::string> names;
  if (!is_constant())
    for (const Term& term : *terms_)
      for (const AtomPtr& atom : term.atoms) {
        if (atom->function == kSymbol) {
          names.insert(atom->text);
          continue;
        }
        for (const Expr* side : {&atom->a, &atom->b})
          for (std::string& name : side->symbols()) names.insert(std::move(name));
      }
  return {names.begin(), names.end()};
}

Result<int64_t> Expr::eval(const Bindings& bindings) const {
  if (is_constant()) return constant_;
  int64_t sum = constant_;
  for (const Term& term : *terms_) {
    int64_t product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) {
      int64_t value = 0;
      if (atom->function == kSymbol) {
        auto found = bindings.find(atom->text);
        if (found == bindings.end())
          return error(Code::kInvalidArgument, "size '{}' is not known", atom->text);
        value = found->second;
      } else {
        TRY_ASSIGN(int64_t a, atom->a.eval(bindings));
        TRY_ASSIGN(int64_t b, atom->b.eval(bindings));
        TRY_ASSIGN(value, apply(atom->function, a, b));
      }
      if (__builtin_mul_overflow(product, value, &product))
        return error(Code::kOutOfRange, "size {} overflows", str());
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return error(Code::kOutOfRange, "size {} overflows", str());
  }
  return sum;
}

Expr Expr::substitute(const std::map<std::string, Expr, std::less<>>& values) const {
  if (is_constant()) return *this;
  Expr sum(constant_);
  for (const Term& term : *terms_) {
    Expr product(term.coefficient);
    for (const AtomPtr& atom : term.atoms) {
      if (atom->function == kSymbol) {
        auto found = values.find(atom->text);
        product = product * (found != values.end() ? found->second : symbol(atom->text));
        continue;
      }
      const Expr a = atom->a.substitute(values), b = atom->b.substitute(values);
      switch (atom->function) {
        case kFloorDiv:
          product = product * floor_div(a, b);
          break;
        case kMod:
          product = product * mod(a, b);
          break;
        case kMin:
          product = product * min(a, b);
          break;
        case kMax:
          product = product * max(a, b);
          break;
        case kMul:
          product = product * (a * b);
          break;
        default:
          product = product * broadcast(a, b);
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

size_t Expr::weight() const {
  size_t letters = 0;
  if (terms_)
    for (const Term& term : *terms_)
      for (const AtomPtr& atom : term.atoms) letters += atom->text.size();
  return letters;
}

std::string Expr::str() const {
  if (is_constant()) return std::to_string(constant_);
  std::string text;
  for (const Term& term : *terms_) {
    std::string body;
    for (const AtomPtr& atom : term.atoms) body += (body.empty() ? "" : "*") + atom->text;
    const int64_t c = term.coefficient;
    const std::string factor =
        c == 1 || c == -1
            ? ""
            : fmt::format("{}*", c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c));
    if (text.empty())
      text = (c < 0 ? "-" : "") + factor + body;
    else
      text += (c < 0 ? " - " : " + ") + factor + body;
  }
  if (constant_ > 0) text += fmt::format(" + {}", constant_);
  if (constant_ < 0) text += fmt::format(" - {}", 0 - static_cast<uint64_t>(constant_));
  return text;
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.constant_ != b.constant_ || a.is_constant() != b.is_constant()) return false;
  if (a.is_constant() || a.terms_ == b.terms_) return true;
  return std::equal(
      a.terms_->begin(), a.terms_->end(), b.terms_->begin(), b.terms_->end(),
      [](auto& x, auto& y) { return x.coefficient == y.coefficient && same(x.atoms, y.atoms); });
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return add(a.constant_, b.constant_);
  Expr::Terms terms;
  for (const Expr* side : {&a, &b})
    if (side->terms_) terms.insert(terms.end(), side->terms_->begin(), side->terms_->end());
  return Expr::from(add(a.constant_, b.constant_), std::move(terms));
}

Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return mul(a.constant_, b.constant_);
  if (a.terms_ && b.terms_) {
    auto degree = [](const Expr::Terms& list) {
      size_t most = 0;
      for (const Expr::Term& term : list) most = std::max(most, term.atoms.size());
      return most;
    };
    if (a.terms_->size() * b.terms_->size() > kMaxTerms ||
        degree(*a.terms_) + degree(*b.terms_) > kMaxDegree)
      return b.str() < a.str() ? make_function(kMul, b, a) : make_function(kMul, a, b);
  }
  Expr::Terms terms;
  auto scaled = [&terms](const Expr& side, int64_t factor) {
    if (side.terms_ && factor != 0)
      for (Expr::Term term : *side.terms_) {
        term.coefficient = mul(term.coefficient, factor);
        terms.push_back(std::move(term));
      }
  };
  scaled(a, b.constant_);
  scaled(b, a.constant_);
  if (a.terms_ && b.terms_)
    for (const Expr::Term& x : *a.terms_)
      for (const Expr::Term& y : *b.terms_) {
        Expr::Term term{x.atoms, mul(x.coefficient, y.coefficient)};
        term.atoms.insert(term.atoms.end(), y.atoms.begin(), y.atoms.end());
        std::sort(term.atoms.begin(), term.atoms.end(),
                  [](auto& p, auto& q) { return p->text < q->text; });
        terms.push_back(std::move(term));
      }
  return Expr::from(mul(a.constant_, b.constant_), std::move(terms));
}

Expr operator-(const Expr& a, const Expr& b) { return a + b * Expr(-1); }

std::optional<Expr> exact_quotient(const Expr& a, const Expr& b) {
  if (b.is_constant()) {
    const int64_t d = b.constant_;
    if (d == 0 || d == -1 || a.constant_ % d != 0) return std::nullopt;
    Expr::Terms terms = a.terms_ ? *a.terms_ : Expr::Terms{};
    for (Expr::Term& term : terms) {
      if (term.coefficient % d != 0) return std::nullopt;
      term.coefficient /= d;
    }
    return Expr::from(a.constant_ / d, std::move(terms));
  }
  if (a == b) return Expr(1);
  if (b.constant_ != 0 || b.terms_->size() != 1 || a.constant_ != 0) return std::nullopt;
  if (!a.terms_) return Expr(0);
  const Expr::Term& divisor = b.terms_->front();
  Expr::Terms terms;
  int64_t constant = 0;
  for (Expr::Term term : *a.terms_) {
    if (term.coefficient % divisor.coefficient != 0) return std::nullopt;
    term.coefficient /= divisor.coefficient;
    for (const Expr::AtomPtr& atom : divisor.atoms) {
      auto found = std::find_if(term.atoms.begin(), term.atoms.end(),
                                [&](auto& x) { return x->text == atom->text; });
      if (found == term.atoms.end()) return std::nullopt;
      term.atoms.erase(found);
    }
    if (term.atoms.empty())
      constant = add(constant, term.coefficient);
    else
      terms.push_back(std::move(term));
  }
  return Expr::from(constant, std::move(terms));
}

namespace {

// A divisor whose square fits.
bool small(int64_t divisor) { return divisor > 0 && divisor <= INT32_MAX; }

}  // namespace

// a == whole * divisor + rest, all coefficients of rest in [0, divisor). @pre divisor > 0
std::pair<Expr, Expr> divide(const Expr& a, int64_t divisor) {
  auto floored = [divisor](int64_t c) { return c / divisor - (c % divisor < 0); };
  auto parts = [&](int64_t c) { return std::pair(floored(c), c - floored(c) * divisor); };
  const auto [quotient, remainder] = parts(a.constant_);
  Expr::Terms whole, rest;
  if (a.terms_)
    for (const Expr::Term& term : *a.terms_) {
      const auto [q, r] = parts(term.coefficient);
      whole.push_back({term.atoms, q});
      rest.push_back({term.atoms, r});
    }
  return {Expr::from(quotient, std::move(whole)), Expr::from(remainder, std::move(rest))};
}

// floor_div(7*a + s + 9, 7) == a + 1 + floor_div(s + 2, 7); floor_div(floor_div(s, 2) + 1, 3) ==
// floor_div(s + 2, 6)
Expr floor_div(const Expr& a, const Expr& b) {
  if (b.constant() == 1) return a;
  if (auto quotient = exact_quotient(a, b); quotient && b.constant() != 0) return *quotient;
  if (!b.is_constant() || !small(*b.constant())) return make_function(kFloorDiv, a, b);
  const auto [whole, rest] = divide(a, *b.constant());
  if (rest.is_constant()) return whole;
  const Expr::Term& first = rest.terms_->front();
  if (rest.terms_->size() == 1 && first.coefficient == 1 && first.atoms.size() == 1 &&
      first.atoms[0]->function == kFloorDiv) {
    const Expr &x = first.atoms[0]->a, &inner = first.atoms[0]->b;
    if (inner.is_constant() && small(*inner.constant()))
      return whole + floor_div(x + Expr(rest.constant_) * inner, inner * b);
  }
  return whole + make_function(kFloorDiv, rest, b);
}
Expr ceil_div(const Expr& a, const Expr& b) { return floor_div(a + b - Expr(1), b); }
// mod(7*a + s + 9, 7) == mod(s + 2, 7)
Expr mod(const Expr& a, const Expr& b) {
  if (exact_quotient(a, b)) return Expr(0);
  if (!b.is_constant() || !small(*b.constant())) return make_function(kMod, a, b);
  const Expr rest = divide(a, *b.constant()).second;
  if (const auto symbol =
          rest.terms_ && rest.terms_->size() == 1 ? rest.terms_->front().atoms[0] : nullptr;
      symbol && symbol->function == kMod && symbol->b == b &&
      rest == Expr::from(0, {Expr::Term{{symbol}, 1}}))
    return rest;
  return make_function(kMod, rest, b);
}
bool non_negative(const Expr& a) {
  if (a.constant_ < 0) return false;
  if (!a.terms_) return true;
  auto atom_ok = [](const Expr::AtomPtr& atom) {
    switch (atom->function) {
      case kSymbol:
      case kMod:
        return true;
      case kMax:
        return non_negative(atom->a) || non_negative(atom->b);
      default:
        return non_negative(atom->a) && non_negative(atom->b);
    }
  };
  return std::all_of(a.terms_->begin(), a.terms_->end(), [&](const Expr::Term& term) {
    return term.coefficient > 0 && std::all_of(term.atoms.begin(), term.atoms.end(), atom_ok);
  });
}

namespace {

// An order of the operands that does not depend on how they came.
Expr symmetric(int function, const Expr& a, const Expr& b) {
  return b.str() < a.str() ? make_function(function, b, a) : make_function(function, a, b);
}

}  // namespace

Expr min(const Expr& a, const Expr& b) {
  if (non_negative(b - a)) return a;
  if (non_negative(a - b)) return b;
  return symmetric(kMin, a, b);
}
Expr max(const Expr& a, const Expr& b) {
  if (non_negative(b - a)) return b;
  if (non_negative(a - b)) return a;
  return symmetric(kMax, a, b);
}
Expr broadcast(const Expr& a, const Expr& b) {
  if (a == b || b.constant() == 1) return a;
  if (a.constant() == 1) return b;
  return symmetric(kBroadcast, a, b);
}

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expr> whole() {
    TRY_ASSIGN(Expr e, sum(0));
    skip();
    if (at_ != text_.size()) return fail("trailing text");
    return e;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  tl::unexpected<Error> fail(std::string_view what) {
    return error(Code::kInvalidArgument, "size expression '{}': {} at column {}", text_, what,
                 at_ + 1);
  }

  Result<Expr> sum(int depth) {
    if (depth > kMaxParseDepth) return fail("nested too deep");
    const bool negative = eat('-');
    TRY_ASSIGN(Expr total, product(depth));
    if (negative) total = Expr(0) - total;
    for (;;) {
      if (eat('+')) {
        TRY_ASSIGN(Expr next, product(depth));
        total = total + next;
      } else if (eat('-')) {
        TRY_ASSIGN(Expr next, product(depth));
        total = total - next;
      } else {
        return total;
      }
    }
  }

  Result<Expr> product(int depth) {
    TRY_ASSIGN(Expr total, atom(depth));
    while (eat('*')) {
      TRY_ASSIGN(Expr next, atom(depth));
      total = total * next;
    }
    return total;
  }

  Result<Expr> atom(int depth) {
    skip();
    if (eat('(')) {
      TRY_ASSIGN(Expr inner, sum(depth + 1));
      if (!eat(')')) return fail("expected ')'");
      return inner;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  std::string_view("_.$").find(text_[at_]) != text_.npos))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return fail("expected a number, a symbol or '('");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      int64_t value = 0;
      for (char c : word) {
        if (!std::isdigit(static_cast<unsigned char>(c))) return fail("bad number");
        if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
            __builtin_add_overflow(value, int64_t{c - '0'}, &value))
          return fail("number too large");
      }
      return Expr(value);
    }
    for (int f = kFloorDiv; f <= kMul; ++f)
      if (word == kFunctionNames[f] && eat('(')) {
        TRY_ASSIGN(Expr a, sum(depth + 1));
        if (!eat(',')) return fail("expected ','");
        TRY_ASSIGN(Expr b, sum(depth + 1));
        if (!eat(')')) return fail("expected ')'");
        switch (f) {
          case kFloorDiv:
            return floor_div(a, b);
          case kMod:
            return mod(a, b);
          case kMin:
            return min(a, b);
          case kMax:
            return max(a, b);
          case kMul:
            return a * b;
          default:
            return broadcast(a, b);
        }
      }
    return Expr::symbol(std::string(word));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Expr> Expr::parse(std::string_view text) { return Parser(text).whole(); }

}  // namespace tessera::op
