// A layout bound to a dtype and extents: sizes, strides and the place of every element.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/layout/layout.h"

namespace tessera::layout {

// How a tensor lies in its buffer. `strides` has an entry per physical axis, in elements, and may
// be negative; without it the physical axes are packed, the last one innermost (sub-byte types:
// rows of the last axis start on a byte).
struct Stored {
  Layout layout = {};
  int64_t offset = 0;  // of the place (0, 0, ...), in elements from the start of the buffer
  std::optional<std::vector<int64_t>> strides = std::nullopt;

  bool operator==(const Stored&) const = default;
};

// i: a logical index, p: a place (index per physical axis), both in elements.
class BoundLayout {
 public:
  // kInvalidArgument: wrong number of extents or strides, a negative extent, a dtype without bits,
  // segments that do not cover their axis, two elements in one place (or not provably different
  // places), strides that overlap or interleave. kOutOfRange: sizes beyond 2^62 bits, or a place
  // before the start of the buffer.
  static Result<BoundLayout> bind(const Stored& stored, DType dtype,
                                  std::span<const int64_t> extents);
  static Result<BoundLayout> bind(const Layout& layout, DType dtype,
                                  std::span<const int64_t> extents);

  const Layout& layout() const;
  DType dtype() const;
  int bits() const;                          // of one element
  std::span<const int64_t> extents() const;  // logical
  std::span<const int64_t> physical_extents() const;
  std::span<const int64_t> strides() const;  // elements, per physical axis
  int64_t offset() const;                    // Stored::offset
  bool is_packed() const;                    // strides are those of a Stored without strides

  int64_t elements() const;  // product of extents
  int64_t places() const;    // product of physical extents
  int64_t padding() const { return places() - elements(); }
  // From the start of the buffer to the end of the last place (sub-byte, packed: of the last row),
  // rounded up.
  Bytes bytes() const;

  // Offset in elements from the start of the buffer; `index` must be within extents().
  // @post i != j  =>  offset(i) != offset(j)
  int64_t offset(std::span<const int64_t> index) const;
  // As offset(), but gives kOutOfRange for a wrong index.
  Result<int64_t> checked_offset(std::span<const int64_t> index) const;
  // @post element_at(offset(i)) == i;  nullopt where there is padding or no place at all
  std::optional<std::vector<int64_t>> element_at(int64_t offset) const;

  // Offsets along a logical axis as straight lines: offset(index + t e_axis) == start + t stride
  // for 0 <= t < length.
  struct Line {
    int64_t start = 0;
    int64_t stride = 0;
    int64_t length = 0;  // at least 1, within the axis
  };
  Line line(std::span<const int64_t> index, int axis) const;

  // Whether two logical axes enter the offset together; if not, offset(i) - offset(0) is a sum over
  // the two.
  bool mixes(int axis_a, int axis_b) const;

  // @post i[axis] % contiguous_run(axis) != 0  =>  offset(i) == offset(i - e_axis) + 1
  // The largest such number that a bounded search proves, at least 1.
  int64_t contiguous_run(int axis) const;
  // The same over all axes in row-major order, e(k) being the k-th element:
  // @post k % contiguous_run() != 0  =>  offset(e(k)) == offset(e(k - 1)) + 1
  int64_t contiguous_run() const;

  // The offset as a sum over digits of axes:
  // @post offset(i) == offset(0) + sum of digit.value(i)
  // Axes of extent 1 do not occur. nullopt where the expression has other parts: joined segments,
  // xor, quotients that cut a digit.
  struct Digit {
    std::vector<int> axes;  // u is the row-major number of i along them
    int64_t unit = 1;
    int64_t radix = 0;  // 0: none
    int64_t size = 1;   // values that the layout has places for
    int64_t stride = 0;

    // (u / unit % radix) * stride
    int64_t value(std::span<const int64_t> index, std::span<const int64_t> extents) const;
  };
  std::optional<std::vector<Digit>> digits() const;

 private:
  struct State;
  explicit BoundLayout(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;  // immutable, shared by copies
};

}  // namespace tessera::layout
