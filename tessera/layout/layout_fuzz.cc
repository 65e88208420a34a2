// Any bytes as a layout: a line of text, then a byte for the dtype and a byte per extent. What
// parses must print back, what binds must obey the laws, whatever fails must be an error.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tessera/layout/convert.h"
#include "tessera/layout/random_layout.h"
#include "tessera/layout/view.h"

namespace {

using namespace tessera;
using namespace tessera::layout;
using Buffer = std::vector<std::byte>;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

int64_t extent_from(uint8_t byte) {
  return byte < 200 ? byte % 40 : (int64_t{1} << (byte - 193)) - byte % 3;
}

void check_elements(const BoundLayout& bound, const BoundLayout& rows) {
  for_each_index(bound.extents(), [&](const std::vector<int64_t>& index) {
    require(bound.element_at(bound.offset(index)) == index);
  });
  Buffer source(static_cast<size_t>(rows.bytes().value));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 151 + 7);
  if (bound.bits() < 8 && rows.elements() % (8 / bound.bits()) != 0) source.back() = std::byte{1};
  Buffer target(static_cast<size_t>(bound.bytes().value), std::byte{0x5a});
  Buffer back(source.size());
  require(convert(rows, source, bound, target).has_value());
  require(convert(bound, target, rows, back).has_value());
  require(back == source);
  if (bound.layout().padding() == Padding::kZero) require(*padding_is_zero(bound, target));
}

void check_views(const BoundLayout& bound, const Stored& stored) {
  (void)same_places(bound, bound);
  (void)reshape(stored, bound.dtype(), bound.extents(), std::vector<int64_t>{bound.elements()});
  for (int axis = 0; axis < std::min(stored.layout.rank(), 3); ++axis) {
    require(bound.contiguous_run(axis) >= 1);
    (void)slice(stored, bound.dtype(), bound.extents(), axis, 1, 2);
  }
  (void)bound.contiguous_run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const void* end = size == 0 ? nullptr : std::memchr(data, '\n', size);
  const size_t text_size =
      end == nullptr ? size : static_cast<size_t>(static_cast<const uint8_t*>(end) - data);
  const Result<Layout> parsed =
      Layout::parse(std::string_view(reinterpret_cast<const char*>(data), text_size));
  if (!parsed) return 0;
  const Result<Layout> again = Layout::parse(parsed->to_string());
  require(again && *again == *parsed && again->to_string() == parsed->to_string());

  size_t at = text_size + 1;
  const auto next = [&]() -> uint8_t { return at < size ? data[at++] : 17; };
  const auto dtype = static_cast<DType>(next() % kDTypeCount);
  std::vector<int64_t> extents;
  for (int axis = 0; axis < parsed->rank(); ++axis) extents.push_back(extent_from(next()));
  const Result<BoundLayout> bound = BoundLayout::bind(*parsed, dtype, extents);
  if (!bound) return 0;
  const Result<BoundLayout> rows = BoundLayout::bind(Layout::dense(parsed->rank()), dtype, extents);
  require(rows.has_value());
  if (bound->places() <= 4096) check_elements(*bound, *rows);
  check_views(*bound, Stored{.layout = *parsed});
  return 0;
}
