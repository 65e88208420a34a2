#include "tessera/tile/verify.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/layout/layout.h"

namespace tessera::tile {
namespace {

std::string_view name_of(Kind kind) {
  static constexpr std::string_view kNames[] = {"constant", "index", "size", "load", "map",
                                                "reduce",   "dot",   "for",  "store"};
  return kNames[static_cast<int>(kind)];
}

using Axes = std::set<int>;

Axes set_of(const std::vector<int>& list) { return {list.begin(), list.end()}; }

class Verifier {
 public:
  explicit Verifier(const Program& p) : p_(p), made_(p.values.size(), false) {}

  Status run() {
    TRY(axes());
    for (size_t t = 0; t < p_.tensors.size(); ++t) TRY(tensor(p_.tensors[t]));
    for (size_t v = 0; v < p_.values.size(); ++v) TRY(value(static_cast<int>(v)));
    for (const auto* list : {&p_.grid, &p_.whole})
      for (int a : *list) TRY(enter(a));
    return body(p_.body);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kInvalidArgument, "program {}: {}", p_.name,
                 fmt::format(format, std::forward<Args>(args)...));
  }
  tl::unexpected<Error> fail_at(const Instruction& i, const std::string& what) const {
    const std::string_view name = i.kind == Kind::kMap || i.kind == Kind::kReduce
                                      ? tile::name_of(i.function)
                                      : name_of(i.kind);
    const std::string made = i.out.empty() ? "" : fmt::format(" that makes value {}", i.out[0]);
    return fail("{}{}: {}", name, made, what);
  }

  bool has_axis(int a) const { return a >= 0 && static_cast<size_t>(a) < p_.axes.size(); }
  bool has_value(int v) const { return v >= 0 && static_cast<size_t>(v) < p_.values.size(); }
  std::string list(const Axes& axes) const {
    std::string s;
    for (int a : axes) s += (s.empty() ? "" : ", ") + p_.axis(a).name;
    return "(" + s + ")";
  }
  bool of_symbols(const Expr& e) const {
    return std::ranges::none_of(e.symbols(),
                                [&](const std::string& s) { return p_.find_axis(s) != kNone; });
  }

  Status axes() {
    std::set<std::string> names;
    for (const Axis& a : p_.axes) {
      if (a.name.empty() || !names.insert(a.name).second) return fail("two axes '{}'", a.name);
      if (!of_symbols(a.extent))
        return fail("the extent of axis {} is {}, need symbols only", a.name, a.extent.str());
      if (const auto n = a.extent.constant(); n && *n < 0)
        return fail("axis {} has extent {}", a.name, *n);
    }
    return {};
  }

  Status tensor(const Tensor& t) {
    if (t.dtype == DType::kString || is_complex(t.dtype))
      return fail("tensor {} holds {}", t.name, tessera::name_of(t.dtype));
    for (const auto* exprs : {&t.dims, &t.strides})
      for (const Expr& e : *exprs)
        if (!of_symbols(e)) return fail("tensor {}: {} names an axis", t.name, e.str());
    if (!t.strides.empty() && (!t.layout.empty() || t.strides.size() != t.dims.size()))
      return fail("tensor {}: {} strides for {} dimensions{}", t.name, t.strides.size(),
                  t.dims.size(), t.layout.empty() ? "" : " in a layout");
    if (t.layout.empty()) return {};
    const auto layout = layout::Layout::parse(t.layout);
    if (!layout) return fail("tensor {}: {}", t.name, layout.error().message);
    if (layout->rank() != static_cast<int>(t.dims.size()))
      return fail("tensor {}: layout '{}' of {} letters for {} dimensions", t.name, t.layout,
                  layout->rank(), t.dims.size());
    return {};
  }

  Status value(int v) const {
    const Value& x = p_.value(v);
    if (x.dtype == DType::kString || is_complex(x.dtype) ||
        (!is_float(x.dtype) && !is_int(x.dtype) && x.dtype != DType::kBool))
      return fail("value {} is {}", v, tessera::name_of(x.dtype));
    for (int a : x.axes)
      if (!has_axis(a)) return fail("value {} has an axis that is not there", v);
    if (set_of(x.axes).size() != x.axes.size()) return fail("value {} has an axis twice", v);
    return {};
  }

  Status enter(int a) {
    if (!has_axis(a)) return fail("an axis that is not there");
    if (!scope_.insert(a).second) return fail("axis {} is in scope twice", p_.axis(a).name);
    return {};
  }

  Status body(const std::vector<Instruction>& instructions) {
    for (const Instruction& i : instructions) {
      for (int v : i.in) TRY(read(i, v));
      for (const Subscript& s : i.at)
        if (s.value != kNone) TRY(read(i, s.value));
      for (int a : i.over)
        if (!has_axis(a)) return fail_at(i, "folds an axis that is not there");
      TRY(i.kind == Kind::kFor ? loop(i) : simple(i));
      for (int v : i.out) TRY(make(i, v));
    }
    return {};
  }

  Status read(const Instruction& i, int v) const {
    if (!has_value(v)) return fail_at(i, "reads a value that is not there");
    if (!made_[static_cast<size_t>(v)])
      return fail_at(i, fmt::format("reads value {} where it is not made", v));
    return {};
  }

  Status make(const Instruction& i, int v) {
    if (!has_value(v)) return fail_at(i, "makes a value that is not there");
    if (made_[static_cast<size_t>(v)]) return fail_at(i, fmt::format("value {} is made twice", v));
    for (int a : p_.value(v).axes)
      if (!scope_.contains(a))
        return fail_at(i, fmt::format("axis {} is not in scope", p_.axis(a).name));
    made_[static_cast<size_t>(v)] = true;
    scopes_.back().push_back(v);
    return {};
  }

  Status same_type(const Instruction& i, int a, int b) const {
    const Value &x = p_.value(a), &y = p_.value(b);
    if (x.dtype != y.dtype)
      return fail_at(
          i, fmt::format("{} and {}", tessera::name_of(x.dtype), tessera::name_of(y.dtype)));
    return {};
  }

  Status axes_are(const Instruction& i, int v, const Axes& want) const {
    if (set_of(p_.value(v).axes) != want)
      return fail_at(i, fmt::format("value {} has axes {}, need {}", v,
                                    list(set_of(p_.value(v).axes)), list(want)));
    return {};
  }

  Status loop(const Instruction& i) {
    if (!i.over.empty() || i.carried.size() != i.in.size() || i.yields.size() != i.in.size() ||
        i.out.size() != i.in.size())
      return fail_at(i, fmt::format("{} values in, {} carried, {} yielded, {} out", i.in.size(),
                                    i.carried.size(), i.yields.size(), i.out.size()));
    TRY(enter(i.axis));
    scopes_.emplace_back();
    for (size_t k = 0; k < i.in.size(); ++k) {
      TRY(make(i, i.carried[k]));
      TRY(same_type(i, i.in[k], i.carried[k]));
      const Axes carried = set_of(p_.value(i.carried[k]).axes);
      if (carried.contains(i.axis)) return fail_at(i, "carries a tile of the axis that it cuts");
      if (!std::ranges::includes(carried, set_of(p_.value(i.in[k]).axes)))
        return fail_at(i, "what is carried in has an axis more than what is carried");
    }
    TRY(body(i.body));
    for (size_t k = 0; k < i.in.size(); ++k) {
      TRY(read(i, i.yields[k]));
      TRY(same_type(i, i.yields[k], i.carried[k]));
      const Axes carried = set_of(p_.value(i.carried[k]).axes);
      if (!std::ranges::includes(carried, set_of(p_.value(i.yields[k]).axes)))
        return fail_at(i, "what is yielded has an axis more than what is carried");
      if (!has_value(i.out[k])) return fail_at(i, "makes a value that is not there");
      TRY(same_type(i, i.out[k], i.carried[k]));
      TRY(axes_are(i, i.out[k], carried));
    }
    for (int v : scopes_.back()) made_[static_cast<size_t>(v)] = false;
    scopes_.pop_back();
    scope_.erase(i.axis);
    return {};
  }

  Status simple(const Instruction& i) {
    if (i.kind == Kind::kStore ? !i.out.empty() : i.out.size() != 1)
      return fail_at(i, fmt::format("makes {} values", i.out.size()));
    if (i.kind != Kind::kStore && !has_value(i.out[0]))
      return fail_at(i, "makes a value that is not there");
    switch (i.kind) {
      case Kind::kConstant:
        return axes_are(i, i.out[0], {});
      case Kind::kIndex:
        if (!has_axis(i.axis)) return fail_at(i, "of an axis that is not there");
        if (p_.value(i.out[0]).dtype != DType::kI64) return fail_at(i, "an index is i64");
        return axes_are(i, i.out[0], {i.axis});
      case Kind::kSize:
        if (!of_symbols(i.size)) return fail_at(i, "names an axis");
        if (p_.value(i.out[0]).dtype != DType::kI64) return fail_at(i, "a size is i64");
        return axes_are(i, i.out[0], {});
      case Kind::kLoad:
      case Kind::kStore:
        return access(i);
      case Kind::kMap:
        return map(i);
      case Kind::kReduce:
        return reduce(i);
      case Kind::kDot:
        return dot(i);
      case Kind::kFor:
        break;
    }
    return fail_at(i, "is no instruction");
  }

  Status map(const Instruction& i) const {
    const FunctionInfo& f = info(i.function);
    if (i.in.size() != static_cast<size_t>(f.inputs))
      return fail_at(i, fmt::format("{} inputs, need {}", i.in.size(), f.inputs));
    const DType out = p_.value(i.out[0]).dtype;
    const size_t first = i.function == Function::kSelect ? 1 : 0;
    if (first == 1 && p_.value(i.in[0]).dtype != DType::kBool)
      return fail_at(
          i, fmt::format("chooses by {}, need bool", tessera::name_of(p_.value(i.in[0]).dtype)));
    Axes axes;
    for (size_t k = 0; k < i.in.size(); ++k) {
      const Value& x = p_.value(i.in[k]);
      axes.insert(x.axes.begin(), x.axes.end());
      if (k < first) continue;
      if (!in_domain(x.dtype, f.domain))
        return fail_at(i, fmt::format("input {} is {}", k, tessera::name_of(x.dtype)));
      TRY(same_type(i, i.in[k], i.in[first]));
    }
    if (f.yields_bool && out != DType::kBool) return fail_at(i, "yields bool");
    if (!f.yields_bool && i.function != Function::kConvert)
      TRY(same_type(i, i.out[0], i.in[first]));
    return axes_are(i, i.out[0], axes);
  }

  Status reduce(const Instruction& i) const {
    if (i.in.size() != 1) return fail_at(i, fmt::format("{} inputs, need 1", i.in.size()));
    if (!info(i.function).reduces) return fail_at(i, "does not fold");
    if (!in_domain(p_.value(i.in[0]).dtype, info(i.function).domain))
      return fail_at(i, fmt::format("of {}", tessera::name_of(p_.value(i.in[0]).dtype)));
    TRY(same_type(i, i.out[0], i.in[0]));
    Axes axes = set_of(p_.value(i.in[0]).axes);
    return folded(i, axes, axes);
  }

  Status dot(const Instruction& i) const {
    if (i.in.size() != 2 && i.in.size() != 3)
      return fail_at(i, fmt::format("{} inputs, need 2 or 3", i.in.size()));
    const Value &a = p_.value(i.in[0]), &b = p_.value(i.in[1]), &out = p_.value(i.out[0]);
    TRY(same_type(i, i.in[0], i.in[1]));
    if (!in_domain(a.dtype, kFloats | kInts) || is_float(a.dtype) != is_float(out.dtype) ||
        bits_of(out.dtype) < bits_of(a.dtype))
      return fail_at(
          i, fmt::format("of {} in {}", tessera::name_of(a.dtype), tessera::name_of(out.dtype)));
    Axes all = set_of(a.axes), common;
    all.insert(b.axes.begin(), b.axes.end());
    std::ranges::set_intersection(set_of(a.axes), set_of(b.axes),
                                  std::inserter(common, common.end()));
    TRY(folded(i, all, common));
    if (i.in.size() < 3) return {};
    TRY(same_type(i, i.in[2], i.out[0]));
    return axes_are(i, i.in[2], set_of(out.axes));
  }

  // The result has the axes `all` less those that are folded, each of which is in `from`.
  Status folded(const Instruction& i, Axes all, const Axes& from) const {
    if (i.over.empty()) return fail_at(i, "folds no axis");
    for (int a : i.over) {
      if (!from.contains(a))
        return fail_at(i, fmt::format("folds axis {}, which its inputs lack", p_.axis(a).name));
      if (all.erase(a) == 0) return fail_at(i, "folds an axis twice");
    }
    return axes_are(i, i.out[0], all);
  }

  Status access(const Instruction& i) {
    const bool stores = i.kind == Kind::kStore;
    if (i.tensor < 0 || static_cast<size_t>(i.tensor) >= p_.tensors.size())
      return fail_at(i, "of a tensor that is not there");
    const Tensor& t = p_.tensor(i.tensor);
    if (t.role == (stores ? Role::kIn : Role::kOut))
      return fail_at(i,
                     fmt::format("of '{}', which is only {}", t.name, stores ? "read" : "written"));
    if (i.at.size() != t.dims.size())
      return fail_at(i, fmt::format("{} subscripts for the {} dimensions of {}", i.at.size(),
                                    t.dims.size(), t.name));
    if (stores && i.in.size() != 1) return fail_at(i, fmt::format("of {} values", i.in.size()));
    const Value& x = p_.value(stores ? i.in[0] : i.out[0]);
    if (x.dtype != t.dtype)
      return fail_at(i, fmt::format("{} of {}, which holds {}", tessera::name_of(x.dtype), t.name,
                                    tessera::name_of(t.dtype)));
    if (i.pad && !is_float(t.dtype) &&
        (std::trunc(*i.pad) != *i.pad || std::abs(*i.pad) > double{int64_t{1} << 53}))
      return fail_at(i, fmt::format("pads {} with {}", tessera::name_of(t.dtype), *i.pad));
    Axes axes;
    std::vector<Affine> parts(i.at.size());
    for (size_t d = 0; d < i.at.size(); ++d) {
      const Subscript& s = i.at[d];
      if (s.value != kNone) {
        TRY(by_value(i, s, axes));
        continue;
      }
      auto part = affine(p_, s.at);
      if (!part) return fail_at(i, part.error().message);
      for (const auto& [a, coefficient] : part->terms) {
        if (!scope_.contains(a))
          return fail_at(i, fmt::format("axis {} is not in scope", p_.axis(a).name));
        axes.insert(a);
      }
      if (!i.pad) TRY(inside(i, *part, t.dims[d], d));
      parts[d] = std::move(*part);
    }
    if (!stores) return axes_are(i, i.out[0], axes);
    if (i.pad) return fail_at(i, "has a value for what it does not write");
    if (!std::ranges::includes(axes, set_of(x.axes)))
      return fail_at(i, "the value has an axis that the place lacks");
    return one_writer(i, parts, axes);
  }

  Status by_value(const Instruction& i, const Subscript& s, Axes& axes) const {
    const Value& v = p_.value(s.value);
    if (i.kind == Kind::kStore) return fail_at(i, "at places that are computed");
    if (!is_int(v.dtype))
      return fail_at(i, fmt::format("at places of {}", tessera::name_of(v.dtype)));
    axes.insert(v.axes.begin(), v.axes.end());
    return {};
  }

  // The expression is an index of a dimension of `size` for all indices of its axes.
  Status inside(const Instruction& i, const Affine& part, const Expr& size, size_t d) const {
    Expr lowest = part.offset, highest = part.offset;
    for (const auto& [a, coefficient] : part.terms) {
      const Expr last = coefficient * (p_.axis(a).extent - Expr(1));
      if (non_negative(coefficient))
        highest = highest + last;
      else if (non_negative(Expr(0) - coefficient))
        lowest = lowest + last;
      else
        return fail_at(i, fmt::format("the sign of {} is not known", coefficient.str()));
    }
    if (!non_negative(lowest))
      return fail_at(i, fmt::format("index {} may be {}", d, lowest.str()));
    if (!non_negative(size - Expr(1) - highest))
      return fail_at(i, fmt::format("index {} may be {}, of {}", d, highest.str(), size.str()));
    return {};
  }

  // Each axis in scope that is cut is in one subscript where it alone decides, or is one digit of a
  // number whose digits do not overlap.
  Status one_writer(const Instruction& i, const std::vector<Affine>& parts,
                    const Axes& axes) const {
    for (int a : scope_)
      if (!axes.contains(a) && std::ranges::count(p_.whole, a) == 0 &&
          !(p_.axis(a).extent == Expr(1)))
        return fail_at(i, fmt::format("all pieces of axis {} write one place", p_.axis(a).name));
    std::set<int> seen;
    for (const Affine& part : parts) {
      std::vector<std::pair<int, Expr>> terms = part.terms;
      for (const auto& [a, coefficient] : terms)
        if (!seen.insert(a).second)
          return fail_at(i, fmt::format("axis {} is in two subscripts", p_.axis(a).name));
      if (terms.size() < 2) continue;
      if (std::ranges::any_of(terms, [&](const auto& t) {
            return !t.second.is_constant() || *t.second.constant() < 1 ||
                   !p_.axis(t.first).extent.is_constant();
          }))
        return fail_at(i, "axes that share a subscript need constant sizes");
      std::ranges::sort(terms, {}, [](const auto& t) { return *t.second.constant(); });
      Expr reach(0);
      for (const auto& [a, coefficient] : terms) {
        if (*coefficient.constant() <= *reach.constant())
          return fail_at(i, "two indices lead to one place");
        reach = reach + coefficient * (p_.axis(a).extent - Expr(1));
      }
    }
    return {};
  }

  const Program& p_;
  std::vector<bool> made_;
  Axes scope_;
  std::vector<std::vector<int>> scopes_{1};  // values made, by nesting
};

}  // namespace

Status verify(const Program& program) { return Verifier(program).run(); }

}  // namespace tessera::tile
