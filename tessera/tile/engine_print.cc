#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/tile/engine.h"

namespace tessera::tile::engine {
namespace {

// How tightly a text binds: a sum, a product, an atom.
enum : int { kSum, kProduct, kAtom };
struct Piece {
  std::string text;
  int binds = kAtom;
};

std::string within(const Piece& p, int least) {
  return p.binds < least ? "(" + p.text + ")" : p.text;
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p) {}

  std::string whole() {
    line(fmt::format("engine \"{}\" on {} {{", p_.name, p_.core));
    ++nesting_;
    if (p_.constants > 0) {
      const auto first = p_.symbols.begin() + kOwnSymbols;
      line(fmt::format("constants {}", fmt::join(first, first + p_.constants, ", ")));
    }
    for (const Buffer& b : p_.buffers) line(buffer(b));
    steps(p_.body);
    --nesting_;
    line("}");
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<size_t>(2 * nesting_), ' ').append(text).append("\n");
  }

  Piece piece(const Expr& e) const {
    using Op = Expr::Op;
    std::vector<Piece> stack;
    for (const Expr::Item& i : e.items) {
      if (i.op == Op::kNumber) {
        stack.push_back({fmt::format("{}", i.value), i.value < 0 ? kSum : kAtom});
        continue;
      }
      if (i.op == Op::kSymbol) {
        stack.push_back({p_.symbols[static_cast<size_t>(i.value)], kAtom});
        continue;
      }
      const Piece b = std::move(stack.back());
      stack.pop_back();
      Piece& a = stack.back();
      if (i.op == Op::kMin || i.op == Op::kMax) {
        a = {fmt::format("{}({}, {})", i.op == Op::kMin ? "min" : "max", a.text, b.text), kAtom};
      } else if (i.op == Op::kAdd || i.op == Op::kSub) {
        a = {fmt::format("{} {} {}", within(a, kSum), i.op == Op::kAdd ? "+" : "-",
                         within(b, kProduct)),
             kSum};
      } else {
        const char sign = i.op == Op::kMul ? '*' : i.op == Op::kDiv ? '/' : '%';
        a = {fmt::format("{}{}{}", within(a, kProduct), sign, within(b, kAtom)), kProduct};
      }
    }
    return stack.empty() ? Piece{"0"} : std::move(stack.back());
  }
  std::string expr(const Expr& e) const { return piece(e).text; }

  std::string index(const Index& i, const Step& s) const {
    std::string text;
    if (!i.offset.is(0)) text = expr(i.offset);
    for (size_t a = 0; a < i.coefficients.size() && a < s.over.size(); ++a) {
      const int64_t c = i.coefficients[a];
      if (c == 0) continue;
      if (!text.empty()) text += " + ";
      if (c < 0)
        text += fmt::format("({})*", c);
      else if (c != 1)
        text += fmt::format("{}*", c);
      text += s.over[a].name;
    }
    return text.empty() ? "0" : text;
  }
  std::string operand(const Operand& o, const Step& s) const {
    switch (o.kind) {
      case Operand::Kind::kNumber:
        return o.whole != 0 ? fmt::format("whole {}", o.whole) : fmt::format("number {}", o.number);
      case Operand::Kind::kIndex:
        return fmt::format("index({})", index(o.at[0], s));
      case Operand::Kind::kBuffer:
        break;
    }
    std::vector<std::string> at;
    for (const Index& i : o.at) at.push_back(index(i, s));
    return fmt::format("{}[{}]", p_.buffer(o.buffer).name, fmt::join(at, ", "));
  }
  std::string over(const Step& s) const {
    std::string text;
    for (const StepAxis& a : s.over)
      text += fmt::format("{}{} = {}", text.empty() ? " over " : ", ", a.name, expr(a.extent));
    return text;
  }
  const std::string& engine(int e) const { return p_.engines[static_cast<size_t>(e)]; }

  std::string buffer(const Buffer& b) const {
    std::vector<std::string> dims;
    for (const Expr& d : b.dims) dims.push_back(expr(d));
    std::string text = b.argument()
                           ? fmt::format("argument {} = {}", b.name, b.offset)
                           : fmt::format("buffer {} in {} at {}", b.name, b.space, b.offset);
    text += fmt::format(" : {}[{}]", name_of(b.dtype), fmt::join(dims, ", "));
    if (!b.layout.empty()) text += fmt::format(" layout \"{}\"", b.layout);
    if (!b.strides.empty()) text += fmt::format(" strides({})", fmt::join(b.strides, ", "));
    return text;
  }

  std::string step(const Step& s) const {
    std::string text = engine(s.engine) + ": ";
    switch (s.kind) {
      case Kind::kCopy:
        text += fmt::format("copy {} = {}", operand(s.out, s), operand(s.in[0], s));
        if (s.pads) text += fmt::format(" pad {}", s.pad);
        break;
      case Kind::kMatrix:
        text += fmt::format("matrix {} {} = {} * {}", s.compute, operand(s.out, s),
                            operand(s.in[0], s), operand(s.in[1], s));
        break;
      case Kind::kMap: {
        std::vector<std::string> in;
        for (const Operand& o : s.in) in.push_back(operand(o, s));
        text += fmt::format("map {} {} = {}", name_of(s.function), operand(s.out, s),
                            fmt::join(in, ", "));
        break;
      }
      case Kind::kReduce:
        text += fmt::format("reduce {} {} = {}", name_of(s.function), operand(s.out, s),
                            operand(s.in[0], s));
        break;
      case Kind::kSet:
        return text + fmt::format("set {} {}", engine(s.other), expr(s.id));
      case Kind::kWait:
        return text + fmt::format("wait {} {}", engine(s.other), expr(s.id));
      case Kind::kDelay:
        return text + fmt::format("delay {}", expr(s.from));
      case Kind::kTrap:
        return text + fmt::format("trap \"{}\"", s.text);
      case Kind::kFor:
        break;
    }
    if (!s.add.is(0)) text += " add " + expr(s.add);
    return text + over(s);
  }

  void steps(const std::vector<Step>& body) {
    for (const Step& s : body) {
      if (s.kind != Kind::kFor) {
        line(step(s));
        continue;
      }
      std::string head = fmt::format("for {} = {} to {}", p_.symbols[static_cast<size_t>(s.symbol)],
                                     expr(s.from), expr(s.to));
      if (!s.by.is(1)) head += " by " + expr(s.by);
      line(head + " {");
      ++nesting_;
      steps(s.body);
      --nesting_;
      line("}");
    }
  }

  const Program& p_;
  std::string out_;
  int nesting_ = 0;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).whole(); }

}  // namespace tessera::tile::engine
