#include "tessera/layout/copy.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace tessera::layout {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kReadRun =
    128;  // bytes of a tile that follow each other in the source, if they can
constexpr int64_t kWriteRun = 256;    // and in the target
constexpr int64_t kRaggedRun = 1024;  // in the target, where runs begin within lines
constexpr int64_t kLeastTile = 8 << 10;
constexpr int64_t kMostTile = 32 << 10;
constexpr int64_t kLongRun = 512;     // runs beyond need no stage
constexpr int64_t kPiece = 64 << 10;  // of a run that has no end
constexpr int64_t kCrowd = 128;       // bytes; runs of multiples are set apart in a stage
constexpr int64_t kStage = kMostTile + kMostTile / kCrowd * kLine;
constexpr int64_t kPortion = 1 << 10;  // bytes moved between looks ahead
constexpr int64_t kFetchRun = 256;     // bytes that are fetched in a row
constexpr int64_t kPage = 4 << 10;
constexpr int64_t kPages = 1 << 10;  // whose translations stay at hand

int64_t size_of(const Copy& c) { return int64_t{1} << c.log_size; }

// How many lines so far apart the second cache keeps with ease, half of those it has room for:
// strides that are powers of two fall into few of its sets.
int64_t rows_kept(int64_t stride) {
  static const int64_t ways = [] {
    const long n = ::sysconf(_SC_LEVEL2_CACHE_ASSOC);
    return n > 0 ? int64_t{n} : int64_t{8};
  }();
  static const int64_t sets = [] {
    const long size = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::max<int64_t>((size > 0 ? int64_t{size} : int64_t{1} << 20) / ways / kLine, 1);
  }();
  const int64_t lines = std::abs(stride) / kLine;
  return sets / (stride % kLine == 0 ? std::gcd(sets, lines) : 1) * ways / 2;
}

// Chooses the kernel and the tile.
class Tiler {
 public:
  Tiler(const Box& box, int64_t element_bytes, bool zero, bool streamed) {
    c_.log_size = static_cast<uint8_t>(std::countr_zero(static_cast<uint64_t>(element_bytes)));
    c_.rank = std::max(box.rank, 1);
    c_.src = box.src * element_bytes;
    c_.dst = box.dst * element_bytes;
    for (int d = 0; d < box.rank; ++d) {
      const Box::Dim& dim = box.dims[static_cast<size_t>(d)];
      at(d) = {dim.size, 1, dim.src * element_bytes, dim.dst * element_bytes};
    }
    if (box.rank == 0) at(0) = {1, 1, element_bytes, element_bytes};
    c_.valid = std::max<int64_t>(box.valid, 1);
    c_.streamed = streamed;
    if (zero) {
      c_.kind = Copy::Kind::kZero;
      for (int d = 0; d < c_.rank; ++d) at(d).src = 0;
    }
  }

  Copy plan() {
    if (c_.kind != Copy::Kind::kZero) {
      widen();
      choose_kind();
    }
    choose_tile();
    choose_order();
    choose_row();
    const int64_t run = at(0).tile * size_of(c_);
    const bool partial = c_.valid < at(0).size && c_.kind == Copy::Kind::kRuns;
    c_.staged = partial ||
                (c_.streamed && c_.kind != Copy::Kind::kZero && c_.kind != Copy::Kind::kElements &&
                 (c_.kind == Copy::Kind::kTranspose || run < kLongRun));
    c_.skewed = c_.staged && c_.kind == Copy::Kind::kTranspose && ragged() &&
                c_.valid == at(0).size && count(0) > 1 && at(0).tile * size_of(c_) >= 2 * kLine;
    for (int d = 0; d < c_.rank; ++d) c_.tiles *= count(d);
    choose_blocks();
    return c_;
  }

 private:
  Copy::Dim& at(int d) { return c_.dims[static_cast<size_t>(d)]; }
  int64_t count(int d) { return (at(d).size + at(d).tile - 1) / at(d).tile; }

  // A short run is one larger element.
  void widen() {
    const int64_t size = size_of(c_), bytes = at(0).size * size;
    if (c_.rank == 1 || at(0).src != size || at(0).dst != size || c_.valid < at(0).size ||
        bytes > 16 || !std::has_single_bit(static_cast<uint64_t>(bytes)))
      return;
    c_.log_size = static_cast<uint8_t>(std::countr_zero(static_cast<uint64_t>(bytes)));
    std::rotate(c_.dims.begin(), c_.dims.begin() + 1, c_.dims.begin() + c_.rank);
    at(--c_.rank) = {};
    c_.valid = at(0).size;
  }

  void choose_kind() {
    const int64_t size = size_of(c_);
    c_.kind = Copy::Kind::kElements;
    if (at(0).dst != size) return;
    for (int d = 0; d < c_.rank; ++d)
      if (at(d).src == size) {
        c_.kind = d == 0 ? Copy::Kind::kRuns : Copy::Kind::kTranspose;
        c_.row = d;
      }
  }

  // Grows the tile along one side's runs to so many bytes, as far as they go
  // on.
  void grow(std::span<const uint8_t> dims, int64_t Copy::Dim::*side, int64_t bytes) {
    int64_t run = size_of(c_);
    for (const uint8_t d : dims) {
      Copy::Dim& dim = at(d);
      if (dim.*side != run) return;
      const int64_t lanes = std::max<int64_t>(1, kLine / run);
      int64_t tile = (bytes + run - 1) / run;
      if (tile > lanes) tile -= tile % lanes;
      // The zeros behind a run are written with it.
      if (d == 0 && c_.valid < dim.size) tile = dim.size;
      dim.tile = std::max(dim.tile, std::min(dim.size, tile));
      if (dim.tile < dim.size) return;
      run *= dim.size;
      if (run >= bytes) return;
    }
  }
  int64_t tile_bytes() {
    int64_t bytes = size_of(c_);
    for (int d = 0; d < c_.rank; ++d) bytes *= at(d).tile;
    return bytes;
  }

  // Whether runs of the target begin within lines.
  bool ragged() {
    for (int d = 0; d < c_.rank; ++d)
      if (std::abs(at(d).dst) >= kLine && at(d).dst % kLine != 0) return true;
    return c_.dst % kLine != 0;
  }

  void choose_tile() {
    std::array<uint8_t, kBoxRank> by_dst = {}, by_src = {};
    for (int d = 0; d < c_.rank; ++d) by_dst[static_cast<size_t>(d)] = static_cast<uint8_t>(d);
    by_src = by_dst;
    std::stable_sort(by_src.begin(), by_src.begin() + c_.rank, [&](uint8_t a, uint8_t b) {
      return std::abs(at(a).src) < std::abs(at(b).src);
    });
    const std::span<const uint8_t> targets(by_dst.data(), static_cast<size_t>(c_.rank));
    const std::span<const uint8_t> sources(by_src.data(), static_cast<size_t>(c_.rank));
    const auto shape = [&](int64_t write, int64_t read) {
      for (int d = 0; d < c_.rank; ++d) at(d).tile = 1;
      grow(targets, &Copy::Dim::dst, write);
      if (c_.kind != Copy::Kind::kZero) grow(sources, &Copy::Dim::src, read);
      return tile_bytes();
    };
    const int64_t run = at(0).size * size_of(c_);
    if (c_.kind == Copy::Kind::kElements) {
      // Lines of the target, in rows of what is next in the source.
      shape(kWriteRun, kReadRun);
      return;
    }
    if (c_.kind != Copy::Kind::kTranspose && run >= kPiece) {
      shape(kPiece, 0);
      return;
    }
    int64_t write = ragged() ? kRaggedRun : kWriteRun, read = kReadRun;
    int64_t limit = kMostTile;
    if (c_.streamed && c_.kind == Copy::Kind::kTranspose)
      limit = std::max(kLine, rows_kept(at(0).src) * size_of(c_));
    write = std::min(write, limit);
    if (c_.kind == Copy::Kind::kRuns) write = std::max(write, std::min(run, kLeastTile));
    int64_t bytes = shape(write, read);
    while (bytes > kMostTile && (write > kWriteRun || read > kLine))
      bytes = write > kWriteRun ? shape(write /= 2, read) : shape(write, read /= 2);
    while (bytes < kLeastTile) {
      const int64_t before = bytes;
      bytes = 2 * write > limit ? shape(write, read *= 2) : shape(write *= 2, read);
      if (bytes == before && (bytes = shape(write, read *= 2)) == before) break;
    }
    while (bytes > kMostTile) {
      // What must be whole is short: see kMostPadded.
      Copy::Dim* widest = nullptr;
      for (int d = c_.valid < at(0).size ? 1 : 0; d < c_.rank; ++d)
        if (!widest || at(d).tile > widest->tile) widest = &at(d);
      widest->tile = (widest->tile + 1) / 2;
      bytes = tile_bytes();
    }
  }

  void choose_order() {
    for (int d = 0; d < c_.rank; ++d) c_.order[static_cast<size_t>(d)] = static_cast<uint8_t>(d);
    std::stable_sort(c_.order.begin(), c_.order.begin() + c_.rank, [&](uint8_t a, uint8_t b) {
      return c_.kind == Copy::Kind::kZero ? a < b : std::abs(at(a).src) < std::abs(at(b).src);
    });
    const auto moves = [&](int d) { return count(d) > 1; };
    const auto end = c_.order.begin() + c_.rank, side = std::find_if(c_.order.begin(), end, moves);
    if (side != end) c_.side = *side;
    c_.up = c_.side;
    for (int d = c_.rank; d-- > 0;)
      if (moves(d)) c_.up = static_cast<uint8_t>(d);
  }

  // Pages of one side under a block of tiles along two dimensions.
  int64_t pages(int64_t Copy::Dim::*on, int inner, int64_t width, int outer, int64_t height) {
    const int64_t runs = std::min(at(outer).size, at(outer).tile * height),
                  step = std::abs(at(outer).*on),
                  run = std::min(at(inner).size, at(inner).tile * width) * std::abs(at(inner).*on);
    return std::min(runs * (run / kPage + 1), (runs * step + run) / kPage + 1);
  }

  void choose_blocks() {
    const Copy::Dim& side = at(c_.side);
    c_.panel =
        std::max<int64_t>(1, kFetchRun / std::max<int64_t>(std::abs(side.src) * side.tile, 1));
    int64_t width = count(c_.side), height = count(c_.up);
    while (c_.side != c_.up && pages(&Copy::Dim::src, c_.side, width, c_.up, height) +
                                       pages(&Copy::Dim::dst, c_.up, height, c_.side, width) >
                                   kPages) {
      int64_t& longer =
          width * side.tile > height * at(c_.up).tile && width > c_.panel ? width : height;
      if (longer == 1) break;
      longer = (longer + 1) / 2;
    }
    c_.side_block = (width + c_.panel - 1) / c_.panel * c_.panel;
    c_.up_block = height;
  }

  void choose_row() {
    if (c_.kind == Copy::Kind::kTranspose) return;
    c_.row = 0;
    for (int d = 1; d < c_.rank; ++d)
      if (at(d).tile > 1 && (c_.row == 0 || at(d).tile > at(c_.row).tile)) c_.row = d;
  }

  Copy c_;
};

struct Tile {
  int64_t src = 0;
  int64_t dst = 0;
  int64_t begin = 0;  // in dims[0]
  std::array<int64_t, kBoxRank> extents;
};

int64_t count_of(const Copy::Dim& dim) { return (dim.size + dim.tile - 1) / dim.tile; }

// Tile n of the plane of `side` and `up`, whose block has `width` tiles in a row.
struct Position {
  int64_t side, up;
  int64_t column, width;
};

int64_t plane_of(const Copy& c) {
  return count_of(c.dims[c.side]) * (c.up == c.side ? 1 : count_of(c.dims[c.up]));
}

Position position(const Copy& c, int64_t n) {
  const int64_t across = count_of(c.dims[c.side]),
                upward = c.up == c.side ? 1 : count_of(c.dims[c.up]);
  const int64_t up = n / (across * c.up_block) * c.up_block;
  n -= up * across;
  const int64_t height = std::min(c.up_block, upward - up);
  const int64_t side = n / (c.side_block * height) * c.side_block;
  n -= side * height;
  const int64_t width = std::min(c.side_block, across - side);
  return {side + n % width, up + n / width, n % width, width};
}

Tile tile_at(const Copy& c, int64_t n) {
  Tile t;
  t.src = c.src;
  t.dst = c.dst;
  const auto place = [&](size_t d, int64_t index) {
    const Copy::Dim& dim = c.dims[d];
    const int64_t begin = index * dim.tile;
    t.src += begin * dim.src;
    t.dst += begin * dim.dst;
    t.extents[d] = std::min(dim.tile, dim.size - begin);
    if (d == 0) t.begin = begin;
  };
  const int64_t plane = plane_of(c);
  const Position at = position(c, n % plane);
  n /= plane;
  place(c.side, at.side);
  if (c.up != c.side) place(c.up, at.up);
  for (int k = 0; k < c.rank; ++k) {
    const size_t d = c.order[static_cast<size_t>(k)];
    if (d == c.side || d == c.up) continue;
    const int64_t count = count_of(c.dims[d]);
    place(d, n % count);
    n /= count;
  }
  return t;
}

// The lines of a tile's source, or of several side by side, asked for a few at
// a time.
class Fetcher {
 public:
  explicit Fetcher(const std::byte* src) : src_(src) {}

  void begin(const Copy& c, const Tile& t) {
    run_ = size_of(c);
    rank_ = 0;
    left_ = 1;
    for (int k = 0; k < c.rank; ++k) {
      const uint8_t d = c.order[static_cast<size_t>(k)];
      if (t.extents[d] == 1) continue;
      if (rank_ == 0 && c.dims[d].src == run_) {
        run_ *= t.extents[d];
        continue;
      }
      index_[rank_] = 0;
      extents_[rank_] = t.extents[d];
      steps_[rank_++] = c.dims[d].src;
      left_ *= t.extents[d];
    }
    row_ = src_ + t.src;
    line_ = first_line();
  }

  // So many bytes, as far as there are.
  void fetch(int64_t bytes) {
    // Runs that begin within lines touch one more.
    for (bytes += bytes / 2; bytes > 0 && left_ > 0; bytes -= kLine) {
      __builtin_prefetch(line_, 0, 2);
      if (line_ += kLine; line_ < row_ + run_) continue;
      next_row();
      --left_;
      line_ = first_line();
    }
  }

 private:
  const std::byte* first_line() const { return row_ - reinterpret_cast<uintptr_t>(row_) % kLine; }
  void next_row() {
    for (size_t d = 0; d < rank_; ++d) {
      row_ += steps_[d];
      if (++index_[d] < extents_[d]) return;
      row_ -= steps_[d] * extents_[d];
      index_[d] = 0;
    }
  }

  const std::byte* src_;
  const std::byte* row_ = nullptr;
  const std::byte* line_ = nullptr;
  int64_t run_ = 0, left_ = 0;
  size_t rank_ = 0;
  std::array<int64_t, kBoxRank> index_, extents_, steps_;
};

template <size_t kSize>
void move_elements(const Copy::Dim& dim, const std::byte* src, std::byte* dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * dim.dst, src + i * dim.src, kSize);
}

class Runner {
 public:
  Runner(const Copy& c, const CopyKernels& kernels, const std::byte* src, std::byte* dst)
      : c_(c), kernels_(kernels), src_(src), dst_(dst), size_(size_of(c)), fetcher_(src) {}

  void run(int64_t first, int64_t last) {
    for (int64_t n = first; n < last;) {
      const int64_t end = std::min(panel_end(n), last);
      if (c_.streamed && end < last)
        fetcher_.begin(c_, panel_at(end, std::min(panel_end(end), last)));
      for (; n < end; ++n) move(tile_at(c_, n));
    }
  }

 private:
  using Strides = std::array<int64_t, kBoxRank>;

  // Tiles that lie side by side in the source, from n on.
  int64_t panel_end(int64_t n) const {
    const Position at = position(c_, n % plane_of(c_));
    return n + std::min(c_.panel - at.column % c_.panel, at.width - at.column);
  }
  Tile panel_at(int64_t n, int64_t end) const {
    Tile t = tile_at(c_, n);
    const size_t d = c_.side;
    const Tile last = tile_at(c_, end - 1);
    t.extents[d] = (end - 1 - n) * c_.dims[d].tile + last.extents[d];
    skew(t);
    return t;
  }

  // Takes in what the tile before leaves: the line in which it ends.
  void skew(Tile& t) const {
    if (!c_.skewed || t.begin == 0) return;
    const int64_t more = kLine / size_;
    t.begin -= more;
    t.extents[0] += more;
    t.src -= more * c_.dims[0].src;
    t.dst -= kLine;
  }

  void move(Tile t) {
    skew(t);
    Strides out;
    std::byte* to = dst_ + t.dst;
    if (c_.staged) {
      to = stage_;
      out = stage_strides(t);
    } else {
      for (size_t d = 0; d < kBoxRank; ++d) out[d] = c_.dims[d].dst;
    }
    const int64_t valid = std::clamp<int64_t>(c_.valid - t.begin, 0, t.extents[0]);
    if (c_.kind == Copy::Kind::kRuns && valid < t.extents[0]) std::memset(to, 0, sizeof stage_);
    patches(t, out, valid, c_.rank, src_ + t.src, to);
    if (c_.staged) {
      flush(t, c_.rank, stage_, dst_ + t.dst);
    }
  }

  // Runs of the target, packed.
  Strides stage_strides(const Tile& t) {
    Strides strides;
    int64_t packed = run_ = size_;
    joined_ = 0;
    for (int d = 0; d < c_.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      strides[i] = packed;
      const bool joins = joined_ == d && (t.extents[i] == 1 || c_.dims[i].dst == run_);
      if (joins) {
        packed = run_ *= t.extents[i];
        ++joined_;
      } else if (joined_ == d) {
        // Runs of a power of two would crowd the same lines of the cache.
        strides[i] = packed = pitch_ = run_ % kCrowd == 0 ? run_ + kLine : run_;
        packed *= t.extents[i];
      } else {
        packed *= t.extents[i];
      }
    }
    return strides;
  }
  // Returns where the stage goes on.
  const std::byte* flush(const Tile& t, int depth, const std::byte* from, std::byte* to) {
    if (depth > joined_ + 1) {
      const auto d = static_cast<size_t>(depth - 1);
      for (int64_t i = 0; i < t.extents[d]; ++i)
        from = flush(t, depth - 1, from, to + i * c_.dims[d].dst);
      return from;
    }
    const auto d = static_cast<size_t>(joined_);
    const int64_t rows = depth > joined_ ? t.extents[d] : 1;
    if (c_.skewed) {
      for (int64_t i = 0; i < rows; ++i) flush_lines(t, from + i * pitch_, to + i * c_.dims[d].dst);
      return from + rows * pitch_;
    }
    (c_.streamed ? kernels_.stream
                 : kernels_.rows)({from, pitch_, to, c_.dims[d].dst, rows, run_, 0});
    return from + rows * pitch_;
  }

  // A run but for the line that the tile before has written, and the one in which it ends.
  void flush_lines(const Tile& t, const std::byte* from, std::byte* to) {
    const auto within = [](const std::byte* p) {
      return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % kLine);
    };
    const int64_t begin = t.begin > 0 ? kLine - within(to) : 0;
    const bool last = t.begin + t.extents[0] == c_.dims[0].size;
    const int64_t end = last ? run_ : run_ - within(to + run_);
    (c_.streamed ? kernels_.stream
                 : kernels_.rows)({from + begin, 0, to + begin, 0, 1, end - begin, 0});
  }

  // One patch for each index of the dimensions that are neither a run nor a
  // row.
  void patches(const Tile& t, const Strides& out, int64_t valid, int depth, const std::byte* src,
               std::byte* dst) {
    while (depth-- > 1) {
      const auto d = static_cast<size_t>(depth);
      if (depth == c_.row || t.extents[d] == 1) continue;
      for (int64_t i = 0; i < t.extents[d]; ++i)
        patches(t, out, valid, depth, src + i * c_.dims[d].src, dst + i * out[d]);
      return;
    }
    const auto row = static_cast<size_t>(c_.row);
    const int64_t rows = c_.row > 0 ? t.extents[row] : 1;
    const int64_t in = c_.row > 0 ? c_.dims[row].src : 0, to = c_.row > 0 ? out[row] : 0;
    switch (c_.kind) {
      case Copy::Kind::kTranspose:
        return transpose({src, c_.dims[0].src, dst, to, t.extents[0], rows, valid});
      case Copy::Kind::kRuns:
        return copy_rows({src, in, dst, to, rows, valid * size_, 0});
      case Copy::Kind::kElements:
        for (int64_t i = 0; i < rows; ++i)
          elements(src + i * in, dst + i * to, valid, t.extents[0]);
        return;
      case Copy::Kind::kZero:
        for (int64_t i = 0; i < rows; ++i) zeros(dst + i * to, t.extents[0]);
        return;
    }
  }

  // Portions of a patch, each followed by a look ahead.
  void transpose(Patch p) {
    const auto move = kernels_.transpose[c_.log_size];
    if (!c_.streamed) return move(p);
    const int64_t lanes = 16 / size_;
    const int64_t rows = p.rows;
    int64_t portion = std::max<int64_t>(kPortion / (p.cols * size_), 1);
    portion = (portion + lanes - 1) / lanes * lanes;
    for (int64_t b = 0; b < rows; b += portion) {
      // A rest that is too short for vectors is done with what comes before it.
      if (rows - b < 2 * portion && rows - b - portion < lanes) portion = rows - b;
      p.rows = portion;
      fetcher_.fetch(p.rows * p.cols * size_);
      move(p);
      p.src += portion * p.in;
      p.dst += portion * size_;
      p.valid -= portion;
    }
  }
  void copy_rows(Patch p) {
    if (!c_.streamed) return kernels_.rows(p);
    const int64_t rows = p.rows, portion = std::max<int64_t>(kPortion / p.cols, 1);
    for (int64_t b = 0; b < rows; b += portion) {
      p.rows = std::min(rows - b, portion);
      fetcher_.fetch(p.rows * p.cols);
      (c_.staged ? kernels_.rows : kernels_.stream)(p);
      p.src += portion * p.in;
      p.dst += portion * p.out;
    }
  }

  void elements(const std::byte* src, std::byte* dst, int64_t valid, int64_t count) const {
    constexpr void (*kMove[])(const Copy::Dim&, const std::byte*, std::byte*, int64_t) = {
        move_elements<1>, move_elements<2>, move_elements<4>, move_elements<8>, move_elements<16>};
    const Copy::Dim& dim = c_.dims[0];
    kMove[c_.log_size](dim, src, dst, valid);
    if (valid < count) zeros(dst + valid * dim.dst, count - valid);
  }
  void zeros(std::byte* dst, int64_t count) const {
    const int64_t step = c_.dims[0].dst;
    if (step == size_) {
      std::memset(dst, 0, static_cast<size_t>(count * size_));
      return;
    }
    for (int64_t i = 0; i < count; ++i) std::memset(dst + i * step, 0, static_cast<size_t>(size_));
  }

  const Copy& c_;
  const CopyKernels& kernels_;
  const std::byte* src_;
  std::byte* dst_;
  const int64_t size_;
  Fetcher fetcher_;
  int joined_ = 0;               // dimensions that a run of the target spans
  int64_t run_ = 0, pitch_ = 0;  // bytes of it, and to the next one
  alignas(kLine) std::byte stage_[kStage];
};

const CopyKernels& kernels_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return avx512::kCopyKernels;
  if (isa == Isa::kAvx2) return avx2::kCopyKernels;
#endif
  static_cast<void>(isa);
  return generic::kCopyKernels;
}

}  // namespace

Copy plan_copy(const Box& box, int64_t element_bytes, bool streamed) {
  return Tiler(box, element_bytes, false, streamed).plan();
}

std::vector<Copy> plan_copies(const Boxes& boxes, bool streamed) {
  std::vector<Copy> copies;
  copies.reserve(boxes.moved.size() + boxes.zeroed.size());
  for (const Box& box : boxes.moved)
    copies.push_back(plan_copy(box, boxes.element_bytes, streamed));
  for (const Box& box : boxes.zeroed)
    copies.push_back(Tiler(box, boxes.element_bytes, true, streamed).plan());
  return copies;
}

bool beyond_caches(int64_t bytes) {
  // What is said of the last level tells little: it is shared, and machines are
  // shared out.
  static const int64_t own = [] {
    const long size = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? int64_t{size} : int64_t{1} << 20;
  }();
  return bytes > 16 * own;
}

void run_copies(std::span<const Copy> copies, Isa isa, const std::byte* src, std::byte* dst,
                int64_t first, int64_t last) {
  const CopyKernels& kernels = kernels_of(isa);
  for (const Copy& c : copies) {
    if (last <= 0) break;
    if (first < c.tiles)
      Runner(c, kernels, src, dst).run(std::max<int64_t>(first, 0), std::min(last, c.tiles));
    first -= c.tiles;
    last -= c.tiles;
  }
  if (!copies.empty() && copies.front().streamed) kernels.fence();
}

}  // namespace tessera::layout
