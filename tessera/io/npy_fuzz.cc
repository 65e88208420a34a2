// .npy and .npz files: no crash, no reading beyond the file, and what is read is written and read
// back the same.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tessera/io/npy.h"
#include "tessera/io/npz.h"

namespace {

using namespace tessera;

void check_round_trip(const op::Tensor& t) {
  if (!io::writable_as_npy(t.dtype())) return;
  const std::string text = io::write_npy(t);
  const auto again = io::parse_npy(text, nullptr);
  const auto size = static_cast<size_t>(t.bytes().value);
  if (!again || again->dims() != t.dims() || again->dtype() != t.dtype() ||
      (size > 0 && std::memcmp(again->data(), t.data(), size) != 0))
    std::abort();
}

void read(std::string_view bytes) {
  if (auto t = io::parse_npy(bytes, nullptr, DType::kBF16)) check_round_trip(*t);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  if (auto members = io::parse_npz(bytes, nullptr))
    for (const io::NpzMember& member : *members) read(member.data);
  return 0;
}
