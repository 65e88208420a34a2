// Single elements as bits, and the places that hold none.
#include <cstring>
#include <functional>

#include "tessera/layout/convert.h"

namespace tessera::layout {
namespace {

// Offsets that hold an element, as a flag for each offset up to the end of the tensor.
std::vector<bool> occupied(const BoundLayout& layout) {
  std::vector<bool> flags(static_cast<size_t>(layout.bytes().value * 8 / layout.bits()) + 1);
  const std::span<const int64_t> extents = layout.extents();
  if (layout.elements() == 0) return flags;
  if (extents.empty()) {
    flags[static_cast<size_t>(layout.offset({}))] = true;
    return flags;
  }
  const size_t last = extents.size() - 1;
  std::vector<int64_t> index(extents.size());
  while (true) {
    const BoundLayout::Line line = layout.line(index, static_cast<int>(last));
    for (int64_t t = 0; t < line.length; ++t)
      flags[static_cast<size_t>(line.start + t * line.stride)] = true;
    index[last] += line.length;
    size_t a = extents.size();
    while (a > 0 && index[a - 1] >= extents[a - 1]) {
      index[--a] = 0;
      if (a > 0) ++index[a - 1];
    }
    if (a == 0) return flags;
  }
}

// Visits the places of `layout` that hold no element; stops when visit returns false.
bool visit_padding(const BoundLayout& layout, const std::function<bool(int64_t offset)>& visit) {
  const std::span<const int64_t> sizes = layout.physical_extents();
  if (layout.padding() == 0 || layout.places() == 0) return true;
  const std::vector<bool> flags = occupied(layout);
  std::vector<int64_t> place(sizes.size());
  while (true) {
    int64_t offset = layout.offset();
    for (size_t a = 0; a < sizes.size(); ++a) offset += place[a] * layout.strides()[a];
    if (!flags[static_cast<size_t>(offset)] && !visit(offset)) return false;
    size_t a = sizes.size();
    while (a > 0 && ++place[a - 1] == sizes[a - 1]) place[--a] = 0;
    if (a == 0) return true;
  }
}

Status check_buffer(const BoundLayout& layout, size_t size) {
  if (static_cast<int64_t>(size) >= layout.bytes().value) return {};
  return error(Code::kInvalidArgument, "buffer has {} bytes, its layout needs {}", size,
               layout.bytes().value);
}

}  // namespace

ElementBits read_element(std::span<const std::byte> buffer, int bits, int64_t offset) {
  ElementBits value;
  if (bits < 8) {
    const auto byte = std::to_integer<uint64_t>(buffer[static_cast<size_t>(offset * bits / 8)]);
    value.low = byte >> (offset * bits % 8) & ((1u << bits) - 1);
    return value;
  }
  const auto width = static_cast<size_t>(bits / 8);
  const std::byte* source = buffer.data() + static_cast<size_t>(offset) * width;
  std::memcpy(&value.low, source, std::min<size_t>(width, 8));
  if (width > 8) std::memcpy(&value.high, source + 8, width - 8);
  return value;
}

void write_element(std::span<std::byte> buffer, int bits, int64_t offset, ElementBits value) {
  if (bits < 8) {
    std::byte& byte = buffer[static_cast<size_t>(offset * bits / 8)];
    const auto shift = static_cast<unsigned>(offset * bits % 8);
    const unsigned mask = ((1u << bits) - 1) << shift;
    byte = static_cast<std::byte>((std::to_integer<unsigned>(byte) & ~mask) |
                                  (static_cast<unsigned>(value.low) << shift & mask));
    return;
  }
  const auto width = static_cast<size_t>(bits / 8);
  std::byte* target = buffer.data() + static_cast<size_t>(offset) * width;
  std::memcpy(target, &value.low, std::min<size_t>(width, 8));
  if (width > 8) std::memcpy(target + 8, &value.high, width - 8);
}

Status zero_padding(const BoundLayout& layout, std::span<std::byte> buffer) {
  TRY(check_buffer(layout, buffer.size()));
  visit_padding(layout, [&](int64_t offset) {
    write_element(buffer, layout.bits(), offset, {});
    return true;
  });
  return {};
}

Result<bool> padding_is_zero(const BoundLayout& layout, std::span<const std::byte> buffer) {
  TRY(check_buffer(layout, buffer.size()));
  return visit_padding(layout, [&](int64_t offset) {
    return read_element(buffer, layout.bits(), offset) == ElementBits{};
  });
}

}  // namespace tessera::layout
