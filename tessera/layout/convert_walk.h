// The loops of a conversion. Internal to layout.
//
// Offsets are sums over clusters of axes, so each cluster gets a table of the offsets that its free
// axis adds, in tiles; no element is divided for. The inner cluster's table holds runs, the one
// around it is blocked for the cache.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "tessera/layout/convert.h"

namespace tessera::layout {

// Elements of whole bytes. Offsets and strides in elements.
template <size_t kBytes>
struct WholeMover {
  static void move(const std::byte* src, int64_t s, int64_t src_stride, std::byte* dst, int64_t d,
                   int64_t dst_stride, int64_t count) {
    constexpr auto kWidth = static_cast<int64_t>(kBytes);
    src += s * kWidth;
    dst += d * kWidth;
    if (src_stride == 1 && dst_stride == 1) {
      std::memcpy(dst, src, static_cast<size_t>(count) * kBytes);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(dst + i * dst_stride * kWidth, src + i * src_stride * kWidth, kBytes);
  }
};

// Elements of kBits < 8 bits, low bits first.
template <int kBits>
struct BitMover {
  static void move(const std::byte* src, int64_t s, int64_t src_stride, std::byte* dst, int64_t d,
                   int64_t dst_stride, int64_t count) {
    constexpr int64_t kPerByte = 8 / kBits;
    int64_t i = 0;
    if (src_stride == 1 && dst_stride == 1 && s % kPerByte == 0 && d % kPerByte == 0) {
      std::memcpy(dst + d / kPerByte, src + s / kPerByte, static_cast<size_t>(count / kPerByte));
      i = count - count % kPerByte;
    }
    for (; i < count; ++i) move_one(src, s + i * src_stride, dst, d + i * dst_stride);
  }

 private:
  static void move_one(const std::byte* src, int64_t s, std::byte* dst, int64_t d) {
    constexpr unsigned kMask = (1u << kBits) - 1;
    const unsigned value = std::to_integer<unsigned>(src[s * kBits / 8]) >> (s * kBits % 8) & kMask;
    const int shift = static_cast<int>(d * kBits % 8);
    std::byte& target = dst[d * kBits / 8];
    target = static_cast<std::byte>((std::to_integer<unsigned>(target) & ~(kMask << shift)) |
                                    value << shift);
  }
};

template <class Mover>
class Conversion::Walk {
 public:
  Walk(const Conversion& c, std::span<const std::byte> src, std::span<std::byte> dst)
      : c_(c),
        src_(src.data()),
        dst_(dst.data()),
        extents_(c.from_.extents()),
        index_(extents_.size()) {
    begin_.assign(extents_.size(), 0);
    end_.assign(extents_.begin(), extents_.end());
    src_origin_ = c.from_.offset(index_);
    dst_origin_ = c.to_.offset(index_);
    moves_.resize(c.clusters_.size());
    list_loops();
  }

  void run(int first, int count) {
    if (c_.split_axis_ >= 0) {
      const auto axis = static_cast<size_t>(c_.split_axis_);
      begin_[axis] = part_start(extents_[axis], first);
      end_[axis] = part_start(extents_[axis], std::min(first + count, c_.parts_));
    }
    if (c_.clusters_.empty()) return Mover::move(src_, src_origin_, 1, dst_, dst_origin_, 1, 1);
    loop(0);
  }

 private:
  static constexpr int64_t kTile = 4096;  // positions per table
  static constexpr size_t kBlock =
      64;  // positions of the outer of the two inner loops that share a run
  static constexpr int64_t kRun = 16;  // elements of a run that is not contiguous on both sides

  struct Loop {
    size_t cluster;
    int axis;
    bool free;
  };
  struct Move {
    int64_t src;
    int64_t dst;
  };
  struct Run {
    Move start;
    Move stride;
    int64_t length;
  };

  // Axes that stand alone first: their tables serve all iterations inside.
  void list_loops() {
    for (const bool alone : {true, false})
      for (size_t n = 0; n < c_.clusters_.size(); ++n) {
        const Cluster& cluster = c_.clusters_[n];
        if ((cluster.axes.size() == 1) != alone) continue;
        for (const int axis : cluster.axes)
          if (axis != cluster.free) loops_.push_back({n, axis, false});
        loops_.push_back({n, cluster.free, true});
      }
  }

  int64_t part_start(int64_t extent, int part) const {
    return extent / c_.parts_ * part + std::min<int64_t>(part, extent % c_.parts_);
  }

  void loop(size_t depth) {
    if (depth == loops_.size()) return nest(0, src_origin_, dst_origin_);
    const Loop& l = loops_[depth];
    const auto axis = static_cast<size_t>(l.axis);
    const int64_t step = l.free ? kTile : 1;
    for (int64_t at = begin_[axis]; at < end_[axis]; at += step) {
      index_[axis] = at;
      if (l.free) tabulate(l.cluster, at, std::min(at + step, end_[axis]));
      loop(depth + 1);
    }
  }

  void tabulate(size_t n, int64_t begin, int64_t end) {
    const Cluster& cluster = c_.clusters_[n];
    const bool inner = n + 1 == c_.clusters_.size();
    std::vector<int64_t> index(extents_.size());
    for (const int axis : cluster.axes)
      index[static_cast<size_t>(axis)] = index_[static_cast<size_t>(axis)];
    if (inner) runs_.clear();
    moves_[n].clear();
    int64_t& position = index[static_cast<size_t>(cluster.free)];
    for (position = begin; position < end;) {
      const BoundLayout::Line from = c_.from_.line(index, cluster.free);
      const BoundLayout::Line to = c_.to_.line(index, cluster.free);
      const int64_t length = std::min({from.length, to.length, end - position});
      const Run run{
          {from.start - src_origin_, to.start - dst_origin_}, {from.stride, to.stride}, length};
      inner ? add_run(run) : add_moves(run, &moves_[n]);
      position += length;
    }
  }

  static void add_moves(const Run& run, std::vector<Move>* moves) {
    for (int64_t i = 0; i < run.length; ++i)
      moves->push_back({run.start.src + i * run.stride.src, run.start.dst + i * run.stride.dst});
  }

  // Joins a run to the one before it where it carries on; cuts long ones that jump through memory.
  void add_run(Run run) {
    const bool both = run.stride.src == 1 && run.stride.dst == 1;
    if (both && !runs_.empty() && continues(runs_.back(), run)) {
      runs_.back().length += run.length;
      return;
    }
    for (; !both && run.length > kRun; run.length -= kRun) {
      runs_.push_back({run.start, run.stride, kRun});
      run.start.src += kRun * run.stride.src;
      run.start.dst += kRun * run.stride.dst;
    }
    runs_.push_back(run);
  }
  static bool continues(const Run& a, const Run& b) {
    return a.stride.src == 1 && a.stride.dst == 1 && a.start.src + a.length == b.start.src &&
           a.start.dst + a.length == b.start.dst;
  }

  void nest(size_t n, int64_t src, int64_t dst) {
    const size_t left = moves_.size() - n;
    constexpr Move kNone{0, 0};
    if (left == 1) return innermost({&kNone, 1}, src, dst);
    if (left == 2) return innermost(moves_[n], src, dst);
    for (const Move& m : moves_[n]) nest(n + 1, src + m.src, dst + m.dst);
  }

  void innermost(std::span<const Move> outer, int64_t src, int64_t dst) {
    for (size_t first = 0; first < outer.size(); first += kBlock) {
      const std::span<const Move> block =
          outer.subspan(first, std::min(kBlock, outer.size() - first));
      for (const Run& r : runs_)
        for (const Move& m : block)
          Mover::move(src_, src + m.src + r.start.src, r.stride.src, dst_,
                      dst + m.dst + r.start.dst, r.stride.dst, r.length);
    }
  }

  const Conversion& c_;
  const std::byte* src_;
  std::byte* dst_;
  std::span<const int64_t> extents_;
  std::vector<int64_t> index_;
  std::vector<int64_t> begin_;
  std::vector<int64_t> end_;
  std::vector<Loop> loops_;
  std::vector<std::vector<Move>> moves_;  // per cluster but the last: what each position adds
  std::vector<Run> runs_;                 // of the last
  int64_t src_origin_ = 0;                // offsets of element 0
  int64_t dst_origin_ = 0;
};

}  // namespace tessera::layout
