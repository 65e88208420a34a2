#include <cstdlib>

#include "tessera/base/machine.h"
#include "tessera/hal/sim/device.h"

namespace tessera::hal::sim {

// The host's memory stands for the chip's: pages that nobody writes cost nothing.
Result<std::unique_ptr<Slab>> allocate_slab(Device& device, uint64_t size_bytes) {
  TRY(device.reserve(size_bytes));
  void* base = nullptr;
  const auto most = static_cast<uint64_t>(usable_memory().value);
  if ((most != 0 && size_bytes > most) ||
      posix_memalign(&base, kSlabAlignment, std::max<uint64_t>(size_bytes, 1)) != 0) {
    device.release(size_bytes);
    return error(Code::kResourceExhausted, "a slab of {} bytes, this machine has {}", size_bytes,
                 most);
  }
  return std::make_unique<Slab>(Slab{&device, static_cast<std::byte*>(base), size_bytes, false});
}

std::unique_ptr<Slab> wrap_slab(Device& device, void* host, uint64_t size_bytes) {
  device.wrapped_bytes += size_bytes;
  return std::make_unique<Slab>(Slab{&device, static_cast<std::byte*>(host), size_bytes, true});
}

void free_slab(std::unique_ptr<Slab> slab) {
  if (slab->wrapped) {
    slab->device->wrapped_bytes -= slab->size_bytes;
    return;
  }
  std::free(slab->base);
  slab->device->release(slab->size_bytes);
}

}  // namespace tessera::hal::sim
