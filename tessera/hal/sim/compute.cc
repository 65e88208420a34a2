#include "tessera/hal/sim/compute.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/base/element.h"
#include "tessera/hal/sim/product.h"
#include "tessera/tile/elements.h"

namespace tessera::hal::sim {
namespace {

using tile::Function;

template <class T>
void copy_elements(const Row& to, std::byte* target, const Row& from, const std::byte* source) {
  auto* t = reinterpret_cast<T*>(target);
  const auto* s = reinterpret_cast<const T*>(source);
  if (!to.list && !from.list && to.stride == 1 && from.stride == 1) {
    if (from.last > from.first)
      std::memcpy(t + to.start + from.first, s + from.start + from.first,
                  static_cast<size_t>(from.last - from.first) * sizeof(T));
    return;
  }
  for (int64_t i = from.first; i < from.last; ++i) t[to.at(i)] = s[from.at(i)];
}

void copy_elements(size_t bytes, const Row& to, std::byte* target, const Row& from,
                   const std::byte* source) {
  switch (bytes) {
    case 1:
      return copy_elements<uint8_t>(to, target, from, source);
    case 2:
      return copy_elements<uint16_t>(to, target, from, source);
    case 4:
      return copy_elements<uint32_t>(to, target, from, source);
    default:
      return copy_elements<uint64_t>(to, target, from, source);
  }
}

template <class T, class To, class Convert>
void read_as(const Row& row, const std::byte* base, To* out, Convert convert) {
  const auto* p = reinterpret_cast<const T*>(base);
  for (int64_t i = row.first; i < row.last; ++i) out[i] = convert(p[row.at(i)]);
}

template <class To>
void read_floats(DType dtype, const Row& row, const std::byte* base, To* out) {
  switch (dtype) {
    case DType::kF32:
      return read_as<float>(row, base, out, [](float v) { return static_cast<To>(v); });
    case DType::kF16:
      return read_as<uint16_t>(row, base, out,
                               [](uint16_t v) { return static_cast<To>(f16_to_f32(v)); });
    case DType::kBF16:
      return read_as<uint16_t>(row, base, out,
                               [](uint16_t v) { return static_cast<To>(bf16_to_f32(v)); });
    case DType::kI8:
      return read_as<int8_t>(row, base, out, [](int8_t v) { return static_cast<To>(v); });
    case DType::kU8:
      return read_as<uint8_t>(row, base, out, [](uint8_t v) { return static_cast<To>(v); });
    default:
      for (int64_t i = row.first; i < row.last; ++i)
        out[i] = static_cast<To>(load_f64(dtype, base, row.at(i)));
  }
}

void write_floats(DType dtype, const Row& row, std::byte* base, const double* v) {
  if (dtype == DType::kF32) {
    auto* p = reinterpret_cast<float*>(base);
    for (int64_t i = row.first; i < row.last; ++i) p[row.at(i)] = static_cast<float>(v[i]);
    return;
  }
  const bool half = dtype == DType::kF16;
  for (int64_t i = row.first; i < row.last; ++i) {
    const auto narrow = static_cast<float>(v[i]);
    if ((half || dtype == DType::kBF16) && static_cast<double>(narrow) == v[i])
      reinterpret_cast<uint16_t*>(base)[row.at(i)] =
          half ? f32_to_f16(narrow) : f32_to_bf16(narrow);
    else
      store_f64(dtype, base, row.at(i), v[i]);
  }
}

// Functions that come often; false: it is none of them.
bool apply_row(Function f, int64_t n, const double* a, const double* b, double* out) {
  const auto each = [&](auto&& g) {
    for (int64_t i = 0; i < n; ++i) out[i] = g(i);
    return true;
  };
  switch (f) {
    case Function::kAdd:
      return each([&](int64_t i) { return a[i] + b[i]; });
    case Function::kSub:
      return each([&](int64_t i) { return a[i] - b[i]; });
    case Function::kMul:
      return each([&](int64_t i) { return a[i] * b[i]; });
    case Function::kDiv:
      return each([&](int64_t i) { return a[i] / b[i]; });
    case Function::kMax:
      return each([&](int64_t i) {
        return std::isnan(a[i]) || std::isnan(b[i]) ? NAN : std::max(a[i], b[i]);
      });
    case Function::kMin:
      return each([&](int64_t i) {
        return std::isnan(a[i]) || std::isnan(b[i]) ? NAN : std::min(a[i], b[i]);
      });
    case Function::kNeg:
      return each([&](int64_t i) { return -a[i]; });
    case Function::kSqrt:
      return each([&](int64_t i) { return std::sqrt(a[i]); });
    case Function::kExp:
      return each([&](int64_t i) { return std::exp(a[i]); });
    case Function::kTanh:
      return each([&](int64_t i) { return std::tanh(a[i]); });
    case Function::kErf:
      return each([&](int64_t i) { return std::erf(a[i]); });
    case Function::kConvert:
      return each([&](int64_t i) { return a[i]; });
    default:
      return false;
  }
}

int64_t row_end(const Work& w) { return w.extents.empty() ? 1 : w.extents.back(); }

}  // namespace

void Computer::load(const Walk& walk, const Access& a, int64_t n, bool as_float, double number,
                    int64_t whole, Lane& lane) {
  const auto size = static_cast<size_t>(n);
  lane.f.resize(size);
  lane.i.resize(size);
  if (a.operand->kind == engine::Operand::Kind::kNumber) {
    std::fill(lane.f.begin(), lane.f.end(), number);
    std::fill(lane.i.begin(), lane.i.end(), whole);
    return;
  }
  if (a.operand->kind == engine::Operand::Kind::kIndex) {
    for (int64_t i = 0; i < n; ++i) {
      lane.i[static_cast<size_t>(i)] = walk.index(a, i);
      lane.f[static_cast<size_t>(i)] = static_cast<double>(lane.i[static_cast<size_t>(i)]);
    }
    return;
  }
  const Row row = walk.row(a, lane.room);
  if (as_float) return read_floats(a.dtype, row, a.base, lane.f.data());
  for (int64_t i = row.first; i < row.last; ++i)
    lane.i[static_cast<size_t>(i)] = load_i64(a.dtype, a.base, row.at(i));
}

void Computer::store(const Access& a, const Row& row, int64_t, const Lane& lane) {
  if (is_float(a.dtype)) return write_floats(a.dtype, row, a.base, lane.f.data());
  for (int64_t i = row.first; i < row.last; ++i)
    store_i64(a.dtype, a.base, row.at(i), lane.i[static_cast<size_t>(i)]);
}

Status Computer::copy(const Work& w) {
  const Access &to = w.operands[0], &from = w.operands[1];
  const auto bytes = static_cast<size_t>(bits_of(to.dtype) / 8);
  const int64_t n = row_end(w);
  std::byte pad[8] = {};
  if (w.step->pads) {
    if (is_float(to.dtype))
      store_f64(to.dtype, pad, 0, w.step->pad);
    else
      store_i64(to.dtype, pad, 0, static_cast<int64_t>(w.step->pad));
  }
  Walk walk(w.extents);
  Lane &a = lanes_[0], &b = lanes_[1];
  do {
    const Row target = walk.row(to, a.room), source = walk.row(from, b.room);
    if (to.dtype == from.dtype) {
      copy_elements(bytes, target, to.base, source, from.base);
    } else {
      b.f.resize(static_cast<size_t>(n));
      read_floats(from.dtype, source, from.base, b.f.data());
      Row both = target;
      both.first = source.first;
      both.last = source.last;
      write_floats(to.dtype, both, to.base, b.f.data());
    }
    const auto put = [&](int64_t i) {
      std::memcpy(to.base + target.at(i) * static_cast<int64_t>(bytes), pad, bytes);
    };
    for (int64_t i = 0; i < source.first && i < n; ++i) put(i);
    for (int64_t i = source.last; i < n; ++i) put(i);
  } while (walk.next());
  return {};
}

Status Computer::map(const Work& w) {
  const int64_t n = row_end(w);
  const Access& to = w.operands[0];
  const Function f = w.step->function;
  const size_t inputs = w.step->in.size();
  // The type of the operands; of numbers alone, that of the result.
  DType from = to.dtype;
  for (size_t k = f == Function::kSelect ? 1 : 0; k < inputs; ++k)
    if (w.operands[k + 1].operand->kind == engine::Operand::Kind::kBuffer) {
      from = w.operands[k + 1].dtype;
      break;
    } else if (w.operands[k + 1].operand->kind == engine::Operand::Kind::kIndex &&
               f == Function::kConvert) {
      from = DType::kI64;
    }
  const bool floats = is_float(from);
  Walk walk(w.extents);
  Lane& result = lanes_[4];
  result.f.resize(static_cast<size_t>(n));
  result.i.resize(static_cast<size_t>(n));
  do {
    for (size_t k = 0; k < inputs; ++k) {
      const engine::Operand& o = w.step->in[k];
      load(walk, w.operands[k + 1], n, floats && !(f == Function::kSelect && k == 0), o.number,
           o.whole, lanes_[k]);
    }
    const bool fast = floats && is_float(to.dtype) &&
                      apply_row(f, n, lanes_[0].f.data(), lanes_[1].f.data(), result.f.data());
    for (int64_t i = 0; !fast && i < n; ++i) {
      tile::Element in[3];
      for (size_t k = 0; k < inputs; ++k)
        in[k] = {lanes_[k].f.empty() ? 0 : lanes_[k].f[static_cast<size_t>(i)],
                 lanes_[k].i.empty() ? 0 : lanes_[k].i[static_cast<size_t>(i)]};
      TRY_ASSIGN(const tile::Element e, tile::apply(f, from, to.dtype, in));
      result.f[static_cast<size_t>(i)] = e.f;
      result.i[static_cast<size_t>(i)] = e.i;
    }
    store(to, walk.row(to, result.room), n, result);
  } while (walk.next());
  return {};
}

Status Computer::reduce(const Work& w) {
  const Access &to = w.operands[0], &from = w.operands[1];
  const Function f = w.step->function;
  const bool floats = is_float(to.dtype);
  // Axes of the result first, those that are folded behind them.
  std::vector<int64_t> kept, folded;
  std::vector<size_t> kept_axes, folded_axes;
  for (size_t a = 0; a < w.extents.size(); ++a) {
    bool of_result = false;
    for (size_t d = 0; d < to.rank(); ++d) of_result |= to.coefficient(d, a) != 0;
    (of_result ? kept : folded).push_back(w.extents[a]);
    (of_result ? kept_axes : folded_axes).push_back(a);
  }
  // Two steps with fewer axes: one over what is kept, inside of it one over what is folded.
  const auto only = [](const engine::Operand& o, const std::vector<size_t>& axes) {
    engine::Operand result = o;
    for (size_t d = 0; d < o.at.size(); ++d) {
      result.at[d].coefficients.clear();
      for (size_t a : axes)
        result.at[d].coefficients.push_back(
            a < o.at[d].coefficients.size() ? o.at[d].coefficients[a] : 0);
    }
    return result;
  };
  const engine::Operand outer_from = only(*from.operand, kept_axes);
  const engine::Operand inner_from = only(*from.operand, folded_axes);
  const engine::Operand outer_to = only(*to.operand, kept_axes);
  Access target = to, start = from, inner = from;
  target.operand = &outer_to;
  start.operand = &outer_from;
  inner.operand = &inner_from;
  std::vector<int64_t> now(kept.size(), 0);
  const bool nothing = std::ranges::any_of(folded, [](int64_t e) { return e < 1; });
  Lane& lane = lanes_[0];
  const int64_t n = folded.empty() ? 1 : folded.back();
  while (true) {
    int64_t place = 0;
    for (size_t d = 0; d < to.rank(); ++d) {
      int64_t at = to.offset[d];
      for (size_t k = 0; k < kept.size(); ++k) at += target.coefficient(d, k) * now[k];
      place += to.places->dims[d].at(at);
    }
    tile::Element sum;
    if (w.add)
      sum = floats ? tile::Element{load_f64(to.dtype, to.base, place), 0}
                   : tile::Element{0, load_i64(to.dtype, to.base, place)};
    else
      sum = floats ? tile::Element{tile::float_identity(f), 0}
                   : tile::Element{0, tile::int_identity(f, to.dtype)};
    if (!nothing) {
      for (size_t d = 0; d < from.rank(); ++d) {
        inner.offset[d] = from.offset[d];
        for (size_t k = 0; k < kept.size(); ++k)
          inner.offset[d] += start.coefficient(d, k) * now[k];
      }
      Walk walk(folded);
      do {
        load(walk, inner, n, floats, 0, 0, lane);
        if (floats && f == Function::kAdd) {
          for (int64_t i = 0; i < n; ++i) sum.f += lane.f[static_cast<size_t>(i)];
        } else {
          for (int64_t i = 0; i < n; ++i) {
            const tile::Element in[2] = {
                sum, {lane.f[static_cast<size_t>(i)], lane.i[static_cast<size_t>(i)]}};
            // Floats are rounded once, at the end.
            const DType type = floats ? DType::kF64 : to.dtype;
            TRY_ASSIGN(sum, tile::apply(f, type, type, in));
          }
        }
      } while (walk.next());
    }
    if (floats)
      store_f64(to.dtype, to.base, place, sum.f);
    else
      store_i64(to.dtype, to.base, place, sum.i);
    size_t k = kept.size();
    while (k > 0 && ++now[k - 1] == kept[k - 1]) now[--k] = 0;
    if (k == 0) return {};
  }
}

namespace {

enum AxisClass : uint8_t { kRows, kColumns, kInner, kBatch };

AxisClass class_of(const Work& w, size_t axis) {
  const auto walks = [&](const Access& a) {
    for (size_t d = 0; d < a.rank(); ++d)
      if (a.coefficient(d, axis) != 0) return true;
    return false;
  };
  const bool c = walks(w.operands[0]), a = walks(w.operands[1]), b = walks(w.operands[2]);
  if (!c) return kInner;
  return a && b ? kBatch : a ? kRows : kColumns;
}

// Places of an operand along the axes of one class, in the order of the step's axes; the part of
// dimensions that these axes walk.
std::vector<int64_t> places_along(const Work& w, const Access& a, AxisClass wanted,
                                  std::array<bool, kDims>& walked) {
  std::vector<std::pair<int64_t, size_t>> axes;  // extent, axis
  for (size_t k = 0; k < w.extents.size(); ++k)
    if (class_of(w, k) == wanted) axes.emplace_back(w.extents[k], k);
  std::vector<size_t> dims;
  for (size_t d = 0; d < a.rank(); ++d)
    for (const auto& [extent, axis] : axes)
      if (a.coefficient(d, axis) != 0) {
        dims.push_back(d);
        walked[d] = true;
        break;
      }
  int64_t count = 1;
  for (const auto& [extent, axis] : axes) count *= extent;
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(count));
  std::vector<int64_t> now(axes.size(), 0);
  for (int64_t n = 0; n < count; ++n) {
    int64_t place = 0;
    for (size_t d : dims) {
      int64_t at = a.offset[d];
      for (size_t k = 0; k < axes.size(); ++k) at += a.coefficient(d, axes[k].second) * now[k];
      place += a.places->dims[d].at(at);
    }
    places.push_back(place);
    for (size_t k = axes.size(); k-- > 0;) {
      if (++now[k] < axes[k].first) break;
      now[k] = 0;
    }
  }
  return places;
}

template <class T>
void gather(DType dtype, const std::byte* base, int64_t origin, const std::vector<int64_t>& rows,
            const std::vector<int64_t>& columns, std::vector<T>& out) {
  out.resize(rows.size() * columns.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t start = origin + rows[r];
    const Row row{.start = 0,
                  .stride = 0,
                  .list = columns.data(),
                  .first = 0,
                  .last = static_cast<int64_t>(columns.size())};
    read_floats(dtype, row, base + start * (bits_of(dtype) / 8), out.data() + r * columns.size());
  }
}

template <class T>
void sums(std::byte* base, int64_t origin, const std::vector<int64_t>& rows,
          const std::vector<int64_t>& columns, std::vector<T>& c, bool write) {
  auto* p = reinterpret_cast<T*>(base) + origin;
  c.resize(rows.size() * columns.size());
  T* now = c.data();
  for (int64_t row : rows)
    for (int64_t column : columns) {
      if (write)
        p[row + column] = *now++;
      else
        *now++ = p[row + column];
    }
}

}  // namespace

ProductShape shape_of(const Work& w) {
  ProductShape s;
  for (size_t a = 0; a < w.extents.size(); ++a) {
    const AxisClass c = class_of(w, a);
    (c == kRows ? s.m : c == kColumns ? s.n : c == kInner ? s.k : s.batch) *= w.extents[a];
  }
  return s;
}

Status Computer::matrix(const Work& w, const Product& product) {
  const Access &c = w.operands[0], &a = w.operands[1], &b = w.operands[2];
  const auto along = [&](const Access& o, AxisClass first, AxisClass second,
                         std::vector<int64_t>& x, std::vector<int64_t>& y,
                         std::vector<int64_t>& z) -> Result<int64_t> {
    std::array<bool, kDims> one{}, two{}, three{};
    x = places_along(w, o, first, one);
    y = places_along(w, o, second, two);
    z = places_along(w, o, kBatch, three);
    int64_t origin = 0;
    for (size_t d = 0; d < o.rank(); ++d) {
      if (one[d] + two[d] + three[d] > 1)
        return error(Code::kUnimplemented,
                     "a product in which dimension {} of an operand mixes rows, columns and what "
                     "is summed",
                     d);
      if (!one[d] && !two[d] && !three[d]) origin += o.places->dims[d].at(o.offset[d]);
    }
    return origin;
  };
  std::vector<int64_t> am, ak, az, bk, bn, bz, cm, cn, cz;
  TRY_ASSIGN(const int64_t a0, along(a, kRows, kInner, am, ak, az));
  TRY_ASSIGN(const int64_t b0, along(b, kInner, kColumns, bk, bn, bz));
  TRY_ASSIGN(const int64_t c0, along(c, kRows, kColumns, cm, cn, cz));
  const auto m = static_cast<int64_t>(am.size()), k = static_cast<int64_t>(ak.size()),
             n = static_cast<int64_t>(bn.size());
  for (size_t z = 0; z < cz.size(); ++z) {
    const int64_t at = c0 + cz[z];
    const auto run = [&](auto& pa, auto& pb, auto& pc) {
      gather(a.dtype, a.base, a0 + az[z], am, ak, pa);
      gather(b.dtype, b.base, b0 + bz[z], bk, bn, pb);
      if (w.add)
        sums(c.base, at, cm, cn, pc, false);
      else
        pc.assign(static_cast<size_t>(m * n), 0);
      product.multiply(m, n, k, pa.data(), pb.data(), pc.data());
      sums(c.base, at, cm, cn, pc, true);
    };
    if (c.dtype == DType::kF32)
      run(a_, b_, c_);
    else if (c.dtype == DType::kI32)
      run(a_, b_, ic_);
    else if (c.dtype == DType::kF64)
      run(da_, db_, dc_);
    else
      return error(Code::kUnimplemented, "sums of {}", name_of(c.dtype));
  }
  return {};
}

}  // namespace tessera::hal::sim
