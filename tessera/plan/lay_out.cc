// Offsets in a slab. A portfolio of orders in which blocks are placed, each into the smallest gap
// that holds it; while the result is above the bound (the most that lives at once), what stands on
// top is placed earlier and all is tried again.
#include <algorithm>

#include "tessera/plan/plan.h"

namespace tessera::plan {
namespace {

constexpr int64_t kAlignment = 64;
// Tries after the portfolio: about 50 ns for each pair of blocks that live at the same time.
constexpr int kTries = 64;
constexpr size_t kMostForTries = 400;  // blocks

struct Block {
  int slot = 0, first = 0, last = 0;
  int64_t size = 0;
};

struct Placement {
  std::vector<int64_t> offsets;  // by block
  int64_t size = 0;
};

int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool meet(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

Placement place(const std::vector<Block>& blocks, const std::vector<size_t>& order) {
  Placement result;
  result.offsets.assign(blocks.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (size_t b : order) {
    int64_t offset = 0, best = -1, best_gap = INT64_MAX;
    for (size_t other : placed) {
      if (!meet(blocks[b], blocks[other])) continue;
      const int64_t start = result.offsets[other];
      if (start - offset >= blocks[b].size && start - offset < best_gap) {
        best_gap = start - offset;
        best = offset;
      }
      offset = std::max(offset, start + blocks[other].size);
    }
    result.offsets[b] = best >= 0 ? best : offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), b,
                         [&](size_t x, size_t y) { return result.offsets[x] < result.offsets[y]; }),
        b);
    result.size = std::max(result.size, result.offsets[b] + blocks[b].size);
  }
  return result;
}

// Bytes alive at the busiest instruction of the block's life.
int64_t breadth(const Block& b, const std::vector<int64_t>& live) {
  return *std::max_element(live.begin() + b.first,
                           live.begin() + std::min<int64_t>(b.last + 1, std::ssize(live)));
}

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  return order;
}

Placement best_placement(const std::vector<Block>& blocks, const std::vector<int64_t>& live,
                         int64_t bound) {
  std::vector<int64_t> breadths;
  for (const Block& b : blocks) breadths.push_back(live.empty() ? 0 : breadth(b, live));
  const auto by = [&](auto less) {
    std::vector<size_t> order = in_order(blocks.size());
    std::stable_sort(order.begin(), order.end(), less);
    return order;
  };
  const auto size = [&](size_t i) { return blocks[i].size; };
  const auto life = [&](size_t i) { return int64_t{blocks[i].last} - blocks[i].first + 1; };
  const auto area = [&](size_t i) {
    return static_cast<double>(size(i)) * static_cast<double>(life(i));
  };
  Placement best;
  best.size = INT64_MAX;
  std::vector<size_t> best_order;
  const auto attempt = [&](std::vector<size_t> order) {
    Placement p = place(blocks, order);
    if (p.size >= best.size) return best.size <= bound;
    best = std::move(p);
    best_order = std::move(order);
    return best.size <= bound;
  };
  if (attempt(by([&](size_t a, size_t b) { return size(a) > size(b); }))) return best;
  if (attempt(by([&](size_t a, size_t b) {
        return breadths[a] != breadths[b] ? breadths[a] > breadths[b] : size(a) > size(b);
      })))
    return best;
  if (attempt(by([&](size_t a, size_t b) { return area(a) > area(b); }))) return best;
  if (attempt(by([&](size_t a, size_t b) {
        return life(a) != life(b) ? life(a) > life(b) : size(a) > size(b);
      })))
    return best;
  if (attempt(in_order(blocks.size()))) return best;
  if (blocks.size() > kMostForTries) return best;
  std::vector<size_t> order = best_order;
  Placement current = best;
  for (int t = 0; t < kTries; ++t) {
    // What reaches highest goes to the front, before the rest of what it meets.
    size_t top = 0;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (current.offsets[i] + blocks[i].size > current.offsets[top] + blocks[top].size) top = i;
    const auto at = std::find(order.begin(), order.end(), top);
    auto target = at;
    for (int steps = 1 + t % 7; target != order.begin() && steps > 0;) {
      --target;
      if (meet(blocks[*target], blocks[top])) --steps;
    }
    if (target == at) break;
    std::rotate(target, at, at + 1);
    current = place(blocks, order);
    if (current.size < best.size) best = current;
    if (best.size <= bound) break;
  }
  return best;
}

}  // namespace

Result<Layout> lay_out(const Region& region, const op::Bindings& bindings) {
  Layout layout;
  layout.offsets.assign(region.slots.size(), -1);
  std::vector<Block> blocks;
  std::vector<int64_t> delta(region.body.size() + 2, 0), aligned_delta = delta;
  for (size_t s = 0; s < region.slots.size(); ++s) {
    const Slot& slot = region.slots[s];
    if (slot.storage != Storage::kSlab) continue;
    TRY_ASSIGN(op::Dims dims, dims_of(slot, bindings));
    TRY_ASSIGN(const Bytes stored, bytes_of(slot, dims));
    const int64_t bytes = stored.value;
    if (bytes < 0 || bytes > INT64_MAX / 4)
      return error(Code::kOutOfRange, "'{}' of {} is beyond any memory", slot.name,
                   op::to_string(dims));
    blocks.push_back({static_cast<int>(s), slot.first, slot.last, align(bytes)});
    delta[static_cast<size_t>(slot.first)] += bytes;
    delta[static_cast<size_t>(slot.last) + 1] -= bytes;
    aligned_delta[static_cast<size_t>(slot.first)] += align(bytes);
    aligned_delta[static_cast<size_t>(slot.last) + 1] -= align(bytes);
  }
  int64_t live = 0, aligned = 0, bound = 0;
  std::vector<int64_t> aligned_live;
  for (size_t n = 0; n < region.body.size(); ++n) {
    layout.live.push_back(live += delta[n]);
    aligned_live.push_back(aligned += aligned_delta[n]);
    bound = std::max(bound, aligned);
  }
  const Placement placement = best_placement(blocks, aligned_live, bound);
  for (size_t b = 0; b < blocks.size(); ++b) {
    layout.offsets[static_cast<size_t>(blocks[b].slot)] = placement.offsets[b];
    layout.size = std::max(layout.size, Bytes(placement.offsets[b] + blocks[b].size));
  }
  return layout;
}

}  // namespace tessera::plan
