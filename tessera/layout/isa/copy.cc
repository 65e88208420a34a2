// Kernels that move elements between tiles. Compiled once per instruction set.
//
// One step, the perfect shuffle of a sequence of vectors, does everything: it moves element x to
// 2x (first half) or 2x + 1 (second half), that is, rotates the bits of x to the left by one.
//   R rows of R elements, log2(R) steps: (row, column) -> (column, row), a transpose
//   P rows, log2(P) steps:               P rows interleaved
//   Q vectors, log2(R) steps:            Q interleaved rows taken apart
// Lanes of 16 bytes are independent, so that wider vectors do more of the same at once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tessera/layout/copy_kernels.h"

namespace tessera::layout::TESSERA_ISA_NAME {
namespace {

#if defined(__AVX512BW__)
constexpr int kVector = 64;
#elif defined(__AVX2__)
constexpr int kVector = 32;
#else
constexpr int kVector = 16;
#endif
constexpr int kLane = 16, kLine = 64;

template <int kBytes>
struct VectorOf {
  typedef uint8_t Type __attribute__((vector_size(kBytes), aligned(1), may_alias));
};
template <int kBytes>
using Vector = typename VectorOf<kBytes>::Type;
using Lane = Vector<kLane>;

template <int kBytes>
Vector<kBytes> load(const std::byte* p) {
  return *reinterpret_cast<const Vector<kBytes>*>(p);
}
template <int kBytes>
void store(std::byte* p, Vector<kBytes> v) {
  *reinterpret_cast<Vector<kBytes>*>(p) = v;
}

// Where byte i comes from when the low (or high) halves of lanes interleave, elements of kSize.
template <int kSize, bool kHigh, int kBytes>
constexpr int interleaved(int i) {
  const int lane = i / kLane, element = i % kLane / kSize;
  const int from = lane * kLane + (kHigh ? kLane / 2 : 0) + element / 2 * kSize + i % kSize;
  return element % 2 ? kBytes + from : from;
}
template <int kSize, bool kHigh, int kBytes, size_t... kI>
Vector<kBytes> unpack(Vector<kBytes> a, Vector<kBytes> b, std::index_sequence<kI...>) {
  return __builtin_shufflevector(a, b, interleaved<kSize, kHigh, kBytes>(static_cast<int>(kI))...);
}

template <int kSize, int kCount, int kSteps, int kBytes>
void shuffle(Vector<kBytes>* v) {
  for (int step = 0; step < kSteps; ++step) {
    Vector<kBytes> w[kCount];
    for (int i = 0; i < kCount / 2; ++i) {
      constexpr auto kAll = std::make_index_sequence<kBytes>();
      w[2 * i] = unpack<kSize, false, kBytes>(v[i], v[i + kCount / 2], kAll);
      w[2 * i + 1] = unpack<kSize, true, kBytes>(v[i], v[i + kCount / 2], kAll);
    }
    for (int i = 0; i < kCount; ++i) v[i] = w[i];
  }
}

template <int kAt, int kBytes, size_t... kI>
Lane lane(Vector<kBytes> v, std::index_sequence<kI...>) {
  return __builtin_shufflevector(v, v, (kAt * kLane + static_cast<int>(kI))...);
}
// Lane l of v to `to + l * step`.
template <int kBytes, size_t... kLanes>
void store_lanes(Vector<kBytes> v, std::byte* to, int64_t step, std::index_sequence<kLanes...>) {
  constexpr auto kAll = std::make_index_sequence<kLane>();
  (store<kLane>(to + static_cast<int64_t>(kLanes) * step,
                lane<static_cast<int>(kLanes), kBytes>(v, kAll)),
   ...);
}
template <int kBytes>
void store_lanes(Vector<kBytes> v, std::byte* to, int64_t step) {
  if constexpr (kBytes == kLane)
    store<kLane>(to, v);
  else
    store_lanes<kBytes>(v, to, step, std::make_index_sequence<kBytes / kLane>());
}

template <int kHalf, size_t... kI>
Vector<2 * kHalf> join(Vector<kHalf> a, Vector<kHalf> b, std::index_sequence<kI...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(kI)...);
}
// Lane l from `from + l * step`.
template <int kBytes>
Vector<kBytes> load_lanes(const std::byte* from, int64_t step) {
  if constexpr (kBytes == kLane) {
    return load<kLane>(from);
  } else {
    constexpr int kHalf = kBytes / 2;
    return join<kHalf>(load_lanes<kHalf>(from, step),
                       load_lanes<kHalf>(from + kHalf / kLane * step, step),
                       std::make_index_sequence<kBytes>());
  }
}

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

template <int kSize>
struct ElementOf {
  struct Type {
    uint64_t halves[2];
  };
};
template <>
struct ElementOf<1> {
  using Type = uint8_t;
};
template <>
struct ElementOf<2> {
  using Type = uint16_t;
};
template <>
struct ElementOf<4> {
  using Type = uint32_t;
};
template <>
struct ElementOf<8> {
  using Type = uint64_t;
};

template <int kSize>
void move_element(const std::byte* from, std::byte* to) {
  __builtin_memcpy(to, from, kSize);
}

// Few rows or few columns: element by element, along the longer side. kRows: how many, 0: any.
template <int kSize, int kRows>
void transpose_thin(const Patch& p) {
  const int64_t rows = kRows > 0 ? kRows : p.rows;
  const int64_t valid = kRows > 0 ? kRows : p.valid < p.rows ? p.valid : p.rows;
  for (int64_t a = 0; a < p.cols; ++a) {
    const std::byte* from = p.src + a * kSize;
    std::byte* to = p.dst + a * p.out;
    for (int64_t b = 0; b < valid; ++b) move_element<kSize>(from + b * p.in, to + b * kSize);
    for (int64_t b = valid > 0 ? valid : 0; b < rows; ++b)
      __builtin_memset(to + b * kSize, 0, kSize);
  }
}
// The same by columns, of which there are kCols.
template <int kSize, int kCols>
void transpose_thin_columns(const Patch& p) {
  for (int64_t b = 0; b < p.rows; ++b) {
    const std::byte* from = p.src + b * p.in;
    std::byte* to = p.dst + b * kSize;
    for (int64_t a = 0; a < kCols; ++a) move_element<kSize>(from + a * kSize, to + a * p.out);
  }
}

// R rows by kBytes of columns. `live` rows are read, the others are zero.
template <int kSize, int kBytes>
void transpose_block(const std::byte* src, int64_t in, std::byte* dst, int64_t out, int live) {
  constexpr int kRows = kLane / kSize;
  Vector<kBytes> v[kRows];
  if (live >= kRows) {
    for (int r = 0; r < kRows; ++r) v[r] = load<kBytes>(src + r * in);
  } else {
    for (int r = 0; r < kRows; ++r) v[r] = r < live ? load<kBytes>(src + r * in) : Vector<kBytes>{};
  }
  shuffle<kSize, kRows, log2_of(kRows), kBytes>(v);
  for (int r = 0; r < kRows; ++r) store_lanes<kBytes>(v[r], dst + r * out, kRows * out);
}

// kRows rows, short of a lane's worth, to rows of just them.
template <int kSize, int kRows>
int64_t interleave(const Patch& p) {
  int64_t a = 0;
  const auto block = [&](auto bytes) {
    constexpr int kBytes = decltype(bytes)::value;
    Vector<kBytes> v[kRows];
    for (int r = 0; r < kRows; ++r) v[r] = load<kBytes>(p.src + r * p.in + a * kSize);
    shuffle<kSize, kRows, log2_of(kRows), kBytes>(v);
    std::byte* to = p.dst + a * p.out;
    for (int r = 0; r < kRows; ++r) store_lanes<kBytes>(v[r], to + r * kLane, kRows * kLane);
    a += kBytes / kSize;
  };
  while (a + kVector / kSize <= p.cols) block(std::integral_constant<int, kVector>());
  while (a + kLane / kSize <= p.cols) block(std::integral_constant<int, kLane>());
  return a;
}

// Rows of kCols elements, short of a lane's worth, one behind the other.
template <int kSize, int kCols>
int64_t take_apart(const Patch& p) {
  constexpr int kPerLane = kLane / kSize;
  int64_t b = 0;
  const auto block = [&](auto bytes) {
    constexpr int kBytes = decltype(bytes)::value;
    const std::byte* from = p.src + b * p.in;
    Vector<kBytes> v[kCols];
    for (int c = 0; c < kCols; ++c) v[c] = load_lanes<kBytes>(from + c * kLane, kCols * kLane);
    shuffle<kSize, kCols, log2_of(kPerLane), kBytes>(v);
    for (int c = 0; c < kCols; ++c) store<kBytes>(p.dst + c * p.out + b * kSize, v[c]);
    b += kBytes / kSize;
  };
  while (b + kVector / kSize <= p.rows) block(std::integral_constant<int, kVector>());
  while (b + kPerLane <= p.rows) block(std::integral_constant<int, kLane>());
  return b;
}

template <int kSize>
void transpose_wide(const Patch& p) {
  constexpr int64_t kRows = kLane / kSize;
  for (int64_t at = 0; at < p.rows; at += kRows) {
    const int64_t b = at + kRows <= p.rows ? at : p.rows - kRows;
    const int live = static_cast<int>(p.valid - b < kRows ? p.valid - b : kRows);
    const std::byte* src = p.src + b * p.in;
    std::byte* dst = p.dst + b * kSize;
    int64_t a = 0;
    const auto block = [&](auto bytes) {
      transpose_block<kSize, decltype(bytes)::value>(src + a * kSize, p.in, dst + a * p.out, p.out,
                                                     live);
    };
    for (; a + kVector / kSize <= p.cols; a += kVector / kSize)
      block(std::integral_constant<int, kVector>());
    for (; a + kRows <= p.cols; a += kRows) block(std::integral_constant<int, kLane>());
    if (a < p.cols) {
      a = p.cols - kRows;
      block(std::integral_constant<int, kLane>());
    }
  }
}

template <int kSize>
void transpose(const Patch& p) {
  constexpr int64_t kPerLane = kLane / kSize;
  if (p.rows >= kPerLane && p.cols >= kPerLane) return transpose_wide<kSize>(p);
  int64_t a = 0, b = 0;
  if (p.rows < kPerLane && p.out == p.rows * kSize && p.valid >= p.rows) {
    if constexpr (kPerLane > 2)
      if (p.rows == 2) a = interleave<kSize, 2>(p);
    if constexpr (kPerLane > 4)
      if (p.rows == 4) a = interleave<kSize, 4>(p);
    if constexpr (kPerLane > 8)
      if (p.rows == 8) a = interleave<kSize, 8>(p);
  } else if (p.cols < kPerLane && p.in == p.cols * kSize && p.valid >= p.rows) {
    if constexpr (kPerLane > 2)
      if (p.cols == 2) b = take_apart<kSize, 2>(p);
    if constexpr (kPerLane > 4)
      if (p.cols == 4) b = take_apart<kSize, 4>(p);
    if constexpr (kPerLane > 8)
      if (p.cols == 8) b = take_apart<kSize, 8>(p);
  }
  Patch rest = p;
  rest.src += b * p.in + a * kSize;
  rest.dst += a * p.out + b * kSize;
  rest.rows -= b;
  rest.cols -= a;
  rest.valid = rest.valid > b ? rest.valid - b : 0;
  if (rest.rows == 3 && rest.valid >= 3) return transpose_thin<kSize, 3>(rest);
  if (rest.cols == 3 && rest.valid >= rest.rows) return transpose_thin_columns<kSize, 3>(rest);
  transpose_thin<kSize, 0>(rest);
}

// From 1 to kVector bytes.
void copy_short(const std::byte* src, std::byte* dst, int64_t bytes) {
  const auto both_ends = [&](auto size) {
    constexpr int kSize = decltype(size)::value;
    typename ElementOf<kSize>::Type head, tail;
    __builtin_memcpy(&head, src, kSize);
    __builtin_memcpy(&tail, src + bytes - kSize, kSize);
    __builtin_memcpy(dst, &head, kSize);
    __builtin_memcpy(dst + bytes - kSize, &tail, kSize);
  };
  if (bytes > 32) {
    const auto a = load<16>(src), b = load<16>(src + 16), c = load<16>(src + bytes - 32),
               d = load<16>(src + bytes - 16);
    store<16>(dst, a);
    store<16>(dst + 16, b);
    store<16>(dst + bytes - 32, c);
    store<16>(dst + bytes - 16, d);
  } else if (bytes >= 16) {
    both_ends(std::integral_constant<int, 16>());
  } else if (bytes >= 8) {
    both_ends(std::integral_constant<int, 8>());
  } else if (bytes >= 4) {
    both_ends(std::integral_constant<int, 4>());
  } else if (bytes >= 2) {
    both_ends(std::integral_constant<int, 2>());
  } else if (bytes == 1) {
    *dst = *src;
  }
}

void copy(const std::byte* src, std::byte* dst, int64_t bytes) {
  if (bytes <= kVector) return copy_short(src, dst, bytes);
  int64_t i = 0;
  for (; i + kVector <= bytes; i += kVector) store<kVector>(dst + i, load<kVector>(src + i));
  if (i < bytes) store<kVector>(dst + bytes - kVector, load<kVector>(src + bytes - kVector));
}

template <int kBytes>
void rows_of(const Patch& p) {
  for (int64_t b = 0; b < p.rows; ++b)
    for (int i = 0; i < kBytes; i += kBytes < kVector ? kBytes : kVector)
      store<(kBytes < kVector ? kBytes : kVector)>(
          p.dst + b * p.out + i, load<(kBytes < kVector ? kBytes : kVector)>(p.src + b * p.in + i));
}

void rows(const Patch& p) {
  if (p.cols == 16) return rows_of<16>(p);
  if (p.cols == 32) return rows_of<32>(p);
  if (p.cols == 64) return rows_of<64>(p);
  for (int64_t b = 0; b < p.rows; ++b) {
    const std::byte* from = p.src + b * p.in;
    copy(from, p.dst + b * p.out, p.cols);
  }
}

#if defined(__x86_64__)
template <int kBytes>
void store_past(std::byte* p, Vector<kBytes> v) {
#if defined(__AVX512BW__)
  if constexpr (kBytes == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#endif
#if defined(__AVX2__)
  if constexpr (kBytes == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
  if constexpr (kBytes == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
}
void fence() { _mm_sfence(); }
#else
template <int kBytes>
void store_past(std::byte* p, Vector<kBytes> v) {
  store<kBytes>(p, v);
}
void fence() {}
#endif

// Bytes of [to, to + bytes) before the first whole line.
int64_t before_line(const std::byte* to, int64_t bytes) {
  const int64_t before = -reinterpret_cast<intptr_t>(to) & (kLine - 1);
  return before < bytes ? before : bytes;
}

// Whole lines go past the caches, one after the other: another store between them would hold them
// up. Then what begins or ends within a line, which is shared with neighbours.
void stream(const Patch& p) {
  const std::byte* from = p.src;
  std::byte* to = p.dst;
  bool whole = true;
  for (int64_t b = 0; b < p.rows; ++b, from += p.in, to += p.out) {
    int64_t i = before_line(to, p.cols);
    whole = whole && i == 0;
    for (; i + kLine <= p.cols; i += kLine)
      for (int k = 0; k < kLine; k += kVector)
        store_past<kVector>(to + i + k, load<kVector>(from + i + k));
    whole = whole && i == p.cols;
  }
  if (whole) return;
  from = p.src;
  to = p.dst;
  for (int64_t b = 0; b < p.rows; ++b, from += p.in, to += p.out) {
    const int64_t head = before_line(to, p.cols);
    const int64_t tail = (p.cols - head) % kLine;
    if (head > 0) copy(from, to, head);
    if (tail > 0) copy(from + p.cols - tail, to + p.cols - tail, tail);
  }
}

}  // namespace

const CopyKernels kCopyKernels = {
    .transpose = {transpose<1>, transpose<2>, transpose<4>, transpose<8>, transpose<16>},
    .rows = rows,
    .stream = stream,
    .fence = fence,
};

}  // namespace tessera::layout::TESSERA_ISA_NAME
