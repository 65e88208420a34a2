#include <algorithm>
#include <charconv>

#include "tessera/tile/engine.h"

namespace tessera::tile::engine {
namespace {

// Recursive descent.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Program>> all() {
    if (text_.size() > kMaxText)
      return error(Code::kInvalidArgument, "a text of {} bytes, the most is {}", text_.size(),
                   kMaxText);
    std::vector<Program> programs;
    for (skip(); at_ < text_.size(); skip()) {
      p_ = Program();
      TRY(program());
      programs.push_back(std::move(p_));
    }
    if (programs.empty()) return fail("expected 'engine'");
    return programs;
  }

 private:
  static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool eat(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool eat_word(std::string_view word) {
    skip();
    const size_t end = at_ + word.size();
    return (end >= text_.size() || !letter(text_[end])) && eat(word);
  }
  tl::unexpected<Error> fail(std::string_view what) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = std::ranges::count(before, '\n') + 1;
    const size_t newline = before.rfind('\n');
    return error(Code::kInvalidArgument, "line {}, column {}: {}", line,
                 newline == before.npos ? at_ + 1 : at_ - newline, what);
  }
  Status expect(std::string_view token) {
    if (!eat(token)) return fail(fmt::format("expected '{}'", token));
    return {};
  }
  Result<std::string> name() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && letter(text_[at_])) ++at_;
    const std::string_view w = text_.substr(begin, at_ - begin);
    if (w.empty() || (w[0] >= '0' && w[0] <= '9') || w[0] == '.') return fail("expected a name");
    if (w.size() > kMaxName) return fail("a name that is too long");
    return std::string(w);
  }
  Result<std::string> quoted() {
    TRY(expect("\""));
    const size_t end = text_.find('"', at_);
    if (end == text_.npos) return fail("a text without an end");
    std::string text(text_.substr(at_, end - at_));
    at_ = end + 1;
    if (text.size() > kMaxName || text.find('\n') != text.npos)
      return fail("a text that is too long");
    return text;
  }
  template <class T>
  Result<T> parsed(std::string_view what) {
    skip();
    T v = 0;
    const auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (bad != std::errc()) return fail(fmt::format("expected {}", what));
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  Result<DType> dtype() {
    TRY_ASSIGN(const std::string w, name());
    const auto d = dtype_from_name(w);
    if (!d || name_of(*d) != w) return fail(fmt::format("'{}' is no type of elements", w));
    return *d;
  }

  // ---- Expressions, affine in the axes of a step

  Result<Index> checked(Index i) const {
    if (i.offset.items.size() > kMaxItems || i.offset.depth() > Expr::kMaxDepth)
      return fail("an expression that is too long");
    return i;
  }
  static bool linear(const Index& i) {
    return std::ranges::any_of(i.coefficients, [](int64_t c) { return c != 0; });
  }
  static Index sum(Index a, const Index& b, int64_t sign) {
    a.offset = sign > 0 ? a.offset + b.offset : a.offset - b.offset;
    a.coefficients.resize(std::max(a.coefficients.size(), b.coefficients.size()), 0);
    for (size_t k = 0; k < b.coefficients.size(); ++k)
      a.coefficients[k] = (Expr(a.coefficients[k]) + Expr(sign) * Expr(b.coefficients[k])).eval({});
    return a;
  }
  Result<Index> atom() {
    if (++depth_ > kMaxNesting) return fail("an expression that is too deep");
    auto result = atom_inside();
    --depth_;
    return result;
  }
  Result<Index> atom_inside() {
    skip();
    if (eat("(")) {
      TRY_ASSIGN(Index e, affine());
      TRY(expect(")"));
      return e;
    }
    if (eat("-")) {
      TRY_ASSIGN(Index e, atom());
      return sum(Index{}, e, -1);
    }
    if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      TRY_ASSIGN(const int64_t v, parsed<int64_t>("a whole number"));
      return Index{Expr(v), {}};
    }
    const size_t begin = at_;
    TRY_ASSIGN(const std::string w, name());
    if ((w == "min" || w == "max") && eat("(")) {
      TRY_ASSIGN(const Index a, affine());
      TRY(expect(","));
      TRY_ASSIGN(const Index b, affine());
      TRY(expect(")"));
      if (linear(a) || linear(b)) return fail("an index that is not affine");
      return checked({w == "min" ? min(a.offset, b.offset) : max(a.offset, b.offset), {}});
    }
    for (size_t a = 0; a < axes_.size(); ++a)
      if (axes_[a] == w) {
        Index i;
        i.coefficients.resize(a + 1, 0);
        i.coefficients[a] = 1;
        return i;
      }
    const auto s = std::ranges::find(scope_, w);
    if (s == scope_.end()) {
      at_ = begin;
      return fail(fmt::format("'{}' is no symbol here", w));
    }
    return Index{Expr::symbol(p_.symbol(w)), {}};
  }
  Result<Index> product() {
    TRY_ASSIGN(Index a, atom());
    while (true) {
      skip();
      const char sign = at_ < text_.size() ? text_[at_] : ' ';
      if (sign != '*' && sign != '/' && sign != '%') return a;
      ++at_;
      TRY_ASSIGN(Index b, atom());
      if (!linear(a) && !linear(b)) {
        a = Index{sign == '*'   ? a.offset * b.offset
                  : sign == '/' ? a.offset / b.offset
                                : a.offset % b.offset,
                  {}};
      } else {
        if (linear(b)) std::swap(a, b);
        if (sign != '*' || linear(b) || !b.offset.is_number())
          return fail("an index that is not affine");
        a.offset = a.offset * b.offset;
        for (int64_t& c : a.coefficients) c = (Expr(c) * b.offset).eval({});
      }
      TRY_ASSIGN(a, checked(std::move(a)));
    }
  }
  Result<Index> affine() {
    TRY_ASSIGN(Index a, product());
    while (true) {
      const bool plus = eat("+");
      if (!plus && !eat("-")) return a;
      TRY_ASSIGN(const Index b, product());
      TRY_ASSIGN(a, checked(sum(std::move(a), b, plus ? 1 : -1)));
    }
  }
  Result<Expr> expr() {
    std::vector<std::string> none;
    std::swap(none, axes_);
    auto e = affine();
    std::swap(none, axes_);
    if (!e) return tl::unexpected(std::move(e).error());
    return e->offset;
  }

  // ---- Buffers

  template <class Read>
  Status list(std::string_view end, size_t most, Read&& read) {
    for (size_t n = 0; !eat(end); ++n) {
      if (n > 0) TRY(expect(","));
      if (n >= most) return fail(fmt::format("more than {} here", most));
      TRY(read());
    }
    return {};
  }
  Status buffer(bool argument) {
    Buffer b;
    TRY_ASSIGN(b.name, name());
    if (std::ranges::find(p_.buffers, b.name, &Buffer::name) != p_.buffers.end())
      return fail(fmt::format("there are two buffers '{}'", b.name));
    if (p_.buffers.size() >= kMaxBuffers) return fail("too many buffers");
    if (argument) {
      TRY(expect("="));
      TRY_ASSIGN(b.offset, parsed<int64_t>("a whole number"));
    } else {
      TRY(expect("in"));
      TRY_ASSIGN(b.space, name());
      TRY(expect("at"));
      TRY_ASSIGN(b.offset, parsed<int64_t>("a whole number"));
    }
    TRY(expect(":"));
    TRY_ASSIGN(b.dtype, dtype());
    TRY(expect("["));
    TRY(list("]", kMaxDims, [&]() -> Status {
      TRY_ASSIGN(Expr e, expr());
      b.dims.push_back(std::move(e));
      return {};
    }));
    if (eat_word("layout")) {
      TRY_ASSIGN(b.layout, quoted());
    }
    if (eat_word("strides")) {
      TRY(expect("("));
      TRY(list(")", kMaxDims, [&]() -> Status {
        TRY_ASSIGN(const int64_t s, parsed<int64_t>("a whole number"));
        b.strides.push_back(s);
        return {};
      }));
    }
    p_.buffers.push_back(std::move(b));
    return {};
  }

  // ---- Steps. Operands come before the axes that they name: their places are read again.

  Result<Operand> operand() {
    Operand o;
    if (eat_word("number")) {
      o.kind = Operand::Kind::kNumber;
      TRY_ASSIGN(o.number, parsed<double>("a number"));
      return o;
    }
    if (eat_word("whole")) {
      o.kind = Operand::Kind::kNumber;
      TRY_ASSIGN(o.whole, parsed<int64_t>("a whole number"));
      return o;
    }
    if (eat_word("index")) {
      o.kind = Operand::Kind::kIndex;
      TRY(expect("("));
      TRY_ASSIGN(Index i, affine());
      o.at.push_back(std::move(i));
      TRY(expect(")"));
      return o;
    }
    TRY_ASSIGN(const std::string w, name());
    const auto b = std::ranges::find(p_.buffers, w, &Buffer::name);
    if (b == p_.buffers.end()) return fail(fmt::format("there is no buffer '{}'", w));
    o.buffer = static_cast<int>(b - p_.buffers.begin());
    TRY(expect("["));
    TRY(list("]", kMaxDims, [&]() -> Status {
      TRY_ASSIGN(Index i, affine());
      o.at.push_back(std::move(i));
      return {};
    }));
    return o;
  }
  Status axes_of_step(Step& s) {
    const size_t begin = at_;
    const size_t line_end = std::min(text_.find('\n', at_), text_.size());
    const size_t found = text_.substr(0, line_end).find(" over ", at_);
    if (found == text_.npos) return {};
    at_ = found + 6;
    do {
      StepAxis a;
      TRY_ASSIGN(a.name, name());
      if (s.over.size() >= kMaxAxes) return fail("too many axes");
      TRY(expect("="));
      TRY_ASSIGN(a.extent, expr());
      if (std::ranges::find(s.over, a.name, &StepAxis::name) != s.over.end() ||
          std::ranges::find(scope_, a.name) != scope_.end())
        return fail(fmt::format("'{}' has two meanings", a.name));
      s.over.push_back(std::move(a));
    } while (eat(","));
    end_ = at_;
    at_ = begin;
    for (const StepAxis& a : s.over) axes_.push_back(a.name);
    return {};
  }
  Status computing(Step& s, std::string_view word) {
    end_ = 0;
    TRY(axes_of_step(s));
    if (word == "matrix") {
      s.kind = Kind::kMatrix;
      TRY_ASSIGN(s.compute, name());
    } else if (word == "map" || word == "reduce") {
      s.kind = word == "map" ? Kind::kMap : Kind::kReduce;
      TRY_ASSIGN(const std::string f, name());
      const FunctionInfo* function = find_function(f);
      if (function == nullptr) return fail(fmt::format("there is no function '{}'", f));
      s.function = function->function;
    }
    TRY_ASSIGN(s.out, operand());
    TRY(expect("="));
    do {
      TRY_ASSIGN(Operand o, operand());
      s.in.push_back(std::move(o));
      if (s.in.size() > kMaxInputs) return fail("too many operands");
    } while (eat(s.kind == Kind::kMatrix ? "*" : ","));
    if (eat_word("pad")) {
      s.pads = true;
      TRY_ASSIGN(s.pad, parsed<double>("a number"));
    }
    if (eat_word("add")) {
      TRY_ASSIGN(s.add, expr());
    }
    axes_.clear();
    if (end_ != 0) {
      TRY(expect("over"));
      at_ = end_;
    }
    return {};
  }
  Result<Step> step() {
    Step s;
    TRY_ASSIGN(const std::string engine, name());
    s.engine = p_.engine(engine);
    TRY(expect(":"));
    TRY_ASSIGN(const std::string word, name());
    if (word == "copy" || word == "matrix" || word == "map" || word == "reduce") {
      TRY(computing(s, word));
    } else if (word == "set" || word == "wait") {
      s.kind = word == "set" ? Kind::kSet : Kind::kWait;
      TRY_ASSIGN(const std::string other, name());
      s.other = p_.engine(other);
      TRY_ASSIGN(s.id, expr());
    } else if (word == "delay") {
      s.kind = Kind::kDelay;
      TRY_ASSIGN(s.from, expr());
    } else if (word == "trap") {
      s.kind = Kind::kTrap;
      TRY_ASSIGN(s.text, quoted());
    } else {
      return fail(fmt::format("'{}' is no step", word));
    }
    return s;
  }
  Result<Step> loop(int nesting) {
    Step s;
    s.kind = Kind::kFor;
    TRY_ASSIGN(const std::string v, name());
    if (std::ranges::find(scope_, v) != scope_.end())
      return fail(fmt::format("'{}' has two meanings", v));
    TRY(expect("="));
    TRY_ASSIGN(s.from, expr());
    TRY(expect("to"));
    TRY_ASSIGN(s.to, expr());
    if (eat_word("by")) {
      TRY_ASSIGN(s.by, expr());
    }
    TRY(expect("{"));
    s.symbol = p_.symbol(v);
    scope_.push_back(v);
    TRY(steps(s.body, nesting + 1));
    scope_.pop_back();
    return s;
  }
  Status steps(std::vector<Step>& body, int nesting) {
    if (nesting > kMaxNesting) return fail("loops that are nested too deep");
    while (!eat("}")) {
      if (++count_ > kMaxSteps) return fail(fmt::format("more than {} steps", kMaxSteps));
      if (eat_word("for")) {
        TRY_ASSIGN(Step s, loop(nesting));
        body.push_back(std::move(s));
      } else {
        TRY_ASSIGN(Step s, step());
        body.push_back(std::move(s));
      }
    }
    return {};
  }
  Status program() {
    TRY(expect("engine"));
    TRY_ASSIGN(p_.name, quoted());
    TRY(expect("on"));
    TRY_ASSIGN(p_.core, name());
    TRY(expect("{"));
    scope_ = p_.symbols;
    count_ = 0;
    if (eat_word("constants")) {
      do {
        TRY_ASSIGN(std::string s, name());
        if (std::ranges::find(scope_, s) != scope_.end() || p_.constants >= kMaxConstants)
          return fail(fmt::format("a constant '{}' too many", s));
        p_.symbol(s);
        scope_.push_back(std::move(s));
        ++p_.constants;
      } while (eat(","));
    }
    while (true) {
      if (eat_word("argument"))
        TRY(buffer(true));
      else if (eat_word("buffer"))
        TRY(buffer(false));
      else
        break;
    }
    return steps(p_.body, 0);
  }

  static constexpr size_t kMaxName = 256;
  static constexpr size_t kMaxBuffers = 512;
  static constexpr size_t kMaxInputs = 4;
  static constexpr int kMaxConstants = 64;

  std::string_view text_;
  size_t at_ = 0;
  size_t end_ = 0;  // of the axes of the step at hand
  int depth_ = 0;
  size_t count_ = 0;
  Program p_;
  std::vector<std::string> axes_;   // of the step at hand
  std::vector<std::string> scope_;  // symbols
};

}  // namespace

Result<std::vector<Program>> parse(std::string_view text) { return Parser(text).all(); }

}  // namespace tessera::tile::engine
