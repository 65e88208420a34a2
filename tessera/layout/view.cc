// Comparing layouts by the places they give, and what strides say about axes.
#include "tessera/layout/view.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tessera::layout {
namespace {

constexpr int kBudget = 1 << 18;  // lines or places looked at before giving up

tl::unexpected<Error> too_large(const BoundLayout& a, const BoundLayout& b) {
  return error(Code::kResourceExhausted, "comparing layouts '{}' and '{}' takes more than {} steps",
               a.layout().to_string(), b.layout().to_string(), kBudget);
}

std::vector<int> axes_mixed_with(const BoundLayout& a, const BoundLayout& b, int axis) {
  std::vector<int> found = {axis};
  for (size_t next = 0; next < found.size(); ++next)
    for (int other = 0; other < static_cast<int>(a.extents().size()); ++other)
      if ((a.mixes(found[next], other) || b.mixes(found[next], other)) &&
          std::find(found.begin(), found.end(), other) == found.end())
        found.push_back(other);
  return found;
}

bool lines_agree(const BoundLayout& a, const BoundLayout& b, std::vector<int64_t> index, int axis,
                 int* budget) {
  const auto n = static_cast<size_t>(axis);
  for (index[n] = 0; index[n] < a.extents()[n] && --*budget >= 0;) {
    const BoundLayout::Line x = a.line(index, axis);
    const BoundLayout::Line y = b.line(index, axis);
    const int64_t length = std::min(x.length, y.length);
    if (x.start != y.start || (length > 1 && x.stride != y.stride)) return false;
    index[n] += length;
  }
  return true;
}

// Whether offsets agree for all positions of `axes`, others at 0; false with an overdrawn budget
// means nothing.
bool offsets_agree(const BoundLayout& a, const BoundLayout& b, std::span<const int> axes,
                   int* budget) {
  std::vector<int64_t> index(a.extents().size());
  while (true) {
    if (!lines_agree(a, b, index, axes[0], budget) || *budget < 0) return false;
    size_t i = 1;
    for (; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i]);
      if (++index[axis] < a.extents()[axis]) break;
      index[axis] = 0;
    }
    if (i == axes.size()) return true;
  }
}

// The places of a tensor: start + sum of steps, largest stride first, all positive, adjacent ones
// fused.
struct Box {
  struct Side {
    int64_t stride;
    int64_t size;
    bool operator==(const Side&) const = default;
  };
  int64_t start = 0;
  std::vector<Side> sides;
  bool operator==(const Box&) const = default;

  explicit Box(const BoundLayout& layout) : start(layout.offset()) {
    for (size_t a = 0; a < layout.strides().size(); ++a) {
      const int64_t size = layout.physical_extents()[a];
      if (size <= 1) continue;
      sides.push_back({std::abs(layout.strides()[a]), size});
      if (layout.strides()[a] < 0) start += layout.strides()[a] * (size - 1);
    }
    std::sort(sides.begin(), sides.end(), [](Side x, Side y) { return x.stride > y.stride; });
    for (size_t i = sides.size(); i-- > 1;) {
      if (sides[i - 1].stride != sides[i].stride * sides[i].size) continue;
      sides[i - 1] = {sides[i].stride, sides[i].size * sides[i - 1].size};
      sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  bool holds(int64_t offset) const {
    int64_t rest = offset - start;
    if (rest < 0) return false;
    for (const Side& side : sides) {
      if (rest / side.stride >= side.size) return false;
      rest %= side.stride;
    }
    return rest == 0;
  }

  // 1: all places of `inner` are among these, 0: not all, -1: too many to look at.
  int covers(const Box& inner) const {
    if (*this == inner) return 1;
    int64_t budget = kBudget;
    for (const Side& side : inner.sides) budget /= side.size;
    if (budget == 0) return -1;
    std::vector<int64_t> at(inner.sides.size());
    while (true) {
      int64_t offset = inner.start;
      for (size_t i = 0; i < at.size(); ++i) offset += at[i] * inner.sides[i].stride;
      if (!holds(offset)) return 0;
      size_t i = 0;
      while (i < at.size() && ++at[i] == inner.sides[i].size) at[i++] = 0;
      if (i == at.size()) return 1;
    }
  }
};

bool same_tensor(const BoundLayout& a, const BoundLayout& b) {
  return a.bits() == b.bits() &&
         std::equal(a.extents().begin(), a.extents().end(), b.extents().begin(), b.extents().end());
}

bool stored_alike(const BoundLayout& a, const BoundLayout& b) {
  return a.offset() == b.offset() &&
         a.layout().with_padding(Padding::kZero) == b.layout().with_padding(Padding::kZero) &&
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin(), b.strides().end());
}

}  // namespace

Result<bool> same_places(const BoundLayout& a, const BoundLayout& b) {
  if (!same_tensor(a, b)) return false;
  if (a.elements() == 0 || stored_alike(a, b)) return true;
  const std::vector<int64_t> zero(a.extents().size());
  if (a.offset(zero) != b.offset(zero)) return false;
  std::vector<bool> done(a.extents().size());
  int budget = kBudget;
  for (int axis = 0; axis < static_cast<int>(done.size()); ++axis) {
    if (done[static_cast<size_t>(axis)]) continue;
    const std::vector<int> axes = axes_mixed_with(a, b, axis);
    for (const int other : axes) done[static_cast<size_t>(other)] = true;
    if (!offsets_agree(a, b, axes, &budget))
      return budget < 0 ? Result<bool>(too_large(a, b)) : false;
  }
  return true;
}

Result<bool> is_view_of(const BoundLayout& view, const BoundLayout& base) {
  TRY_ASSIGN(const bool same, same_places(view, base));
  if (!same) return false;
  if (view.places() == 0 || view.padding() == 0) return true;
  if (view.layout().padding() == Padding::kZero && base.layout().padding() != Padding::kZero)
    return false;
  if (base.places() == 0) return false;
  const int covered = Box(base).covers(Box(view));
  if (covered < 0) return too_large(view, base);
  return covered == 1;
}

Result<AxisOrder> axis_order(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  if (extents.size() != strides.size())
    return error(Code::kInvalidArgument, "{} strides for {} extents", strides.size(),
                 extents.size());
  const Layout rows = Layout::row_major(static_cast<int>(extents.size()));
  std::vector<int64_t> steps;
  for (const int64_t stride : strides) {
    if (stride == INT64_MIN) return error(Code::kOutOfRange, "stride {}", stride);
    steps.push_back(std::abs(stride));
  }
  TRY_ASSIGN(const BoundLayout bound,
             BoundLayout::bind(Stored{.layout = rows, .strides = steps}, DType::kI8, extents));
  AxisOrder result;
  for (int a = 0; a < rows.rank(); ++a)
    (bound.elements() == 0 || extents[static_cast<size_t>(a)] == 1 ? result.free : result.order)
        .push_back(a);
  std::stable_sort(result.order.begin(), result.order.end(), [&](int a, int b) {
    return steps[static_cast<size_t>(a)] > steps[static_cast<size_t>(b)];
  });
  return result;
}

Result<std::vector<Layout>> matching_layouts(const BoundLayout& bound,
                                             std::span<const Layout> candidates) {
  std::vector<Layout> matching;
  for (const Layout& layout : candidates) {
    const Result<BoundLayout> candidate = BoundLayout::bind(layout, bound.dtype(), bound.extents());
    if (!candidate) continue;
    TRY_ASSIGN(const bool same, same_places(bound, *candidate));
    if (same) matching.push_back(layout);
  }
  return matching;
}

}  // namespace tessera::layout
