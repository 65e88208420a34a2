#include "tessera/kernels/cpu/isa/integer_tile.h"

#include "tessera/kernels/cpu/isa/fuse.h"
#if defined(TESSERA_TILES)
#include "tessera/kernels/cpu/isa/integer_tiles.h"
#endif
#include "tessera/kernels/cpu/isa/quantize.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

#if !defined(TESSERA_TILES)

constexpr int64_t kQuadBytes = kPanel * kQuad;  // of a panel

// Vector v of a quad of columns.
TESSERA_INLINE int64_t panel_offset(int v, int64_t panel) {
  return v * kLanes / kPanel * panel + v * kLanes % kPanel * kQuad;
}

template <int R, int V, bool kSigned>
TESSERA_INLINE void add_quad(const int32_t (&x)[R], const uint8_t* w, int64_t panel,
                             VecI (&sum)[R][V]) {
  Quads<!kSigned> y[V];
  TESSERA_UNROLL
  for (int v = 0; v < V; ++v) y[v] = Quads<!kSigned>::of(load_ints(w + panel_offset(v, panel)));
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const auto quads = Quads<kSigned>::of(splat_int(x[r]));
    TESSERA_UNROLL
    for (int v = 0; v < V; ++v) sum[r][v] = add_products(sum[r][v], quads, y[v]);
  }
}

template <int R, int V, bool kSigned>
void tile_of(const IntegerTile& t) {
  VecI sum[R][V];
  TESSERA_UNROLL
  for (int v = 0; v < V; ++v) {
    const VecI start = load_ints(t.start + v * kLanes);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) sum[r][v] = start;
  }
  const int64_t whole = t.depth / kQuad * kQuad, rest = t.depth - whole;
  const uint8_t* w = t.w;
  for (int64_t i = 0; i < t.count; ++i) {
    const uint8_t* row[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) row[r] = t.x + t.at[r] + t.terms[i];
    int32_t x[R];
    for (int64_t k = 0; k < whole; k += kQuad, w += kQuadBytes) {
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) x[r] = load_quad(row[r] + k);
      add_quad<R, V, kSigned>(x, w, t.panel, sum);
    }
    if (rest == 0) continue;
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) x[r] = load_quad(row[r] + whole, rest);
    add_quad<R, V, kSigned>(x, w, t.panel, sum);
    w += kQuadBytes;
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) TESSERA_UNROLL
  for (int v = 0; v < V; ++v) store_ints(t.sums + (r * V + v) * kLanes, sum[r][v]);
}

using TileFn = void (*)(const IntegerTile&);

template <bool kSigned>
struct TileTable {
  TileFn fn[kIntegerRows + 1][kIntegerVecs + 1] = {};

  template <int R, int V>
  constexpr void fill() {
    if constexpr (R <= integer_rows(V)) fn[R][V] = tile_of<R, V, kSigned>;
    if constexpr (V < kIntegerVecs)
      fill<R, V + 1>();
    else if constexpr (R < kIntegerRows)
      fill<R + 1, 1>();
  }
  constexpr TileTable() { fill<1, 1>(); }
};
constexpr TileTable<false> kUnsignedTiles;
constexpr TileTable<true> kSignedTiles;

#endif

// What a vector of floats becomes in memory.
struct StoreFloats {
  static constexpr int64_t kBytes = 4;
  explicit StoreFloats(const BoundInteger&) {}
  bool limit(const BoundInteger&) { return false; }
  void all(char* y, Vec x) const { store(reinterpret_cast<float*>(y), x); }
  void part(char* y, Vec x, int64_t count) const {
    Part(static_cast<int>(count)).store(reinterpret_cast<float*>(y), x);
  }
};
template <class T>
struct StoreQuantized {
  static constexpr int64_t kBytes = sizeof(T);
  ReciprocalQuantizer<T> q;
  explicit StoreQuantized(const BoundInteger& b) : q(splat(b.scale), splat_int(b.zero)) {}
  // Whether limits of x are taken as limits of what is stored: division keeps their order.
  bool limit(const BoundInteger& b) {
    const bool possible = b.scale > 0 && b.scale < __builtin_inff() && b.low <= b.high &&
                          b.low == b.low && b.high == b.high;
    if (possible) q.limit(b.low, b.high);
    return possible;
  }
  void all(char* y, Vec x) const { Narrow<T>::store(reinterpret_cast<T*>(y), q.of(x)); }
  void part(char* y, Vec x, int64_t count) const {
    Narrow<T>::store(reinterpret_cast<T*>(y), q.of(x), count);
  }
};

struct Finish {
  const BoundInteger& b;
  const IntegerColumns& columns;
  const int32_t* sums;
  int64_t pitch;
  const int32_t* x_sums;
  const IntegerPlace& place;

  // Less the zero points of the weights.
  VecI sum(int64_t r, int64_t col) const {
    const VecI s = load_ints(sums + r * pitch + col);
    if (!columns.any) return s;
    if (columns.same) return s - splat_int(x_sums[r] * columns.zeros[0]);
    return s - load_ints(columns.zeros + col) * x_sums[r];
  }
  char* at(int64_t r, int64_t col, int64_t bytes) const {
    return place.y + (r * place.ld + col) * bytes;
  }

  void ints() const {
    for (int64_t r = 0; r < place.rows; ++r)
      for (int64_t col = 0; col < place.cols; col += kLanes)
        Part(static_cast<int>(least<int64_t>(kLanes, place.cols - col)))
            .store(reinterpret_cast<float*>(at(r, col, 4)), reinterpret_cast<Vec>(sum(r, col)));
  }

  // A vector of columns at a time; kAny: columns.any; kLimits: b.low and b.high.
  template <class Store, bool kAny, bool kLimits>
  void plain(const Store& to) const {
    [[maybe_unused]] const Vec low = splat(b.low), high = splat(b.high);
    for (int64_t col = 0; col < place.cols; col += kLanes) {
      const int64_t count = least<int64_t>(kLanes, place.cols - col);
      const Vec factor = load(columns.factors + col), term = load(columns.terms + col);
      char* y = at(0, col, Store::kBytes);
      for (int64_t r = 0; r < place.rows; ++r, y += place.ld * Store::kBytes) {
        const VecI s = kAny ? sum(r, col) : load_ints(sums + r * pitch + col);
        const Vec scaled = __builtin_convertvector(s, Vec) * factor;
        Vec x = scaled + term;
        if constexpr (kLimits) x = min_of(high, max_of(low, x));
        if (count == kLanes)
          to.all(y, x);
        else
          to.part(y, x, count);
      }
    }
  }

  // R rows from `row` on, columns from `col` on.
  template <int R, class Store>
  void vector(const Store& to, int64_t row, int64_t col) const {
    const int64_t count = least<int64_t>(kLanes, place.cols - col);
    const Part part(static_cast<int>(count));
    const Place<R, 1> lanes{part, count == kLanes};
    const int64_t at_row = place.row + row, at_col = place.col + col;
    Vec x[R][1];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) x[r][0] = __builtin_convertvector(sum(row + r, col), Vec);
    for (int i = 0; i < b.steps.fused; ++i) {
      const BoundStep& s = b.steps.steps[i];
      fuse<R, 1>(s, s.operand + offset_in(s, at_row, at_col), lanes, x);
    }
    if (b.steps.fused < b.steps.count) {
      alignas(64) float rows[R * kLanes];
      for (int r = 0; r < R; ++r) store(rows + r * kLanes, x[r][0]);
      apply_rows(b.steps, b.steps.fused, at_row, at_col, R, count, rows, kLanes);
      for (int r = 0; r < R; ++r) x[r][0] = load(rows + r * kLanes);
    }
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) to.part(at(row + r, col, Store::kBytes), x[r][0], count);
  }

  template <class Store>
  void floats() const {
    Store to(b);
    if (b.plain) {
      const bool limits = !to.limit(b);
      if (columns.any) return limits ? plain<Store, true, true>(to) : plain<Store, true, false>(to);
      return limits ? plain<Store, false, true>(to) : plain<Store, false, false>(to);
    }
    for (int64_t col = 0; col < place.cols; col += kLanes) {
      int64_t row = 0;
      for (; row + 4 <= place.rows; row += 4) vector<4>(to, row, col);
      for (; row < place.rows; ++row) vector<1>(to, row, col);
    }
  }
};

// Steps that are a product, a sum and limits, in this order, each of which may be missing.
void find_plain(BoundInteger& b) {
  constexpr float kInfinity = __builtin_inff();
  b.low = -kInfinity;
  b.high = kInfinity;
  int done = 0;
  const auto next = [&](Fused scalar, Fused cols) -> const BoundStep* {
    if (done >= b.steps.count) return nullptr;
    const BoundStep& s = b.steps.steps[done];
    if (s.fused != scalar && s.fused != cols) return nullptr;
    ++done;
    return &s;
  };
  if (const BoundStep* s = next(Fused::kMulScalar, Fused::kMulCols)) {
    b.factor = s->operand;
    b.factor_step = s->fused == Fused::kMulCols;
  }
  if (const BoundStep* s = next(Fused::kAddScalar, Fused::kAddCols)) {
    b.term = s->operand;
    b.term_step = s->fused == Fused::kAddCols;
  }
  if (const BoundStep* s = next(Fused::kMaxScalar, Fused::kMaxScalar)) b.low = s->scalar;
  if (const BoundStep* s = next(Fused::kMinScalar, Fused::kMinScalar)) b.high = s->scalar;
  b.plain = done == b.steps.count;
}

// What sums are made on, and the rows that go together.
#if defined(TESSERA_TILES)
class Sums {
 public:
  explicit Sums(const IntegerBlock& b) : unit_(b.depth), tiles_(cut_rows(b.at, b.rows, heights_)) {}
  ~Sums() { unit_.unit.release(); }
  void begin(int) { next_ = 0; }
  // The sums of the next rows; returns how many. Two panels stay in the first cache for all of
  // them.
  int make(const IntegerTile& t, bool x_signed) {
    constexpr int64_t kStepsNear = 12;
    const int64_t steps = t.count * unit_.steps(t.depth),
                  parts = most<int64_t>((steps + kStepsNear - 1) / kStepsNear, 1),
                  part = most<int64_t>((steps + parts - 1) / parts, 1);
    int64_t end = next_;
    int rows = 0;
    do {
      rows += pair_at(end);
      end += 2;
    } while (end < tiles_ && rows + pair_at(end) <= kIntegerRows);
    for (int64_t step = 0; step == 0 || step < steps; step += part)
      for (int64_t i = next_, done = 0; i < end; i += 2) {
        IntegerTile tile = t;
        tile.rows = pair_at(i);
        tile.first = heights_[i];
        tile.at += done;
        tile.sums += done * kIntegerCols;
        tile.step = step;
        tile.steps = least(part, steps - step);
        (x_signed ? tile_sums<true, TESSERA_TILES> : tile_sums<false, TESSERA_TILES>)(unit_, tile);
        done += tile.rows;
      }
    next_ = end;
    return rows;
  }

 private:
  int pair_at(int64_t i) const { return heights_[i] + (i + 1 < tiles_ ? heights_[i + 1] : 0); }

  IntegerUnit<TESSERA_TILES> unit_;
  int8_t heights_[kIntegerPixels];
  int64_t tiles_, next_ = 0;
};
#else
class Sums {
 public:
  explicit Sums(const IntegerBlock& b) : rows_(b.rows) {}
  void begin(int vecs) {
    rows_left_ = rows_;
    left_ = (rows_ + integer_rows(vecs) - 1) / integer_rows(vecs);
  }
  // The sums of the next rows; returns how many.
  int make(IntegerTile tile, bool x_signed) {
    tile.rows = static_cast<int>((rows_left_ + left_ - 1) / left_);
    rows_left_ -= tile.rows;
    --left_;
    (x_signed ? kSignedTiles.fn : kUnsignedTiles.fn)[tile.rows][tile.vecs](tile);
    return tile.rows;
  }

 private:
  int64_t rows_, rows_left_ = 0, left_ = 0;
};
#endif

// The sum of what each row multiplies.
void sum_rows(const BoundInteger& b, const IntegerBlock& block, int32_t* sums) {
  for (int64_t r = 0; r < block.rows; ++r) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < block.count; ++i)
      sum += static_cast<uint32_t>(
          sum_of(block.x + block.at[r] + block.terms[i], block.depth, b.x_signed));
    sums[r] = static_cast<int32_t>(sum);
  }
}

// Widths of about the same size.
int next_vecs(int64_t cols) {
  const int64_t vecs = (cols + kLanes - 1) / kLanes,
                tiles = (vecs + kIntegerVecs - 1) / kIntegerVecs;
  // Narrower vectors than panels: tiles must not straddle those.
  if (kLanes < kPanel) return static_cast<int>(least<int64_t>(vecs, kIntegerVecs));
  return static_cast<int>((vecs + tiles - 1) / tiles);
}

}  // namespace

BoundInteger bind_integer(const IntegerTerms& terms, const IntegerResult& result,
                          const tessera_launch* launch) {
  auto data = [&](int32_t range) -> const void* {
    return range < 0 ? nullptr : launch->ranges[range].data;
  };
  auto number = [](const void* at, bool is_signed) -> int32_t {
    return !at         ? 0
           : is_signed ? *static_cast<const int8_t*>(at)
                       : int32_t{*static_cast<const uint8_t*>(at)};
  };
  BoundInteger b{};
  b.x_signed = terms.x_signed != 0;
  b.w_signed = terms.w_signed != 0;
  b.moved = terms.moved;
  b.x_zero = number(data(terms.x_zero), b.x_signed);
  b.w_zero = static_cast<const uint8_t*>(data(terms.w_zero));
  b.w_step = terms.w_zeros != 0;
  b.bias = static_cast<const int32_t*>(data(terms.bias));
  b.type = result.type;
  if (result.scale >= 0) b.scale = *static_cast<const float*>(data(result.scale));
  b.zero = number(data(result.zero), b.type == IntegerType::kI8);
  b.steps = bind(result.steps, launch);
  find_plain(b);
  return b;
}

void set_columns(const BoundInteger& b, int64_t col, int64_t cols, const int32_t* sums, int64_t K,
                 IntegerColumns& columns) {
  columns.any = false;
  columns.same = true;
  for (int64_t c = 0; c < kIntegerCols; ++c) {
    columns.start[c] = columns.zeros[c] = 0;
    columns.factors[c] = columns.terms[c] = 0;
    if (c >= cols) continue;
    columns.factors[c] = b.factor ? b.factor[(col + c) * b.factor_step] : 1;
    columns.terms[c] = b.term ? b.term[(col + c) * b.term_step] : 0;
    int32_t zero = b.moved;
    if (b.w_zero) {
      const uint8_t byte = b.w_zero[(col + c) * b.w_step];
      zero += b.w_signed ? static_cast<int8_t>(byte) : int32_t{byte};
    }
    columns.zeros[c] = zero;
    columns.any |= zero != 0;
    columns.same &= zero == columns.zeros[0];
    // Sums wrap around.
    const uint32_t offset =
        static_cast<uint32_t>(b.x_zero) *
        (static_cast<uint32_t>(K) * static_cast<uint32_t>(zero) - static_cast<uint32_t>(sums[c]));
    columns.start[c] =
        static_cast<int32_t>(offset + (b.bias ? static_cast<uint32_t>(b.bias[col + c]) : 0u));
  }
}

int32_t sum_of(const uint8_t* x, int64_t count, bool is_signed) {
  // Of numbers from 0 on: those of i8 are 128 more.
  const uint8_t flip = is_signed ? 0x80 : 0;
  uint64_t sum = 0;
  int64_t i = 0;
#if defined(__AVX512F__)
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  __m512i sums = _mm512_setzero_si512();
  for (; i + 64 <= count; i += 64)
    sums =
        _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_xor_si512(_mm512_loadu_si512(x + i), flips),
                                               _mm512_setzero_si512()));
  typedef uint64_t Lanes __attribute__((vector_size(64)));
  const Lanes lanes = reinterpret_cast<Lanes>(sums);
  for (int k = 0; k < 8; ++k) sum += lanes[k];
#elif defined(__x86_64__)
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = _mm_setzero_si128();
  for (; i + 16 <= count; i += 16)
    sums = _mm_add_epi64(
        sums,
        _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)), flips),
                     _mm_setzero_si128()));
  typedef uint64_t Lanes __attribute__((vector_size(16)));
  const Lanes lanes = reinterpret_cast<Lanes>(sums);
  sum = lanes[0] + lanes[1];
#endif
  for (; i < count; ++i) sum += static_cast<uint8_t>(x[i] ^ flip);
  return static_cast<int32_t>(static_cast<uint32_t>(sum) - static_cast<uint32_t>(count) * flip);
}

void finish_sums(const BoundInteger& b, const IntegerColumns& columns, const int32_t* sums,
                 int64_t pitch, const int32_t* x_sums, const IntegerPlace& place) {
  const Finish finish{b, columns, sums, pitch, x_sums, place};
  switch (b.type) {
    case IntegerType::kI32:
      return finish.ints();
    case IntegerType::kF32:
      return finish.floats<StoreFloats>();
    case IntegerType::kU8:
      return finish.floats<StoreQuantized<uint8_t>>();
    case IntegerType::kI8:
      return finish.floats<StoreQuantized<int8_t>>();
  }
}

void integer_block(const BoundInteger& b, const IntegerBlock& block) {
  alignas(64) int32_t sums[kIntegerRows * kIntegerCols];
  int32_t x_sums[kIntegerPixels];
  bool summed = false;
  IntegerColumns columns;
  Sums unit(block);
  for (int64_t n = 0; n < block.cols;) {
    const int vecs = next_vecs(block.cols - n);
    const int64_t cols = least<int64_t>(block.cols - n, vecs * kLanes);
    set_columns(b, block.col + n, cols, block.w_sums + n, block.count * block.depth, columns);
    if (columns.any && !summed) {
      sum_rows(b, block, x_sums);
      summed = true;
    }
    unit.begin(vecs);
    for (int64_t m = 0; m < block.rows;) {
      const int rows = unit.make({.rows = 0,
                                  .vecs = vecs,
                                  .first = 0,
                                  .step = 0,
                                  .steps = 0,
                                  .x = block.x,
                                  .at = block.at + m,
                                  .terms = block.terms,
                                  .count = block.count,
                                  .depth = block.depth,
                                  .w = block.w + n / kPanel * block.panel + n % kPanel * kQuad,
                                  .panel = block.panel,
                                  .start = columns.start,
                                  .sums = sums},
                                 b.x_signed);
      finish_sums(b, columns, sums, sums_pitch(vecs), x_sums + m,
                  {.rows = rows,
                   .cols = static_cast<int>(cols),
                   .row = block.row + m,
                   .col = block.col + n,
                   .y = block.y + (m * block.ld + n) * bytes_of(b.type),
                   .ld = block.ld});
      m += rows;
    }
    n += cols;
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
