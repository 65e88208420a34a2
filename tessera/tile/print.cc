#include "tessera/tile/text.h"

#include <algorithm>
#include <cmath>

namespace tessera::tile {
namespace {

std::string_view name_of(Role role) {
  return role == Role::kIn ? "in" : role == Role::kOut ? "out" : "inout";
}

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

template <class T, class Fn>
std::string joined(const std::vector<T>& list, Fn text) {
  std::string s;
  for (const T& item : list) s += (s.empty() ? "" : ", ") + text(item);
  return s;
}

std::string text_of(const Expr& e) { return e.str(); }

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p), ids_(p.values.size(), -1) {}

  std::string program() {
    std::string s = "program " + p_.name + "(" +
                    joined(p_.tensors, [](const Tensor& t) { return tensor(t); }) + ") {\n";
    if (!p_.axes.empty())
      s += "  axes " +
           joined(p_.axes, [](const Axis& a) { return a.name + " = " + a.extent.str(); }) + "\n";
    if (!p_.grid.empty()) s += "  grid " + axes(p_.grid) + "\n";
    if (!p_.whole.empty()) s += "  whole " + axes(p_.whole) + "\n";
    return s + body(p_.body, "  ") + "}\n";
  }

 private:
  static std::string tensor(const Tensor& t) {
    std::string s = fmt::format("{}: {} {}[{}]", t.name, name_of(t.role), name_of(t.dtype),
                                joined(t.dims, text_of));
    if (!t.layout.empty()) s += " layout \"" + t.layout + "\"";
    if (!t.strides.empty()) s += " strides(" + joined(t.strides, text_of) + ")";
    return s;
  }
  std::string axes(const std::vector<int>& list) const {
    return joined(list, [this](int a) { return p_.axis(a).name; });
  }
  std::string id(int v) {
    int& id = ids_[static_cast<size_t>(v)];
    if (id < 0) id = next_++;
    return fmt::format("%{}", id);
  }
  std::string values(const std::vector<int>& list) {
    return joined(list, [this](int v) { return id(v); });
  }
  std::string type(int v) const {
    const Value& value = p_.value(v);
    return std::string(name_of(value.dtype)) +
           (value.axes.empty() ? "" : "(" + axes(value.axes) + ")");
  }
  std::string types(const std::vector<int>& list) const {
    return joined(list, [this](int v) { return type(v); });
  }
  std::string place(const Instruction& i) {
    return p_.tensor(i.tensor).name + "[" +
           joined(
               i.at,
               [this](const Subscript& s) { return s.value == kNone ? s.at.str() : id(s.value); }) +
           "]";
  }

  std::string body(const std::vector<Instruction>& list, const std::string& pad) {
    std::string s;
    for (const Instruction& i : list) s += pad + statement(i, pad) + "\n";
    return s;
  }
  // What an instruction reads has its number before what it makes.
  std::string statement(const Instruction& i, const std::string& pad) {
    switch (i.kind) {
      case Kind::kConstant: {
        const DType d = p_.value(i.out[0]).dtype;
        return fmt::format("{} = constant {} {}", id(i.out[0]), name_of(d),
                           is_float(d) ? number(i.number) : std::to_string(i.whole));
      }
      case Kind::kIndex:
        return fmt::format("{} = index {} : {}", id(i.out[0]), p_.axis(i.axis).name,
                           type(i.out[0]));
      case Kind::kSize:
        return fmt::format("{} = size {} : {}", id(i.out[0]), i.size.str(), type(i.out[0]));
      case Kind::kLoad: {
        const std::string from = place(i) + (i.pad ? " pad " + number(*i.pad) : "");
        return fmt::format("{} = load {} : {}", id(i.out[0]), from, type(i.out[0]));
      }
      case Kind::kMap: {
        const std::string in = values(i.in);
        return fmt::format("{} = {}({}) : {}", id(i.out[0]), name_of(i.function), in,
                           type(i.out[0]));
      }
      case Kind::kReduce: {
        const std::string in = values(i.in);
        return fmt::format("{} = reduce {}({}) over {} : {}", id(i.out[0]), name_of(i.function), in,
                           axes(i.over), type(i.out[0]));
      }
      case Kind::kDot: {
        const std::string in = values(i.in);
        return fmt::format("{} = dot({}) over {} : {}", id(i.out[0]), in, axes(i.over),
                           type(i.out[0]));
      }
      case Kind::kFor: {
        std::string carried;
        for (size_t k = 0; k < i.in.size(); ++k) {
          const std::string from = id(i.in[k]);
          carried += fmt::format("{}{} = {}", k ? ", " : "", id(i.carried[k]), from);
        }
        const std::string made = i.out.empty() ? "" : values(i.out) + " = ";
        std::string s = fmt::format("{}for {}{} {{\n", made, p_.axis(i.axis).name,
                                    i.in.empty() ? "" : " (" + carried + ") : " + types(i.carried));
        s += body(i.body, pad + "  ");
        if (!i.yields.empty()) s += pad + "  yield " + values(i.yields) + "\n";
        return s + pad + "}";
      }
      case Kind::kStore:
        return fmt::format("store {} = {}", place(i), id(i.in[0]));
    }
    return {};
  }

  const Program& p_;
  std::vector<int> ids_;
  int next_ = 0;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).program(); }

std::string print(const Schedule& schedule, const Program& program) {
  std::string s;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const AxisSchedule& axis = schedule.axes[a];
    s += fmt::format("{}{}: {}", s.empty() ? "" : ", ", program.axes[a].name, axis.tile);
    if (axis.vector != 1) s += fmt::format(" vector {}", axis.vector);
  }
  return s;
}

}  // namespace tessera::tile
