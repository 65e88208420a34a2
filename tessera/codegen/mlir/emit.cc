#include "tessera/codegen/mlir/emit.h"

#include <algorithm>
#include <set>

#include "tessera/codegen/mlir/functions.h"

namespace tessera::codegen::mlir {
namespace {

using tile::Expr;
using tile::Function;
using tile::Instruction;
using tile::Kind;
using tile::kNone;
using tile::Program;

using Vals = std::vector<Val>;
using List = std::vector<const Instruction*>;

// Of tessera_launch.
constexpr int kRangesAt = 16, kConstantsAt = 24, kRangeBytes = 16;

class Emitter {
 public:
  Emitter(const Program& p, const tile::Schedule& s, const Target& target)
      : p_(p), w_(target), values_(p.values.size()), index_(p.axes.size()) {
    for (size_t a = 0; a < p.axes.size(); ++a)
      if (s.axes[a].vector > 1) {
        vector_axis_ = static_cast<int>(a);
        width_ = static_cast<int>(s.axes[a].vector);
      }
  }

  Result<std::string> run() {
    TRY_ASSIGN(slots_, constants_of(p_));
    w_.open("module {{");
    w_.open(
        "llvm.func @{}(%launch: !llvm.ptr, %first: i32, %count: i32) "
        "attributes {{passthrough = [\"nounwind\", \"no-builtins\"]}} {{",
        kEntry);
    arguments();
    List all;
    for (const Instruction& i : p_.body) all.push_back(&i);
    items(hoist(all, {p_.grid.begin(), p_.grid.end()}));
    w_.line("llvm.return");
    w_.close();
    w_.close();
    TRY(std::move(status_));
    return w_.text();
  }

 private:
  // ---- Arguments

  Val offset_pointer(std::string_view base, int64_t bytes) {
    const Val v = w_.fresh(Elem::kPointer);
    w_.line("{} = llvm.getelementptr {}[{}] : (!llvm.ptr) -> !llvm.ptr, i8", v, base, bytes);
    return v;
  }
  Val load_field(std::string_view base, int64_t at, Elem elem) {
    const Val place = offset_pointer(base, at), v = w_.fresh(elem);
    w_.line("{} = llvm.load {} {{alignment = 8 : i64}} : !llvm.ptr -> {}", v, place, name_of(elem));
    return v;
  }

  void arguments() {
    const std::string ranges = fmt::format("{}", load_field("%launch", kRangesAt, Elem::kPointer));
    const std::string constants =
        fmt::format("{}", load_field("%launch", kConstantsAt, Elem::kPointer));
    for (size_t t = 0; t < p_.tensors.size(); ++t)
      tensors_.push_back(load_field(ranges, kRangeBytes * static_cast<int64_t>(t), Elem::kPointer));
    int64_t at = 0;
    const auto next = [&] { return load_field(constants, 8 * at++, Elem::kI64); };
    for (size_t k = 0; k < slots_.size(); ++k) sizes_.push_back(next());
    for (size_t g = 0; g < p_.grid.size(); ++g) {
      tile_.push_back(next());
      pieces_.push_back(next());
    }
  }

  Val size(const Expr& e) {
    if (const auto number = e.constant()) return w_.whole(Elem::kI64, *number);
    return sizes_[static_cast<size_t>(std::ranges::find(slots_, e) - slots_.begin())];
  }
  Val extent(int a) { return size(p_.axis(a).extent); }

  // ---- Loops

  std::string names(const Vals& list) const {
    std::string text;
    for (const Val& v : list) text += (text.empty() ? "" : ", ") + fmt::format("{}", v);
    return text;
  }
  std::string types(const Vals& list) const {
    std::string text;
    for (const Val& v : list) text += (text.empty() ? "" : ", ") + Writer::type(v);
    return text;
  }
  Vals fresh_like(const Vals& list) {
    Vals out;
    for (const Val& v : list) out.push_back(w_.fresh(v.elem, v.lanes));
    return out;
  }
  void yield(const Vals& list) {
    if (!list.empty()) w_.line("scf.yield {} : {}", names(list), types(list));
  }

  // for i = from; i < to; i += step. body(i, carried) gives what is carried on.
  template <class Body>
  Vals loop(Val from, Val to, int64_t step, const Vals& init, Body body) {
    const Val by = w_.whole(Elem::kI64, step), i = w_.fresh(Elem::kI64);
    if (init.empty()) {
      w_.open("scf.for {} = {} to {} step {} : i64 {{", i, from, to, by);
      body(i, init);
      w_.close();
      return {};
    }
    const Vals carried = fresh_like(init), out = fresh_like(init);
    std::string pairs;
    for (size_t k = 0; k < init.size(); ++k)
      pairs += fmt::format("{}{} = {}", k ? ", " : "", carried[k], init[k]);
    w_.open("{} = scf.for {} = {} to {} step {} iter_args({}) -> ({}) : i64 {{", names(out), i,
            from, to, by, pairs, types(init));
    yield(body(i, carried));
    w_.close();
    return out;
  }

  // condition ? body(otherwise) : otherwise
  template <class Body>
  Vals when(Val condition, const Vals& otherwise, Body body) {
    const Vals out = fresh_like(otherwise);
    if (otherwise.empty()) {
      w_.open("scf.if {} {{", condition);
      body(otherwise);
      w_.close();
      return out;
    }
    w_.open("{} = scf.if {} -> ({}) {{", names(out), condition, types(otherwise));
    yield(body(otherwise));
    w_.otherwise();
    yield(otherwise);
    w_.close();
    return out;
  }

  // Walks [from, to) of an axis. `lower` makes scalars of what is carried in vectors, for the rest
  // of a vector axis where there are no masks.
  template <class Body, class Lower>
  Vals walk(int axis, Val from, Val to, Vals carried, Body body, Lower lower) {
    const auto at = [&](Val i, const Vals& values) {
      index_[static_cast<size_t>(axis)] = i;
      return body(values);
    };
    if (axis != vector_axis_) return loop(from, to, 1, carried, at);
    // One call each: compilers differ in which argument they evaluate first.
    const Val mask = w_.whole(Elem::kI64, -width_), length = w_.sub(to, from);
    const Val whole = w_.binary("arith.andi", length, mask);
    const Val full = w_.add(from, whole);
    lanes_ = width_;
    carried = loop(from, full, width_, carried, at);
    if (w_.target.masks) {
      const Val rest = w_.compare("cmpi", "slt", full, to);
      carried = when(rest, carried, [&](const Vals& values) {
        const Val count = w_.cast("arith.trunci", w_.sub(to, full), Elem::kI32);
        mask_ = w_.compare("cmpi", "ult", iota(Elem::kI32), count);
        const Vals next = at(full, values);
        mask_.reset();
        return next;
      });
      lanes_ = 1;
      return lower(carried);
    }
    lanes_ = 1;
    return loop(full, to, 1, lower(carried), at);
  }

  // 0, 1, 2, ...
  Val iota(Elem elem) {
    const Val v = w_.fresh(elem, width_);
    std::string digits;
    for (int k = 0; k < width_; ++k) digits += (k ? ", " : "") + std::to_string(k);
    w_.line("{} = arith.constant dense<[{}]> : {}", v, digits, Writer::type(v));
    return v;
  }

  // ---- The grid

  void items(const List& list) {
    const auto wide = [&](std::string_view name) {
      const Val v = w_.fresh(Elem::kI64);
      w_.line("{} = arith.extui {} : i32 to i64", v, name);
      return v;
    };
    const Val first = wide("%first"), end = w_.add(first, wide("%count"));
    loop(first, end, 1, {}, [&](Val item, const Vals&) {
      std::vector<std::pair<Val, Val>> pieces(p_.grid.size());
      for (size_t g = p_.grid.size(); g-- > 0;) {
        const Val piece = g == 0 ? item : w_.binary("arith.remui", item, pieces_[g]);
        if (g > 0) item = w_.binary("arith.divui", item, pieces_[g]);
        const Val start = w_.mul(piece, tile_[g]);
        const Val last = w_.binary("arith.minsi", w_.add(start, tile_[g]), extent(p_.grid[g]));
        pieces[g] = {start, last};
      }
      nest(0, pieces, list);
      return Vals{};
    });
  }

  void nest(size_t g, const std::vector<std::pair<Val, Val>>& pieces, const List& list) {
    if (g == pieces.size()) {
      for (const Instruction* i : list) instruction(*i);
      return;
    }
    const List rest = hoist(list, {p_.grid.begin() + static_cast<int64_t>(g), p_.grid.end()});
    walk(
        p_.grid[g], pieces[g].first, pieces[g].second, {},
        [&](const Vals&) {
          nest(g + 1, pieces, rest);
          return Vals{};
        },
        [](const Vals& none) { return none; });
  }

  // Emits what depends on none of the axes, and returns the rest.
  List hoist(const List& list, const std::set<int>& axes, std::set<int> values = {}) {
    List rest;
    for (const Instruction* i : list) {
      if (depends(*i, axes, values)) {
        values.insert(i->out.begin(), i->out.end());
        rest.push_back(i);
      } else {
        instruction(*i);
      }
    }
    return rest;
  }

  bool depends(const Instruction& i, const std::set<int>& axes, const std::set<int>& values) const {
    if (i.kind == Kind::kStore || (i.kind == Kind::kIndex && axes.contains(i.axis))) return true;
    bool found = false;
    tile::for_each_read(i, [&](int v) { found |= values.contains(v); });
    for (int v : i.out)
      for (int a : p_.value(v).axes) found |= axes.contains(a);
    for (int a : i.over) found |= axes.contains(a);
    for (const Instruction& inner : i.body) found |= depends(inner, axes, values);
    return found;
  }

  // ---- Instructions

  Val& value(int v) { return values_[static_cast<size_t>(v)]; }
  DType dtype(int v) const { return p_.value(v).dtype; }
  bool has(int v, int axis) const { return std::ranges::count(p_.value(v).axes, axis) > 0; }

  void instruction(const Instruction& i) {
    switch (i.kind) {
      case Kind::kConstant: {
        const DType d = dtype(i.out[0]);
        value(i.out[0]) =
            is_float(d) ? w_.number(elem_of(d), i.number) : w_.whole(elem_of(d), i.whole);
        return;
      }
      case Kind::kIndex: {
        const Val at = index_[static_cast<size_t>(i.axis)];
        const bool vector = i.axis == vector_axis_ && lanes_ > 1;
        value(i.out[0]) = vector ? w_.add(iota(Elem::kI64), at) : at;
        return;
      }
      case Kind::kSize:
        value(i.out[0]) = size(i.size);
        return;
      case Kind::kLoad:
      case Kind::kStore: {
        const auto access = access_of(p_, i);
        if (!access) {
          status_ = tl::unexpected(access.error());
          return;
        }
        i.kind == Kind::kLoad ? load(i, *access) : store(i, *access);
        return;
      }
      case Kind::kMap: {
        Vals in;
        for (int v : i.in) in.push_back(value(v));
        const size_t typed = i.function == Function::kSelect ? 1 : 0;
        value(i.out[0]) = apply(w_, i.function, dtype(i.in[typed]), dtype(i.out[0]), in);
        return;
      }
      case Kind::kReduce:
        value(i.out[0]) =
            kept_.contains(i.out[0]) ? value(i.in[0]) : folded(i, i.function, value(i.in[0]));
        return;
      case Kind::kDot:
        product(i);
        return;
      case Kind::kFor:
        repeat(i);
        return;
    }
  }

  // The lanes of a vector folded to one element, where the vector axis is among those folded.
  Val folded(const Instruction& i, Function f, Val x) {
    if (x.lanes == 1 || std::ranges::count(i.over, vector_axis_) == 0) return x;
    const DType d = dtype(i.out[0]);
    if (mask_) x = w_.select(*mask_, x, identity(f, d));
    return across(f, d, x);
  }

  Val identity(Function f, DType d, int lanes = 1) {
    return is_float(d) ? w_.number(elem_of(d), tile::float_identity(f), lanes)
                       : w_.whole(elem_of(d), tile::int_identity(f, d), lanes);
  }

  Val across(Function f, DType d, Val x) {
    while (x.lanes > 1) {
      const int half = x.lanes / 2;
      const Val halves[] = {w_.part(x, 0, half), w_.part(x, half, half)};
      x = apply(w_, f, d, d, halves);
    }
    return x;
  }

  void product(const Instruction& i) {
    const DType from = dtype(i.in[0]), to = dtype(i.out[0]);
    const Val a = convert(w_, from, to, value(i.in[0])), b = convert(w_, from, to, value(i.in[1]));
    const bool sums =
        a.lanes > 1 && std::ranges::count(i.over, vector_axis_) > 0 && !kept_.contains(i.out[0]);
    const auto plus = [&](Val c) {
      return is_float(to) ? w_.fma(a, b, c) : w_.add(w_.mul(a, b), c);
    };
    Val& out = value(i.out[0]);
    if (i.in.size() > 2 && !sums) {
      out = plus(value(i.in[2]));
      return;
    }
    out = folded(i, Function::kAdd, w_.mul(a, b));
    if (i.in.size() > 2) out = w_.add(out, value(i.in[2]));
  }

  // ---- Loops of the program

  // What is carried k is folded by along the loop's vectors, and what makes it of them: in the body
  // it is only combined with a fold of the vectors, and that with nothing else.
  struct Fold {
    Function function;
    int made;  // by reduce or dot
  };
  std::optional<Fold> fold_of(const Instruction& i, size_t k) const {
    const int carried = i.carried[k], yields = i.yields[k];
    const auto maker = [&](int v) {
      const auto found = std::ranges::find_if(
          i.body, [&](const Instruction& x) { return std::ranges::count(x.out, v) > 0; });
      return found == i.body.end() ? nullptr : &*found;
    };
    const auto reads = [&](int v) {
      int64_t n = std::ranges::count(i.yields, v);
      tile::for_each(i.body, [&](const Instruction& x) {
        tile::for_each_read(x, [&](int r) { n += r == v; });
      });
      return n;
    };
    const Instruction* last = maker(yields);
    if (!last || reads(carried) != 1 || reads(yields) != 1) return std::nullopt;
    const auto over = [&](const Instruction& x) { return std::ranges::count(x.over, i.axis) > 0; };
    if (last->kind == Kind::kDot && last->in.size() > 2 && last->in[2] == carried && over(*last))
      return Fold{Function::kAdd, yields};
    if (last->kind != Kind::kMap || last->in.size() != 2) return std::nullopt;
    const int other = last->in[0] == carried ? last->in[1] : last->in[0];
    const Instruction* reduce = maker(other);
    if (other == carried || !reduce || reads(other) != 1 || !over(*reduce)) return std::nullopt;
    if (reduce->kind == Kind::kReduce && reduce->function == last->function)
      return Fold{last->function, other};
    if (reduce->kind == Kind::kDot && reduce->in.size() == 2 && last->function == Function::kAdd)
      return Fold{Function::kAdd, other};
    return std::nullopt;
  }

  void repeat(const Instruction& i) {
    const size_t n = i.in.size();
    std::vector<std::optional<Fold>> folds(n);
    const bool vectors = i.axis == vector_axis_;
    Vals init;
    for (size_t k = 0; k < n; ++k) {
      if (vectors) folds[k] = fold_of(i, k);
      const DType d = dtype(i.carried[k]);
      const bool wide = has(i.carried[k], vector_axis_) && lanes_ > 1;
      if (folds[k]) {
        kept_.insert(folds[k]->made);
        init.push_back(identity(folds[k]->function, d, width_));
      } else {
        init.push_back(wide ? w_.spread(value(i.in[k]), lanes_) : value(i.in[k]));
      }
    }
    List list;
    for (const Instruction& x : i.body) list.push_back(&x);
    list = hoist(list, {i.axis}, {i.carried.begin(), i.carried.end()});
    const Vals out = walk(
        i.axis, w_.whole(Elem::kI64, 0), extent(i.axis), init,
        [&](const Vals& carried) { return trip(i, list, folds, carried); },
        [&](Vals carried) {
          for (size_t k = 0; k < n; ++k)
            if (folds[k]) {
              kept_.erase(folds[k]->made);
              carried[k] = across(folds[k]->function, dtype(i.carried[k]), carried[k]);
            }
          return carried;
        });
    for (size_t k = 0; k < n; ++k) {
      const DType d = dtype(i.carried[k]);
      const Val both[] = {value(i.in[k]), out[k]};
      value(i.out[k]) = folds[k] ? apply(w_, folds[k]->function, d, d, both) : out[k];
    }
  }

  Vals trip(const Instruction& i, const List& list, const std::vector<std::optional<Fold>>& folds,
            const Vals& carried) {
    for (size_t k = 0; k < carried.size(); ++k) value(i.carried[k]) = carried[k];
    for (const Instruction* x : list) instruction(*x);
    Vals next;
    for (size_t k = 0; k < carried.size(); ++k) {
      Val v = w_.spread(value(i.yields[k]), carried[k].lanes);
      if (folds[k] && mask_) v = w_.select(*mask_, v, carried[k]);
      next.push_back(v);
    }
    return next;
  }

  // ---- Memory

  // The elements' distance from the tensor's first one: of the first lane.
  Val place(const Access& access) {
    std::optional<Val> sum;
    const auto add = [&](Val term) { sum = sum ? w_.add(*sum, term) : term; };
    for (const auto& [a, c] : access.terms) {
      const Val at = index_[static_cast<size_t>(a)];
      add(c == Expr(1) ? at : w_.mul(at, size(c)));
    }
    if (!sum || !(access.offset == Expr(0))) add(size(access.offset));
    return *sum;
  }

  struct Where {
    Val pointer;  // or pointers
    Elem elem;
    int lanes;
    bool gathers;
  };
  Where where(const Instruction& i, const Access& access) {
    const DType d = p_.tensor(i.tensor).dtype;
    const Elem elem = d == DType::kBool ? Elem::kI8 : elem_of(d);
    const Expr step = access.coefficient(vector_axis_);
    const bool vector = lanes_ > 1 && !(step == Expr(0)) && vector_axis_ != kNone;
    const bool gathers = vector && !(step == Expr(1));
    Val at = place(access);
    if (gathers) at = w_.add(w_.mul(iota(Elem::kI64), size(step)), at);
    const Val pointer = w_.fresh(Elem::kPointer, at.lanes);
    w_.line("{} = llvm.getelementptr {}[{}] : (!llvm.ptr, {}) -> {}, {}", pointer,
            tensors_[static_cast<size_t>(i.tensor)], at, Writer::type(at), Writer::type(pointer),
            name_of(elem));
    return {pointer, elem, vector ? lanes_ : 1, gathers};
  }
  Val all_or_mask() { return mask_ ? *mask_ : w_.whole(Elem::kI1, 1, width_); }

  void load(const Instruction& i, const Access& access) {
    const Where at = where(i, access);
    const Val v = w_.fresh(at.elem, at.lanes);
    const int align = bits_of(at.elem) / 8;
    const std::string type = Writer::type(v);
    if (at.gathers || (mask_ && at.lanes > 1)) {
      const Val mask = all_or_mask();
      const Val rest = at.elem < Elem::kF32 ? w_.whole_like(v, 0) : w_.like(v, 0);
      w_.line("{} = llvm.intr.masked.{} {}, {}, {} {{alignment = {} : i32}} : ({}, {}, {}) -> {}",
              v, at.gathers ? "gather" : "load", at.pointer, mask, rest, align,
              Writer::type(at.pointer), Writer::type(mask), type, type);
    } else {
      w_.line("{} = llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", v, at.pointer, align,
              type);
    }
    const bool truth = dtype(i.out[0]) == DType::kBool;
    value(i.out[0]) = truth ? w_.compare("cmpi", "ne", v, w_.whole_like(v, 0)) : v;
  }

  void store(const Instruction& i, const Access& access) {
    const Where at = where(i, access);
    Val v = w_.spread(value(i.in[0]), at.lanes);
    if (dtype(i.in[0]) == DType::kBool) v = w_.cast("arith.extui", v, Elem::kI8);
    const int align = bits_of(at.elem) / 8;
    const std::string type = Writer::type(v);
    if (at.gathers || (mask_ && at.lanes > 1)) {
      const Val mask = all_or_mask();
      w_.line("llvm.intr.masked.{} {}, {}, {} {{alignment = {} : i32}} : {}, {} {} {}",
              at.gathers ? "scatter" : "store", v, at.pointer, mask, align, type,
              Writer::type(mask), at.gathers ? "into" : "into", Writer::type(at.pointer));
    } else {
      w_.line("llvm.store {}, {} {{alignment = {} : i64}} : {}, !llvm.ptr", v, at.pointer, align,
              type);
    }
  }

  const Program& p_;
  Writer w_;
  std::vector<Val> values_;
  std::vector<Val> index_;  // of the element, or of the vector's first, by axis
  std::vector<Expr> slots_;
  Vals sizes_, tensors_, tile_, pieces_;
  int vector_axis_ = kNone, width_ = 1;
  int lanes_ = 1;  // along the vector axis: of the vectors now, or 1
  std::optional<Val> mask_;
  std::set<int> kept_;  // results of folds that stay vectors
  Status status_;
};

}  // namespace

Result<std::string> emit(const tile::Program& program, const tile::Schedule& schedule,
                         const Target& target) {
  return Emitter(program, schedule, target).run();
}

}  // namespace tessera::codegen::mlir
