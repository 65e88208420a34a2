#include "tessera/codegen/sim/vectors.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/codegen/sim/emit.h"
#include "tessera/tile/engine_chip.h"

namespace tessera::codegen::sim {
namespace {

using engine::Expr;
using engine::Operand;
using engine::Step;
using tile::Instruction;
using tile::kNone;

constexpr int64_t kFar = int64_t{1} << 40;

// How an axis is cut at the moment.
struct Piece {
  Expr start, extent;
};

// What a value of the tile program has become.
struct Held {
  enum class Kind : uint8_t { kNothing, kNumber, kBuffer } kind = Kind::kNothing;
  double number = 0;
  int64_t whole = 0;
  int buffer = -1;
  std::optional<Expr> slot = {};  // of a buffer with two
  bool loaded = false;            // written by the loading engine
  int level = 0;                  // of the body that makes it
};

// Bytes of the computing engines' own tiles: whatever is free is taken again.
class Arena {
 public:
  int64_t take(int buffer, int64_t bytes) {
    int64_t at = 0;
    for (const auto& [begin, piece] : live_) {
      if (begin - at >= bytes) break;
      at = std::max(at, begin + piece.first);
    }
    live_[at] = {bytes, buffer};
    peak_ = std::max(peak_, at + bytes);
    return at;
  }
  void give(int buffer) {
    std::erase_if(live_, [&](const auto& e) { return e.second.second == buffer; });
  }
  int64_t peak() const { return peak_; }

 private:
  std::map<int64_t, std::pair<int64_t, int>> live_;  // offset -> size, buffer
  int64_t peak_ = 0;
};

class Emitter {
 public:
  Emitter(const tile::Instance& instance, const chip::Chip& chip, const engine::VectorPath& path,
          std::vector<int64_t> extents, std::vector<int64_t> tiles)
      : instance_(instance),
        t_(instance.program),
        chip_(chip),
        path_(path),
        extents_(std::move(extents)),
        tiles_(std::move(tiles)),
        pieces_(t_.axes.size()),
        values_(t_.values.size()) {
    alignment_ = engine::slot_alignment(chip.memory.find(path.space)->second);
  }

  Result<engine::Program> emit() {
    p_.name = t_.name;
    p_.core = path_.core;
    load_ = p_.engine(path_.load);
    vector_ = p_.engine(path_.unit);
    store_ = p_.engine(path_.store);
    at_work_ = vector_;
    TRY(arguments());
    Expr items = 1;
    const int t = p_.symbol("t");
    std::vector<Expr> counts;
    for (int a : t_.grid) {
      counts.push_back(count(a));
      items = items * counts.back();
    }
    Expr rest = Expr::symbol(t);
    for (size_t k = t_.grid.size(); k-- > 0;) {
      cut(t_.grid[k], k == 0 ? rest : rest % counts[k]);
      rest = rest / counts[k];
    }
    for (int a : t_.whole) pieces_[static_cast<size_t>(a)] = {0, extent(a)};
    Step loop;
    loop.kind = engine::Kind::kFor;
    loop.symbol = t;
    loop.from = Expr::symbol(engine::kCore);
    loop.by = Expr::symbol(engine::kCores);
    loop.to = items;
    const Expr parity = (Expr::symbol(t) - loop.from) / loop.by % 2;
    TRY_ASSIGN(loop.body, body(t_.body, 0, parity, {}));
    // Flags that say "free" are set before the first turn and taken back after the last.
    std::vector<Step> all = std::move(before_);
    all.push_back(std::move(loop));
    all.insert(all.end(), std::make_move_iterator(after_.begin()),
               std::make_move_iterator(after_.end()));
    p_.body = std::move(all);
    place();
    return std::move(p_);
  }

  int64_t bytes() const { return fixed_ + up(arena_.peak()); }

 private:
  int64_t extent(int a) const { return extents_[static_cast<size_t>(a)]; }
  int64_t tile_of(int a) const { return tiles_[static_cast<size_t>(a)]; }
  int64_t count(int a) const {
    return extent(a) == 0 ? 0 : (extent(a) + tile_of(a) - 1) / tile_of(a);
  }
  int64_t up(int64_t n) const { return (n + alignment_ - 1) / alignment_ * alignment_; }
  void cut(int a, const Expr& piece) {
    const Expr start = piece * Expr(tile_of(a));
    const bool even = extent(a) % tile_of(a) == 0;
    pieces_[static_cast<size_t>(a)] = {
        start, even ? Expr(tile_of(a)) : min(Expr(tile_of(a)), Expr(extent(a)) - start)};
  }
  Held& held(int value) { return values_[static_cast<size_t>(value)]; }

  Status arguments() {
    for (size_t k = 0; k < t_.tensors.size(); ++k) {
      const tile::Tensor& tensor = t_.tensors[k];
      if (!tensor.layout.empty())
        return error(Code::kUnimplemented, "a tensor in layout '{}'", tensor.layout);
      engine::Buffer b;
      b.name = fmt::format("g{}", k);
      b.dtype = tensor.dtype;
      b.offset = static_cast<int64_t>(k);
      for (const tile::Expr& d : tensor.dims) {
        TRY_ASSIGN(const int64_t n, d.eval(instance_.symbols));
        b.dims.emplace_back(n);
      }
      for (const tile::Expr& s : tensor.strides) {
        TRY_ASSIGN(const int64_t n, s.eval(instance_.symbols));
        if (n < 0) return error(Code::kUnimplemented, "a stride of {}", n);
        b.strides.push_back(n);
      }
      if (tensor.dims.empty()) {
        b.dims.emplace_back(1);
        b.strides.clear();
      }
      p_.buffers.push_back(std::move(b));
    }
    return {};
  }

  // ---- Buffers

  // A tile of these axes; with slots, one that the copying engines share with the computing ones.
  int buffer(DType dtype, const std::vector<int>& axes, bool slots) {
    engine::Buffer b;
    b.name = fmt::format("v{}", p_.buffers.size());
    b.dtype = dtype;
    b.space = path_.space;
    int64_t elements = 1;
    std::vector<int64_t> dims;
    for (int a : axes) dims.push_back(std::max<int64_t>(std::min(tile_of(a), extent(a)), 1));
    for (size_t d = dims.size(); d-- > 0;) {
      b.strides.insert(b.strides.begin(), elements);
      b.dims.insert(b.dims.begin(), Expr(dims[d]));
      elements *= dims[d];
    }
    const int64_t size = bits_of(dtype) / 8;
    // Whole pieces of the space's alignment, whatever the element's size.
    const int64_t bytes = up(elements * size);
    const int number = static_cast<int>(p_.buffers.size());
    if (slots) {
      b.dims.insert(b.dims.begin(), Expr(2));
      b.strides.insert(b.strides.begin(), bytes / size);
      b.offset = fixed_;
      fixed_ += 2 * bytes;
    } else {
      if (b.dims.empty()) {
        b.dims.emplace_back(1);
        b.strides.push_back(1);
      }
      b.offset = arena_.take(number, bytes);
      own_.push_back(number);
    }
    p_.buffers.push_back(std::move(b));
    return number;
  }
  void place() {
    for (int b : own_) p_.buffers[static_cast<size_t>(b)].offset += fixed_;
  }

  // ---- Steps

  // Axes of a step, by axis of the tile program.
  struct Axes {
    std::vector<int> list;
    std::vector<engine::StepAxis> over;
  };
  Axes axes_of(const std::vector<int>& list) const {
    Axes result;
    for (int a : list) {
      result.list.push_back(a);
      result.over.push_back({"_" + t_.axis(a).name, pieces_[static_cast<size_t>(a)].extent});
    }
    return result;
  }
  static engine::Index place_of(const Axes& axes, int a, int64_t by = 1) {
    engine::Index i;
    for (size_t k = 0; k < axes.list.size(); ++k)
      if (axes.list[k] == a) {
        i.coefficients.resize(k + 1, 0);
        i.coefficients[k] = by;
      }
    return i;
  }
  Operand operand(int value, const Axes& axes) {
    const Held& h = held(value);
    Operand o;
    if (h.kind == Held::Kind::kNumber) {
      o.kind = Operand::Kind::kNumber;
      o.number = h.number;
      o.whole = h.whole;
      return o;
    }
    return of_buffer(h.buffer, h.slot, t_.value(value).axes, axes);
  }
  Operand of_buffer(int b, const std::optional<Expr>& slot, const std::vector<int>& own,
                    const Axes& axes) {
    Operand o;
    o.buffer = b;
    if (slot) o.at.push_back({*slot, {}});
    for (int a : own) o.at.push_back(place_of(axes, a));
    if (o.at.empty()) o.at.push_back({});
    return o;
  }
  Result<Operand> of_tensor(const Instruction& i, const Axes& axes) {
    Operand o;
    o.buffer = i.tensor;
    for (const tile::Subscript& s : i.at) {
      if (s.value != kNone)
        return error(Code::kUnimplemented, "an index that is computed (a gather)");
      TRY_ASSIGN(const tile::Affine f, tile::affine(t_, s.at));
      engine::Index index;
      TRY_ASSIGN(const int64_t offset, f.offset.eval(instance_.symbols));
      index.offset = offset;
      for (const auto& [a, coefficient] : f.terms) {
        TRY_ASSIGN(const int64_t c, coefficient.eval(instance_.symbols));
        index.offset = index.offset + Expr(c) * pieces_[static_cast<size_t>(a)].start;
        const engine::Index term = place_of(axes, a, c);
        if (index.coefficients.size() < term.coefficients.size())
          index.coefficients.resize(term.coefficients.size(), 0);
        for (size_t k = 0; k < term.coefficients.size(); ++k)
          index.coefficients[k] += term.coefficients[k];
      }
      o.at.push_back(std::move(index));
    }
    if (o.at.empty()) o.at.push_back({});
    return o;
  }
  // Makes `to` the engine that computes: it sees what the other has done.
  void turn(std::vector<Step>& out, int to) {
    if (to == at_work_) return;
    out.push_back(set(at_work_, to, kTurn));
    out.push_back(wait(to, at_work_, kTurn));
    at_work_ = to;
  }
  Step map(tile::Function f, Operand to, std::vector<Operand> in, const Axes& axes) {
    Step s = on(vector_, engine::Kind::kMap);
    s.function = f;
    s.over = axes.over;
    s.out = std::move(to);
    s.in = std::move(in);
    return s;
  }

  // ---- Bodies

  // Whoever reads the value last, by the place in the body.
  std::map<int, size_t> last_reads(const std::vector<Instruction>& list,
                                   const std::vector<int>& yields) const {
    std::map<int, size_t> last;
    for (size_t n = 0; n < list.size(); ++n) {
      const std::vector<Instruction> one{list[n]};
      tile::for_each(
          one, [&](const Instruction& i) { tile::for_each_read(i, [&](int v) { last[v] = n; }); });
    }
    for (int v : yields) last[v] = list.size();
    return last;
  }

  Result<std::vector<Step>> body(const std::vector<Instruction>& list, int level,
                                 const Expr& parity, const std::vector<int>& yields) {
    std::vector<Step> loads, work, stores;
    std::set<int> stored;  // made here and stored here
    std::set<int> made;
    for (const Instruction& i : list) {
      for (int v : i.out) made.insert(v);
      if (i.kind == tile::Kind::kStore && i.in.size() == 1) stored.insert(i.in[0]);
    }
    const std::map<int, size_t> last = last_reads(list, yields);
    bool direct = false;  // something is stored as it was loaded
    for (size_t n = 0; n < list.size(); ++n) {
      const Instruction& i = list[n];
      switch (i.kind) {
        case tile::Kind::kConstant:
        case tile::Kind::kSize: {
          Held& h = held(i.out[0]);
          h.kind = Held::Kind::kNumber;
          h.number = i.number;
          h.whole = i.whole;
          if (i.kind == tile::Kind::kSize) {
            TRY_ASSIGN(h.whole, i.size.eval(instance_.symbols));
          }
          if (!is_float(t_.value(i.out[0]).dtype)) h.number = static_cast<double>(h.whole);
          break;
        }
        case tile::Kind::kLoad:
          TRY(load(i, level, parity, loads));
          break;
        case tile::Kind::kStore: {
          TRY_ASSIGN(const bool as_loaded, store(i, level, parity, work, stores));
          direct |= as_loaded;
          break;
        }
        case tile::Kind::kFor:
          TRY(loop(i, level, work));
          break;
        default:
          TRY(compute(i, level, stored.contains(i.out[0]) ? std::optional(parity) : std::nullopt,
                      work));
          break;
      }
      for (int v : made)
        if (const auto at = last.find(v);
            held(v).kind == Held::Kind::kBuffer && (at == last.end() || at->second == n))
          arena_.give(held(v).buffer);
    }
    turn(work, vector_);
    // Flags of this level, by slot.
    const bool one = load_ == store_;
    const int64_t ids = one ? 4 : 2;
    Level& l = levels_[level];
    if (l.number < 0 && (!loads.empty() || !stores.empty())) {
      l.number = flagged_++;
      const int64_t flags = engine::flags_of(chip_, path_.core);
      if (ids * flagged_ > flags)
        return error(Code::kUnimplemented,
                     "{} loops with copies in one another take {} flags, {} has {}", flagged_,
                     ids * flagged_, chip_.id, flags);
    }
    const auto id = [&](const Expr& slot, int64_t of) { return Expr(ids * l.number + of) + slot; };
    const int64_t free = 0, ready = one ? 2 : 0;
    std::vector<Step> out;
    const auto hold = [&](int from, int to, int64_t of) {
      for (int64_t slot = 0; slot < 2; ++slot) {
        before_.push_back(set(from, to, id(slot, of)));
        after_.push_back(wait(to, from, id(slot, of)));
      }
    };
    const auto append = [&](std::vector<Step>& more) {
      out.insert(out.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
    };
    if (!loads.empty()) {
      if (!l.loads) hold(vector_, load_, free);
      l.loads = true;
      if (direct && !one) {
        if (!l.direct) hold(store_, load_, ready);
        l.direct = true;
      }
      out.push_back(wait(load_, vector_, id(parity, free)));
      if (direct && !one) out.push_back(wait(load_, store_, id(parity, ready)));
      append(loads);
      out.push_back(set(load_, vector_, id(parity, free)));
      out.push_back(wait(vector_, load_, id(parity, free)));
    }
    if (!stores.empty()) {
      if (!l.stores) hold(store_, vector_, ready);
      l.stores = true;
      out.push_back(wait(vector_, store_, id(parity, ready)));
    }
    append(work);
    if (!stores.empty()) {
      out.push_back(set(vector_, store_, id(parity, ready)));
      out.push_back(wait(store_, vector_, id(parity, ready)));
      append(stores);
      out.push_back(set(store_, vector_, id(parity, ready)));
      if (direct && !one) out.push_back(set(store_, load_, id(parity, ready)));
    }
    if (!loads.empty()) out.push_back(set(vector_, load_, id(parity, free)));
    return out;
  }

  Status load(const Instruction& i, int level, const Expr& parity, std::vector<Step>& loads) {
    const tile::Value& value = t_.value(i.out[0]);
    const Axes axes = axes_of(value.axes);
    Held& h = held(i.out[0]);
    h = {Held::Kind::kBuffer, 0, 0, buffer(value.dtype, value.axes, true), parity, true, level};
    Step s = on(load_, engine::Kind::kCopy);
    s.over = axes.over;
    s.out = of_buffer(h.buffer, h.slot, value.axes, axes);
    TRY_ASSIGN(Operand in, of_tensor(i, axes));
    s.in.push_back(std::move(in));
    s.pads = i.pad.has_value();
    s.pad = i.pad.value_or(0);
    loads.push_back(std::move(s));
    return {};
  }

  // True: straight from where it was loaded.
  Result<bool> store(const Instruction& i, int level, const Expr& parity, std::vector<Step>& work,
                     std::vector<Step>& stores) {
    std::vector<int> list = t_.value(i.in[0]).axes;
    for (const tile::Subscript& s : i.at) {
      TRY_ASSIGN(const tile::Affine f, tile::affine(t_, s.at));
      for (const auto& [a, c] : f.terms)
        if (std::ranges::find(list, a) == list.end()) list.push_back(a);
    }
    const Axes axes = axes_of(list);
    Held h = held(i.in[0]);
    const tile::Value& value = t_.value(i.in[0]);
    if (h.kind != Held::Kind::kBuffer || h.level != level || !h.slot) {
      // What comes from elsewhere lies where the next turn leaves it alone.
      const int b = buffer(value.dtype, value.axes, true);
      const Axes own = axes_of(value.axes);
      turn(work, vector_);
      work.push_back(map(tile::Function::kConvert, of_buffer(b, parity, value.axes, own),
                         {operand(i.in[0], own)}, own));
      h = {Held::Kind::kBuffer, 0, 0, b, parity, false, level};
    }
    Step s = on(store_, engine::Kind::kCopy);
    s.over = axes.over;
    TRY_ASSIGN(s.out, of_tensor(i, axes));
    s.in.push_back(of_buffer(h.buffer, h.slot, value.axes, axes));
    stores.push_back(std::move(s));
    return h.loaded;
  }

  Status compute(const Instruction& i, int level, const std::optional<Expr>& slot,
                 std::vector<Step>& work) {
    const int v = i.out[0];
    const tile::Value& value = t_.value(v);
    std::vector<int> list = value.axes;
    for (int a : i.over) list.push_back(a);
    const Axes axes = axes_of(list);
    Step s = on(vector_, engine::Kind::kMap);
    s.over = axes.over;
    s.function = i.function;
    const int b = buffer(value.dtype, value.axes, slot.has_value());
    s.out = of_buffer(b, slot, value.axes, axes);
    switch (i.kind) {
      case tile::Kind::kIndex: {
        Operand o;
        o.kind = Operand::Kind::kIndex;
        engine::Index index = place_of(axes, i.axis);
        index.offset = pieces_[static_cast<size_t>(i.axis)].start;
        o.at.push_back(std::move(index));
        s.function = tile::Function::kConvert;
        s.in.push_back(std::move(o));
        break;
      }
      case tile::Kind::kMap:
        for (size_t k = 0; k < i.in.size(); ++k) {
          Operand o = operand(i.in[k], axes);
          // A number converts as what it is.
          if (o.kind == Operand::Kind::kNumber && i.function == tile::Function::kConvert &&
              is_float(t_.value(i.in[k]).dtype) != is_float(value.dtype)) {
            if (is_float(value.dtype)) {
              o.number = static_cast<double>(o.whole);
              o.whole = 0;
            } else {
              return error(Code::kUnimplemented, "a number of floats becomes a whole one");
            }
          }
          s.in.push_back(std::move(o));
        }
        if (std::ranges::all_of(
                s.in, [](const Operand& o) { return o.kind == Operand::Kind::kNumber; }) &&
            i.function != tile::Function::kConvert)
          return error(Code::kUnimplemented, "a function of numbers alone");
        break;
      case tile::Kind::kReduce:
        s.kind = engine::Kind::kReduce;
        if (held(i.in[0]).kind != Held::Kind::kBuffer)
          return error(Code::kUnimplemented, "a number is folded");
        s.in.push_back(operand(i.in[0], axes));
        break;
      case tile::Kind::kDot:
        TRY(dot(i, axes, s, work));
        break;
      default:
        return error(Code::kUnimplemented, "an instruction of another kind");
    }
    turn(work, s.engine);
    work.push_back(std::move(s));
    held(v) = {Held::Kind::kBuffer, 0, 0, b, slot, false, level};
    return {};
  }

  // What the sum is added to, where there is something: laid where the result will be.
  void add_to(const Instruction& i, Step& s, std::vector<Step>& work) {
    if (i.in.size() < 3 || i.in[2] == kNone) return;
    const Axes own = axes_of(t_.value(i.out[0]).axes);
    turn(work, vector_);
    Operand to = s.out;
    for (engine::Index& index : to.at)
      index.coefficients.resize(std::min(index.coefficients.size(), own.list.size()));
    work.push_back(map(tile::Function::kConvert, std::move(to), {operand(i.in[2], own)}, own));
    s.add = 1;
  }

  // On a matrix unit that works on the same memory, if it takes the type; else by vectors, as
  // products that are folded.
  Status dot(const Instruction& i, const Axes& axes, Step& s, std::vector<Step>& work) {
    const DType type = t_.value(i.in[0]).dtype, sum = t_.value(i.out[0]).dtype;
    for (size_t k = 0; k < 2; ++k)
      if (held(i.in[k]).kind != Held::Kind::kBuffer)
        return error(Code::kUnimplemented, "a product with a number");
    for (const auto& [name, unit] : chip_.units) {
      if (unit.kind != chip::UnitKind::kMatrix || unit.core != path_.core) continue;
      const auto lies = [&, &operands = unit.operands](std::string_view letter) {
        const auto at = operands.find(letter);
        return at != operands.end() && at->second.memory == path_.space;
      };
      const auto rate = unit.rates.find(name_of(type));
      if (!lies("a") || !lies("b") || !lies("c") || rate == unit.rates.end() ||
          t_.value(i.in[1]).dtype != type)
        continue;
      const std::string sums =
          rate->second.accumulate.empty() ? rate->first : rate->second.accumulate;
      if (name_of(sum) != sums) continue;
      add_to(i, s, work);
      s.kind = engine::Kind::kMatrix;
      s.compute = rate->first;
      s.engine = p_.engine(name);
      for (size_t k = 0; k < 2; ++k) s.in.push_back(operand(i.in[k], axes));
      return {};
    }
    if (!is_float(type) || t_.value(i.in[1]).dtype != type || sum != type)
      return error(Code::kUnimplemented, "{} multiplies no {} by {} into {}", chip_.id,
                   name_of(type), name_of(t_.value(i.in[1]).dtype), name_of(sum));
    const int products = buffer(type, axes.list, false);
    turn(work, vector_);
    work.push_back(map(tile::Function::kMul, of_buffer(products, {}, axes.list, axes),
                       {operand(i.in[0], axes), operand(i.in[1], axes)}, axes));
    arena_.give(products);
    add_to(i, s, work);
    s.kind = engine::Kind::kReduce;
    s.function = tile::Function::kAdd;
    s.in.push_back(of_buffer(products, {}, axes.list, axes));
    return {};
  }

  Status loop(const Instruction& i, int level, std::vector<Step>& work) {
    const int symbol = p_.symbol(fmt::format("n{}", loops_++));
    const size_t axis = static_cast<size_t>(i.axis);
    const Piece outside = pieces_[axis];
    cut(i.axis, Expr::symbol(symbol));
    // What is carried has a place of its own.
    turn(work, vector_);
    for (size_t k = 0; k < i.carried.size(); ++k) {
      const tile::Value& value = t_.value(i.carried[k]);
      const Axes axes = axes_of(value.axes);
      const int b = buffer(value.dtype, value.axes, false);
      work.push_back(map(tile::Function::kConvert, of_buffer(b, {}, value.axes, axes),
                         {operand(i.in[k], axes)}, axes));
      // It is of the loop's level to those who store it: not made where they are.
      held(i.carried[k]) = held(i.out[k]) = {Held::Kind::kBuffer, 0, 0, b, {}, false, level};
    }
    Step s;
    s.kind = engine::Kind::kFor;
    s.symbol = symbol;
    s.to = count(i.axis);
    TRY_ASSIGN(s.body, body(i.body, level + 1, Expr::symbol(symbol) % 2, i.yields));
    std::vector<Step> moves;
    for (size_t k = 0; k < i.yields.size(); ++k) {
      if (i.yields[k] == i.carried[k]) continue;
      for (size_t other = 0; other < i.carried.size(); ++other)
        if (i.yields[k] == i.carried[other])
          return error(Code::kUnimplemented, "a loop that swaps what it carries");
      const tile::Value& value = t_.value(i.carried[k]);
      const Axes axes = axes_of(value.axes);
      moves.push_back(map(tile::Function::kConvert,
                          of_buffer(held(i.carried[k]).buffer, {}, value.axes, axes),
                          {operand(i.yields[k], axes)}, axes));
      if (held(i.yields[k]).kind == Held::Kind::kBuffer) arena_.give(held(i.yields[k]).buffer);
    }
    // Before what is loaded may be written again.
    auto at = s.body.end();
    if (!s.body.empty() && s.body.back().kind == engine::Kind::kSet &&
        s.body.back().engine == vector_ && s.body.back().other == load_)
      --at;
    s.body.insert(at, std::make_move_iterator(moves.begin()), std::make_move_iterator(moves.end()));
    pieces_[axis] = outside;
    work.push_back(std::move(s));
    return {};
  }

  static constexpr int64_t kTurn = 32;  // the flag between computing engines
  struct Level {
    bool loads = false, stores = false, direct = false;
    int64_t number = -1;  // among those that copy
  };

  const tile::Instance& instance_;
  const tile::Program& t_;
  const chip::Chip& chip_;
  const engine::VectorPath& path_;
  std::vector<int64_t> extents_, tiles_;
  std::vector<Piece> pieces_;
  std::vector<Held> values_;
  engine::Program p_;
  int load_ = 0, vector_ = 0, store_ = 0;
  int at_work_ = 0;  // the engine that computes
  int64_t alignment_ = 1;
  int64_t fixed_ = 0;
  Arena arena_;
  std::vector<int> own_;
  std::map<int, Level> levels_;
  int64_t flagged_ = 0;  // levels that copy
  std::vector<Step> before_, after_;
  int loops_ = 0;
};

int64_t cores_of(const chip::Chip& chip, const std::string& core) {
  return chip.cores.find(core)->second.count.value;
}

// Makes pieces smaller by one step: first the outer axes of the grid, then loops, then what is
// innermost. False: there is nothing left to halve.
bool shrink(const tile::Program& t, std::vector<int64_t>& tiles, bool grid_only) {
  constexpr int64_t kRow = 64;  // elements of the innermost axis that are kept as long as possible
  const auto halve = [&](int a, int64_t least) {
    int64_t& tile = tiles[static_cast<size_t>(a)];
    if (tile <= least) return false;
    tile = std::max(least, (tile + 1) / 2);
    if (tile > kRow) tile = (tile + kRow - 1) / kRow * kRow;
    return true;
  };
  for (size_t k = 0; k + 1 < t.grid.size(); ++k)
    if (halve(t.grid[k], 1)) return true;
  if (!t.grid.empty() && halve(t.grid.back(), grid_only ? 256 : kRow)) return true;
  if (grid_only) return false;
  std::vector<int> looped;
  tile::for_each(t.body, [&](const Instruction& i) {
    if (i.kind == tile::Kind::kFor) looped.push_back(i.axis);
  });
  for (int64_t least : {kRow, int64_t{1}}) {
    for (int a : looped)
      if (halve(a, least)) return true;
    if (!t.grid.empty() && halve(t.grid.back(), least)) return true;
  }
  return false;
}

}  // namespace

Result<engine::Program> vectors(const tile::Instance& instance, const chip::Chip& chip) {
  TRY_ASSIGN(const engine::VectorPath path, engine::find_vector_path(chip));
  const tile::Program& t = instance.program;
  std::vector<int64_t> extents, tiles;
  for (const tile::Axis& a : t.axes) {
    TRY_ASSIGN(const int64_t n, a.extent.eval(instance.symbols));
    if (n > kFar) return error(Code::kUnimplemented, "an axis of {}", n);
    extents.push_back(n);
    tiles.push_back(std::max<int64_t>(n, 1));
  }
  const auto items = [&] {
    int64_t n = 1;
    for (int a : t.grid)
      n *= (extents[static_cast<size_t>(a)] + tiles[static_cast<size_t>(a)] - 1) /
           tiles[static_cast<size_t>(a)];
    return n;
  };
  // Enough for all cores, and to load one piece while another is computed on.
  const int64_t wanted = 2 * cores_of(chip, path.core);
  while (items() > 0 && items() < wanted && shrink(t, tiles, true)) {
  }
  const int64_t capacity = chip.memory.find(path.space)->second.capacity_bytes.value.value;
  while (true) {
    Emitter emitter(instance, chip, path, extents, tiles);
    TRY_ASSIGN(engine::Program p, emitter.emit());
    if (emitter.bytes() <= capacity) {
      TRY(engine::verify(p, chip));
      return p;
    }
    if (!shrink(t, tiles, false))
      return error(Code::kUnimplemented, "its smallest tiles take {} bytes, '{}' has {}",
                   emitter.bytes(), path.space, capacity);
  }
}

}  // namespace tessera::codegen::sim
