#include "tessera/kernels/cpu/index_entries.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "tessera/kernels/cpu/element_size.h"
#include "tessera/kernels/cpu/index_args.h"

namespace tessera::kernels::cpu {
namespace {

template <class Fn>
void by_type(LineType type, Fn fn) {
  switch (type) {
    case LineType::kF32:
      return fn(float());
    case LineType::kF64:
      return fn(double());
    case LineType::kI32:
      return fn(int32_t());
    case LineType::kI64:
      return fn(int64_t());
    case LineType::kI8:
      return fn(int8_t());
    case LineType::kU8:
      return fn(uint8_t());
  }
}

// Index `i` of a tensor of indices, counted from the end of an axis of n where negative; -1, and
// the launch fails, where it lies outside.
int64_t place(const tessera_launch* launch, const void* indices, bool wide, int64_t i, int64_t n) {
  const int64_t given =
      wide ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
  if (given >= -n && given < n) return given < 0 ? given + n : given;
  char text[96];
  const char* end = text + sizeof(text);
  char* at = text;
  const auto put = [&](const char* s) {
    while (*s && at + 1 < end) *at++ = *s++;
  };
  const auto number = [&](int64_t v) {
    char digits[24];
    int count = 0;
    uint64_t rest = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (v < 0) digits[count++] = '-';
    while (count > 0 && at + 1 < end) *at++ = digits[--count];
  };
  put("index ");
  number(given);
  put(" is outside [");
  number(-n);
  put(", ");
  number(n);
  put(")");
  *at = 0;
  launch->fail(launch, text);
  return -1;
}

template <class T>
void copy_slice(const T* from, T* to, int64_t count) {
  if (count == 1)
    *to = *from;
  else
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
}

// Offset in x, without the axis, of element `at` of a tensor of shape `dims`.
int64_t offset_without_axis(const GatherElementsArgs& a, int64_t at) {
  int64_t offset = 0;
  for (int d = a.rank; d-- > 0;) {
    if (d != a.axis) offset += at % a.dims[d] * a.strides[d];
    at /= a.dims[d];
  }
  return offset;
}

// The slice that place `i` addresses; -1 after a failure.
int64_t slice_at(const tessera_launch* launch, const PlacesArgs& a, const void* indices,
                 int64_t i) {
  int64_t offset = a.per_batch > 0 ? i / a.per_batch * a.batch_stride : 0;
  for (int k = 0; k < a.length; ++k) {
    const int64_t p = place(launch, indices, a.wide, i * a.length + k, a.n[k]);
    if (p < 0) return -1;
    offset += p * a.strides[k];
  }
  return offset;
}

template <class T>
T updated(ScatterKind kind, T old, T value) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (kind == ScatterKind::kAdd)
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    if (kind == ScatterKind::kMul)
      return static_cast<T>(static_cast<U>(old) * static_cast<U>(value));
  } else {
    if (kind == ScatterKind::kAdd) return old + value;
    if (kind == ScatterKind::kMul) return old * value;
  }
  if (value != value || old != old) return value != value ? value : old;
  return kind == ScatterKind::kMax ? std::max(old, value) : std::min(old, value);
}

template <class T>
void update_slice(ScatterKind kind, const void* updates, int64_t from, void* y, int64_t to,
                  int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T& slot = static_cast<T*>(y)[to + i];
    slot = updated(kind, slot, static_cast<const T*>(updates)[from + i]);
  }
}

void scatter_slice(ScatterKind kind, ScatterType type, int32_t bytes, const void* updates,
                   int64_t from, void* y, int64_t to, int64_t count) {
  switch (type) {
    case ScatterType::kRaw:
      std::memcpy(static_cast<std::byte*>(y) + to * bytes,
                  static_cast<const std::byte*>(updates) + from * bytes,
                  static_cast<size_t>(count * bytes));
      return;
    case ScatterType::kF32:
      return update_slice<float>(kind, updates, from, y, to, count);
    case ScatterType::kF64:
      return update_slice<double>(kind, updates, from, y, to, count);
    case ScatterType::kI32:
      return update_slice<int32_t>(kind, updates, from, y, to, count);
    case ScatterType::kI64:
      return update_slice<int64_t>(kind, updates, from, y, to, count);
  }
}

// Lines of an item and where each starts; elements are `inner` apart.
template <class Fn>
void each_line(const LinesArgs& a, uint32_t first, uint32_t count, Fn fn) {
  const int64_t last = std::min(a.outer * a.inner, (int64_t{first} + count) * a.chunk);
  for (int64_t line = int64_t{first} * a.chunk; line < last; ++line)
    fn(line, line / a.inner * a.n * a.inner + line % a.inner);
}

// Negative, zero, positive as a < b, a == b, a > b; NaN is above all.
template <class T>
int compare(T a, T b) {
  if (a != a || b != b) return int{a != a} - int{b != b};
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

void gather(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const GatherArgs*>(launch->constants);
  const int64_t last = std::min(a.outer * a.count, (int64_t{first} + count) * a.chunk);
  by_size(a.bytes, [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(launch->ranges[0].data);
    T* y = static_cast<T*>(launch->ranges[2].data);
    for (int64_t i = int64_t{first} * a.chunk; i < last; ++i) {
      const int64_t at = place(launch, launch->ranges[1].data, a.wide, i % a.count, a.n);
      if (at < 0) return;
      copy_slice(x + (i / a.count * a.n + at) * a.inner, y + i * a.inner, a.inner);
    }
  });
}

void gather_elements(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const GatherElementsArgs*>(launch->constants);
  const int64_t last = std::min(a.count, (int64_t{first} + count) * a.chunk);
  by_size(a.bytes, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = int64_t{first} * a.chunk; i < last; ++i) {
      const int64_t at = place(launch, launch->ranges[1].data, a.wide, i, a.n);
      if (at < 0) return;
      static_cast<T*>(launch->ranges[2].data)[i] = static_cast<const T*>(
          launch->ranges[0].data)[offset_without_axis(a, i) + at * a.strides[a.axis]];
    }
  });
}

void gather_nd(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PlacesArgs*>(launch->constants);
  const int64_t last = std::min(a.count, (int64_t{first} + count) * a.chunk);
  by_size(a.bytes, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = int64_t{first} * a.chunk; i < last; ++i) {
      const int64_t offset = slice_at(launch, a, launch->ranges[1].data, i);
      if (offset < 0) return;
      copy_slice(static_cast<const T*>(launch->ranges[0].data) + offset,
                 static_cast<T*>(launch->ranges[2].data) + i * a.inner, a.inner);
    }
  });
}

void scatter_nd(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& a = *static_cast<const PlacesArgs*>(launch->constants);
  for (int64_t i = 0; i < a.count; ++i) {
    const int64_t offset = slice_at(launch, a, launch->ranges[1].data, i);
    if (offset < 0) return;
    scatter_slice(a.kind, a.type, a.bytes, launch->ranges[0].data, i * a.inner,
                  launch->ranges[2].data, offset, a.inner);
  }
}

void scatter_elements(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& s = *static_cast<const ScatterElementsArgs*>(launch->constants);
  const GatherElementsArgs& a = s.places;
  for (int64_t i = 0; i < a.count; ++i) {
    const int64_t at = place(launch, launch->ranges[1].data, a.wide, i, a.n);
    if (at < 0) return;
    scatter_slice(s.kind, s.type, a.bytes, launch->ranges[0].data, i, launch->ranges[2].data,
                  offset_without_axis(a, i) + at * a.strides[a.axis], 1);
  }
}

void arg_extreme(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const LinesArgs*>(launch->constants);
  const bool largest = a.flag[0], select_last = a.flag[1];
  by_type(a.type, [&](auto tag) {
    using T = decltype(tag);
    each_line(a, first, count, [&](int64_t line, int64_t start) {
      const T* x = static_cast<const T*>(launch->ranges[0].data) + start;
      int64_t best = 0;
      for (int64_t i = 1; i < a.n; ++i) {
        const T v = x[i * a.inner], top = x[best * a.inner];
        const bool nan = v != v || top != top;
        const int order = nan       ? int{v != v} - int{top != top}
                          : largest ? compare(v, top)
                                    : compare(top, v);
        if (order > 0 || (order == 0 && select_last)) best = i;
      }
      static_cast<int64_t*>(launch->ranges[1].data)[line] = best;
    });
  });
}

void cumulative(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const LinesArgs*>(launch->constants);
  const bool product = a.flag[0], exclusive = a.flag[1], reverse = a.flag[2];
  by_type(a.type, [&](auto tag) {
    using T = decltype(tag);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    each_line(a, first, count, [&](int64_t, int64_t start) {
      const T* x = static_cast<const T*>(launch->ranges[0].data) + start;
      T* y = static_cast<T*>(launch->ranges[1].data) + start;
      Sum total = product;
      for (int64_t k = 0; k < a.n; ++k) {
        const int64_t i = (reverse ? a.n - 1 - k : k) * a.inner;
        const Sum next = product ? total * static_cast<Sum>(x[i]) : total + static_cast<Sum>(x[i]);
        y[i] = static_cast<T>(exclusive ? total : next);
        total = next;
      }
    });
  });
}

void top_k(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const LinesArgs*>(launch->constants);
  const bool largest = a.flag[0];
  by_type(a.type, [&](auto tag) {
    using T = decltype(tag);
    for (uint32_t item = first; item < first + count; ++item) {
      int64_t* order = static_cast<int64_t*>(launch->ranges[3].data) + int64_t{item} * a.n;
      each_line(a, item, 1, [&](int64_t line, int64_t start) {
        const T* x = static_cast<const T*>(launch->ranges[0].data) + start;
        std::iota(order, order + a.n, 0);
        const auto before = [&](int64_t i, int64_t j) {
          const int c = compare(x[i * a.inner], x[j * a.inner]);
          return c != 0 ? (c > 0) == largest : i < j;
        };
        if (a.k < a.n) std::nth_element(order, order + a.k, order + a.n, before);
        std::sort(order, order + a.k, before);
        const int64_t to = line / a.inner * a.k * a.inner + line % a.inner;
        for (int64_t i = 0; i < a.k; ++i) {
          static_cast<T*>(launch->ranges[1].data)[to + i * a.inner] = x[order[i] * a.inner];
          static_cast<int64_t*>(launch->ranges[2].data)[to + i * a.inner] = order[i];
        }
      });
    }
  });
}

void range(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& a = *static_cast<const RangeArgs*>(launch->constants);
  by_type(a.type, [&](auto tag) {
    using T = decltype(tag);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    const Sum start = static_cast<Sum>(*static_cast<const T*>(launch->ranges[0].data)),
              delta = static_cast<Sum>(*static_cast<const T*>(launch->ranges[1].data));
    for (int64_t i = 0; i < a.count; ++i)
      static_cast<T*>(launch->ranges[2].data)[i] =
          static_cast<T>(start + static_cast<Sum>(i) * delta);
  });
}

}  // namespace tessera::kernels::cpu
