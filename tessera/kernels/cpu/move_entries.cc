#include "tessera/kernels/cpu/move_entries.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/element.h"
#include "tessera/kernels/cpu/convert_block.h"
#include "tessera/kernels/cpu/element_size.h"
#include "tessera/kernels/cpu/move_args.h"

namespace tessera::kernels::cpu {
namespace {

typedef uint32_t Quad __attribute__((vector_size(16), aligned(4), may_alias));

// y[i * out + j] = x[j * in + i], 4 x 4
void transpose_quad(const uint32_t* x, int64_t in, uint32_t* y, int64_t out) {
  Quad q[4];
  for (int j = 0; j < 4; ++j) q[j] = *reinterpret_cast<const Quad*>(x + j * in);
  const Quad a = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
  const Quad c = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5),
             d = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
  *reinterpret_cast<Quad*>(y) = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(y + out) = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  *reinterpret_cast<Quad*>(y + 2 * out) = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(y + 3 * out) = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// y[i * out + j] = x[j * in + i] for i in [0, rows), j in [0, cols)
template <class T>
void transpose_tile(const T* x, int64_t in, T* y, int64_t out, int64_t rows, int64_t cols) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4)
    for (; i + 4 <= rows; i += 4) {
      int64_t j = 0;
      for (; j + 4 <= cols; j += 4) transpose_quad(x + j * in + i, in, y + i * out + j, out);
      for (; j < cols; ++j)
        for (int64_t k = i; k < i + 4; ++k) y[k * out + j] = x[j * in + k];
    }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) y[i * out + j] = x[j * in + i];
}

template <class T>
void copy_run(const T* x, int64_t in, T* y, int64_t out, int64_t count) {
  if (in == 1 && out == 1) {
    if (count * static_cast<int64_t>(sizeof(T)) >= 64) {
      std::memcpy(y, x, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i];
    }
  } else if (in == 0 && out == 1) {
    std::fill(y, y + count, *x);
  } else if (out == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * in];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i * out] = x[i * in];
  }
}

// Offsets of the `at`-th index of all axes but those that are walked inside a unit.
struct Place {
  int64_t in, out;
};
Place place_of(const CopyArgs& a, int64_t at) {
  Place p{a.in_offset, a.out_offset};
  for (int axis = a.rank - 1; axis-- > 0;) {
    if (axis == a.across) continue;
    const int64_t i = at % a.dims[axis];
    at /= a.dims[axis];
    p.in += i * a.in_strides[axis];
    p.out += i * a.out_strides[axis];
  }
  return p;
}

template <class T>
void copy_units(const CopyArgs& a, const T* x, T* y, int64_t first, int64_t last) {
  const int inner = a.rank - 1;
  const int64_t length = a.dims[inner], in = a.in_strides[inner], out = a.out_strides[inner];
  const int64_t piece =
      a.across >= 0 ? kStripe : std::max<int64_t>(1, kRowPiece / static_cast<int64_t>(sizeof(T)));
  const int64_t pieces = (length + piece - 1) / piece;
  const int64_t blocks = a.across >= 0 ? (a.dims[a.across] + kAcross - 1) / kAcross : 1;
  for (int64_t u = first; u < last; ++u) {
    const int64_t start = u % pieces * piece, count = std::min(piece, length - start);
    const Place p = place_of(a, u / pieces / blocks);
    const T* from = x + p.in + start * in;
    T* to = y + p.out + start * out;
    if (a.across < 0) {
      copy_run(from, in, to, out, count);
      continue;
    }
    const int64_t across_in = a.in_strides[a.across], across_out = a.out_strides[a.across];
    const int64_t top = u / pieces % blocks * kAcross,
                  rows = std::min(a.dims[a.across], top + kAcross);
    for (int64_t i = top; i < rows; i += kStripe) {
      const int64_t height = std::min(kStripe, rows - i);
      if (across_in == 1 && out == 1) {
        transpose_tile(from + i, in, to + i * across_out, across_out, height, count);
      } else {
        for (int64_t k = i; k < i + height; ++k)
          copy_run(from + k * across_in, in, to + k * across_out, out, count);
      }
    }
  }
}

int64_t mirrored(int64_t i, int64_t n) {
  const int64_t period = std::max<int64_t>(1, 2 * (n - 1));
  const int64_t at = ((i % period) + period) % period;
  return at < n ? at : period - at;
}

// Source of index i of an axis of n elements; -1: the padding value.
int64_t source_of(PadMode mode, int64_t i, int64_t n) {
  switch (mode) {
    case PadMode::kConstant:
      return i >= 0 && i < n ? i : -1;
    case PadMode::kReflect:
      return mirrored(i, n);
    case PadMode::kEdge:
      return std::clamp<int64_t>(i, 0, n - 1);
    case PadMode::kWrap:
      return ((i % n) + n) % n;
  }
  return -1;
}

template <class T>
void pad_rows(const PadArgs& a, const T* x, const T* value, T* y, int64_t first, int64_t last) {
  const int inner = a.rank - 1;
  const int64_t n = a.in[inner], length = a.out[inner], begin = a.begin[inner];
  const T fill = value ? *value : T();
  // The part of a row that is copied from [from, from + middle).
  const int64_t lead = std::clamp<int64_t>(begin, 0, length), from = std::max<int64_t>(0, -begin);
  const int64_t middle = std::clamp<int64_t>(n - from, 0, length - lead);
  for (int64_t row = first; row < last; ++row) {
    T* to = y + row * length;
    int64_t rest = row, offset = 0, step = n;
    bool inside = true;
    for (int axis = inner; axis-- > 0;) {
      const int64_t i = source_of(a.mode, rest % a.out[axis] - a.begin[axis], a.in[axis]);
      rest /= a.out[axis];
      inside = inside && i >= 0;
      offset += i * step;
      step *= a.in[axis];
    }
    if (!inside) {
      std::fill(to, to + length, fill);
      continue;
    }
    const T* source = x + offset;
    const auto edge = [&](int64_t j) {
      const int64_t i = source_of(a.mode, j - begin, n);
      to[j] = i < 0 ? fill : source[i];
    };
    for (int64_t j = 0; j < lead; ++j) edge(j);
    copy_run(source + from, 1, to + lead, 1, middle);
    for (int64_t j = lead + middle; j < length; ++j) edge(j);
  }
}

}  // namespace

void copy(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const CopyArgs*>(launch->constants);
  by_size(a.bytes, [&](auto tag) {
    using T = decltype(tag);
    copy_units(a, static_cast<const T*>(launch->ranges[0].data),
               static_cast<T*>(launch->ranges[1].data), int64_t{first} * a.chunk,
               std::min(a.units, (int64_t{first} + count) * a.chunk));
  });
}

void pad(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PadArgs*>(launch->constants);
  by_size(a.bytes, [&](auto tag) {
    using T = decltype(tag);
    pad_rows(a, static_cast<const T*>(launch->ranges[0].data),
             a.has_value ? static_cast<const T*>(launch->ranges[1].data) : nullptr,
             static_cast<T*>(launch->ranges[1 + a.has_value].data), int64_t{first} * a.chunk,
             std::min(a.rows, (int64_t{first} + count) * a.chunk));
  });
}

void store(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& a = *static_cast<const StoreArgs*>(launch->constants);
  std::memcpy(launch->ranges[0].data, a.values, static_cast<size_t>(a.count) * sizeof(int64_t));
}

void convert(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ConvertArgs*>(launch->constants);
  const int64_t begin = int64_t{first} * kConvertChunk,
                end = std::min(a.count, (int64_t{first} + count) * kConvertChunk);
  const auto from = static_cast<DType>(a.from), to = static_cast<DType>(a.to);
  const auto* source =
      static_cast<const std::byte*>(launch->ranges[0].data) + begin * bits_of(from) / 8;
  auto* target = static_cast<std::byte*>(launch->ranges[1].data) + begin * bits_of(to) / 8;
  const FloatCast cast{static_cast<Rounding>(a.rounding), a.saturate != 0};
  if (cast.rounding == Rounding::kNearestEven && !cast.saturate)
    convert_run(a.from, source, a.to, target, end - begin);
  else
    convert_elements(from, source, to, target, end - begin, cast);
}

}  // namespace tessera::kernels::cpu
