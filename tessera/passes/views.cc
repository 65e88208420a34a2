#include "tessera/passes/views.h"

#include <algorithm>
#include <set>

#include "tessera/layout/layout.h"

namespace tessera::passes {
namespace {

using op::Expr;
using plan::Instruction;
using plan::kNone;
using plan::Region;
using plan::Slot;
using plan::Storage;
using Kind = Instruction::Kind;

// Where elements lie in the slot that holds them: per logical axis a distance, in elements.
struct Place {
  int root;
  Expr offset;
  std::vector<Expr> strides;
};

// Logical axes in physical order, outermost first; nothing if the layout is more than an order.
std::optional<std::vector<size_t>> axis_order(const Slot& slot) {
  std::vector<size_t> order;
  if (slot.layout.empty()) {
    for (int a = 0; a < slot.type.rank(); ++a) order.push_back(static_cast<size_t>(a));
    return order;
  }
  auto parsed = layout::Layout::parse(slot.layout);
  if (!parsed) return std::nullopt;
  for (const layout::Expr& e : parsed->axes()) {
    if (e.kind != layout::ExprKind::kLetter) return std::nullopt;
    order.push_back(static_cast<size_t>(e.axis));
  }
  return order;
}

std::optional<Place> place_of(const Region& region, int id) {
  const Slot& slot = region.slots[static_cast<size_t>(id)];
  if (!slot.type.is_tensor() || !slot.type.ranked() || bits_of(slot.type.dtype) % 8 != 0)
    return std::nullopt;
  Place place{slot.alias == kNone ? id : slot.alias, 0, {}};
  if (slot.view) {
    place.offset = slot.view->offset;
    place.strides = slot.view->strides;
    return place;
  }
  const auto order = axis_order(slot);
  if (!order) return std::nullopt;
  place.strides.assign(order->size(), 1);
  Expr stride = 1;
  for (size_t k = order->size(); k-- > 0;) {
    place.strides[(*order)[k]] = stride;
    stride = stride * slot.type.dim(static_cast<int>((*order)[k]));
  }
  return place;
}

struct Axis {
  Expr dim, stride;
  size_t logical;
};

std::optional<std::vector<Axis>> physical_axes(const Slot& slot, const std::vector<Expr>& strides) {
  const auto order = axis_order(slot);
  if (!order) return std::nullopt;
  std::vector<Axis> axes;
  for (size_t a : *order)
    if (slot.type.dim(static_cast<int>(a)).constant() != 1)
      axes.push_back(
          {slot.type.dim(static_cast<int>(a)), strides.empty() ? Expr(0) : strides[a], a});
  return axes;
}

// The strides of `to`, whose elements are those of `from` in the same order, where these lie at
// `strides`; nothing where no strides can say so.
std::optional<std::vector<Expr>> renamed(const Slot& from, const std::vector<Expr>& strides,
                                         const Slot& to) {
  auto a = physical_axes(from, strides), b = physical_axes(to, {});
  if (!a || !b) return std::nullopt;
  std::vector<Expr> result(static_cast<size_t>(to.type.rank()), 0);
  size_t i = 0, j = 0;
  while (i < a->size() && j < b->size()) {
    // The shortest runs of axes with the same product.
    size_t p = 0, q = 0;
    bool found = false;
    Expr left = 1;
    for (p = i; p < a->size() && !found; ++p) {
      left = left * (*a)[p].dim;
      Expr right = 1;
      for (q = j; q < b->size() && !found; ++q) {
        right = right * (*b)[q].dim;
        found = left == right;
      }
    }
    if (!found) return std::nullopt;
    for (size_t k = i; k + 1 < p; ++k)
      if (!((*a)[k].stride == (*a)[k + 1].dim * (*a)[k + 1].stride)) return std::nullopt;
    Expr stride = (*a)[p - 1].stride;
    for (size_t k = q; k-- > j;) {
      result[(*b)[k].logical] = stride;
      stride = stride * (*b)[k].dim;
    }
    i = p;
    j = q;
  }
  if (i != a->size() || j != b->size()) return std::nullopt;
  return result;
}

class Viewer {
 public:
  Viewer(plan::Plan& plan, Region& region, Sources sources, ViewReport& report)
      : plan_(plan), region_(region), sources_(sources), report_(report) {
    for (int id : region.outputs) pinned_.insert(id);
    for (int id : region.inputs) {
      pinned_.insert(id);
      add_symbols(slot(id).type, known_);
    }
  }

  void run() {
    for (Instruction& i : region_.body)
      if (i.kind == Kind::kLaunch && i.steps.empty()) move_nothing(i);
    for (size_t n = region_.body.size(); n-- > 0;) {
      Instruction& i = region_.body[n];
      if (i.kind != Kind::kLaunch || !i.steps.empty() || dead_.contains(&i)) continue;
      if (i.op->name == "concat") write_in_place(n);
      if (i.op->name == "transpose") write_turned(i);
    }
    std::vector<Instruction> kept;
    for (size_t n = 0; n < region_.body.size(); ++n) {
      for (auto& [at, copy] : copies_)
        if (at == n) kept.push_back(std::move(copy));
      if (!dead_.contains(&region_.body[n])) kept.push_back(std::move(region_.body[n]));
    }
    region_.body = std::move(kept);
    plan::set_lifetimes(region_);
  }

 private:
  Slot& slot(int id) { return region_.slots[static_cast<size_t>(id)]; }

  std::optional<op::Ints> constants(const Instruction& i, size_t k) {
    if (k >= i.in.size() || i.in[k] == kNone) return std::nullopt;
    const Slot& s = slot(i.in[k]);
    op::Ints values;
    if (s.contents) {
      for (const Expr& e : *s.contents) {
        if (!e.is_constant()) return std::nullopt;
        values.push_back(*e.constant());
      }
      return values;
    }
    if (s.storage != Storage::kConstant) return std::nullopt;
    const op::Tensor& t = plan_.constants[static_cast<size_t>(s.constant)].tensor;
    return is_int(t.dtype()) && t.count() <= 16 ? std::optional(op::Ints(t.to_i64s()))
                                                : std::nullopt;
  }

  // slice and transpose.
  void move_nothing(Instruction& i) {
    const std::string_view name = i.op->name;
    if (!is_mover(i) || i.in[0] == kNone || i.out[0] == kNone) return;
    if (slot(i.in[0]).storage == Storage::kConstant) return;
    const auto from = place_of(region_, i.in[0]);
    if (!from || slot(from->root).storage == Storage::kConstant ||
        slot(from->root).storage == Storage::kHost)
      return;
    Place to = *from;
    if (name == "transpose") {
      const op::Ints perm = i.attrs.ints("perm");
      for (size_t a = 0; a < perm.size(); ++a)
        to.strides[a] = from->strides[static_cast<size_t>(perm[a])];
    } else if (!slice(i, to)) {
      return;
    }
    if (!redirect(i.out[0], to)) return;
    ++report_.views;
    dead_.insert(&i);
  }

  bool slice(const Instruction& i, Place& to) {
    const auto starts = constants(i, 1);
    auto axes = constants(i, 3), steps = constants(i, 4);
    if (!starts || (i.in.size() > 3 && i.in[3] != kNone && !axes) ||
        (i.in.size() > 4 && i.in[4] != kNone && !steps))
      return false;
    const op::Type& type = slot(i.in[0]).type;
    for (size_t k = 0; k < starts->size(); ++k) {
      int64_t axis = axes ? (*axes)[k] : static_cast<int64_t>(k);
      if (axis < 0) axis += type.rank();
      const int64_t step = steps ? (*steps)[k] : 1;
      int64_t start = (*starts)[k];
      if (axis < 0 || axis >= type.rank() || step < 1) return false;
      if (start < 0) {
        const auto dim = type.dim(static_cast<int>(axis)).constant();
        if (!dim) return false;
        start = std::max<int64_t>(0, start + *dim);
      }
      Expr& stride = to.strides[static_cast<size_t>(axis)];
      to.offset = to.offset + Expr(start) * stride;
      stride = stride * Expr(step);
    }
    return true;
  }

  // What yields the input of a transpose writes it turned.
  void write_turned(Instruction& i) {
    const int from = i.in[0];
    if (from == kNone || i.out[0] == kNone || slot(from).alias != kNone ||
        !written_by_launches(from))
      return;
    const auto to = place_of(region_, i.out[0]);
    if (!to) return;
    Place place = *to;
    const op::Ints perm = i.attrs.ints("perm");
    for (size_t a = 0; a < perm.size(); ++a)
      place.strides[static_cast<size_t>(perm[a])] = to->strides[a];
    if (!redirect(from, place, &i)) return;
    ++report_.views;
    dead_.insert(&i);
  }

  // Inputs of a concat become parts of its result; what cannot is copied there.
  void write_in_place(size_t n) {
    Instruction& i = region_.body[n];
    const auto to = place_of(region_, i.out[0]);
    if (!to) return;
    int64_t axis = i.attrs.i("axis");
    if (axis < 0) axis += slot(i.out[0]).type.rank();
    if (std::set<int>(i.in.begin(), i.in.end()).size() != i.in.size()) return;
    const Region before = region_;
    const auto copies_before = copies_.size();
    int redirected = 0;
    Place part = *to;
    for (int id : i.in) {
      if (id == kNone) return;
      const Expr size = slot(id).type.dim(static_cast<int>(axis));
      if (slot(id).layout == slot(i.out[0]).layout && becomes(id, part, &i)) {
        ++redirected;
      } else if (!copy(n, id, part, slot(i.out[0]).layout)) {
        redirected = 0;
        break;
      }
      part.offset = part.offset + size * to->strides[static_cast<size_t>(axis)];
    }
    if (redirected == 0) {
      region_ = before;
      copies_.resize(copies_before);
      return;
    }
    report_.concats += redirected;
    dead_.insert(&i);
  }

  static void add_symbols(const op::Type& type, std::set<std::string>& symbols) {
    if (!type.ranked()) return;
    for (const Expr& dim : *type.shape)
      for (std::string& s : dim.symbols()) symbols.insert(std::move(s));
  }

  // Whether all sizes that say where the part lies are known when the slot is written: some may be
  // found out only between that and the instruction that puts the parts together.
  bool known_when_written(int id, const Place& part) {
    std::set<std::string> needed, known = known_;
    add_symbols(slot(part.root).type, needed);
    for (std::string& s : part.offset.symbols()) needed.insert(std::move(s));
    for (const Expr& stride : part.strides)
      for (std::string& s : stride.symbols()) needed.insert(std::move(s));
    add_symbols(slot(id).type, known);
    return std::ranges::includes(known, needed);
  }

  // The slot, or that which it is another view of, becomes a part of another.
  bool becomes(int id, const Place& part, const Instruction* except) {
    const int root = slot(id).alias;
    if (root == kNone) return written_by_launches(id) && redirect(id, part, except);
    if (slot(id).view || slot(root).alias != kNone || !written_by_launches(root)) return false;
    auto strides = renamed(slot(id), part.strides, slot(root));
    return strides && redirect(root, {part.root, part.offset, *std::move(strides)}, except);
  }

  bool written_by_launches(int id) {
    const Storage storage = slot(id).storage;
    if (storage != Storage::kSlab && storage != Storage::kHeap) return false;
    for (const Instruction& i : region_.body)
      if (std::find(i.out.begin(), i.out.end(), id) != i.out.end() &&
          (i.kind != Kind::kLaunch || dead_.contains(&i)))
        return false;
    return true;
  }

  bool copy(size_t n, int id, const Place& part, const std::string& layout) {
    Slot target;
    target.type = slot(id).type;
    target.storage = Storage::kAlias;
    target.alias = part.root;
    target.view = plan::View{part.offset, part.strides};
    target.layout = layout;
    region_.slots.push_back(std::move(target));
    Instruction c;
    c.op = op::find("relayout");
    c.origin = region_.body[n].origin;
    c.in = {id};
    c.out = {static_cast<int>(region_.slots.size()) - 1};
    if (!choose(c)) return false;
    copies_.emplace_back(n, std::move(c));
    return true;
  }

  // Makes the slot, and its aliases, parts of another, if all who touch it can. `except` no longer
  // does.
  bool redirect(int id, const Place& place, const Instruction* except = nullptr) {
    std::set<int> names{id};
    for (size_t s = 0; s < region_.slots.size(); ++s)
      if (region_.slots[s].alias == id) names.insert(static_cast<int>(s));
    for (int name : names)
      if (pinned_.contains(name)) return false;
    const Storage storage = slot(id).storage;
    if (storage != Storage::kSlab && storage != Storage::kHeap) return false;
    std::vector<std::pair<int, Slot>> before;
    bool fine = !except || known_when_written(id, place);
    const Slot original = slot(id);
    for (int name : names) {
      before.emplace_back(name, slot(name));
      if (slot(name).view) fine = false;
    }
    for (int name : names) {
      if (!fine) break;
      auto strides =
          name == id ? std::optional(place.strides) : renamed(original, place.strides, slot(name));
      fine = strides.has_value();
      if (!fine) break;
      slot(name).storage = Storage::kAlias;
      slot(name).alias = place.root;
      slot(name).view = plan::View{place.offset, *std::move(strides)};
    }
    std::vector<std::pair<Instruction*, Instruction>> chosen;
    for (size_t n = 0; n < region_.body.size() && fine; ++n) {
      Instruction& i = region_.body[n];
      if (&i == except || dead_.contains(&i)) continue;
      auto touches = [&](const std::vector<int>& list) {
        return std::any_of(list.begin(), list.end(), [&](int v) { return names.contains(v); });
      };
      const bool reads = touches(i.in), writes = touches(i.out);
      if (!reads && !writes) continue;
      // The instruction that the view stands for is about to go.
      if (writes && !reads && !except && is_mover(i)) continue;
      Instruction with = i;
      fine = i.kind == Kind::kLaunch && choose(with);
      chosen.emplace_back(&i, std::move(with));
    }
    for (auto& [at, copy] : copies_) {
      if (!fine) break;
      if (names.contains(copy.in[0])) fine = choose(copy);
    }
    if (!fine) {
      for (auto& [name, old] : before) slot(name) = std::move(old);
      return false;
    }
    for (auto& [i, with] : chosen) *i = std::move(with);
    return true;
  }

  static bool is_mover(const Instruction& i) {
    return i.op && (i.op->name == "slice" || i.op->name == "transpose");
  }

  // The cheapest kernel under the slots as they are now.
  bool choose(Instruction& i) {
    std::set<std::string> symbols(i.symbols.begin(), i.symbols.end());
    for (const std::vector<int>* side : {&i.in, &i.out})
      for (int id : *side) {
        if (id == kNone || !slot(id).view) continue;
        for (const Expr& e : slot(id).view->strides)
          for (std::string& s : e.symbols()) symbols.insert(std::move(s));
      }
    op::Bindings bindings = plan_.planned_for;
    for (const std::string& s : symbols) bindings.emplace(s, 1);
    for (const std::vector<int>* side : {&i.in, &i.out})
      for (int id : *side)
        if (id != kNone && slot(id).type.ranked())
          for (const Expr& d : *slot(id).type.shape)
            for (std::string& s : d.symbols()) {
              bindings.emplace(s, 1);
              symbols.insert(std::move(s));
            }
    auto problem = plan::problem_of(plan_, region_, i, bindings);
    if (!problem) return false;
    auto claim = cheapest(*problem, sources_);
    if (!claim) return false;
    i.kernel = claim->kernel;
    i.symbols.assign(symbols.begin(), symbols.end());
    return true;
  }

  plan::Plan& plan_;
  Region& region_;
  Sources sources_;
  ViewReport& report_;
  std::set<int> pinned_;         // slots that enter or leave the region
  std::set<std::string> known_;  // sizes that are known before the region starts
  std::set<const Instruction*> dead_;
  std::vector<std::pair<size_t, Instruction>> copies_;  // goes before the instruction of this index
};

void views_of(plan::Plan& plan, Region& region, Sources sources, ViewReport& report) {
  for (Instruction& i : region.body)
    for (Region& r : i.regions) views_of(plan, r, sources, report);
  Viewer(plan, region, sources, report).run();
}

}  // namespace

Result<ViewReport> views(plan::Plan& plan, Sources sources) {
  ViewReport report;
  views_of(plan, plan.main, sources, report);
  TRY(plan::verify(plan));
  return report;
}

}  // namespace tessera::passes
