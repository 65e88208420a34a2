#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "tessera/hal/cpu/device.h"

namespace tessera::hal::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kLine = 64;

std::byte* allocate(uint64_t size_bytes) {
  const uint64_t alignment = size_bytes >= 2 * kHugePage ? kHugePage : kLine;
  void* base = nullptr;
  if (size_bytes > PTRDIFF_MAX || posix_memalign(&base, alignment, size_bytes) != 0) return nullptr;
  if (alignment == kHugePage) madvise(base, size_bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<Slab*> allocate_slab(Device& device, uint64_t size_bytes) {
  TRY(device.status());
  if (size_bytes == 0) return error(Code::kInvalidArgument, "a slab of 0 bytes, need at least 1");
  TRY(device.reserve(size_bytes));
  std::byte* base = allocate(size_bytes);
  if (base == nullptr) {
    device.release(size_bytes);
    return error(Code::kResourceExhausted, "the system refuses {} bytes of memory", size_bytes);
  }
  return new Slab{&device, base, size_bytes, false};
}

Slab* wrap_slab(Device& device, void* host, uint64_t size_bytes) {
  device.wrapped_bytes() += size_bytes;
  return new Slab{&device, static_cast<std::byte*>(host), size_bytes, true};
}

void free_slab(Slab* slab) {
  const std::unique_ptr<Slab> owner(slab);
  if (slab->wrapped) {
    slab->device->wrapped_bytes() -= slab->size_bytes;
  } else {
    std::free(slab->base);
    slab->device->release(slab->size_bytes);
  }
}

}  // namespace tessera::hal::cpu
