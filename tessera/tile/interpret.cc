#include "tessera/tile/interpret.h"

#include <algorithm>

#include "tessera/base/element.h"
#include "tessera/layout/bound.h"
#include "tessera/tile/elements.h"

namespace tessera::tile {
namespace {

// A piece of an axis.
struct Piece {
  int64_t start = 0, length = 0;
};

// A tensor's elements: where each lies, and bounds.
struct Storage {
  std::vector<int64_t> dims, strides;
  std::optional<layout::BoundLayout> layout;
  std::span<std::byte> bytes;
  DType dtype = DType::kF32;

  bool contains(const std::vector<int64_t>& index) const {
    for (size_t d = 0; d < dims.size(); ++d)
      if (index[d] < 0 || index[d] >= dims[d]) return false;
    return true;
  }
  // @pre contains(index)
  Result<int64_t> offset(const std::vector<int64_t>& index) const {
    int64_t at = 0;
    if (layout)
      at = layout->offset(index);
    else
      for (size_t d = 0; d < dims.size(); ++d) at += index[d] * strides[d];
    const int64_t end = packed_bytes(dtype, at + 1);
    if (at < 0 || end < 0 || end > static_cast<int64_t>(bytes.size()))
      return error(Code::kOutOfRange, "element {} of {} bytes", at, bytes.size());
    return at;
  }
};

class Interpreter {
 public:
  Interpreter(const Program& p, const Schedule& s, const op::Bindings& symbols)
      : p_(p), s_(s), symbols_(symbols) {}

  Status prepare(std::span<const std::span<std::byte>> memory) {
    if (memory.size() != p_.tensors.size())
      return error(Code::kInvalidArgument, "{} tensors for the {} of program {}", memory.size(),
                   p_.tensors.size(), p_.name);
    for (const Axis& a : p_.axes) {
      TRY_ASSIGN(const int64_t extent, a.extent.eval(symbols_));
      extents_.push_back(extent);
    }
    for (size_t t = 0; t < p_.tensors.size(); ++t) {
      TRY_ASSIGN(Storage storage, bind(p_.tensors[t], memory[t]));
      storages_.push_back(std::move(storage));
    }
    pieces_.resize(p_.axes.size());
    values_.resize(p_.values.size());
    for (int a : p_.whole) piece(a) = {0, extent(a)};
    return {};
  }

  // All work items, the last grid axis fastest.
  Status run(size_t level = 0) {
    if (level == p_.grid.size()) return body(p_.body);
    const int a = p_.grid[level];
    return each_piece(a, [&] { return run(level + 1); });
  }

 private:
  using Tile = std::vector<Element>;

  int64_t extent(int a) const { return extents_[static_cast<size_t>(a)]; }
  Piece& piece(int a) { return pieces_[static_cast<size_t>(a)]; }
  const Piece& piece(int a) const { return pieces_[static_cast<size_t>(a)]; }
  Tile& tile(int v) { return values_[static_cast<size_t>(v)]; }

  Result<Storage> bind(const Tensor& t, std::span<std::byte> bytes) const {
    Storage storage;
    storage.bytes = bytes;
    storage.dtype = t.dtype;
    for (const Expr& d : t.dims) {
      TRY_ASSIGN(const int64_t n, d.eval(symbols_));
      storage.dims.push_back(n);
    }
    if (!t.layout.empty()) {
      TRY_ASSIGN(const auto layout, layout::Layout::parse(t.layout));
      TRY_ASSIGN(storage.layout, layout::BoundLayout::bind(layout, t.dtype, storage.dims));
      return storage;
    }
    storage.strides = op::strides_of(storage.dims);
    for (size_t d = 0; d < t.strides.size(); ++d) {
      TRY_ASSIGN(storage.strides[d], t.strides[d].eval(symbols_));
    }
    return storage;
  }

  template <class Fn>
  Status each_piece(int a, Fn run_piece) {
    const int64_t cut = s_.axis(a).tile, step = cut == 0 ? std::max<int64_t>(extent(a), 1) : cut;
    for (int64_t at = 0; at < extent(a); at += step) {
      piece(a) = {at, std::min(step, extent(a) - at)};
      TRY(run_piece());
    }
    return {};
  }

  // Calls visit(index along each of the axes, within their pieces) in row-major order.
  template <class Fn>
  Status each_element(const std::vector<int>& axes, Fn visit) const {
    std::vector<int64_t> index(axes.size(), 0);
    for (int a : axes)
      if (piece(a).length == 0) return {};
    for (;;) {
      TRY(visit(index));
      size_t d = axes.size();
      while (d > 0 && ++index[d - 1] == piece(axes[d - 1]).length) index[--d] = 0;
      if (d == 0) return {};
    }
  }

  // Elements between neighbours along `axes` in a tile: 0 along those that it lacks.
  std::vector<int64_t> strides_in(int v, const std::vector<int>& axes) const {
    const std::vector<int>& own = p_.value(v).axes;
    std::vector<int64_t> strides(axes.size(), 0);
    int64_t step = 1;
    for (size_t k = own.size(); k-- > 0;) {
      const auto at = std::ranges::find(axes, own[k]);
      if (at != axes.end()) strides[static_cast<size_t>(at - axes.begin())] = step;
      step *= piece(own[k]).length;
    }
    return strides;
  }
  static size_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    return static_cast<size_t>(at);
  }
  int64_t count(const std::vector<int>& axes) const {
    int64_t n = 1;
    for (int a : axes) n *= piece(a).length;
    return n;
  }

  Status body(const std::vector<Instruction>& list) {
    for (const Instruction& i : list) TRY(instruction(i));
    return {};
  }

  Status instruction(const Instruction& i) {
    switch (i.kind) {
      case Kind::kConstant:
        tile(i.out[0]) = {constant(i, p_.value(i.out[0]).dtype)};
        return {};
      case Kind::kIndex: {
        Tile& out = tile(i.out[0]);
        out.clear();
        for (int64_t k = 0; k < piece(i.axis).length; ++k)
          out.push_back({0, piece(i.axis).start + k});
        return {};
      }
      case Kind::kSize: {
        TRY_ASSIGN(const int64_t size, i.size.eval(symbols_));
        tile(i.out[0]) = {{0, size}};
        return {};
      }
      case Kind::kLoad:
      case Kind::kStore:
        return access(i);
      case Kind::kMap:
        return map(i);
      case Kind::kReduce:
        return reduce(i);
      case Kind::kDot:
        return product(i);
      case Kind::kFor:
        return loop(i);
    }
    return {};
  }

  static Element constant(const Instruction& i, DType dtype) {
    return is_float(dtype) ? Element{round_to(dtype, i.number), 0}
                           : Element{0, wrap_to(dtype, i.whole)};
  }

  // The tile of `from` with the axes of `to`.
  Tile spread(int from, int to) {
    const std::vector<int>& axes = p_.value(to).axes;
    const std::vector<int64_t> strides = strides_in(from, axes);
    Tile out;
    (void)each_element(axes, [&](const std::vector<int64_t>& index) -> Status {
      out.push_back(tile(from)[dot(index, strides)]);
      return {};
    });
    return out;
  }

  Status loop(const Instruction& i) {
    for (size_t k = 0; k < i.in.size(); ++k) tile(i.carried[k]) = spread(i.in[k], i.carried[k]);
    const Status ran = each_piece(i.axis, [&]() -> Status {
      TRY(body(i.body));
      std::vector<Tile> next;
      for (size_t k = 0; k < i.yields.size(); ++k)
        next.push_back(spread(i.yields[k], i.carried[k]));
      for (size_t k = 0; k < i.yields.size(); ++k) tile(i.carried[k]) = std::move(next[k]);
      return {};
    });
    if (!ran) return ran;
    for (size_t k = 0; k < i.out.size(); ++k) tile(i.out[k]) = spread(i.carried[k], i.out[k]);
    return {};
  }

  Status map(const Instruction& i) {
    const std::vector<int>& axes = p_.value(i.out[0]).axes;
    const size_t typed = i.function == Function::kSelect ? 1 : 0;
    const DType from = p_.value(i.in[typed]).dtype, to = p_.value(i.out[0]).dtype;
    std::vector<std::vector<int64_t>> strides;
    for (int v : i.in) strides.push_back(strides_in(v, axes));
    Tile out;
    TRY(each_element(axes, [&](const std::vector<int64_t>& index) -> Status {
      Element in[3];
      for (size_t k = 0; k < i.in.size(); ++k) in[k] = tile(i.in[k])[dot(index, strides[k])];
      TRY_ASSIGN(const Element e, apply(i.function, from, to, in));
      out.push_back(e);
      return {};
    }));
    tile(i.out[0]) = std::move(out);
    return {};
  }

  // Folded in the wide type and rounded once.
  Status reduce(const Instruction& i) {
    const std::vector<int>& axes = p_.value(i.in[0]).axes;
    const DType dtype = p_.value(i.out[0]).dtype;
    const DType wide = is_float(dtype) ? DType::kF64 : dtype;
    const std::vector<int64_t> to = strides_in(i.out[0], axes), from = strides_in(i.in[0], axes);
    Tile out(static_cast<size_t>(count(p_.value(i.out[0]).axes)),
             {float_identity(i.function), int_identity(i.function, dtype)});
    TRY(each_element(axes, [&](const std::vector<int64_t>& index) -> Status {
      Element& sum = out[dot(index, to)];
      const Element in[2] = {sum, tile(i.in[0])[dot(index, from)]};
      TRY_ASSIGN(sum, apply(i.function, wide, wide, in));
      return {};
    }));
    for (Element& e : out) e.f = round_to(is_float(dtype) ? dtype : DType::kF64, e.f);
    tile(i.out[0]) = std::move(out);
    return {};
  }

  Status product(const Instruction& i) {
    std::vector<int> axes = p_.value(i.out[0]).axes;
    axes.insert(axes.end(), i.over.begin(), i.over.end());
    const DType dtype = p_.value(i.out[0]).dtype;
    const auto a = strides_in(i.in[0], axes), b = strides_in(i.in[1], axes),
               to = strides_in(i.out[0], axes);
    Tile out = i.in.size() > 2 ? spread(i.in[2], i.out[0])
                               : Tile(static_cast<size_t>(count(p_.value(i.out[0]).axes)));
    TRY(each_element(axes, [&](const std::vector<int64_t>& index) -> Status {
      const Element &x = tile(i.in[0])[dot(index, a)], &y = tile(i.in[1])[dot(index, b)];
      Element& sum = out[dot(index, to)];
      sum.f += x.f * y.f;
      sum.i = wrap_to(
          dtype, static_cast<int64_t>(static_cast<uint64_t>(sum.i) +
                                      static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i)));
      return {};
    }));
    if (is_float(dtype))
      for (Element& e : out) e.f = round_to(dtype, e.f);
    tile(i.out[0]) = std::move(out);
    return {};
  }

  Status access(const Instruction& i) {
    const bool stores = i.kind == Kind::kStore;
    const int v = stores ? i.in[0] : i.out[0];
    Storage& storage = storages_[static_cast<size_t>(i.tensor)];
    TRY_ASSIGN(const auto parts, subscripts(i));
    std::vector<int> axes = p_.value(v).axes;
    for (const auto& part : parts)
      for (const auto& [a, coefficient] : part.terms)
        if (std::ranges::count(axes, a) == 0) axes.push_back(a);
    const std::vector<int64_t> strides = strides_in(v, axes);
    std::vector<std::vector<int64_t>> by_value(i.at.size());
    for (size_t d = 0; d < i.at.size(); ++d)
      if (i.at[d].value != kNone) by_value[d] = strides_in(i.at[d].value, axes);
    Tile loaded;
    std::vector<int64_t> place(i.at.size());
    TRY(each_element(axes, [&](const std::vector<int64_t>& index) -> Status {
      for (size_t d = 0; d < i.at.size(); ++d) {
        if (i.at[d].value != kNone) {
          place[d] = tile(i.at[d].value)[dot(index, by_value[d])].i;
          continue;
        }
        place[d] = parts[d].offset;
        for (const auto& [a, coefficient] : parts[d].terms) {
          const auto k = std::ranges::find(axes, a) - axes.begin();
          place[d] += coefficient * (piece(a).start + index[static_cast<size_t>(k)]);
        }
      }
      if (!storage.contains(place)) {
        if (!i.pad)
          return error(Code::kOutOfRange, "program {}: index [{}] of '{}', which is [{}]", p_.name,
                       fmt::join(place, ","), p_.tensor(i.tensor).name,
                       fmt::join(storage.dims, ","));
        // An integer's padding is a whole number: the verifier sees to it.
        loaded.push_back(
            is_float(storage.dtype)
                ? Element{round_to(storage.dtype, *i.pad), 0}
                : Element{*i.pad, wrap_to(storage.dtype, static_cast<int64_t>(*i.pad))});
        return {};
      }
      auto offset = storage.offset(place);
      if (!offset)
        return error(std::move(offset).error().at(
            fmt::format("program {}, tensor '{}'", p_.name, p_.tensor(i.tensor).name)));
      if (stores)
        write(storage, *offset, tile(v)[dot(index, strides)]);
      else
        loaded.push_back(read(storage, *offset));
      return {};
    }));
    if (!stores) tile(v) = std::move(loaded);
    return {};
  }

  struct Part {
    std::vector<std::pair<int, int64_t>> terms;
    int64_t offset = 0;
  };
  Result<std::vector<Part>> subscripts(const Instruction& i) const {
    std::vector<Part> parts(i.at.size());
    for (size_t d = 0; d < i.at.size(); ++d) {
      if (i.at[d].value != kNone) continue;
      TRY_ASSIGN(const Affine part, affine(p_, i.at[d].at));
      TRY_ASSIGN(parts[d].offset, part.offset.eval(symbols_));
      for (const auto& [a, coefficient] : part.terms) {
        TRY_ASSIGN(const int64_t c, coefficient.eval(symbols_));
        parts[d].terms.emplace_back(a, c);
      }
    }
    return parts;
  }

  static Element read(const Storage& storage, int64_t at) {
    if (is_float(storage.dtype)) return {load_f64(storage.dtype, storage.bytes.data(), at), 0};
    return {0, load_i64(storage.dtype, storage.bytes.data(), at)};
  }
  static void write(Storage& storage, int64_t at, const Element& e) {
    if (is_float(storage.dtype))
      store_f64(storage.dtype, storage.bytes.data(), at, e.f);
    else
      store_i64(storage.dtype, storage.bytes.data(), at, e.i);
  }

  const Program& p_;
  const Schedule& s_;
  const op::Bindings& symbols_;
  std::vector<int64_t> extents_;
  std::vector<Storage> storages_;
  std::vector<Piece> pieces_;
  std::vector<Tile> values_;
};

}  // namespace

Status interpret(const Program& program, const Schedule& schedule, const op::Bindings& symbols,
                 std::span<const std::span<std::byte>> memory) {
  Interpreter interpreter(program, schedule, symbols);
  TRY(interpreter.prepare(memory));
  return interpreter.run();
}

}  // namespace tessera::tile
