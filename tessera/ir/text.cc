#include "tessera/ir/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace tessera::ir {
namespace {

constexpr int64_t kInline = 16;         // elements
constexpr int kMaxDepth = 32;           // nested bodies
constexpr int64_t kMaxCount = 1 << 20;  // values of a text

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return out + '"';
}

std::string number(double v) {
  if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

template <class T, class Fn>
std::string list(const std::vector<T>& items, Fn one) {
  std::string s = "[";
  for (const T& item : items) s += (s.size() > 1 ? ", " : "") + one(item);
  return s + "]";
}

class Printer {
 public:
  explicit Printer(std::vector<op::Tensor>* store) : store_(store) {}

  std::string graph(const Graph& g, int indent) {
    const std::string pad(static_cast<size_t>(indent), ' '), inner = pad + "  ";
    std::map<ValueId, int> ids;
    auto id = [&](ValueId v) {
      return v == kAbsent
                 ? std::string("_")
                 : fmt::format("%{}", ids.emplace(v, static_cast<int>(ids.size())).first->second);
    };
    auto named = [&](ValueId v) {
      return id(v) + (v != kAbsent && !g.value(v).name.empty() ? " " + quote(g.value(v).name) : "");
    };
    std::string s = pad + "graph @" + quote(g.name) + "(";
    for (size_t i = 0; i < g.inputs.size(); ++i)
      s += (i ? ", " : "") + named(g.inputs[i]) + ": " + g.type(g.inputs[i]).str();
    s += ") {\n";
    std::set<ValueId> printed(g.inputs.begin(), g.inputs.end());
    auto constants = [&](const std::vector<ValueId>& values) {
      for (ValueId v : values)
        if (v != kAbsent && g.value(v).constant && printed.insert(v).second)
          s += inner + named(v) + " = constant " + tensor(*g.value(v).constant) + "\n";
    };
    for (const Node& node : g.nodes) {
      constants(node.inputs);
      s += inner;
      for (size_t i = 0; i < node.outputs.size(); ++i)
        s += (i ? ", " : "") + named(node.outputs[i]);
      s += fmt::format("{}{}(", node.outputs.empty() ? "" : " = ", node.op->name);
      for (size_t i = 0; i < node.inputs.size(); ++i) s += (i ? ", " : "") + id(node.inputs[i]);
      s += ")";
      if (!node.attrs.empty()) {
        s += " {";
        bool first = true;
        for (const auto& [name, value] : node.attrs.all()) {
          s += (first ? "" : ", ") + name + " = " + attr(value);
          first = false;
        }
        s += "}";
      }
      if (!node.outputs.empty()) s += " : ";
      for (size_t i = 0; i < node.outputs.size(); ++i)
        s += (i ? ", " : "") +
             (node.outputs[i] == kAbsent ? std::string("_") : g.type(node.outputs[i]).str());
      for (size_t i = 0; i < node.origin.size(); ++i)
        s += (i ? ", " : " from ") + quote(node.origin[i]);
      if (!node.bodies.empty()) {
        s += " {\n";
        for (const Graph& body : node.bodies) s += graph(body, indent + 4);
        s += inner + "}";
      }
      s += "\n";
    }
    constants(g.outputs);
    s += inner + "return";
    for (size_t i = 0; i < g.outputs.size(); ++i)
      s += (i ? ", " : " ") + id(g.outputs[i]) + " " +
           quote(i < g.output_names.size() ? g.output_names[i] : "");
    return s + "\n" + pad + "}\n";
  }

 private:
  std::string tensor(const op::Tensor& t) {
    std::string s = t.type().str();
    if (t.count() <= kInline && !is_complex(t.dtype())) {
      s += " {";
      for (int64_t i = 0; i < t.count(); ++i) {
        s += i ? ", " : "";
        if (t.dtype() == DType::kString)
          s += quote(t.text()[static_cast<size_t>(i)]);
        else
          s += is_float(t.dtype()) ? number(t.f64(i)) : std::to_string(t.i64(i));
      }
      return s + "}";
    }
    if (!store_) return s + " @_";
    store_->push_back(t);
    return s + fmt::format(" @{}", store_->size() - 1);
  }

  std::string attr(const op::Attr& a) {
    struct {
      Printer& p;
      std::string operator()(int64_t v) { return std::to_string(v); }
      std::string operator()(double v) { return number(v); }
      std::string operator()(const std::string& v) { return quote(v); }
      std::string operator()(const op::Ints& v) {
        return list(v, [](int64_t x) { return std::to_string(x); });
      }
      std::string operator()(const op::Floats& v) { return "f" + list(v, number); }
      std::string operator()(const op::Strings& v) {
        return "s" + list(v, [](const std::string& x) { return quote(x); });
      }
      std::string operator()(DType v) { return "dtype " + std::string(name_of(v)); }
      std::string operator()(const op::Type& v) { return "type " + v.str(); }
      std::string operator()(const op::Tensor& v) { return "tensor " + p.tensor(v); }
    } visitor{*this};
    return std::visit(visitor, a);
  }

  std::vector<op::Tensor>* store_;
};

// Recursive descent; every function leaves its first error in error_ and the parser stops.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<op::Tensor>& store)
      : text_(text), store_(store) {}

  Result<Graph> whole() {
    auto symbols = std::make_shared<SymbolSource>();
    TRY_ASSIGN(Graph g, graph(symbols, 0));
    skip();
    if (at_ != text_.size()) return fail("text after the graph");
    return g;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool eat(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  tl::unexpected<Error> fail(std::string_view what) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t newline = before.rfind('\n');
    return error(Code::kInvalidArgument, "line {}, column {}: {}", line,
                 newline == before.npos ? at_ + 1 : at_ - newline, what);
  }
  Status expect(std::string_view word) {
    if (!eat(word)) return fail(fmt::format("expected '{}'", word));
    return {};
  }

  Result<std::string> quoted() {
    skip();
    TRY(expect("\""));
    std::string s;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        s += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      if (text_[at_] != 'x') {
        s += text_[at_];
        continue;
      }
      int code = 0;
      const char* begin = text_.data() + at_ + 1;
      if (text_.size() - at_ < 3 || std::from_chars(begin, begin + 2, code, 16).ptr != begin + 2)
        return fail("bad escape");
      s += static_cast<char>(code);
      at_ += 2;
    }
    if (at_ >= text_.size()) return fail("a string without end");
    ++at_;
    return s;
  }

  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<int64_t> integer() {
    skip();
    int64_t v = 0;
    auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (bad != std::errc()) return fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }

  Result<double> floating() {
    skip();
    double v = 0;
    auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (bad != std::errc()) return fail("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }

  // A type reaches to where its brackets close.
  Result<op::Type> type() {
    skip();
    const size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '[' || c == '<' || c == '(') ++depth;
      if (c == ']' || c == '>' || c == ')') {
        if (depth == 0) break;
        --depth;
        if (depth == 0) {
          ++at_;
          break;
        }
      }
      if (depth == 0 && (c == ',' || c == ' ' || c == '\n')) break;
    }
    auto t = op::Type::parse(text_.substr(begin, at_ - begin));
    if (!t) return fail(t.error().message);
    return t;
  }

  Result<op::Tensor> tensor() {
    TRY_ASSIGN(op::Type t, type());
    if (!t.is_tensor() || !t.is_static()) return fail("a constant's sizes must be numbers");
    if (eat("@")) {
      TRY_ASSIGN(int64_t k, integer());
      if (k < 0 || static_cast<size_t>(k) >= store_.size())
        return fail("no such handle in the store");
      if (!(store_[static_cast<size_t>(k)].type() == t))
        return fail(fmt::format("the store holds {}", store_[static_cast<size_t>(k)].type().str()));
      return store_[static_cast<size_t>(k)];
    }
    TRY(expect("{"));
    auto count = op::element_count(t.dims());
    if (!count || *count > kInline) return fail("too many elements to stand in the text");
    TRY_ASSIGN(op::Tensor value, op::Tensor::make(t.dtype, t.dims()));
    for (int64_t i = 0; i < *count; ++i) {
      if (i) TRY(expect(","));
      if (t.dtype == DType::kString) {
        TRY_ASSIGN(value.mutable_text()[static_cast<size_t>(i)], quoted());
      } else if (is_float(t.dtype)) {
        TRY_ASSIGN(double v, floating());
        value.set_f64(i, v);
      } else {
        TRY_ASSIGN(int64_t v, integer());
        value.set_i64(i, v);
      }
    }
    TRY(expect("}"));
    return value;
  }

  template <class T, class Fn>
  Result<std::vector<T>> list(Fn one) {
    std::vector<T> items;
    TRY(expect("["));
    while (!eat("]")) {
      if (!items.empty()) TRY(expect(","));
      TRY_ASSIGN(T item, one());
      items.push_back(std::move(item));
    }
    return items;
  }

  Result<op::Attr> attr() {
    skip();
    if (at_ >= text_.size()) return fail("expected a value");
    if (text_[at_] == '"') {
      TRY_ASSIGN(std::string s, quoted());
      return op::Attr(std::move(s));
    }
    if (text_[at_] == '[') {
      TRY_ASSIGN(op::Ints v, list<int64_t>([&] { return integer(); }));
      return op::Attr(std::move(v));
    }
    if (eat("f[")) {
      --at_;
      TRY_ASSIGN(op::Floats v, list<double>([&] { return floating(); }));
      return op::Attr(std::move(v));
    }
    if (eat("s[")) {
      --at_;
      TRY_ASSIGN(op::Strings v, list<std::string>([&] { return quoted(); }));
      return op::Attr(std::move(v));
    }
    if (eat("dtype ")) {
      const std::string_view name = word();
      auto d = dtype_from_name(name);
      if (!d) return fail(fmt::format("'{}' is not a dtype", name));
      return op::Attr(*d);
    }
    if (eat("type ")) {
      TRY_ASSIGN(op::Type t, type());
      return op::Attr(std::move(t));
    }
    if (eat("tensor ")) {
      TRY_ASSIGN(op::Tensor t, tensor());
      return op::Attr(std::move(t));
    }
    const size_t end = text_.find_first_of(",}\n ", at_);
    const std::string_view number = text_.substr(at_, end == text_.npos ? end : end - at_);
    if (number.find_first_of(".enai") != number.npos) {
      TRY_ASSIGN(double v, floating());
      return op::Attr(v);
    }
    TRY_ASSIGN(int64_t v, integer());
    return op::Attr(v);
  }

  using Ids = std::map<int64_t, ValueId>;

  // "%7", or "_" as -1.
  Result<int64_t> id() {
    if (eat("_")) return -1;
    TRY(expect("%"));
    return integer();
  }
  Result<std::string> optional_name() {
    skip();
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    return std::string();
  }
  Result<ValueId> use(const Ids& ids) {
    TRY_ASSIGN(int64_t n, id());
    if (n < 0) return kAbsent;
    auto found = ids.find(n);
    if (found == ids.end()) return fail(fmt::format("%{} is not defined yet", n));
    return found->second;
  }
  Status define(Ids& ids, int64_t n, ValueId v) {
    if (++count_ > kMaxCount) return fail("too many values");
    if (n >= 0 && !ids.emplace(n, v).second) return fail(fmt::format("%{} is defined twice", n));
    return {};
  }

  // A stated type replaces the inferred one if it is of the same kind, dtype and rank.
  Status state(Graph& g, ValueId v, op::Type stated) {
    const op::Type& own = g.type(v);
    const bool fits =
        own.kind == stated.kind &&
        (!own.is_tensor() || (own.dtype == stated.dtype &&
                              (!own.ranked() || !stated.ranked() || own.rank() == stated.rank())));
    if (!fits) return fail(fmt::format("stated {}, inferred {}", stated.str(), own.str()));
    note(*g.symbols, stated);
    g.value(v).type = std::move(stated);
    return {};
  }
  // Fresh symbols must not meet those of the text.
  static void note(SymbolSource& symbols, const op::Type& t) {
    if (!t.ranked()) return;
    for (const op::Expr& d : *t.shape)
      for (const std::string& s : d.symbols()) {
        int64_t n = 0;
        if (s.size() > 1 && s.size() < 18 && s[0] == '_' &&
            std::from_chars(s.data() + 1, s.data() + s.size(), n).ptr == s.data() + s.size())
          symbols.skip_to(n + 1);
      }
  }

  Result<Graph> graph(const std::shared_ptr<SymbolSource>& symbols, int depth) {
    if (depth > kMaxDepth) return fail("bodies are nested too deep");
    TRY(expect("graph @"));
    TRY_ASSIGN(std::string name, quoted());
    Graph g(std::move(name));
    g.symbols = symbols;
    Ids ids;
    TRY(expect("("));
    while (!eat(")")) {
      if (!g.inputs.empty()) TRY(expect(","));
      TRY_ASSIGN(int64_t n, id());
      TRY_ASSIGN(std::string input_name, optional_name());
      TRY(expect(":"));
      TRY_ASSIGN(op::Type t, type());
      note(*symbols, t);
      TRY(define(ids, n, g.add_input(std::move(input_name), std::move(t))));
    }
    TRY(expect("{"));
    while (!eat("return")) TRY(statement(g, ids, depth));
    skip();
    while (!eat("}")) {
      if (!g.outputs.empty()) TRY(expect(","));
      TRY_ASSIGN(ValueId v, use(ids));
      if (v == kAbsent) return fail("an output is absent");
      TRY_ASSIGN(std::string output_name, quoted());
      g.outputs.push_back(v);
      g.output_names.push_back(std::move(output_name));
    }
    return g;
  }

  Status statement(Graph& g, Ids& ids, int depth) {
    std::vector<int64_t> results;
    std::vector<std::string> names;
    skip();
    if (at_ < text_.size() && (text_[at_] == '%' || text_[at_] == '_')) {
      do {
        TRY_ASSIGN(int64_t n, id());
        TRY_ASSIGN(std::string name, optional_name());
        results.push_back(n);
        names.push_back(std::move(name));
      } while (eat(","));
      TRY(expect("="));
    }
    const std::string op_name(word());
    if (op_name == "constant") {
      TRY_ASSIGN(op::Tensor t, tensor());
      if (results.size() != 1) return fail("a constant is one value");
      return define(ids, results[0], g.add_constant(std::move(t), names[0]));
    }
    const op::OpDef* def = op::find(op_name);
    if (!def) return fail(fmt::format("no operator '{}'", op_name));
    std::vector<ValueId> inputs;
    TRY(expect("("));
    while (!eat(")")) {
      if (!inputs.empty()) TRY(expect(","));
      TRY_ASSIGN(ValueId v, use(ids));
      inputs.push_back(v);
    }
    op::Attrs attrs;
    // A brace after the operands holds attributes; one after the types, bodies.
    if (eat("{")) {
      while (!eat("}")) {
        if (!attrs.empty()) TRY(expect(","));
        const std::string name(word());
        TRY(expect("="));
        TRY_ASSIGN(op::Attr value, attr());
        attrs.set(name, std::move(value));
      }
    }
    std::vector<std::optional<op::Type>> types;
    if (eat(":")) {
      do {
        if (eat("_")) {
          types.emplace_back();
          continue;
        }
        TRY_ASSIGN(op::Type t, type());
        types.emplace_back(std::move(t));
      } while (eat(","));
    }
    if (types.size() != results.size())
      return fail(fmt::format("{} types for {} results", types.size(), results.size()));
    std::vector<std::string> origin;
    if (eat("from")) do {
        TRY_ASSIGN(std::string from, quoted());
        origin.push_back(std::move(from));
      } while (eat(","));
    std::vector<Graph> bodies;
    if (eat("{")) {
      while (!eat("}")) {
        TRY_ASSIGN(Graph body, graph(g.symbols, depth + 1));
        bodies.push_back(std::move(body));
      }
    }
    auto added = g.add(*def, std::move(inputs), std::move(attrs), static_cast<int>(results.size()),
                       std::move(bodies), std::move(origin));
    if (!added) return fail(added.error().message);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] < 0) {
        g.nodes.back().outputs[i] = kAbsent;
        continue;
      }
      g.value((*added)[i]).name = std::move(names[i]);
      if (types[i]) TRY(state(g, (*added)[i], std::move(*types[i])));
      TRY(define(ids, results[i], (*added)[i]));
    }
    return {};
  }

  std::string_view text_;
  const std::vector<op::Tensor>& store_;
  size_t at_ = 0;
  int64_t count_ = 0;
};

}  // namespace

std::string print(const Graph& graph, std::vector<op::Tensor>& store) {
  return Printer(&store).graph(graph, 0);
}
std::string print(const Graph& graph) { return Printer(nullptr).graph(graph, 0); }

Result<Graph> parse(std::string_view text, const std::vector<op::Tensor>& store) {
  return Parser(text, store).whole();
}

}  // namespace tessera::ir
