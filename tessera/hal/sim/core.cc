#include "tessera/hal/sim/core.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace tessera::hal::sim {
namespace {

using engine::Kind;

constexpr int64_t kMostSteps = int64_t{1} << 28;  // of one core in one launch
constexpr int64_t kMostWork = int64_t{1} << 36;   // elements that one step walks
constexpr int64_t kLongest = 1'000'000'000;       // of host time that a delay takes
constexpr size_t kManyTouches = 64, kMostTouches = 1024;

bool is_buffer(const engine::Operand& o) { return o.kind == engine::Operand::Kind::kBuffer; }

}  // namespace

Result<Bound> bind(const Loaded& loaded, const Arguments& arguments) {
  const engine::Program& p = loaded.program();
  Bound bound{
      .loaded = &loaded, .arguments = &arguments, .places = {}, .overlaps = {}, .products = {}};
  std::vector<int64_t> symbols = {0, loaded.cores(), arguments.grid};
  if (arguments.constants.size() < static_cast<size_t>(p.constants))
    return error(Code::kOutOfRange, "program '{}' reads {} constants, the launch has {}", p.name,
                 p.constants, arguments.constants.size());
  symbols.insert(symbols.end(), arguments.constants.begin(),
                 arguments.constants.begin() + p.constants);
  bound.places.resize(p.buffers.size());
  bound.overlaps.resize(p.buffers.size());
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const engine::Buffer& buffer = p.buffers[b];
    if (buffer.argument()) {
      TRY_ASSIGN(bound.places[b], engine::places_of(buffer, symbols));
      const auto n = static_cast<size_t>(buffer.offset);
      if (n >= arguments.ranges.size())
        return error(Code::kOutOfRange, "argument '{}' of program '{}' is range {}, there are {}",
                     buffer.name, p.name, n, arguments.ranges.size());
      const int64_t element = bits_of(buffer.dtype) / 8, bytes = bound.places[b].span * element;
      if (reinterpret_cast<uintptr_t>(arguments.ranges[n].data) % static_cast<size_t>(element) != 0)
        return error(Code::kInvalidArgument,
                     "argument '{}' of program '{}': range {} begins inside an element of {} bytes",
                     buffer.name, p.name, n, element);
      if (bytes > arguments.ranges[n].size_bytes)
        return error(Code::kOutOfRange,
                     "argument '{}' of program '{}' takes {} bytes, range {} has {}", buffer.name,
                     p.name, bytes, n, arguments.ranges[n].size_bytes);
      continue;
    }
    const auto bytes = [&](size_t k) {
      return loaded.places(static_cast<int>(k)).span * (bits_of(p.buffers[k].dtype) / 8);
    };
    for (size_t o = 0; o < p.buffers.size(); ++o)
      if (o != b && p.buffers[o].space == buffer.space &&
          buffer.offset < p.buffers[o].offset + bytes(o) &&
          p.buffers[o].offset < buffer.offset + bytes(b))
        bound.overlaps[b].push_back(static_cast<int>(o));
  }
  const auto add = [&](const auto& self, const std::vector<engine::Step>& body) -> Status {
    for (const engine::Step& s : body) {
      if (s.kind == Kind::kMatrix && !bound.products.contains(s.compute)) {
        TRY_ASSIGN(Product product, Product::of(loaded.chip(), s.compute));
        bound.products.emplace(s.compute, std::move(product));
      }
      TRY(self(self, s.body));
    }
    return {};
  };
  TRY(add(add, p.body));
  return bound;
}

Core::Core(const Bound& bound, int64_t number, Mode mode, const Shares& shares)
    : bound_(bound), mode_(mode), shares_(shares) {
  const Loaded& l = *bound.loaded;
  const engine::Program& p = l.program();
  symbols_.resize(p.symbols.size(), 0);
  symbols_[engine::kCore] = number;
  symbols_[engine::kCores] = l.cores();
  symbols_[engine::kGrid] = bound.arguments->grid;
  for (int k = 0; k < p.constants; ++k)
    symbols_[static_cast<size_t>(engine::kOwnSymbols + k)] =
        bound.arguments->constants[static_cast<size_t>(k)];
  const size_t n = p.engines.size();
  engines_.resize(n);
  for (Engine& e : engines_) e.knows.resize(n, 0);
  touches_.resize(p.buffers.size());
  time_.busy_ps.resize(n, 0);
  time_.read.resize(bound.arguments->ranges.size(), 0);
  time_.written.resize(bound.arguments->ranges.size(), 0);
  if (mode_.computes)
    for (const Space& s : l.spaces()) {
      const auto bytes = static_cast<size_t>(s.bytes) + 8;
      spaces_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
      // What nobody wrote is no number.
      std::memset(spaces_.back().get(), 0xff, bytes);
    }
}

Error Core::at(Error e, const engine::Step& s) const {
  return std::move(e).at(fmt::format("program '{}', core {}, engine '{}'",
                                     bound_.loaded->program().name, symbols_[engine::kCore],
                                     name(s.engine)));
}

Result<CoreTime> Core::run() {
  TRY(steps(bound_.loaded->program().body));
  for (const Flag& f : flags_)
    if (f.set)
      return error(Code::kFailedPrecondition,
                   "flag {} from '{}' to '{}' is set at the end and nobody waits for it; program "
                   "'{}', core {}",
                   f.id, name(f.from), name(f.to), bound_.loaded->program().name,
                   symbols_[engine::kCore]);
  for (const Engine& e : engines_) time_.end_ps = std::max(time_.end_ps, e.done_ps);
  return std::move(time_);
}

Status Core::steps(const std::vector<engine::Step>& body) {
  for (const engine::Step& s : body) {
    if (++time_.steps > kMostSteps)
      return error(Code::kResourceExhausted, "program '{}' takes more than {} steps",
                   bound_.loaded->program().name, kMostSteps);
    if (s.kind == Kind::kFor) {
      TRY(loop(s));
      continue;
    }
    if (auto status = step(s); !status) return tl::unexpected(at(std::move(status).error(), s));
  }
  return {};
}

Status Core::loop(const engine::Step& s) {
  const int64_t from = s.from.eval(symbols_), to = s.to.eval(symbols_), by = s.by.eval(symbols_);
  if (by < 1)
    return error(Code::kOutOfRange, "a loop of program '{}' goes by {}, need at least 1",
                 bound_.loaded->program().name, by);
  if (to > INT64_MAX / 2 || by > INT64_MAX / 2)
    return error(Code::kOutOfRange, "a loop of program '{}' to {} by {}",
                 bound_.loaded->program().name, to, by);
  for (int64_t v = from; v < to; v += by) {
    symbols_[static_cast<size_t>(s.symbol)] = v;
    if (++time_.steps > kMostSteps)
      return error(Code::kResourceExhausted, "program '{}' takes more than {} steps",
                   bound_.loaded->program().name, kMostSteps);
    TRY(steps(s.body));
  }
  return {};
}

void Core::take(int engine, double busy_ps, double latency_ps) {
  Engine& e = engines_[static_cast<size_t>(engine)];
  e.free_ps += busy_ps;
  e.done_ps = std::max(e.done_ps, e.free_ps + latency_ps);
  time_.busy_ps[static_cast<size_t>(engine)] += busy_ps;
  if (busy_ps > 0) e.idle = false;
  ++e.count;
  e.knows[static_cast<size_t>(engine)] = e.count;
}

Core::Flag& Core::flag_of(int from, int to, int64_t id) {
  for (Flag& f : flags_)
    if (f.from == from && f.to == to && f.id == id) return f;
  Flag f;
  f.from = from;
  f.to = to;
  f.id = id;
  return flags_.emplace_back(std::move(f));
}

Status Core::flag(const engine::Step& s) {
  const bool sets = s.kind == Kind::kSet;
  const int64_t id = s.id.eval(symbols_), most = bound_.loaded->flags();
  if (id < 0 || id >= most)
    return error(Code::kOutOfRange, "flag {} of '{}', there are {}", id, name(s.other), most);
  Flag& f = sets ? flag_of(s.engine, s.other, id) : flag_of(s.other, s.engine, id);
  Engine& e = engines_[static_cast<size_t>(s.engine)];
  if (sets) {
    if (f.set)
      return error(Code::kFailedPrecondition, "flag {} from '{}' to '{}' is set twice", id,
                   name(s.engine), name(s.other));
    if (mode_.checks && e.knows[static_cast<size_t>(s.other)] < f.waited)
      return error(Code::kFailedPrecondition,
                   "flag {} from '{}' to '{}' may be set again before '{}' has waited for it", id,
                   name(s.engine), name(s.other), name(s.other));
    take(s.engine, 0, 0);
    f.set = true;
    f.at_ps = e.done_ps;
    f.knows = e.knows;
    return {};
  }
  if (!f.set)
    return error(Code::kFailedPrecondition,
                 "'{}' waits for flag {} from '{}', which nobody has set: it would wait forever",
                 name(s.engine), id, name(s.other));
  f.set = false;
  if (f.at_ps > e.free_ps) {
    e.free_ps = f.at_ps;
    e.idle = true;
  }
  e.done_ps = std::max(e.done_ps, e.free_ps);
  for (size_t k = 0; k < e.knows.size(); ++k) e.knows[k] = std::max(e.knows[k], f.knows[k]);
  take(s.engine, 0, 0);
  f.waited = e.count;
  return {};
}

Status Core::step(const engine::Step& s) {
  switch (s.kind) {
    case Kind::kSet:
    case Kind::kWait:
      return flag(s);
    case Kind::kTrap:
      return error(Code::kInvalidArgument, "{}", s.text);
    case Kind::kDelay: {
      const int64_t ns = s.from.eval(symbols_);
      if (ns < 0 || ns > INT64_MAX / 2000) return error(Code::kOutOfRange, "a delay of {} ns", ns);
      take(s.engine, static_cast<double>(ns) * 1e3, 0);
      // Whoever watches from outside sees a device at work.
      if (mode_.computes)
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(ns, kLongest)));
      return {};
    }
    default:
      return compute(s);
  }
}

Result<Access> Core::access(const engine::Operand& o, bool may_pad) {
  Access a;
  a.operand = &o;
  for (size_t d = 0; d < o.at.size(); ++d) a.offset[d] = o.at[d].offset.eval(symbols_);
  if (!is_buffer(o)) return a;
  const engine::Buffer& b = bound_.loaded->program().buffer(o.buffer);
  a.places = &places(o.buffer);
  a.dtype = b.dtype;
  a.box.rank = o.at.size();
  for (size_t d = 0; d < o.at.size(); ++d) {
    int64_t lo = a.offset[d], hi = lo;
    for (size_t k = 0; k < o.at[d].coefficients.size(); ++k) {
      const int64_t far = o.at[d].coefficients[k] * (work_.extents[k] - 1);
      (far < 0 ? lo : hi) += far;
    }
    const int64_t extent = a.places->dims[d].extent;
    if ((lo < 0 || hi >= extent) && !may_pad)
      return error(Code::kOutOfRange, "indices {} to {} of dimension {} of '{}', which has {}", lo,
                   hi, d, b.name, extent);
    a.box.lo[d] = lo;
    a.box.hi[d] = hi + 1;
  }
  if (b.argument())
    a.base = bound_.arguments->ranges[static_cast<size_t>(b.offset)].data;
  else if (mode_.computes)
    a.base = spaces_[static_cast<size_t>(bound_.loaded->space_of(o.buffer))].get() + b.offset;
  return a;
}

Status Core::aligned(const Access& a) const {
  const engine::Program& p = bound_.loaded->program();
  const engine::Buffer& b = p.buffer(a.operand->buffer);
  if (b.argument()) return {};
  const Space& space =
      bound_.loaded->spaces()[static_cast<size_t>(bound_.loaded->space_of(a.operand->buffer))];
  int64_t place = 0;
  for (size_t d = 0; d < a.rank(); ++d) place += a.places->dims[d].at(a.offset[d]);
  const int64_t byte = b.offset + place * (bits_of(b.dtype) / 8);
  if (byte % space.alignment == 0) return {};
  return error(Code::kFailedPrecondition,
               "tile '{}' is taken from byte {} of space '{}', need a multiple of {}", b.name, byte,
               space.name, space.alignment);
}

Status Core::check_races(const Access& a, const engine::Step& s, bool writes) {
  const int buffer = a.operand->buffer;
  const Engine& e = engines_[static_cast<size_t>(s.engine)];
  const auto ordered = [&](const Touch& t) {
    return t.engine == s.engine || e.knows[static_cast<size_t>(t.engine)] >= t.at;
  };
  const auto clash = [&](const Touch& t, int other) {
    const engine::Program& p = bound_.loaded->program();
    const engine::Buffer& b = p.buffer(buffer);
    return error(
        Code::kFailedPrecondition,
        "a race on '{}' in '{}': '{}' {} while '{}' may still {}{}; no flag orders them", b.name,
        b.argument() ? engine::device_space(bound_.loaded->chip()) : b.space, name(s.engine),
        writes ? "writes" : "reads", name(t.engine), t.writes ? "write" : "read",
        other == buffer ? ""
                        : fmt::format(" '{}', which shares bytes with it", p.buffer(other).name));
  };
  auto& own = touches_[static_cast<size_t>(buffer)];
  for (const Touch& t : own)
    if ((t.writes || writes) && !ordered(t) && t.box.meets(a.box)) return clash(t, buffer);
  for (int other : bound_.overlaps[static_cast<size_t>(buffer)])
    for (const Touch& t : touches_[static_cast<size_t>(other)])
      if ((t.writes || writes) && !ordered(t)) return clash(t, other);
  const Touch now{s.engine, e.count + 1, writes, a.box};
  for (Touch& t : own)
    if (t.engine == now.engine && t.writes == writes && t.box.lo == now.box.lo &&
        t.box.hi == now.box.hi) {
      t.at = now.at;
      return {};
    }
  if (own.size() >= kManyTouches)
    std::erase_if(own, [&](const Touch& t) {
      return std::ranges::all_of(engines_, [&](const Engine& other) {
        return &other == &engines_[static_cast<size_t>(t.engine)] ||
               other.knows[static_cast<size_t>(t.engine)] >= t.at;
      });
    });
  if (own.size() >= kMostTouches) own.erase(own.begin(), own.begin() + kMostTouches / 2);
  own.push_back(now);
  return {};
}

Status Core::compute(const engine::Step& s) {
  work_.step = &s;
  work_.extents.clear();
  int64_t count = 1;
  bool nothing = false;
  for (const engine::StepAxis& a : s.over) {
    work_.extents.push_back(a.extent.eval(symbols_));
    nothing |= work_.extents.back() < 1;
    if (!nothing &&
        (work_.extents.back() > kMostWork || (count *= work_.extents.back()) > kMostWork))
      return error(Code::kOutOfRange, "a step over more than {} elements", kMostWork);
  }
  if (nothing) {
    if (s.kind != Kind::kReduce) return {};
    // What folds nothing still yields something, if there is a place for it.
    for (size_t k = 0; k < s.over.size(); ++k)
      if (work_.extents[k] < 1)
        for (const engine::Index& i : s.out.at)
          if (k < i.coefficients.size() && i.coefficients[k] != 0) return {};
    for (int64_t& e : work_.extents) e = std::max<int64_t>(e, 0);
  }
  work_.add = !s.add.is(0) && s.add.eval(symbols_) != 0;
  if (mode_.computes || mode_.checks) {
    work_.operands.clear();
    const bool pads = s.kind == Kind::kCopy && s.pads;
    std::vector<int64_t> wanted = work_.extents;
    for (int64_t& e : work_.extents) e = std::max<int64_t>(e, 1);
    TRY_ASSIGN(Access out, access(s.out, false));
    work_.operands.push_back(out);
    for (const engine::Operand& o : s.in) {
      TRY_ASSIGN(Access in, access(o, pads || nothing));
      work_.operands.push_back(in);
    }
    work_.extents = std::move(wanted);
    if (mode_.checks) {
      for (size_t k = 0; k < work_.operands.size(); ++k) {
        const Access& a = work_.operands[k];
        if (!is_buffer(*a.operand) || (nothing && k > 0)) continue;
        if (!(pads && k > 0)) TRY(aligned(a));
        // Arguments: what one engine of a core reads, none of it writes.
        TRY(check_races(a, s, k == 0));
      }
    }
  }
  const EngineRate& rate = bound_.loaded->engines()[static_cast<size_t>(s.engine)];
  const bool idle = engines_[static_cast<size_t>(s.engine)].idle;
  switch (s.kind) {
    case Kind::kCopy: {
      const CopyTime t = copy_time(*bound_.loaded, rate, s, work_.extents, shares_);
      take(s.engine, t.busy_ps, t.latency_ps);
      const engine::Program& p = bound_.loaded->program();
      if (const engine::Buffer& from = p.buffer(s.in[0].buffer); from.argument())
        time_.read[static_cast<size_t>(from.offset)] += t.device_bytes;
      if (const engine::Buffer& to = p.buffer(s.out.buffer); to.argument())
        time_.written[static_cast<size_t>(to.offset)] += t.device_bytes;
      return mode_.computes ? computer_.copy(work_) : Status{};
    }
    case Kind::kMatrix: {
      ProductShape shape;
      if (mode_.computes || mode_.checks) {
        shape = shape_of(work_);
      } else {
        work_.operands.clear();
        for (const engine::Operand* o : {&s.out, &s.in[0], &s.in[1]}) {
          Access a;
          a.operand = o;
          work_.operands.push_back(a);
        }
        shape = shape_of(work_);
      }
      take(s.engine, matrix_time(rate, s.compute, shape, idle), 0);
      return mode_.computes ? computer_.matrix(work_, bound_.products.find(s.compute)->second)
                            : Status{};
    }
    default: {
      const DType type = is_buffer(s.in[0]) ? bound_.loaded->program().buffer(s.in[0].buffer).dtype
                                            : bound_.loaded->program().buffer(s.out.buffer).dtype;
      take(s.engine, vector_time(rate, s.function, type, count, idle), 0);
      if (!mode_.computes) return {};
      return s.kind == Kind::kMap ? computer_.map(work_) : computer_.reduce(work_);
    }
  }
}

}  // namespace tessera::hal::sim
