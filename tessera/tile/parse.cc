#include "tessera/tile/text.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace tessera::tile {
namespace {

constexpr int kMaxDepth = 32;  // nested loops of a text
constexpr size_t kMaxValues = 1 << 16;
constexpr std::pair<std::string_view, Role> kRoles[] = {
    {"in", Role::kIn}, {"out", Role::kOut}, {"inout", Role::kInOut}};

// Recursive descent.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Program> whole() {
    TRY(expect("program"));
    TRY_ASSIGN(p_.name, name());
    TRY(expect("("));
    while (!eat(")")) {
      if (!p_.tensors.empty()) TRY(expect(","));
      TRY(tensor());
    }
    TRY(expect("{"));
    if (eat_word("axes")) {
      do TRY(axis());
      while (eat(","));
    }
    if (eat_word("grid")) {
      TRY_ASSIGN(p_.grid, axes());
    }
    if (eat_word("whole")) {
      TRY_ASSIGN(p_.whole, axes());
    }
    std::vector<int> yields;
    TRY(statements(p_.body, yields, 0));
    if (!yields.empty()) return fail("'yield' outside of a loop");
    if (skip(); at_ != text_.size()) return fail("text after the program");
    return std::move(p_);
  }

  Result<Schedule> schedule(const Program& p) {
    p_ = p;
    Schedule s;
    s.axes.resize(p.axes.size());
    std::vector<bool> seen(p.axes.size(), false);
    do {
      TRY_ASSIGN(const int a, axis_named());
      if (seen[static_cast<size_t>(a)]) return fail("an axis is named twice");
      seen[static_cast<size_t>(a)] = true;
      AxisSchedule& axis = s.axes[static_cast<size_t>(a)];
      TRY(expect(":"));
      TRY_ASSIGN(axis.tile, integer());
      if (eat_word("vector")) {
        TRY_ASSIGN(axis.vector, integer());
      }
    } while (eat(","));
    if (skip(); at_ != text_.size()) return fail("text after the schedule");
    return s;
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
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && letter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Result<std::string> name() {
    const std::string_view w = word();
    if (w.empty() || (w[0] >= '0' && w[0] <= '9') || w[0] == '.') return fail("expected a name");
    return std::string(w);
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
  Result<int64_t> integer() { return parsed<int64_t>("a whole number"); }
  Result<double> floating() { return parsed<double>("a number"); }
  Result<DType> dtype() {
    const std::string_view w = word();
    const auto d = dtype_from_name(w);
    if (!d || name_of(*d) != w) return fail(fmt::format("'{}' is no type of elements", w));
    return *d;
  }

  // A size reaches to the next comma, colon, bracket or line end outside of its own parentheses.
  Result<Expr> size() {
    skip();
    const size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(') ++depth;
      if (c == ')' && depth-- == 0) break;
      if (depth == 0 && (c == ',' || c == ']' || c == ':' || c == '\n')) break;
    }
    auto e = Expr::parse(text_.substr(begin, at_ - begin));
    if (!e) return fail(e.error().message);
    return e;
  }
  Result<std::vector<Expr>> sizes(std::string_view end) {
    std::vector<Expr> list;
    while (!eat(end)) {
      if (!list.empty()) TRY(expect(","));
      TRY_ASSIGN(Expr e, size());
      list.push_back(std::move(e));
    }
    return list;
  }

  Status tensor() {
    Tensor t;
    TRY_ASSIGN(t.name, name());
    if (tensors_.contains(t.name)) return fail(fmt::format("two tensors are called '{}'", t.name));
    TRY(expect(":"));
    const std::string_view role = word();
    const auto found = std::ranges::find(kRoles, role, [](auto& r) { return r.first; });
    if (found == std::end(kRoles)) return fail("expected 'in', 'out' or 'inout'");
    t.role = found->second;
    TRY_ASSIGN(t.dtype, dtype());
    TRY(expect("["));
    TRY_ASSIGN(t.dims, sizes("]"));
    if (eat_word("layout")) {
      TRY(expect("\""));
      const size_t end = text_.find('"', at_);
      if (end == text_.npos) return fail("a layout without end");
      t.layout = text_.substr(at_, end - at_);
      at_ = end + 1;
    }
    if (eat_word("strides")) {
      TRY(expect("("));
      TRY_ASSIGN(t.strides, sizes(")"));
    }
    tensors_.emplace(t.name, static_cast<int>(p_.tensors.size()));
    p_.tensors.push_back(std::move(t));
    return {};
  }
  Status axis() {
    Axis a;
    TRY_ASSIGN(a.name, name());
    if (p_.find_axis(a.name) != kNone) return fail(fmt::format("two axes are called '{}'", a.name));
    TRY(expect("="));
    TRY_ASSIGN(a.extent, size());
    p_.axes.push_back(std::move(a));
    return {};
  }
  Result<int> axis_named() {
    TRY_ASSIGN(const std::string n, name());
    const int a = p_.find_axis(n);
    if (a == kNone) return fail(fmt::format("there is no axis '{}'", n));
    return a;
  }
  Result<std::vector<int>> axes() {
    std::vector<int> list;
    do {
      TRY_ASSIGN(const int a, axis_named());
      list.push_back(a);
    } while (eat(","));
    return list;
  }

  Result<int64_t> id() {
    TRY(expect("%"));
    return integer();
  }
  Result<int> use() {
    TRY_ASSIGN(const int64_t n, id());
    const auto found = ids_.find(n);
    if (found == ids_.end()) return fail(fmt::format("%{} is not made yet", n));
    return found->second;
  }
  Result<std::vector<int>> uses(std::string_view end) {
    std::vector<int> list;
    while (!eat(end)) {
      if (!list.empty()) TRY(expect(","));
      TRY_ASSIGN(const int v, use());
      list.push_back(v);
    }
    return list;
  }
  Result<Value> type() {
    Value v;
    TRY_ASSIGN(v.dtype, dtype());
    if (!eat("(")) return v;
    TRY_ASSIGN(v.axes, axes());
    TRY(expect(")"));
    return v;
  }
  Result<int> make(int64_t n, Value value) {
    if (p_.values.size() >= kMaxValues) return fail("too many values");
    const int v = static_cast<int>(p_.values.size());
    if (!ids_.emplace(n, v).second) return fail(fmt::format("%{} is made twice", n));
    p_.values.push_back(std::move(value));
    return v;
  }

  Status statements(std::vector<Instruction>& body, std::vector<int>& yields, int depth) {
    if (depth > kMaxDepth) return fail("loops are nested too deep");
    while (!eat("}")) {
      if (eat_word("yield")) {
        do {
          TRY_ASSIGN(const int v, use());
          yields.push_back(v);
        } while (eat(","));
        TRY(expect("}"));
        return {};
      }
      TRY_ASSIGN(Instruction i, statement(depth));
      body.push_back(std::move(i));
    }
    return {};
  }

  Status place(Instruction& i) {
    TRY_ASSIGN(const std::string n, name());
    const auto found = tensors_.find(n);
    if (found == tensors_.end()) return fail(fmt::format("there is no tensor '{}'", n));
    i.tensor = found->second;
    TRY(expect("["));
    while (!eat("]")) {
      if (!i.at.empty()) TRY(expect(","));
      Subscript s;
      skip();
      if (at_ < text_.size() && text_[at_] == '%') {
        TRY_ASSIGN(s.value, use());
      } else {
        TRY_ASSIGN(s.at, size());
      }
      i.at.push_back(std::move(s));
    }
    return {};
  }

  Result<Instruction> statement(int depth) {
    Instruction i;
    if (eat_word("store")) {
      i.kind = Kind::kStore;
      TRY(place(i));
      TRY(expect("="));
      TRY_ASSIGN(const int v, use());
      i.in = {v};
      return i;
    }
    std::vector<int64_t> ids;
    if (!eat_word("for")) {
      do {
        TRY_ASSIGN(const int64_t n, id());
        ids.push_back(n);
      } while (eat(","));
      TRY(expect("="));
      if (!eat_word("for")) {
        if (ids.size() != 1) return fail("only a loop makes several values");
        TRY(simple(i, ids[0]));
        return i;
      }
    }
    TRY(loop(i, ids, depth));
    return i;
  }

  Status simple(Instruction& i, int64_t n) {
    const std::string_view w = word();
    Value value;
    if (w == "constant") {
      i.kind = Kind::kConstant;
      TRY_ASSIGN(value.dtype, dtype());
      if (is_float(value.dtype)) {
        TRY_ASSIGN(i.number, floating());
      } else {
        TRY_ASSIGN(i.whole, integer());
      }
    } else {
      if (w == "index") {
        i.kind = Kind::kIndex;
        TRY_ASSIGN(i.axis, axis_named());
      } else if (w == "size") {
        i.kind = Kind::kSize;
        TRY_ASSIGN(i.size, size());
      } else if (w == "load") {
        i.kind = Kind::kLoad;
        TRY(place(i));
        if (eat_word("pad")) {
          TRY_ASSIGN(i.pad, floating());
        }
      } else {
        i.kind = w == "reduce" ? Kind::kReduce : w == "dot" ? Kind::kDot : Kind::kMap;
        if (i.kind != Kind::kDot) {
          const std::string_view f = i.kind == Kind::kMap ? w : word();
          const FunctionInfo* function = find_function(f);
          if (!function) return fail(fmt::format("there is no function '{}'", f));
          i.function = function->function;
        }
        TRY(expect("("));
        TRY_ASSIGN(i.in, uses(")"));
        if (i.kind != Kind::kMap) {
          TRY(expect("over"));
          TRY_ASSIGN(i.over, axes());
        }
      }
      TRY(expect(":"));
      TRY_ASSIGN(value, type());
    }
    TRY_ASSIGN(const int v, make(n, std::move(value)));
    i.out = {v};
    return {};
  }

  Status loop(Instruction& i, const std::vector<int64_t>& ids, int depth) {
    i.kind = Kind::kFor;
    TRY_ASSIGN(i.axis, axis_named());
    std::vector<int64_t> carried;
    if (eat("(")) {
      do {
        TRY_ASSIGN(const int64_t n, id());
        TRY(expect("="));
        TRY_ASSIGN(const int v, use());
        carried.push_back(n);
        i.in.push_back(v);
      } while (eat(","));
      TRY(expect(")"));
      TRY(expect(":"));
    }
    if (carried.size() != ids.size())
      return fail(fmt::format("{} results of a loop that carries {}", ids.size(), carried.size()));
    for (size_t k = 0; k < carried.size(); ++k) {
      if (k) TRY(expect(","));
      TRY_ASSIGN(Value value, type());
      TRY_ASSIGN(const int v, make(carried[k], std::move(value)));
      i.carried.push_back(v);
    }
    TRY(expect("{"));
    TRY(statements(i.body, i.yields, depth + 1));
    for (size_t k = 0; k < ids.size(); ++k) {
      TRY_ASSIGN(const int v, make(ids[k], p_.value(i.carried[k])));
      i.out.push_back(v);
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  Program p_;
  std::map<std::string, int, std::less<>> tensors_;
  std::map<int64_t, int> ids_;
};

}  // namespace

Result<Program> parse(std::string_view text) { return Parser(text).whole(); }

Result<Schedule> parse_schedule(std::string_view text, const Program& program) {
  return Parser(text).schedule(program);
}

}  // namespace tessera::tile
