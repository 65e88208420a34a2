// Any bytes as XLA's notation of a layout: a line of text, then a byte per extent. What parses must
// be an expression that prints and parses, and what binds must keep elements apart.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tessera/layout/formats.h"
#include "tessera/layout/random_layout.h"
#include "tessera/layout/xla.h"

namespace {

using namespace tessera;
using namespace tessera::layout;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

void check_places(const BoundLayout& bound) {
  if (bound.places() > 4096) return;
  for_each_index(bound.extents(), [&](const std::vector<int64_t>& index) {
    require(bound.element_at(bound.offset(index)) == index);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const void* end = size == 0 ? nullptr : std::memchr(data, '\n', size);
  const size_t text_size =
      end == nullptr ? size : static_cast<size_t>(static_cast<const uint8_t*>(end) - data);
  const std::string_view text(reinterpret_cast<const char*>(data), text_size);
  const Result<XlaLayout> parsed = parse_xla(text);
  if (!parsed) {
    require(!parsed.error().message.empty());
    return 0;
  }
  const Result<Layout> again = Layout::parse(parsed->layout.to_string());
  require(again && *again == parsed->layout);
  std::vector<int64_t> extents = parsed->extents;
  size_t at = text_size + 1;
  if (!parsed->dtype)
    for (int axis = 0; axis < parsed->layout.rank(); ++axis)
      extents.push_back(at < size ? data[at++] % 20 : 3);
  const DType dtype = parsed->dtype.value_or(DType::kF32);
  const Result<BoundLayout> bound = BoundLayout::bind(parsed->layout, dtype, extents);
  if (bound) check_places(*bound);
  (void)layout_from(text, {.dtype = dtype, .extents = extents});
  return 0;
}
