// Reductions over any axes. Where the innermost axis is reduced, an output is folded from
// contiguous rows; where it is kept, a run of neighbouring outputs is folded together. Sums of
// floats are taken in double over blocks summed in lanes.
#include "tessera/kernels/cpu/convert_block.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/reduce_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kBlock = 512;  // elements brought into the compute type at a time

template <class T>
constexpr bool kIsFloat = T(0.5) != T(0);

struct Sum {
  template <class T>
  static constexpr T start() {
    return 0;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Prod {
  template <class T>
  static constexpr T start() {
    return 1;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
template <class T>
constexpr T kLowest = kIsFloat<T>    ? -static_cast<T>(__builtin_inf())
                      : T(-1) < T(0) ? static_cast<T>(INT64_MIN)
                                     : T(0);
template <class T>
constexpr T kHighest = kIsFloat<T>    ? static_cast<T>(__builtin_inf())
                       : T(-1) < T(0) ? static_cast<T>(INT64_MAX)
                                      : static_cast<T>(UINT64_MAX);
struct Max {
  template <class T>
  static constexpr T start() {
    return kLowest<T>;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    return b != b ? b : (a < b ? b : a);
  }
};
struct Min {
  template <class T>
  static constexpr T start() {
    return kHighest<T>;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    return b != b ? b : (b < a ? b : a);
  }
};
struct And {
  template <class T>
  static constexpr T start() {
    return 1;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    return a != 0 && b != 0;
  }
};
struct Or {
  template <class T>
  static constexpr T start() {
    return 0;
  }
  template <class T>
  TESSERA_INLINE T fold(T a, T b) {
    return a != 0 || b != 0;
  }
};

// Steps through the indices of `dims`, keeping the offset.
struct Walk {
  int32_t rank;
  const int64_t *dims, *strides;
  int64_t index[kMaxSpaceRank];
  int64_t offset;

  Walk(int32_t r, const int64_t* d, const int64_t* s, int64_t start)
      : rank(r), dims(d), strides(s), offset(0) {
    for (int axis = rank; axis-- > 0;) {
      index[axis] = start == 0 ? 0 : start % dims[axis];
      start = start == 0 ? 0 : start / dims[axis];
      offset += index[axis] * strides[axis];
    }
  }
  void next() {
    for (int axis = rank; axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) return;
      offset -= dims[axis] * strides[axis];
      index[axis] = 0;
    }
  }
};

int64_t product(const int64_t* dims, int32_t rank) {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

// Elements [at, at + count) of x in the compute type, in place or in `scratch`.
template <class T>
const T* read(const ReduceArgs& a, const void* x, int64_t at, int64_t count, T* scratch) {
  const char* from = static_cast<const char*>(x) + at * a.in_bytes;
  if (a.in_dtype < 0) return reinterpret_cast<const T*>(from);
  convert_from(a.in_dtype, from, a.compute, scratch, count);
  return scratch;
}

template <class T>
void write(const ReduceArgs& a, T* values, int64_t count, void* y, int64_t at) {
  if constexpr (kIsFloat<T>)
    if (a.scale != 1)
      for (int64_t i = 0; i < count; ++i) values[i] *= static_cast<T>(a.scale);
  char* to = static_cast<char*>(y) + at * a.out_bytes;
  if (a.out_dtype < 0)
    __builtin_memcpy(to, values, static_cast<size_t>(count) * sizeof(T));
  else
    convert_to(a.compute, values, a.out_dtype, to, count);
}

template <class T, class F>
T fold_block(const T* x, int64_t count) {
  constexpr int kWays = 64;
  T lanes[kWays];
  for (int j = 0; j < kWays; ++j) lanes[j] = F::template start<T>();
  int64_t i = 0;
  for (; i + kWays <= count; i += kWays)
    for (int j = 0; j < kWays; ++j) lanes[j] = F::fold(lanes[j], x[i + j]);
  for (int width = kWays / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lanes[j] = F::fold(lanes[j], lanes[j + width]);
  T total = lanes[0];
  for (; i < count; ++i) total = F::fold(total, x[i]);
  return total;
}

// Floats are gathered in double across blocks.
template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<float> {
  using type = double;
};

template <class T, class F>
void reduce_rows(const ReduceArgs& a, const void* x, void* y, int64_t first, int64_t last) {
  using Wide = typename WideOf<T>::type;
  const int32_t outer = a.reduced_rank - 1;
  const int64_t row = a.reduced_dims[outer], rows = product(a.reduced_dims, outer);
  Walk kept(a.kept_rank, a.kept_dims, a.kept_strides, first);
  alignas(64) T scratch[kBlock];
  T results[kBlock];
  for (int64_t o = first; o < last; ++o, kept.next()) {
    Wide total = F::template start<Wide>();
    Walk reduced(outer, a.reduced_dims, a.reduced_strides, 0);
    for (int64_t r = 0; r < rows; ++r, reduced.next())
      for (int64_t i = 0; i < row; i += kBlock) {
        const int64_t count = least(kBlock, row - i);
        total = F::fold(total,
                        static_cast<Wide>(fold_block<T, F>(
                            read(a, x, kept.offset + reduced.offset + i, count, scratch), count)));
      }
    const int64_t slot = (o - first) % kBlock;
    results[slot] = static_cast<T>(total);
    if (slot == kBlock - 1 || o + 1 == last) write(a, results, slot + 1, y, o - slot);
  }
}

template <class T, class F>
void reduce_columns(const ReduceArgs& a, const void* x, void* y, int64_t first, int64_t last) {
  using Wide = typename WideOf<T>::type;
  constexpr int64_t kFlush = 64;
  const int64_t row = a.kept_dims[a.kept_rank - 1], folds = product(a.reduced_dims, a.reduced_rank);
  alignas(64) T scratch[kBlock], partial[kBlock];
  Wide total[kBlock];
  for (int64_t o = first; o < last;) {
    const int64_t count = least(least(kBlock, row - o % row), last - o);
    const Walk kept(a.kept_rank, a.kept_dims, a.kept_strides, o);
    Walk reduced(a.reduced_rank, a.reduced_dims, a.reduced_strides, 0);
    for (int64_t j = 0; j < count; ++j) total[j] = F::template start<Wide>();
    for (int64_t r = 0; r < folds; r += kFlush) {
      for (int64_t j = 0; j < count; ++j) partial[j] = F::template start<T>();
      for (int64_t i = r; i < least(folds, r + kFlush); ++i, reduced.next()) {
        const T* from = read(a, x, kept.offset + reduced.offset, count, scratch);
        for (int64_t j = 0; j < count; ++j) partial[j] = F::fold(partial[j], from[j]);
      }
      for (int64_t j = 0; j < count; ++j)
        total[j] = F::fold(total[j], static_cast<Wide>(partial[j]));
    }
    for (int64_t j = 0; j < count; ++j) partial[j] = static_cast<T>(total[j]);
    write(a, partial, count, y, o);
    o += count;
  }
}

using ReduceFn = void (*)(const ReduceArgs&, const void*, void*, int64_t, int64_t);
struct Both {
  ReduceFn rows, columns;
};
template <class T, class F>
constexpr Both kBoth{reduce_rows<T, F>, reduce_columns<T, F>};

// [kind][compute]; i32 is computed in i64
constexpr Both kTable[6][5] = {
    {kBoth<float, Sum>, kBoth<double, Sum>, {}, kBoth<int64_t, Sum>, kBoth<int64_t, Sum>},
    {kBoth<float, Prod>, kBoth<double, Prod>, {}, kBoth<int64_t, Prod>, kBoth<int64_t, Prod>},
    {kBoth<float, Max>, kBoth<double, Max>, {}, kBoth<int64_t, Max>, kBoth<uint64_t, Max>},
    {kBoth<float, Min>, kBoth<double, Min>, {}, kBoth<int64_t, Min>, kBoth<uint64_t, Min>},
    {{}, {}, {}, kBoth<int64_t, And>, kBoth<int64_t, And>},
    {{}, {}, {}, kBoth<int64_t, Or>, kBoth<int64_t, Or>},
};

}  // namespace

void reduce(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ReduceArgs*>(launch->constants);
  const Both& fns = kTable[static_cast<int>(a.kind)][static_cast<int>(a.compute)];
  const bool inner_kept = a.reduced_rank == 0 || a.reduced_strides[a.reduced_rank - 1] != 1;
  const ReduceFn fn = inner_kept ? fns.columns : fns.rows;
  if (!fn) return launch->fail(launch, "reduction without a loop for its type");
  fn(a, launch->ranges[0].data, launch->ranges[1].data, int64_t{first} * a.chunk,
     least(a.outputs, (int64_t{first} + count) * a.chunk));
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
