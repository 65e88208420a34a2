#include "tessera/layout/runs.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "tessera/layout/boxes.h"
#include "tessera/layout/graph.h"

namespace tessera::layout {
namespace {

constexpr int kMostLines = 1 << 12;  // looked at along an axis, of layouts that are no boxes

int64_t moved(const Box& box) {
  int64_t elements = box.valid;
  for (int d = 1; d < box.rank; ++d) elements *= box.dims[static_cast<size_t>(d)].size;
  return elements;
}

int64_t pieces(const Box& box) {
  const bool run = box.dims[0].src == 1 && box.dims[0].dst == 1;
  return run ? moved(box) / std::max<int64_t>(box.valid, 1) : moved(box);
}

// A part of a box that fits a buffer, with runs as long as that allows.
class Tile {
 public:
  Tile(const Box& box, int64_t capacity) : box_(box), capacity_(capacity) {
    extents_.fill(1);
    for (auto side : {&read_, &written_}) side->order.resize(static_cast<size_t>(box.rank));
    for (auto side : {&read_, &written_}) std::iota(side->order.begin(), side->order.end(), 0);
    std::stable_sort(read_.order.begin(), read_.order.end(), [&](size_t a, size_t b) {
      return std::abs(box.dims[a].src) < std::abs(box.dims[b].src);
    });
    read_.stride = &Box::Dim::src;
    written_.stride = &Box::Dim::dst;
    while (shorter_grows() || grow(read_) || grow(written_)) {
    }
  }

  int64_t read_run() const { return chain(read_).run; }
  int64_t written_run() const { return chain(written_).run; }

 private:
  struct Side {
    std::vector<size_t> order;  // dimensions by rising stride
    int64_t Box::Dim::*stride = nullptr;
  };
  struct Chain {
    int64_t run = 1;                 // elements in a row
    std::optional<size_t> end = {};  // the dimension along which it may be longer
  };

  // Of the first dimension the source holds only what is no padding.
  int64_t size(const Side& side, size_t d, int64_t extent) const {
    return d == 0 && &side == &read_ ? std::min(extent, box_.valid) : extent;
  }
  Chain chain(const Side& side) const {
    Chain c;
    for (const size_t d : side.order) {
      const Box::Dim& dim = box_.dims[d];
      if (std::abs(dim.*side.stride) != c.run) return c;
      c.run *= size(side, d, extents_[d]);
      if (extents_[d] == dim.size) continue;
      c.end = d;
      return c;
    }
    return c;
  }
  bool grow(const Side& side) {
    const std::optional<size_t> d = chain(side).end;
    if (!d) return false;
    const int64_t longer = std::min(box_.dims[*d].size, 2 * extents_[*d]);
    if (elements_ / extents_[*d] > capacity_ / longer) return false;
    elements_ = elements_ / extents_[*d] * longer;
    extents_[*d] = longer;
    return true;
  }
  bool shorter_grows() { return grow(read_run() < written_run() ? read_ : written_); }

  const Box& box_;
  const int64_t capacity_;
  std::array<int64_t, kBoxRank> extents_;
  int64_t elements_ = 1;
  Side read_, written_;
};

// Mean number of elements along `axis` that follow each other on both sides.
double sampled_run(const BoundLayout& from, const BoundLayout& to, size_t axis) {
  const std::span<const int64_t> extents = from.extents();
  std::vector<int64_t> index(extents.size());
  int64_t elements = 0, pieces = 0;
  for (int lines = 0; lines < kMostLines;) {
    int64_t src = 0, dst = 0;
    for (index[axis] = 0; index[axis] < extents[axis] && lines < kMostLines; ++lines) {
      const auto a = from.line(index, static_cast<int>(axis)),
                 b = to.line(index, static_cast<int>(axis));
      const int64_t length = std::min(a.length, b.length);
      const bool run = length == 1 || (a.stride == 1 && b.stride == 1);
      const bool goes_on = index[axis] > 0 && run && a.start == src && b.start == dst;
      pieces += (run ? 1 : length) - (goes_on ? 1 : 0);
      elements += length;
      src = a.start + (length - 1) * a.stride + 1;
      dst = b.start + (length - 1) * b.stride + 1;
      index[axis] += length;
    }
    index[axis] = 0;
    size_t other = extents.size();
    while (other > 0 && (other - 1 == axis || ++index[other - 1] == extents[other - 1]))
      index[--other] = 0;
    if (other == 0) break;
  }
  return static_cast<double>(elements) / static_cast<double>(pieces);
}

double sampled_run(const BoundLayout& from, const BoundLayout& to) {
  double longest = 1;
  for (size_t axis = 0; axis < from.extents().size(); ++axis)
    if (from.extents()[axis] > 1) longest = std::max(longest, sampled_run(from, to, axis));
  return longest * from.bits() / 8;
}

void measure(const Boxes& boxes, Bytes staged, Runs* runs) {
  int64_t count = 0;
  const Box* largest = &boxes.moved.front();
  for (const Box& box : boxes.moved) {
    count += pieces(box);
    if (moved(box) > moved(*largest)) largest = &box;
  }
  runs->common = static_cast<double>(runs->elements.value) / static_cast<double>(count);
  const Tile tile(*largest, staged.value / boxes.element_bytes);
  const auto bytes = [&](int64_t run) {
    return std::max(runs->common, static_cast<double>(run * boxes.element_bytes));
  };
  runs->read_run = bytes(tile.read_run());
  runs->written_run = bytes(tile.written_run());
}

}  // namespace

Result<Runs> runs_of(const BoundLayout& from, const BoundLayout& to, Bytes staged) {
  if (from.dtype() != to.dtype() || !std::equal(from.extents().begin(), from.extents().end(),
                                                to.extents().begin(), to.extents().end()))
    return error(Code::kInvalidArgument, "runs between {}[{}] and {}[{}]: they must agree",
                 name_of(from.dtype()), fmt::join(from.extents(), ","), name_of(to.dtype()),
                 fmt::join(to.extents(), ","));
  Runs runs;
  if (from.elements() == 0) return runs;
  runs.elements = Bytes(ceil_div(from.elements() * from.bits(), 8));
  runs.read = from.bytes();
  runs.written = to.bytes();
  if (const auto boxes = boxes_of(from, to); boxes && !boxes->moved.empty()) {
    measure(*boxes, staged, &runs);
    return runs;
  }
  runs.common = runs.read_run = runs.written_run = sampled_run(from, to);
  return runs;
}

}  // namespace tessera::layout
