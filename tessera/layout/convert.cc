// The plan of a conversion (which axes are walked how), its padding, and the whole as one call.
#include "tessera/layout/convert.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tessera/layout/boxes.h"
#include "tessera/layout/convert_walk.h"

namespace tessera::layout {
namespace {

constexpr int64_t kLongRun = 64;          // beyond it a longer run is no better
constexpr int64_t kSplitAbove = 1 << 15;  // elements; smaller conversions are one part
constexpr int kMaxParts = 64;
constexpr int64_t kPartBytes = 64 << 10;  // source and target; of boxes

Status check_buffers(const Conversion& c, std::span<const std::byte> src,
                     std::span<const std::byte> dst) {
  if (Bytes(static_cast<int64_t>(src.size())) < c.from().bytes())
    return error(Code::kInvalidArgument, "source has {} bytes, its layout needs {}", src.size(),
                 c.from().bytes().value);
  if (Bytes(static_cast<int64_t>(dst.size())) < c.to().bytes())
    return error(Code::kInvalidArgument, "target has {} bytes, its layout needs {}", dst.size(),
                 c.to().bytes().value);
  const std::less<const std::byte*> before;
  if (before(src.data(), dst.data() + dst.size()) && before(dst.data(), src.data() + src.size()))
    return error(Code::kInvalidArgument, "source and target of a layout conversion overlap");
  return {};
}

void zero_box(const BoundLayout& layout, size_t axis, int64_t offset, std::span<std::byte> dst) {
  const std::span<const int64_t> sizes = layout.physical_extents();
  if (axis == sizes.size()) return write_element(dst, layout.bits(), offset, {});
  if (axis + 1 == sizes.size() && layout.strides()[axis] == 1 && layout.bits() >= 8) {
    const auto width = static_cast<size_t>(layout.bits() / 8);
    std::memset(dst.data() + static_cast<size_t>(offset) * width, 0,
                static_cast<size_t>(sizes[axis]) * width);
    return;
  }
  for (int64_t i = 0; i < sizes[axis]; ++i)
    zero_box(layout, axis + 1, offset + i * layout.strides()[axis], dst);
}

}  // namespace

// Groups the axes and orders the loops.
class Conversion::Planner {
 public:
  explicit Planner(Conversion* c) : c_(*c), zero_(c->from_.extents().size()) {}

  void plan() {
    group();
    for (Cluster& cluster : c_.clusters_) cluster.free = best(cluster.axes);
    order();
    split();
  }

 private:
  void group() {
    for (int a = 0; a < static_cast<int>(zero_.size()); ++a) {
      if (extent(a) == 1) continue;
      Cluster merged{.axes = {a}};
      std::erase_if(c_.clusters_, [&](const Cluster& cluster) {
        const bool mixes = std::any_of(cluster.axes.begin(), cluster.axes.end(), [&](int b) {
          return c_.from_.mixes(a, b) || c_.to_.mixes(a, b);
        });
        if (mixes)
          merged.axes.insert(merged.axes.begin(), cluster.axes.begin(), cluster.axes.end());
        return mixes;
      });
      c_.clusters_.push_back(std::move(merged));
    }
  }

  // Long runs in the target count most, then long runs in the source.
  int64_t score(int axis) const {
    const BoundLayout::Line to = c_.to_.line(zero_, axis);
    const BoundLayout::Line from = c_.from_.line(zero_, axis);
    return (to.stride == 1 ? 2 * std::min(to.length, kLongRun) : 0) +
           (reads_runs(axis) ? std::min(from.length, kLongRun) : 0);
  }
  bool reads_runs(int axis) const { return c_.from_.line(zero_, axis).stride == 1; }
  int best(std::span<const int> axes) const {
    return *std::max_element(axes.begin(), axes.end(), [&](int a, int b) {
      return std::pair(score(a), extent(a)) < std::pair(score(b), extent(b));
    });
  }
  int64_t step(int axis) const {
    std::vector<int64_t> index = zero_;
    index[static_cast<size_t>(axis)] = 1;
    return std::abs(c_.to_.offset(index) - c_.to_.offset(zero_));
  }

  // Outer loops take large steps in the target; the innermost writes runs, the one around it reads
  // runs.
  void order() {
    std::vector<Cluster>& clusters = c_.clusters_;
    if (clusters.empty()) return;
    std::stable_sort(clusters.begin(), clusters.end(), [&](const Cluster& a, const Cluster& b) {
      return step(a.free) > step(b.free);
    });
    const auto inner = std::max_element(
        clusters.begin(), clusters.end(),
        [&](const Cluster& a, const Cluster& b) { return score(a.free) < score(b.free); });
    std::rotate(inner, inner + 1, clusters.end());
    if (reads_runs(clusters.back().free)) return;
    const auto reader =
        std::find_if(clusters.begin(), clusters.end() - 1,
                     [&](const Cluster& cluster) { return reads_runs(cluster.free); });
    if (reader != clusters.end() - 1) std::rotate(reader, reader + 1, clusters.end() - 1);
  }

  void split() {
    if (c_.to_.bits() < 8 || c_.to_.elements() < kSplitAbove) return;
    for (const Cluster& cluster : c_.clusters_)
      for (const int axis : cluster.axes)
        if (c_.split_axis_ < 0 || step(axis) > step(c_.split_axis_)) c_.split_axis_ = axis;
    c_.parts_ = static_cast<int>(std::min<int64_t>(extent(c_.split_axis_), kMaxParts));
  }

  int64_t extent(int axis) const { return c_.from_.extents()[static_cast<size_t>(axis)]; }

  Conversion& c_;
  const std::vector<int64_t> zero_;
};

Result<Conversion> Conversion::make(const BoundLayout& from, const BoundLayout& to, Isa isa) {
  if (from.dtype() != to.dtype())
    return error(Code::kInvalidArgument, "a layout conversion from {} to {}: types must agree",
                 name_of(from.dtype()), name_of(to.dtype()));
  if (!std::equal(from.extents().begin(), from.extents().end(), to.extents().begin(),
                  to.extents().end()))
    return error(Code::kInvalidArgument,
                 "a layout conversion from extents {} to {}: they must agree",
                 fmt::join(from.extents(), "x"), fmt::join(to.extents(), "x"));
  Conversion conversion(from, to);
  if (const auto boxes = boxes_of(from, to); boxes && !boxes->moved.empty()) {
    const int64_t bytes = from.bytes().value + to.bytes().value;
    conversion.isa_ = isa;
    conversion.copies_ = plan_copies(*boxes, beyond_caches(bytes));
    conversion.padded_ = boxes->padded;
    for (const Copy& c : conversion.copies_) conversion.tiles_ += c.tiles;
    conversion.parts_ = static_cast<int>(
        std::clamp<int64_t>(std::min(bytes / kPartBytes, conversion.tiles_), 1, kMaxParts));
  } else if (from.elements() > 1) {
    Planner(&conversion).plan();
  }
  return conversion;
}

bool Conversion::fills_itself() const {
  const bool sub_byte = to_.bits() < 8;
  return padded_ || to_.layout().padding() == Padding::kAny || to_.places() == 0 ||
         (to_.padding() == 0 && !(sub_byte && to_.is_packed()));
}

void Conversion::fill(std::span<std::byte> dst) const {
  if (fills_itself()) return;
  if (!to_.is_packed() || to_.offset() * to_.bits() % 8 != 0)
    return zero_box(to_, 0, to_.offset(), dst);
  const auto first = static_cast<size_t>(to_.offset() * to_.bits() / 8);
  std::memset(dst.data() + first, 0, static_cast<size_t>(to_.bytes().value) - first);
}

void Conversion::run(std::span<const std::byte> src, std::span<std::byte> dst, int first,
                     int count) const {
  if (to_.elements() == 0 || count <= 0) return;
  if (!copies_.empty())
    return run_copies(copies_, isa_, src.data(), dst.data(), tiles_ * first / parts_,
                      tiles_ * std::min(first + count, parts_) / parts_);
  switch (to_.bits()) {
    case 8:
      return Walk<WholeMover<1>>(*this, src, dst).run(first, count);
    case 16:
      return Walk<WholeMover<2>>(*this, src, dst).run(first, count);
    case 32:
      return Walk<WholeMover<4>>(*this, src, dst).run(first, count);
    case 64:
      return Walk<WholeMover<8>>(*this, src, dst).run(first, count);
    case 128:
      return Walk<WholeMover<16>>(*this, src, dst).run(first, count);
    case 4:
      return Walk<BitMover<4>>(*this, src, dst).run(first, count);
    case 2:
      return Walk<BitMover<2>>(*this, src, dst).run(first, count);
    default:
      return Walk<BitMover<1>>(*this, src, dst).run(first, count);
  }
}

Status convert(const BoundLayout& from, std::span<const std::byte> src, const BoundLayout& to,
               std::span<std::byte> dst) {
  TRY_ASSIGN(const Conversion conversion, Conversion::make(from, to));
  TRY(check_buffers(conversion, src, dst));
  conversion.fill(dst);
  conversion.run(src, dst, 0, conversion.parts());
  return {};
}

}  // namespace tessera::layout
