#include "tessera/ir/reference/loops.h"

#include <cstring>

#include "tessera/base/element.h"

namespace tessera::ir::reference {

void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target) {
  if (from.dtype() == DType::kString) {
    to.mutable_text()[static_cast<size_t>(target)] = from.text()[static_cast<size_t>(source)];
    return;
  }
  const int bits = bits_of(from.dtype());
  if (bits >= 8) {
    const size_t size = static_cast<size_t>(bits / 8);
    std::memcpy(to.mutable_data() + static_cast<size_t>(target) * size,
                from.data() + static_cast<size_t>(source) * size, size);
    return;
  }
  const int64_t per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  const int value =
      (static_cast<int>(from.data()[source / per_byte]) >> (source % per_byte * bits)) & mask;
  const int shift = static_cast<int>(target % per_byte) * bits;
  std::byte& slot = to.mutable_data()[target / per_byte];
  slot = static_cast<std::byte>((static_cast<int>(slot) & ~(mask << shift)) | (value << shift));
}

std::vector<double> to_doubles(const Tensor& t) {
  std::vector<double> values(static_cast<size_t>(t.count()));
  convert_elements(t.dtype(), t.data(), DType::kF64, values.data(), t.count());
  return values;
}

}  // namespace tessera::ir::reference
