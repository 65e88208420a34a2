#include "tessera/tile/schedule.h"

#include <algorithm>
#include <set>

namespace tessera::tile {
namespace {

// Elements of the largest piece of each axis.
Result<std::vector<int64_t>> piece_sizes(const Program& program, const Schedule& schedule,
                                         const op::Bindings& symbols) {
  if (schedule.axes.size() != program.axes.size())
    return error(Code::kInvalidArgument, "a schedule of {} axes for a program of {}",
                 schedule.axes.size(), program.axes.size());
  std::vector<int64_t> sizes;
  for (size_t a = 0; a < program.axes.size(); ++a) {
    TRY_ASSIGN(const int64_t extent, program.axes[a].extent.eval(symbols));
    const int64_t tile = schedule.axes[a].tile;
    sizes.push_back(tile == 0 ? extent : std::min(tile, extent));
  }
  return sizes;
}

// Walks a program in order and keeps count of the bytes of tiles that will still be read.
class Liveness {
 public:
  Liveness(const Program& program, std::vector<int64_t> sizes)
      : program_(program), sizes_(std::move(sizes)), uses_(program.values.size(), 0) {
    for_each(program.body,
             [&](const Instruction& i) { for_each_read(i, [&](int v) { ++uses(v); }); });
  }

  int64_t peak() {
    walk(program_.body);
    return peak_;
  }

 private:
  int& uses(int v) { return uses_[static_cast<size_t>(v)]; }

  int64_t bytes(int v) const {
    int64_t count = 1;
    for (int a : program_.value(v).axes)
      if (__builtin_mul_overflow(count, sizes_[static_cast<size_t>(a)], &count)) return INT64_MAX;
    const int64_t bytes = packed_bytes(program_.value(v).dtype, count);
    return bytes < 0 ? INT64_MAX : bytes;
  }
  void make(int v) {
    if (uses(v) == 0) return;
    if (__builtin_add_overflow(live_, bytes(v), &live_)) live_ = INT64_MAX;
    peak_ = std::max(peak_, live_);
  }
  void use(int v) {
    if (--uses(v) == 0 && live_ != INT64_MAX) live_ -= bytes(v);
  }

  // Results are made before what they come from is given up.
  void walk(const std::vector<Instruction>& body) {
    for (const Instruction& i : body) {
      if (i.kind == Kind::kFor) {
        loop(i);
        continue;
      }
      for (int v : i.out) make(v);
      for_each_read(i, [&](int v) { use(v); });
    }
  }

  // What the body reads from outside is alive in all trips.
  void loop(const Instruction& i) {
    for (int v : i.carried) make(v);
    for (int v : i.in) use(v);
    std::set<int> outer, inner(i.carried.begin(), i.carried.end());
    for_each(i.body, [&](const Instruction& x) {
      inner.insert(x.out.begin(), x.out.end());
      inner.insert(x.carried.begin(), x.carried.end());
      for_each_read(x, [&](int v) { outer.insert(v); });
    });
    outer.insert(i.yields.begin(), i.yields.end());
    for (int v : inner) outer.erase(v);
    for (int v : outer) ++uses(v);
    walk(i.body);
    for (int v : i.yields) use(v);
    for (int v : outer) use(v);
    for (int v : i.out) make(v);
  }

  const Program& program_;
  std::vector<int64_t> sizes_;
  std::vector<int> uses_;
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

Result<int64_t> grid_size(const Program& program, const Schedule& schedule,
                          const op::Bindings& symbols) {
  int64_t items = 1;
  for (int a : program.grid) {
    TRY_ASSIGN(const int64_t extent, program.axis(a).extent.eval(symbols));
    if (extent < 0)
      return error(Code::kOutOfRange, "axis {} has extent {}", program.axis(a).name, extent);
    if (__builtin_mul_overflow(items, pieces(extent, schedule.axis(a).tile), &items))
      return error(Code::kOutOfRange, "the grid of {} has too many items", program.name);
  }
  return items;
}

Result<Bytes> footprint(const Program& program, const Schedule& schedule,
                        const op::Bindings& symbols) {
  TRY_ASSIGN(auto sizes, piece_sizes(program, schedule, symbols));
  return Bytes(Liveness(program, std::move(sizes)).peak());
}

Status check(const Program& program, const Schedule& schedule, const op::Bindings& symbols,
             const Limits& limits) {
  TRY_ASSIGN(const Bytes bytes, footprint(program, schedule, symbols));
  int vector = kNone;
  for (size_t a = 0; a < program.axes.size(); ++a) {
    const AxisSchedule& s = schedule.axes[a];
    const std::string& name = program.axes[a].name;
    if (s.tile < 0 || s.vector < 1 || s.tile % s.vector != 0)
      return error(Code::kInvalidArgument,
                   "axis {}: pieces of {} and vectors of {}, need a multiple", name, s.tile,
                   s.vector);
    if (s.tile != 0 && std::ranges::count(program.whole, static_cast<int>(a)) > 0)
      return error(Code::kInvalidArgument, "axis {} is not to be cut, but has pieces of {}", name,
                   s.tile);
    if (s.vector == 1) continue;
    if (vector != kNone)
      return error(Code::kInvalidArgument, "vectors along {} and along {}",
                   program.axis(vector).name, name);
    vector = static_cast<int>(a);
  }
  if (bytes > limits.tiles)
    return error(Code::kResourceExhausted, "{}: tiles take {}, at most {}", program.name,
                 to_string(bytes), to_string(limits.tiles));
  return {};
}

}  // namespace tessera::tile
