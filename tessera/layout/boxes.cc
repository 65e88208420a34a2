// Each axis (or row-major merge of axes) is cut where either offset turns; a range of it is then a
// few straight pieces, and the product of the axes' pieces are the boxes.
#include "tessera/layout/boxes.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tessera/layout/graph.h"

namespace tessera::layout {
namespace {

// Longer runs of elements and padding are two boxes.
constexpr int64_t kMostPadded = 512;

// A digit of an axis: positions / unit % radix, times stride; radix 0: all of it.
struct Part {
  int64_t unit = 1;
  int64_t radix = 0;
  int64_t stride = 0;
  int64_t size = 1;  // values that there are places for

  bool covers(int64_t position) const {
    return position >= unit && (radix == 0 || position / unit < radix);
  }
};

// From one cut to the next, both offsets are straight.
struct Level {
  int64_t unit = 1;
  int64_t src = 0;
  int64_t dst = 0;
};

// Logical axes that are walked as one.
struct Axis {
  std::vector<int> axes;
  int64_t extent = 1;
  int64_t padded = 1;  // positions that `to` has places for
  std::vector<Part> from, to;
  std::vector<Level> levels;
};

struct Piece {
  int64_t src = 0;
  int64_t dst = 0;
  int rank = 0;
  std::array<Box::Dim, kBoxRank> dims = {};
};

// Sorts the dimensions and joins those that continue each other; with `keep` the first stays.
void join_dims(Box* box, bool keep) {
  const auto end = box->dims.begin() + box->rank;
  std::sort(box->dims.begin(), end,
            [](const Box::Dim& a, const Box::Dim& b) { return std::abs(a.dst) < std::abs(b.dst); });
  int rank = 0;
  for (int d = 0; d < box->rank; ++d) {
    const Box::Dim dim = box->dims[static_cast<size_t>(d)];
    Box::Dim* below = rank > (keep ? 1 : 0) ? &box->dims[static_cast<size_t>(rank) - 1] : nullptr;
    if (below && dim.src == below->src * below->size && dim.dst == below->dst * below->size)
      below->size *= dim.size;
    else
      box->dims[static_cast<size_t>(rank++)] = dim;
  }
  for (int d = rank; d < box->rank; ++d) box->dims[static_cast<size_t>(d)] = {};
  box->rank = rank;
}

class Cutter {
 public:
  Cutter(const BoundLayout& from, const BoundLayout& to) : from_(from), to_(to) {}

  std::optional<Boxes> cut() {
    if (from_.elements() == 0) return Boxes{};
    const auto from = from_.digits(), to = to_.digits();
    if (!from || !to) return std::nullopt;
    group(*from, *to);
    for (const BoundLayout::Digit& d : *from)
      if (!assign(d, &Axis::from)) return std::nullopt;
    for (const BoundLayout::Digit& d : *to)
      if (!assign(d, &Axis::to)) return std::nullopt;
    for (Axis& axis : axes_)
      if (!cut_levels(&axis)) return std::nullopt;
    const std::vector<int64_t> zero(from_.extents().size());
    src_ = from_.offset(zero);
    dst_ = to_.offset(zero);
    return boxes();
  }

 private:
  int64_t extent(int axis) const { return from_.extents()[static_cast<size_t>(axis)]; }

  // Digits of merged axes make the merge an axis of its own.
  void group(const std::vector<BoundLayout::Digit>& from,
             const std::vector<BoundLayout::Digit>& to) {
    std::vector<const std::vector<int>*> merges;
    for (const auto* digits : {&from, &to})
      for (const BoundLayout::Digit& d : *digits)
        if (d.axes.size() > 1) merges.push_back(&d.axes);
    std::stable_sort(merges.begin(), merges.end(),
                     [](const auto* a, const auto* b) { return a->size() > b->size(); });
    std::vector<bool> taken(from_.extents().size());
    const auto add = [&](const std::vector<int>& axes) {
      Axis& axis = axes_.emplace_back();
      axis.axes = axes;
      for (int a : axes) {
        taken[static_cast<size_t>(a)] = true;
        axis.extent *= extent(a);
      }
    };
    for (const std::vector<int>* merge : merges) {
      const auto known = std::count_if(merge->begin(), merge->end(),
                                       [&](int a) { return taken[static_cast<size_t>(a)]; });
      if (known == 0) add(*merge);
      // What is known must be part of one axis: assign() sees to that.
    }
    for (int a = 0; a < static_cast<int>(taken.size()); ++a)
      if (extent(a) > 1 && !taken[static_cast<size_t>(a)]) add({a});
  }

  // The digit as one of the axis that holds its axes.
  bool assign(const BoundLayout::Digit& d, std::vector<Part> Axis::*side) {
    for (Axis& axis : axes_) {
      const auto at = std::search(axis.axes.begin(), axis.axes.end(), d.axes.begin(), d.axes.end());
      if (at == axis.axes.end()) continue;
      int64_t scale = 1, own = 1;
      for (auto a = at + static_cast<int64_t>(d.axes.size()); a != axis.axes.end(); ++a)
        scale *= extent(*a);
      for (int a : d.axes) own *= extent(a);
      Part part{saturating_product(d.unit, scale), d.radix, d.stride, d.size};
      if (at != axis.axes.begin()) {
        if (own % d.unit != 0) return false;
        const int64_t top = own / d.unit;
        if (part.radix == 0 || part.radix >= top)
          part.radix = top;
        else if (top % part.radix != 0)
          return false;
      }
      if (part.radix != 1) (axis.*side).push_back(part);
      return true;
    }
    return false;
  }

  bool cut_levels(Axis* axis) {
    std::vector<int64_t> cuts{1};
    axis->padded = axis->extent;
    for (const auto* parts : {&axis->from, &axis->to})
      for (const Part& p : *parts) {
        cuts.push_back(p.unit);
        if (p.radix > 0) cuts.push_back(saturating_product(p.unit, p.radix));
        if (parts == &axis->to)
          axis->padded = std::max(axis->padded, saturating_product(p.unit, p.size));
      }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::erase_if(cuts, [&](int64_t c) { return c > 1 && c >= axis->padded; });
    for (size_t k = 0; k < cuts.size(); ++k) {
      if (k > 0 && cuts[k] % cuts[k - 1] != 0) return false;
      const auto stride_of = [&](const std::vector<Part>& parts) {
        int64_t stride = 0;
        for (const Part& p : parts)
          if (p.covers(cuts[k])) stride += cuts[k] / p.unit * p.stride;
        return stride;
      };
      const Level level{cuts[k], stride_of(axis->from), stride_of(axis->to)};
      if (k > 0) {
        const Level& below = axis->levels.back();
        const int64_t ratio = level.unit / below.unit;
        if (level.src == ratio * below.src && level.dst == ratio * below.dst) continue;
      }
      axis->levels.push_back(level);
    }
    return true;
  }

  // Whether the places of `to` are the positions of all axes, padding included.
  bool covers_places() const {
    int64_t positions = 1;
    for (const Axis& axis : axes_) {
      positions = saturating_product(positions, axis.padded);
      std::vector<Part> parts = axis.to;
      std::sort(parts.begin(), parts.end(),
                [](const Part& a, const Part& b) { return a.unit < b.unit; });
      for (size_t k = 1; k < parts.size(); ++k)
        if (parts[k - 1].radix == 0 || parts[k - 1].unit * parts[k - 1].radix > parts[k].unit)
          return false;
    }
    return positions == to_.places();
  }

  // [lo, hi) of an axis in pieces; at `top` and above nothing varies.
  void pieces(const Axis& axis, size_t top, int64_t lo, int64_t hi, Piece at,
              std::vector<Piece>* out) const {
    if (lo >= hi) return;
    const Level& level = axis.levels[top];
    const auto step = [&](Piece p, int64_t digit) {
      p.src += digit * level.src;
      p.dst += digit * level.dst;
      return p;
    };
    const int64_t first = ceil_div(lo, level.unit), last = hi / level.unit;
    if (top > 0 && first > last)
      return pieces(axis, top - 1, lo - last * level.unit, hi - last * level.unit, step(at, last),
                    out);
    if (top > 0)
      pieces(axis, top - 1, lo - (first - 1) * level.unit, lo < first * level.unit ? level.unit : 0,
             step(at, first - 1), out);
    if (first < last) {
      Piece body = step(at, first);
      for (size_t k = 0; k < top; ++k)
        body.dims[static_cast<size_t>(body.rank++)] = {
            axis.levels[k + 1].unit / axis.levels[k].unit, axis.levels[k].src, axis.levels[k].dst};
      body.dims[static_cast<size_t>(body.rank++)] = {last - first, level.src, level.dst};
      out->push_back(body);
    }
    if (top > 0) pieces(axis, top - 1, 0, hi - last * level.unit, step(at, last), out);
  }
  std::vector<Piece> pieces(const Axis& axis, int64_t lo, int64_t hi) const {
    std::vector<Piece> all;
    pieces(axis, axis.levels.size() - 1, lo, hi, {}, &all);
    return all;
  }

  std::optional<Boxes> boxes() {
    for (const Axis& axis : axes_)
      if (axis.levels.size() > kBoxRank) return std::nullopt;
    Boxes boxes;
    boxes.element_bytes = std::max(1, to_.bits() / 8);
    const bool zero = to_.layout().padding() == Padding::kZero;
    boxes.padded = !zero || (to_.bits() >= 8 && covers_places());
    // The axis of the target's runs comes last: its padding goes with the elements beside it.
    std::stable_partition(axes_.begin(), axes_.end(),
                          [](const Axis& axis) { return axis.levels[0].dst != 1; });
    std::vector<std::vector<Piece>> moved, whole;
    for (const Axis& axis : axes_) {
      moved.push_back(pieces(axis, 0, axis.extent));
      whole.push_back(pieces(axis, 0, axis.padded));
    }
    if (boxes.padded && zero && !axes_.empty()) {
      for (size_t a = 0; a < axes_.size(); ++a) {
        const Axis& axis = axes_[a];
        int64_t begin = axis.extent;
        if (a + 1 == axes_.size() && axis.levels[0].dst == 1) {
          const int64_t run = axis.levels.size() > 1 ? axis.levels[1].unit : axis.padded;
          const int64_t valid = axis.extent % run;
          if (valid > 0 && run <= kMostPadded && axis.extent - valid + run <= axis.padded) {
            begin = axis.extent - valid;
            moved[a] = pieces(axis, 0, begin);
            std::vector<std::vector<Piece>> sides(moved.begin(), moved.end() - 1);
            sides.push_back(pieces(axis, begin, begin + run));
            if (!product(sides, valid, &boxes.moved)) return std::nullopt;
            begin += run;
          }
        }
        std::vector<std::vector<Piece>> sides(moved.begin(),
                                              moved.begin() + static_cast<int64_t>(a));
        sides.push_back(pieces(axis, begin, axis.padded));
        sides.insert(sides.end(), whole.begin() + static_cast<int64_t>(a) + 1, whole.end());
        if (!product(sides, 0, &boxes.zeroed)) return std::nullopt;
      }
    }
    if (!product(moved, 0, &boxes.moved)) return std::nullopt;
    if (to_.bits() < 8)
      for (Box& box : boxes.moved)
        if (!to_bytes(&box)) return std::nullopt;
    return boxes;
  }

  // Appends a box for each choice of a piece per axis.
  bool product(const std::vector<std::vector<Piece>>& sides, int64_t valid,
               std::vector<Box>* out) const {
    size_t count = 1;
    for (const auto& side : sides) count *= side.size();
    if (count + out->size() > kMostBoxes) return false;
    for (size_t n = 0; n < count; ++n) {
      Box box{.src = src_, .dst = dst_};
      size_t rest = n;
      for (const auto& side : sides) {
        const Piece& piece = side[rest % side.size()];
        rest /= side.size();
        box.src += piece.src;
        box.dst += piece.dst;
        for (int d = 0; d < piece.rank; ++d) {
          const Box::Dim& dim = piece.dims[static_cast<size_t>(d)];
          if (dim.size == 1) continue;
          if (box.rank == kBoxRank) return false;
          box.dims[static_cast<size_t>(box.rank++)] = dim;
        }
      }
      join_dims(&box, valid > 0);
      box.valid = valid > 0 ? valid : box.dims[0].size;
      out->push_back(box);
    }
    return true;
  }

  // Sub-byte elements of whole bytes on both sides become bytes.
  bool to_bytes(Box* box) const {
    const int64_t per = 8 / to_.bits();
    Box::Dim& run = box->dims[0];
    if (run.src != 1 || run.dst != 1 || run.size % per != 0) return false;
    bool whole = box->src % per == 0 && box->dst % per == 0;
    for (int d = 1; d < box->rank; ++d) {
      Box::Dim& dim = box->dims[static_cast<size_t>(d)];
      whole &= dim.src % per == 0 && dim.dst % per == 0;
      dim.src /= per;
      dim.dst /= per;
    }
    box->src /= per;
    box->dst /= per;
    run.size /= per;
    box->valid = run.size;
    return whole;
  }

  const BoundLayout& from_;
  const BoundLayout& to_;
  std::vector<Axis> axes_;
  int64_t src_ = 0, dst_ = 0;
};

}  // namespace

std::optional<Box> box_of(std::span<const int64_t> sizes, std::span<const int64_t> src,
                          std::span<const int64_t> dst, int64_t src_offset, int64_t dst_offset) {
  Box box{.src = src_offset, .dst = dst_offset};
  // Neighbours often join: they must not count.
  for (size_t a = sizes.size(); a-- > 0;) {
    if (sizes[a] == 1) continue;
    Box::Dim* below = box.rank > 0 ? &box.dims[static_cast<size_t>(box.rank) - 1] : nullptr;
    if (below && src[a] == below->src * below->size && dst[a] == below->dst * below->size) {
      below->size *= sizes[a];
      continue;
    }
    if (box.rank == kBoxRank) return std::nullopt;
    box.dims[static_cast<size_t>(box.rank++)] = {sizes[a], src[a], dst[a]};
  }
  join_dims(&box, false);
  box.valid = box.dims[0].size;
  return box;
}

std::optional<Boxes> boxes_of(const BoundLayout& from, const BoundLayout& to) {
  return Cutter(from, to).cut();
}

}  // namespace tessera::layout
