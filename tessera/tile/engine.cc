#include "tessera/tile/engine.h"

#include <algorithm>
#include <array>

namespace tessera::tile::engine {
namespace {

using Op = Expr::Op;

// Wraps, as the declaration says.
int64_t apply(Op op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const auto floor_div = [&] { return a / b - ((a % b != 0 && a < 0) ? 1 : 0); };
  switch (op) {
    case Op::kAdd:
      return static_cast<int64_t>(x + y);
    case Op::kSub:
      return static_cast<int64_t>(x - y);
    case Op::kMul:
      return static_cast<int64_t>(x * y);
    case Op::kDiv:
      return b < 1 ? 0 : floor_div();
    case Op::kMod:
      return b < 1 ? 0 : a - floor_div() * b;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kNumber:
    case Op::kSymbol:
      break;
  }
  return 0;
}

Expr make(Op op, const Expr& a, const Expr& b) {
  if (a.is_number() && b.is_number()) return apply(op, a.items[0].value, b.items[0].value);
  if ((op == Op::kAdd || op == Op::kSub) && b.is(0)) return a;
  if (op == Op::kAdd && a.is(0)) return b;
  if (op == Op::kMul && (a.is(0) || b.is(0))) return 0;
  if ((op == Op::kMul || op == Op::kDiv) && b.is(1)) return a;
  if (op == Op::kMul && a.is(1)) return b;
  if (op == Op::kMod && b.is(1)) return 0;
  Expr e = a;
  e.items.insert(e.items.end(), b.items.begin(), b.items.end());
  e.items.push_back({op, 0});
  return e;
}

}  // namespace

Expr Expr::symbol(int s) {
  Expr e;
  e.items = {{Op::kSymbol, s}};
  return e;
}

int64_t Expr::eval(std::span<const int64_t> symbols) const {
  if (is_number()) return items[0].value;
  std::array<int64_t, kMaxDepth> stack{};
  size_t top = 0;
  for (const Item& i : items) {
    if (i.op == Op::kNumber) {
      stack[top++] = i.value;
    } else if (i.op == Op::kSymbol) {
      stack[top++] = symbols[static_cast<size_t>(i.value)];
    } else {
      --top;
      stack[top - 1] = engine::apply(i.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

int Expr::depth() const {
  int now = 0, most = 0;
  for (const Item& i : items) {
    if (i.op == Op::kNumber || i.op == Op::kSymbol)
      ++now;
    else if (--now < 1)
      return 0;
    most = std::max(most, now);
  }
  return now == 1 ? most : 0;
}

Expr operator+(const Expr& a, const Expr& b) { return make(Op::kAdd, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::kMul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::kDiv, a, b); }
Expr operator%(const Expr& a, const Expr& b) { return make(Op::kMod, a, b); }
Expr min(const Expr& a, const Expr& b) { return make(Op::kMin, a, b); }
Expr max(const Expr& a, const Expr& b) { return make(Op::kMax, a, b); }

namespace {

int find_or_add(std::vector<std::string>& list, std::string_view name) {
  const auto at = std::ranges::find(list, name);
  if (at != list.end()) return static_cast<int>(at - list.begin());
  list.emplace_back(name);
  return static_cast<int>(list.size()) - 1;
}

}  // namespace

int Program::engine(std::string_view name_of_engine) {
  return find_or_add(engines, name_of_engine);
}
int Program::symbol(std::string_view name_of_symbol) {
  return find_or_add(symbols, name_of_symbol);
}

}  // namespace tessera::tile::engine
