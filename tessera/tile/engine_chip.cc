#include "tessera/tile/engine_chip.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tessera/layout/bound.h"
#include "tessera/layout/formats.h"

namespace tessera::tile::engine {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kMostExtent = int64_t{1} << 31;
constexpr int64_t kMostTable = int64_t{1} << 24;  // entries of tables and elements of layouts

// The layout of the last dimensions, as many as it has letters.
Result<layout::Layout> layout_of(const Buffer& b, std::span<const int64_t> extents) {
  if (b.layout.find(':') != std::string::npos) return layout::Layout::parse(b.layout);
  const size_t n = std::min<size_t>(extents.size(), 2);
  return layout::format_layout(
      b.layout,
      {.dtype = b.dtype, .extents = {extents.end() - static_cast<int64_t>(n), extents.end()}});
}

}  // namespace

Result<Places> places_of(const Buffer& b, std::span<const int64_t> symbols) {
  const auto bad = [&](std::string_view why) {
    return error(Code::kInvalidArgument, "buffer '{}': {}", b.name, why);
  };
  if (bits_of(b.dtype) < 8 || is_complex(b.dtype))
    return error(Code::kUnimplemented, "buffer '{}': elements of type {}", b.name,
                 name_of(b.dtype));
  if (b.dims.size() > kMaxDims) return bad("too many dimensions");
  Places places;
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (const Expr& d : b.dims) {
    extents.push_back(d.eval(symbols));
    if (extents.back() < 0 || extents.back() > kMostExtent)
      return error(Code::kOutOfRange, "buffer '{}': an extent of {}", b.name, extents.back());
    count = std::min(count, kMostElements) * std::max<int64_t>(extents.back(), 1);
  }
  if (count > kMostElements)
    return error(Code::kOutOfRange, "buffer '{}': {} elements", b.name, count);
  const size_t rank = extents.size();
  places.dims.resize(rank);
  for (size_t d = 0; d < rank; ++d) places.dims[d].extent = extents[d];
  if (!b.strides.empty()) {
    if (b.strides.size() != rank) return bad("as many strides as dimensions are needed");
    for (size_t d = 0; d < rank; ++d) {
      if (b.strides[d] < 0 || b.strides[d] > kMostElements) return bad("a stride out of range");
      places.dims[d].stride = b.strides[d];
    }
  } else {
    size_t batch = rank;
    int64_t inner = 1;  // places of what lies behind the dimension
    if (!b.layout.empty()) {
      TRY_ASSIGN(const layout::Layout l, layout_of(b, extents));
      const auto letters = static_cast<size_t>(l.rank());
      if (letters > rank) return bad("its layout has more letters than it has dimensions");
      batch = rank - letters;
      const std::span<const int64_t> last(extents.data() + batch, letters);
      TRY_ASSIGN(const layout::BoundLayout bound, layout::BoundLayout::bind(l, b.dtype, last));
      inner = bound.places();
      if (inner > kMostTable) return bad("its layout has too many places");
      std::vector<int64_t> index(letters, 0);
      const int64_t origin = bound.elements() > 0 ? bound.offset(index) : 0;
      for (size_t k = 0; k < letters; ++k) {
        for (size_t other = 0; other < k; ++other)
          if (bound.mixes(static_cast<int>(k), static_cast<int>(other)))
            return error(Code::kUnimplemented, "buffer '{}': dimensions mix in layout '{}'", b.name,
                         b.layout);
        Places::Dim& dim = places.dims[batch + k];
        for (int64_t i = 0; bound.elements() > 0 && i < dim.extent; ++i) {
          index[k] = i;
          dim.table.push_back(bound.offset(index) - origin);
        }
        index[k] = 0;
        if (dim.table.empty()) dim.table.push_back(0);
      }
      places.span = inner;
    }
    for (size_t d = batch; d-- > 0;) {
      places.dims[d].stride = inner;
      inner *= std::max<int64_t>(extents[d], 1);
    }
    if (inner > kMostElements) return bad("it has too many places");
    places.span = inner;
  }
  if (!b.strides.empty()) {
    places.span = 1;
    for (const Places::Dim& d : places.dims)
      if (d.extent > 0 && d.stride > 0) {
        if (d.extent - 1 > kMostElements / d.stride) return bad("its strides lead too far");
        places.span += (d.extent - 1) * d.stride;
      }
    if (places.span > kMostElements) return bad("its strides lead too far");
  }
  if (std::ranges::any_of(extents, [](int64_t e) { return e == 0; })) places.span = 0;
  return places;
}

std::optional<Where> find_engine(const chip::Chip& chip, std::string_view core,
                                 std::string_view name) {
  if (const auto e = chip.engines.find(name); e != chip.engines.end() && e->second.core == core)
    return Where{&e->second, nullptr};
  if (const auto u = chip.units.find(name); u != chip.units.end() && u->second.core == core)
    return Where{nullptr, &u->second};
  return std::nullopt;
}

const chip::Route* find_route(const chip::Engine& engine, std::string_view from,
                              std::string_view to) {
  for (const auto& [name, route] : engine.routes)
    if (route.from == from && route.to == to) return &route;
  return nullptr;
}

int64_t alignment_of(const chip::Memory& memory) {
  return memory.alignment_bytes ? memory.alignment_bytes->value.value : 1;
}

int64_t slot_alignment(const chip::Memory& memory) {
  constexpr int64_t kWidest = 8;  // bytes of an element
  return std::lcm(alignment_of(memory), kWidest);
}

std::string_view device_space(const chip::Chip& chip) {
  for (const auto& [name, memory] : chip.memory)
    if (memory.kind == chip::MemoryKind::kDevice) return name;
  return "";
}

int64_t flags_of(const chip::Chip& chip, std::string_view core) {
  constexpr int64_t kUnbounded = 64;
  const auto at = chip.cores.find(core);
  if (at == chip.cores.end() || !at->second.flags) return kUnbounded;
  return std::min(at->second.flags->value, kUnbounded);
}

std::optional<DType> stored_type(std::string_view compute) {
  if (compute == "tf32" || compute == "hf32" || compute == "xf32") return DType::kF32;
  return dtype_from_name(compute);
}

namespace {

class Verifier {
 public:
  Verifier(const Program& p, const chip::Chip& chip) : p_(p), chip_(chip) {}

  Status whole() {
    if (!chip_.cores.contains(p_.core)) return bad("{} has no cores '{}'", chip_.id, p_.core);
    if (p_.constants < 0 || static_cast<size_t>(p_.constants + kOwnSymbols) > p_.symbols.size())
      return bad("constants without symbols");
    for (const std::string& name : p_.engines) {
      const auto e = find_engine(chip_, p_.core, name);
      if (!e) return bad("core '{}' of {} has no engine '{}'", p_.core, chip_.id, name);
      engines_.push_back(*e);
    }
    for (const Buffer& b : p_.buffers) TRY(buffer(b));
    TRY(steps(p_.body, 0));
    for (const auto& pair : sets_)
      if (!waits_.contains(pair))
        return bad("'{}' sets a flag of '{}', which never waits for one",
                   name_of_engine(pair.first), name_of_engine(pair.second));
    for (const auto& pair : waits_)
      if (!sets_.contains(pair))
        return bad("'{}' waits for a flag of '{}', which never sets one",
                   name_of_engine(pair.second), name_of_engine(pair.first));
    return {};
  }

 private:
  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kInvalidArgument, "program '{}': {}{}", p_.name,
                 fmt::format(format, std::forward<Args>(args)...), where_);
  }
  const std::string& name_of_engine(int e) const { return p_.engines[static_cast<size_t>(e)]; }

  Status expression(const Expr& e, int symbols) const {
    const int depth = e.depth();
    if (depth < 1 || depth > Expr::kMaxDepth || e.items.size() > kMaxItems)
      return bad("an expression that is none, or too long");
    for (const Expr::Item& i : e.items)
      if (i.op == Expr::Op::kSymbol && (i.value < 0 || i.value >= symbols))
        return bad("an expression of a symbol that is not known here");
    return {};
  }
  Status expression(const Expr& e) const {
    TRY(expression(e, static_cast<int>(p_.symbols.size())));
    for (const Expr::Item& i : e.items)
      if (i.op == Expr::Op::kSymbol && i.value >= kOwnSymbols + p_.constants &&
          std::ranges::find(scope_, static_cast<int>(i.value)) == scope_.end())
        return bad("'{}' is read outside of its loop", p_.symbols[static_cast<size_t>(i.value)]);
    return {};
  }

  Status buffer(const Buffer& b) {
    if (b.dims.size() > kMaxDims) return bad("buffer '{}' has too many dimensions", b.name);
    for (const Expr& d : b.dims) TRY(expression(d, b.argument() ? kOwnSymbols + p_.constants : 0));
    if (b.argument()) {
      constexpr int64_t kMostRanges = 64;
      if (b.offset < 0 || b.offset >= kMostRanges)
        return bad("argument '{}' is range {} of at most {}", b.name, b.offset, kMostRanges);
      return {};
    }
    const auto at = chip_.memory.find(b.space);
    if (at == chip_.memory.end() || at->second.kind == chip::MemoryKind::kDevice ||
        at->second.kind == chip::MemoryKind::kCache ||
        (!at->second.core.empty() && at->second.core != p_.core))
      return bad("buffer '{}': core '{}' has no space '{}'", b.name, p_.core, b.space);
    TRY_ASSIGN(const Places places, places_of(b, {}));
    const int64_t bytes = places.span * (bits_of(b.dtype) / 8);
    const int64_t capacity = at->second.capacity_bytes.value.value;
    if (b.offset < 0 || b.offset > capacity || bytes > capacity - b.offset)
      return error(Code::kResourceExhausted,
                   "program '{}': tile '{}' of {} bytes at {} in space '{}', which has {} bytes",
                   p_.name, b.name, bytes, b.offset, b.space, capacity);
    const int64_t own = bits_of(b.dtype) / 8, alignment = alignment_of(at->second);
    if (b.offset % alignment != 0 || b.offset % own != 0)
      return bad("tile '{}' lies at {} in space '{}', need a multiple of {}", b.name, b.offset,
                 b.space, b.offset % alignment != 0 ? alignment : own);
    return {};
  }

  // ---- Steps

  DType type(const Operand& o) const { return p_.buffer(o.buffer).dtype; }
  std::string_view space(const Operand& o) const {
    const Buffer& b = p_.buffer(o.buffer);
    return b.argument() ? device_space(chip_) : std::string_view(b.space);
  }

  Status index(const Index& i, const Step& s) const {
    TRY(expression(i.offset));
    if (i.coefficients.size() > s.over.size()) return bad("an index by axes that are not there");
    for (int64_t c : i.coefficients)
      if (c > INT32_MAX || c < -INT32_MAX) return bad("a coefficient of {}", c);
    return {};
  }
  Status operand(const Operand& o, const Step& s, bool reads) const {
    if (o.kind == Operand::Kind::kNumber) {
      if (!reads) return bad("a number is written to");
      return {};
    }
    if (o.kind == Operand::Kind::kIndex) {
      if (!reads || o.at.size() != 1) return bad("an index stands in the wrong place");
      return index(o.at[0], s);
    }
    if (o.buffer < 0 || o.buffer >= static_cast<int>(p_.buffers.size()))
      return bad("a buffer that is not there");
    const Buffer& b = p_.buffer(o.buffer);
    if (o.at.size() != b.dims.size())
      return bad("'{}' has {} dimensions, it is given {} indices", b.name, b.dims.size(),
                 o.at.size());
    for (const Index& i : o.at) TRY(index(i, s));
    return {};
  }
  // Each axis leads somewhere: what a step does is bounded by what it touches.
  Status axes(const Step& s) const {
    if (s.over.size() > kMaxAxes) return bad("too many axes");
    for (size_t a = 0; a < s.over.size(); ++a) {
      TRY(expression(s.over[a].extent));
      const auto walks = [&](const Operand& o) {
        return o.kind == Operand::Kind::kBuffer && std::ranges::any_of(o.at, [&](const Index& i) {
                 return a < i.coefficients.size() && i.coefficients[a] != 0;
               });
      };
      if (!walks(s.out) && !std::ranges::any_of(s.in, walks))
        return bad("no operand walks axis '{}'", s.over[a].name);
    }
    return {};
  }

  Status on_chip(const Operand& o) const {
    if (o.kind == Operand::Kind::kBuffer && p_.buffer(o.buffer).argument())
      return bad("'{}' lies in the memory of the device, where no unit computes",
                 p_.buffer(o.buffer).name);
    return {};
  }

  Status copy(const Step& s) const {
    const chip::Engine* e = engines_[static_cast<size_t>(s.engine)].copies;
    if (e == nullptr) return bad("'{}' copies nothing", name_of_engine(s.engine));
    if (s.in.size() != 1 || s.in[0].kind != Operand::Kind::kBuffer)
      return bad("a copy is from one buffer");
    if (find_route(*e, space(s.in[0]), space(s.out)) == nullptr)
      return bad("'{}' has no route from '{}' to '{}'", name_of_engine(s.engine), space(s.in[0]),
                 space(s.out));
    const DType from = type(s.in[0]), to = type(s.out);
    if (from == to) return {};
    for (const auto& [name, unit] : chip_.units)
      if (const auto c = unit.operands.find("c"); c != unit.operands.end() &&
                                                  c->second.memory == space(s.in[0]) &&
                                                  is_float(from) && is_float(to))
        return {};
    return bad("a copy from {} to {}", tessera::name_of(from), tessera::name_of(to));
  }

  Status matrix(const Step& s) const {
    const chip::Unit* u = engines_[static_cast<size_t>(s.engine)].computes;
    if (u == nullptr || u->kind != chip::UnitKind::kMatrix)
      return bad("'{}' multiplies no matrices", name_of_engine(s.engine));
    const auto rate = u->rates.find(s.compute);
    const auto stored = stored_type(s.compute);
    if (rate == u->rates.end() || !stored)
      return bad("'{}' of {} multiplies no {}", name_of_engine(s.engine), chip_.id, s.compute);
    if (s.in.size() != 2) return bad("a product is of two operands");
    const std::string_view sums =
        rate->second.accumulate.empty() ? s.compute : rate->second.accumulate;
    const std::pair<const Operand*, std::string> operands[] = {
        {&s.in[0], "a"}, {&s.in[1], "b"}, {&s.out, "c"}};
    for (const auto& [o, letter] : operands) {
      if (o->kind != Operand::Kind::kBuffer) return bad("operand {} is no buffer", letter);
      const auto wants = u->operands.find(letter);
      if (wants != u->operands.end() && wants->second.memory != space(*o))
        return bad("operand {} lies in '{}', '{}' takes it from '{}'", letter, space(*o),
                   name_of_engine(s.engine), wants->second.memory);
      const DType want = letter == "c" ? stored_type(sums).value_or(*stored) : *stored;
      if (type(*o) != want)
        return bad("operand {} is {}, need {}", letter, tessera::name_of(type(*o)),
                   tessera::name_of(want));
    }
    return expression(s.add);
  }

  Status vector(const Step& s) const {
    const chip::Unit* u = engines_[static_cast<size_t>(s.engine)].computes;
    if (u == nullptr || u->kind == chip::UnitKind::kMatrix)
      return bad("'{}' is no vector unit", name_of_engine(s.engine));
    TRY(on_chip(s.out));
    for (const Operand& o : s.in) TRY(on_chip(o));
    const FunctionInfo& f = info(s.function);
    const bool reduces = s.kind == Kind::kReduce;
    if (reduces && !f.reduces) return bad("'{}' folds nothing", f.name);
    if (s.in.size() != (reduces ? 1u : static_cast<size_t>(f.inputs)))
      return bad("'{}' is given {} operands", f.name, s.in.size());
    TRY(expression(s.add));
    const DType to = type(s.out);
    std::optional<DType> from;
    for (size_t k = 0; k < s.in.size(); ++k) {
      const Operand& o = s.in[k];
      if (o.kind != Operand::Kind::kBuffer) continue;
      if (s.function == Function::kSelect && k == 0) {
        if (type(o) != DType::kBool) return bad("what is selected by is no bool");
        continue;
      }
      if (from && *from != type(o)) return bad("'{}' of two types", f.name);
      from = type(o);
    }
    if (s.function == Function::kConvert) return {};
    if (f.yields_bool ? to != DType::kBool : from && *from != to)
      return bad("'{}' yields no {}", f.name, tessera::name_of(to));
    if (!in_domain(from.value_or(to), f.domain))
      return bad("'{}' takes no {}", f.name, tessera::name_of(from.value_or(to)));
    if (reduces && s.in[0].kind != Operand::Kind::kBuffer) return bad("a number is folded");
    return {};
  }

  Status step(const Step& s) {
    if (s.engine < 0 || s.engine >= static_cast<int>(engines_.size()))
      return bad("a step of no engine");
    switch (s.kind) {
      case Kind::kSet:
      case Kind::kWait: {
        if (s.other < 0 || s.other >= static_cast<int>(engines_.size()) || s.other == s.engine)
          return bad("a flag of an engine to itself, or to none");
        TRY(expression(s.id));
        const bool set = s.kind == Kind::kSet;
        (set ? sets_ : waits_)
            .insert(set ? std::pair(s.engine, s.other) : std::pair(s.other, s.engine));
        return {};
      }
      case Kind::kDelay:
        return expression(s.from);
      case Kind::kTrap:
      case Kind::kFor:
        return {};
      default:
        break;
    }
    TRY(operand(s.out, s, false));
    if (s.out.kind != Operand::Kind::kBuffer) return bad("a step that writes nothing");
    for (const Operand& o : s.in) TRY(operand(o, s, true));
    TRY(axes(s));
    return s.kind == Kind::kCopy ? copy(s) : s.kind == Kind::kMatrix ? matrix(s) : vector(s);
  }

  Status steps(const std::vector<Step>& body, int nesting) {
    if (nesting > kMaxNesting) return bad("loops that are nested too deep");
    for (const Step& s : body) {
      if (++count_ > kMaxSteps) return bad("more than {} steps", kMaxSteps);
      where_ = fmt::format("; step {}", count_);
      if (s.kind != Kind::kFor) {
        TRY(step(s));
        continue;
      }
      TRY(expression(s.from));
      TRY(expression(s.to));
      TRY(expression(s.by));
      if (s.symbol < kOwnSymbols + p_.constants ||
          s.symbol >= static_cast<int>(p_.symbols.size()) ||
          std::ranges::find(scope_, s.symbol) != scope_.end())
        return bad("a loop over a symbol that has a value");
      scope_.push_back(s.symbol);
      TRY(steps(s.body, nesting + 1));
      scope_.pop_back();
    }
    where_.clear();
    return {};
  }

  const Program& p_;
  const chip::Chip& chip_;
  std::vector<Where> engines_;
  std::set<std::pair<int, int>> sets_, waits_;  // from, to
  std::vector<int> scope_;
  size_t count_ = 0;
  std::string where_;
};

}  // namespace

Status verify(const Program& program, const chip::Chip& chip) {
  return Verifier(program, chip).whole();
}

}  // namespace tessera::tile::engine
