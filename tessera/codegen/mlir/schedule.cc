#include "tessera/codegen/mlir/schedule.h"

#include <algorithm>

#include "tessera/codegen/mlir/emit.h"

namespace tessera::codegen::mlir {
namespace {

using tile::Expr;
using tile::Instruction;
using tile::Kind;
using tile::kNone;
using tile::Program;

constexpr int64_t kItemElements = 16384;  // of a work item

// What speaks for vectors along each axis: accesses side by side, less four times those that are
// scattered.
std::vector<int> scores(const Program& p) {
  std::vector<int> score(p.axes.size(), 0);
  tile::for_each(p.body, [&](const Instruction& i) {
    if (i.kind != Kind::kLoad && i.kind != Kind::kStore) return;
    const auto access = access_of(p, i);
    if (!access) return;
    for (const auto& [a, c] : access->terms) score[static_cast<size_t>(a)] += c == Expr(1) ? 1 : -4;
  });
  return score;
}

// Elements of the widest type that is computed on.
int widest(const Program& p) {
  int bytes = 4;
  for (const tile::Value& v : p.values)
    if (!v.axes.empty() && is_float(v.dtype)) bytes = std::max(bytes, bits_of(v.dtype) / 8);
  return bytes;
}

}  // namespace

tile::Schedule vectors_of(const Program& p, const Target& target) {
  tile::Schedule s;
  s.axes.resize(p.axes.size());
  const std::vector<int> score = scores(p);
  int best = kNone;
  for (size_t a = 0; a < score.size(); ++a)
    if (score[a] > 0 && (best == kNone || score[a] >= score[static_cast<size_t>(best)]))
      best = static_cast<int>(a);
  if (best == kNone) return s;
  // Two registers at a time, where there are 32: one's arithmetic hides the other's latency.
  const int64_t width = target.vector_bytes / widest(p) * (target.masks ? 2 : 1);
  s.axes[static_cast<size_t>(best)] = {width, width};
  return s;
}

Status cut(const Program& p, const op::Bindings& symbols, tile::Schedule& s) {
  std::vector<int64_t> extents;
  int64_t inside = 1;  // elements that one element of the grid stands for
  for (size_t a = 0; a < p.axes.size(); ++a) {
    TRY_ASSIGN(const int64_t n, p.axes[a].extent.eval(symbols));
    extents.push_back(n);
    const bool in_grid = std::ranges::count(p.grid, static_cast<int>(a)) > 0;
    if (!in_grid)
      inside = std::min(kItemElements, inside * std::clamp<int64_t>(n, 1, kItemElements));
  }
  int64_t wanted = std::max<int64_t>(1, kItemElements / inside);
  for (size_t g = p.grid.size(); g-- > 0;) {
    const auto a = static_cast<size_t>(p.grid[g]);
    tile::AxisSchedule& axis = s.axes[a];
    const int64_t extent = std::max<int64_t>(extents[a], 1);
    const int64_t vectors = (std::min(wanted, extent) + axis.vector - 1) / axis.vector;
    axis.tile = vectors * axis.vector;
    wanted = std::max<int64_t>(1, wanted / extent);
  }
  return {};
}

}  // namespace tessera::codegen::mlir
