#include "tessera/codegen/sim/matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tessera/layout/formats.h"
#include "tessera/tile/engine_chip.h"

namespace tessera::codegen::sim {
namespace {

using engine::Buffer;
using engine::Expr;
using engine::Index;
using engine::Operand;
using engine::Step;
using engine::StepAxis;

int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t of(const std::optional<chip::Count>& c) { return c ? std::max<int64_t>(c->value, 1) : 1; }

const chip::Unit& unit_of(const chip::Chip& chip, const engine::MatrixPath& path) {
  return chip.units.find(path.unit)->second;
}

// Whether the place of an element is a sum of what its row and its column say, as buffers need it:
// not where the bits of one scramble those of the other.
bool separates(const std::string& format) {
  const layout::FormatRequest request{.dtype = DType::kF16, .extents = {64, 64}};
  const auto l = layout::format_layout(format, request);
  if (!l || l->rank() != 2) return true;
  const auto bound = layout::BoundLayout::bind(*l, request.dtype, request.extents);
  return !bound || !bound->mixes(0, 1);
}

// The first layout in which the unit takes an operand and buffers hold one; empty: any.
std::string layout_of(const chip::Unit& unit, std::string_view letter) {
  const auto at = unit.operands.find(letter);
  if (at == unit.operands.end()) return "";
  for (const std::string& l : at->second.layouts)
    if (separates(l)) return l == "ND" ? "" : l;
  return "";
}

// What lies in a memory on the way: fractals, if its engine makes those of what comes there.
std::string layout_between(const chip::Chip& chip, const engine::Hop& hop) {
  const chip::Route* route =
      engine::find_route(chip.engines.find(hop.engine)->second, hop.from, hop.to);
  for (const chip::Change& c : route->changes)
    if (c.to == "NZ") return "NZ";
  return "";
}

class Emitter {
 public:
  Emitter(const chip::Chip& chip, const engine::MatrixPath& path, Product p)
      : chip_(chip), path_(path), job_(std::move(p)), p_(std::move(job_.program)) {}

  Result<engine::Program> emit() {
    p_.name = job_.name;
    p_.core = path_.core;
    unit_ = p_.engine(path_.unit);
    const chip::Unit& unit = unit_of(chip_, path_);
    TRY_ASSIGN(a_, side(job_.a, path_.to_a, layout_of(unit, "a"), job_.rows, false, "a"));
    TRY_ASSIGN(b_, side(job_.b, path_.to_b, layout_of(unit, "b"), job_.columns, true, "b"));
    if (a_.on_the_way != b_.on_the_way)
      return error(Code::kUnimplemented, "operands that come by ways of different lengths");
    slots_ = fits(chip_, path_, job_, 2) ? 2 : 1;
    TRY(result());
    for (const Place* s : {&a_, &b_}) {
      first_.insert(s->engines.front());
      if (s->on_the_way) second_.insert(s->engines.back());
    }
    TRY_ASSIGN(p_.body, whole());
    TRY(engine::verify(p_, chip_));
    return std::move(p_);
  }

 private:
  // An operand, by memory.
  struct Place {
    int argument = -1;
    int between = -1;  // its buffer on the way, if there is one
    int last = -1;     // where the unit takes it
    bool on_the_way = false;
    std::vector<int> engines;  // by hop
    const Side* side = nullptr;
  };

  int64_t aligned(const std::string& space, int64_t n) const {
    return up(n, engine::slot_alignment(chip_.memory.find(space)->second));
  }
  // Behind what lies in the space already.
  Result<int> buffer(std::string name, const std::string& space, DType dtype,
                     std::vector<int64_t> dims, const std::string& layout) {
    Buffer b;
    b.name = std::move(name);
    b.space = space;
    b.dtype = dtype;
    b.layout = layout;
    for (int64_t d : dims) b.dims.emplace_back(d);
    TRY_ASSIGN(engine::Places places, engine::places_of(b, {}));
    // Slots begin where the space wants it.
    const int64_t size = bits_of(dtype) / 8;
    for (int tries = 0; !layout.empty() && tries < 64; ++tries) {
      if (aligned(space, places.dims[0].stride * size) == places.dims[0].stride * size) break;
      dims[1] += 8;
      b.dims[1] = Expr(dims[1]);
      TRY_ASSIGN(places, engine::places_of(b, {}));
    }
    if (layout.empty() && dims.size() == 3) {
      const int64_t slot = aligned(space, dims[1] * dims[2] * size) / size;
      b.strides = {slot, dims[2], 1};
      TRY_ASSIGN(places, engine::places_of(b, {}));
    }
    int64_t& end = ends_[space];
    b.offset = aligned(space, end);
    end = b.offset + places.span * size;
    p_.buffers.push_back(std::move(b));
    return static_cast<int>(p_.buffers.size()) - 1;
  }

  Result<Place> side(const Side& s, const std::vector<engine::Hop>& hops, const std::string& layout,
                     int64_t length, bool column, const std::string& name) {
    Place place;
    place.side = &s;
    p_.buffers.push_back(s.buffer);
    place.argument = static_cast<int>(p_.buffers.size()) - 1;
    if (hops.empty() || hops.size() > 2)
      return error(Code::kUnimplemented, "operands that come by {} copies", hops.size());
    for (const engine::Hop& hop : hops) place.engines.push_back(p_.engine(hop.engine));
    place.on_the_way = hops.size() == 2;
    if (place.on_the_way) {
      std::vector<int64_t> dims = {2, length, job_.inner};
      if (s.inner_first) std::swap(dims[1], dims[2]);
      TRY_ASSIGN(place.between,
                 buffer(name + "1", hops[0].to, job_.stored, dims, layout_between(chip_, hops[0])));
    }
    const int64_t inner = place.on_the_way ? job_.step : job_.inner;
    std::vector<int64_t> dims = {2, length, inner};
    if (column) std::swap(dims[1], dims[2]);
    TRY_ASSIGN(place.last, buffer(name + "0", hops.back().to, job_.stored, dims, layout));
    return place;
  }

  Status result() {
    const chip::Unit& unit = unit_of(chip_, path_);
    p_.buffers.push_back(job_.c.buffer);
    c_argument_ = static_cast<int>(p_.buffers.size()) - 1;
    TRY_ASSIGN(c_, buffer("c0", path_.c, job_.sums, {slots_, job_.rows, job_.columns},
                          layout_of(unit, "c")));
    for (const engine::Hop& hop : path_.from_c) store_.push_back(p_.engine(hop.engine));
    if (store_.empty() || store_.size() > 2)
      return error(Code::kUnimplemented, "results that leave by {} copies", store_.size());
    if (store_.size() == 2) {
      TRY_ASSIGN(c_between_, buffer("c1", path_.from_c[0].to, job_.c.buffer.dtype,
                                    {slots_, job_.rows, job_.columns}, ""));
    }
    return {};
  }

  // ---- Indices

  // Number of an element along axes [first, first + list.size()) of a step, row-major.
  static Index number(const std::vector<StepAxis>& list, size_t first,
                      const std::vector<int64_t>& extents, Expr offset = 0) {
    Index i{std::move(offset), std::vector<int64_t>(first + list.size(), 0)};
    int64_t by = 1;
    for (size_t k = list.size(); k-- > 0;) {
      i.coefficients[first + k] = by;
      by *= extents[k];
    }
    return i;
  }
  static Expr product(const std::vector<StepAxis>& list) {
    Expr e = 1;
    for (const StepAxis& a : list) e = e * a.extent;
    return e;
  }

  // From the argument to the first memory.
  Step fetch(const Place& p, const Expr& slot, bool column) const {
    const Side& s = *p.side;
    std::vector<StepAxis> over = s.along;
    over.insert(over.end(), s.inner.begin(), s.inner.end());
    const int to = p.on_the_way ? p.between : p.last;
    Index i = packed(s.along, 0), k = packed(s.inner, s.along.size());
    if (p.on_the_way ? s.inner_first : column) std::swap(i, k);
    Step step = copy(p.engines.front(), at(to, {Index{slot, {}}, i, k}), at(p.argument, s.at),
                     std::move(over));
    step.pads = s.pads;
    return step;
  }
  // Axes of a side as one: each is as long as its tile at most, which is what it is packed by.
  Index packed(const std::vector<StepAxis>& list, size_t first) const {
    std::vector<int64_t> extents;
    for (const StepAxis& a : list) extents.push_back(most(a.extent));
    return number(list, first, extents);
  }
  // min(n, ...) and n are n at most.
  static int64_t most(const Expr& e) {
    int64_t n = INT64_MAX;
    if (e.is_number()) return e.items[0].value;
    if (e.items.back().op == Expr::Op::kMin)
      for (const Expr::Item& i : e.items)
        if (i.op == Expr::Op::kNumber && &i == &e.items.front()) n = i.value;
    return n;
  }

  // From there to the unit: step `j` of the piece.
  Step feed(const Place& p, const Expr& from, const Expr& j, const Expr& slot, bool column,
            const Expr& inner) const {
    const Side& s = *p.side;
    std::vector<StepAxis> over = {{"_i", span(s.along)}, {"_k", inner}};
    Index i = along(0), k = along(1, j * Expr(job_.step)), k_to = along(1), i_to = along(0);
    std::vector<Index> source = {Index{from, {}}, i, k}, target = {Index{slot, {}}, i_to, k_to};
    if (s.inner_first) std::swap(source[1], source[2]);
    if (column) std::swap(target[1], target[2]);
    return copy(p.engines.back(), at(p.last, target), at(p.between, source), std::move(over));
  }
  // Rows, or columns, of the tile: where lines are cut, all up to the last one.
  Expr span(const std::vector<StepAxis>& list) const {
    if (list.size() == 1) return list[0].extent;
    Expr e = list[0].extent;
    for (size_t k = 1; k < list.size(); ++k) e = e * Expr(most(list[k].extent));
    return e;
  }

  Step multiply(const Expr& slot, const Expr& inner, const Expr& c_slot, const Expr& add) const {
    Step s = on(unit_, engine::Kind::kMatrix);
    s.compute = job_.compute;
    s.over = {{"_i", span(job_.a.along)}, {"_j", span(job_.b.along)}, {"_k", inner}};
    s.out = at(c_, {Index{c_slot, {}}, along(0), along(1)});
    s.in = {at(a_.last, {Index{slot, {}}, along(0), along(2)}),
            at(b_.last, {Index{slot, {}}, along(2), along(1)})};
    s.add = add;
    return s;
  }

  // ---- Order

  static Expr half(const Expr& e) { return e % Expr(2); }

  // The copies of the result of a tile; `t` and `turn` stand for the tile's.
  std::vector<Step> leave(const Expr& c_slot) const {
    std::vector<Step> out;
    const Side& c = job_.c;
    const size_t r = job_.a.along.size();
    std::vector<StepAxis> lead(c.along.begin(), c.along.begin() + static_cast<int64_t>(r)),
        tail(c.along.begin() + static_cast<int64_t>(r), c.along.end());
    const std::vector<Index> tile = {Index{c_slot, {}}, packed(lead, 0), packed(tail, r)};
    const int first = store_.front();
    out.push_back(wait(first, unit_, Expr(2) + c_slot));
    if (store_.size() == 1) {
      out.push_back(copy(first, at(c_argument_, c.at), at(c_, tile), c.along));
      out.push_back(set(first, unit_, Expr(2) + c_slot));
      return out;
    }
    const int last = store_.back();
    if (last != first) out.push_back(wait(first, last, c_slot));
    out.push_back(copy(first, at(c_between_, tile), at(c_, tile), c.along));
    out.push_back(set(first, unit_, Expr(2) + c_slot));
    if (last != first) {
      out.push_back(set(first, last, c_slot));
      out.push_back(wait(last, first, c_slot));
    }
    out.push_back(copy(last, at(c_argument_, c.at), at(c_between_, tile), c.along));
    if (last != first) out.push_back(set(last, first, c_slot));
    return out;
  }

  static void replace(Expr& e, int symbol, const Expr& by) {
    std::vector<Expr::Item> items;
    for (const Expr::Item& i : e.items)
      if (i.op == Expr::Op::kSymbol && i.value == symbol)
        items.insert(items.end(), by.items.begin(), by.items.end());
      else
        items.push_back(i);
    e.items = std::move(items);
  }
  static void replace(std::vector<Step>& list, int symbol, const Expr& by) {
    for (Step& s : list) {
      for (StepAxis& a : s.over) replace(a.extent, symbol, by);
      for (Index& i : s.out.at) replace(i.offset, symbol, by);
      for (Operand& o : s.in)
        for (Index& i : o.at) replace(i.offset, symbol, by);
      for (Expr* e : {&s.add, &s.id, &s.from, &s.to, &s.by}) replace(*e, symbol, by);
      replace(s.body, symbol, by);
    }
  }

  Result<std::vector<Step>> whole() {
    const Expr t = Expr::symbol(job_.t), chunk = Expr::symbol(job_.chunk);
    const Expr core = Expr::symbol(engine::kCore), cores = Expr::symbol(engine::kCores);
    const Expr turn = (t - core) / cores;
    const Expr c_slot = slots_ == 2 ? half(turn) : Expr(0);
    const Expr slot = half(turn * Expr(job_.chunks) + chunk);
    // What follows the loads shares their engine: it goes behind the next tile's first loads.
    const bool late = first_.contains(store_.back()) && slots_ == 2;

    std::vector<Step> piece;
    for (int e : first_) piece.push_back(wait(e, after_first(), slot));
    piece.push_back(fetch(a_, slot, false));
    piece.push_back(fetch(b_, slot, true));
    for (int e : first_) piece.push_back(set(e, after_first(), slot));
    if (late) {
      std::vector<Step> previous = leave(c_slot);
      replace(previous, job_.t, t - cores);
      const Expr when =
          job_.chunks == 1
              ? min(Expr(1), turn)
              : min(Expr(1), turn) * max(Expr(0), Expr(1) - max(chunk - Expr(1), Expr(1) - chunk));
      piece.push_back(loop(p_.symbol("once"), 0, when, 1, std::move(previous)));
    }
    const Expr inner = product(job_.a.inner);
    const Expr starts = job_.chunks == 1 ? Expr(0) : chunk;
    std::vector<Step> last_piece;
    if (a_.on_the_way) {
      const int j = p_.symbol("j");
      const Expr js = Expr::symbol(j);
      const int64_t steps = (job_.inner + job_.step - 1) / job_.step;
      const Expr here = half((turn * Expr(job_.chunks) + chunk) * Expr(steps) + js);
      const Expr part = steps == 1 ? inner : min(Expr(job_.step), inner - js * Expr(job_.step));
      std::vector<Step> body;
      for (int e : second_) body.push_back(wait(e, unit_, here));
      body.push_back(feed(a_, slot, js, here, false, part));
      body.push_back(feed(b_, slot, js, here, true, part));
      for (int e : second_) {
        body.push_back(set(e, unit_, here));
        body.push_back(wait(unit_, e, here));
      }
      body.push_back(multiply(here, part, c_slot, starts + js));
      for (int e : second_) body.push_back(set(unit_, e, here));
      for (int e : first_) piece.push_back(wait(after_first(), e, slot));
      piece.push_back(loop(j, 0,
                           steps == 1 ? Expr(1) : (inner + Expr(job_.step - 1)) / Expr(job_.step),
                           1, std::move(body)));
      for (int e : first_) piece.push_back(set(after_first(), e, slot));
    } else {
      for (int e : first_) piece.push_back(wait(unit_, e, slot));
      piece.push_back(multiply(slot, inner, c_slot, starts));
      for (int e : first_) piece.push_back(set(unit_, e, slot));
    }
    std::vector<Step> tile;
    tile.push_back(wait(unit_, store_.front(), Expr(2) + c_slot));
    if (job_.chunks == 1) {
      replace(piece, job_.chunk, 0);
      append(tile, std::move(piece));
    } else {
      tile.push_back(loop(job_.chunk, 0, job_.chunks, 1, std::move(piece)));
    }
    tile.push_back(set(unit_, store_.front(), Expr(2) + c_slot));
    if (!late) append(tile, leave(c_slot));

    std::vector<Step> all;
    const auto hold = [&](int from, int to, int64_t base, int64_t slots, bool before) {
      for (int64_t s = 0; s < slots; ++s)
        all.push_back(before ? set(from, to, Expr(base + s)) : wait(to, from, Expr(base + s)));
    };
    const auto ends = [&](bool before) {
      for (int e : first_) hold(after_first(), e, 0, 2, before);
      for (int e : second_) hold(unit_, e, 0, 2, before);
      hold(store_.front(), unit_, 2, slots_, before);
      if (store_.size() == 2 && store_[0] != store_[1])
        hold(store_[1], store_[0], 0, slots_, before);
    };
    ends(true);
    all.push_back(loop(job_.t, core, job_.items, cores, std::move(tile)));
    if (late) {
      const Expr tiles = (Expr(job_.items) - core + cores - Expr(1)) / cores;
      std::vector<Step> rest = leave(c_slot);
      replace(rest, job_.t, core + (tiles - Expr(1)) * cores);
      all.push_back(loop(p_.symbol("once"), 0, min(Expr(1), tiles), 1, std::move(rest)));
    }
    ends(false);
    return all;
  }
  // Who takes what the first engines bring.
  int after_first() const { return a_.on_the_way ? *second_.begin() : unit_; }

  const chip::Chip& chip_;
  const engine::MatrixPath& path_;
  Product job_;
  engine::Program p_;
  int unit_ = 0, c_ = -1, c_argument_ = -1, c_between_ = -1;
  int64_t slots_ = 1;
  Place a_, b_;
  std::vector<int> store_;
  std::set<int> first_, second_;
  std::map<std::string, int64_t> ends_;
};

}  // namespace

bool fits(const chip::Chip& chip, const engine::MatrixPath& path, const Product& p,
          int slots_of_c) {
  const chip::Unit& unit = unit_of(chip, path);
  const auto rate = unit.rates.find(p.compute);
  const int64_t um = std::max<int64_t>(16, of(rate->second.m)),
                un = std::max<int64_t>(16, of(rate->second.n)),
                uk = std::max<int64_t>(16, of(rate->second.k));
  const int64_t in = bits_of(p.stored) / 8, sum = bits_of(p.sums) / 8;
  std::map<std::string, int64_t> used;
  const auto add = [&](const std::string& space, int64_t bytes) {
    used[space] += up(bytes, engine::slot_alignment(chip.memory.find(space)->second));
  };
  const int64_t m = up(p.rows, um), n = up(p.columns, un), k = up(p.inner, uk),
                s = up(std::min(p.step, p.inner), uk);
  const bool two = path.to_a.size() == 2;
  add(path.a, 2 * m * (two ? s : k) * in);
  add(path.b, 2 * n * (two ? s : k) * in);
  add(path.c, slots_of_c * m * n * sum);
  if (two) {
    add(path.to_a[0].to, 2 * m * k * in);
    add(path.to_b[0].to, 2 * n * k * in);
  }
  if (path.from_c.size() == 2) add(path.from_c[0].to, slots_of_c * m * n * sum);
  return std::ranges::all_of(used, [&](const auto& u) {
    return u.second <= chip.memory.find(u.first)->second.capacity_bytes.value.value;
  });
}

Result<engine::Program> matrix(const chip::Chip& chip, const engine::MatrixPath& path, Product p) {
  return Emitter(chip, path, std::move(p)).emit();
}

Result<Tiling> choose_tiling(const chip::Chip& chip, const engine::MatrixPath& path,
                             const TilingRequest& r) {
  const chip::Unit& unit = unit_of(chip, path);
  const auto rate = unit.rates.find(r.compute);
  const auto route = [&](const engine::Hop& hop) {
    return engine::find_route(chip.engines.find(hop.engine)->second, hop.from, hop.to)
        ->bytes_per_cycle.value;
  };
  const auto cores = static_cast<double>(chip.cores.find(path.core)->second.count.value);
  const double clock = chip.cores.find(path.core)->second.clock_hz.value;
  double shared = chip.bandwidth_of(chip.device_memory());
  for (const auto& [name, m] : chip.memory)
    if (m.kind == chip::MemoryKind::kCache && m.core.empty())
      shared = std::max(shared, chip.bandwidth_of(m));
  shared = shared > 0 ? shared / cores / clock : 1e9;  // bytes a cycle and core
  const double in = bits_of(r.stored) / 8, out = bits_of(r.out) / 8;
  const double macs = rate->second.macs_per_cycle.value * static_cast<double>(unit.per_core.value) *
                      chip.clock_of(unit) / clock;
  const int64_t um =
                    std::max(of(rate->second.m),
                             of(unit.dataflow == chip::Dataflow::kOutputStationary ? unit.rows
                                                                                   : std::nullopt)),
                un = of(rate->second.n), uk = of(rate->second.k);
  const auto sizes = [](int64_t unit_size, int64_t most) {
    std::vector<int64_t> list;
    for (int64_t n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256}) {
      const int64_t size = n * unit_size;
      list.push_back(std::min(size, most));
      if (size >= most) break;
    }
    return list;
  };
  const int64_t row_unit = r.rows_unit > 1 ? r.rows_unit : um;
  const bool two = path.to_a.size() == 2;
  Tiling best;
  double least = INFINITY;
  for (int64_t m : sizes(row_unit, up(r.m, row_unit)))
    for (int64_t n : sizes(un, up(r.n, un)))
      for (int64_t k : r.inner_unit > 0
                           ? sizes(r.inner_unit, r.k)
                           : sizes(uk, up(r.inner_most > 0 ? r.inner_most : r.k, uk))) {
        Product p;
        p.compute = r.compute;
        p.stored = r.stored;
        p.sums = r.sums;
        p.rows = m;
        p.columns = n;
        p.inner = k;
        // What the unit takes at once, where that is less than what comes at once.
        p.step = k;
        while (two && p.step > uk && !fits(chip, path, p, 1)) p.step = up((p.step + 1) / 2, uk);
        if (!fits(chip, path, p, 1)) continue;
        const bool slots = fits(chip, path, p, 2);
        const auto dm = static_cast<double>(m), dn = static_cast<double>(n),
                   dk = static_cast<double>(k);
        const double chunks = std::ceil(static_cast<double>(r.k) / dk);
        const double tiles = static_cast<double>(r.batch) *
                             std::ceil(static_cast<double>(r.m) / dm) *
                             std::ceil(static_cast<double>(r.n) / dn);
        double work = static_cast<double>(up(m, um) * up(n, un) * up(k, uk)) / macs;
        if (unit.rows && unit.columns && unit.dataflow == chip::Dataflow::kWeightStationary) {
          const auto folds =
              static_cast<double>(((k + unit.rows->value - 1) / unit.rows->value) *
                                  ((n + unit.columns->value - 1) / unit.columns->value));
          work = std::max(work, std::ceil(folds / static_cast<double>(unit.per_core.value)) *
                                    static_cast<double>(unit.rows->value));
        }
        work *= chunks;
        const double bytes = (dm + dn) * dk * chunks * in;
        double load = dm * dk * chunks * in / route(path.to_a[0]) +
                      dn * dk * chunks * in / route(path.to_b[0]);
        load = std::max(load, bytes / shared);
        const double feed = two ? dm * dk * chunks * in / route(path.to_a[1]) +
                                      dn * dk * chunks * in / route(path.to_b[1])
                                : 0;
        double leave = 0;
        for (const engine::Hop& hop : path.from_c) leave += dm * dn * out / route(hop);
        if (path.from_c.back().engine == path.to_a.front().engine) {
          load += leave;
          leave = 0;
        }
        const double tile = std::max({work, load, feed, slots ? leave : 0.0});
        const double first = (load + feed) / chunks + leave;
        const double time =
            std::ceil(tiles / cores) * (tile + (slots ? 0 : leave)) + first + 50 * chunks;
        if (time < least * 0.999) {
          least = time;
          best = {m, n, k, p.step};
        }
      }
  if (best.rows == 0)
    return error(Code::kUnimplemented, "no tile of {} fits the memories of {}", r.compute, chip.id);
  return best;
}

}  // namespace tessera::codegen::sim
