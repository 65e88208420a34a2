#include <cstdlib>

#include "tessera/base/machine.h"
#include "tessera/hal/null/device.h"

namespace tessera::hal::null {

// A driver calls its own allocation here and keeps its handle in Slab.
Result<std::unique_ptr<Slab>> allocate_slab(Device& device, uint64_t size_bytes) {
  const auto most = static_cast<uint64_t>(usable_memory().value);
  if (most != 0 && size_bytes > most)
    return error(Code::kResourceExhausted, "a slab of {} bytes, this machine has {}", size_bytes,
                 most);
  void* base = nullptr;
  if (posix_memalign(&base, kSlabAlignment, size_bytes) != 0)
    return error(Code::kResourceExhausted, "the system refuses {} bytes of memory", size_bytes);
  const uint64_t now = device.slab_bytes += size_bytes;
  uint64_t peak = device.peak_slab_bytes;
  while (peak < now && !device.peak_slab_bytes.compare_exchange_weak(peak, now)) {
  }
  ++device.slab_count;
  return std::make_unique<Slab>(Slab{&device, static_cast<std::byte*>(base), size_bytes, false});
}

// A driver registers the host's pages, or leaves the entry out of the table.
Result<std::unique_ptr<Slab>> wrap_slab(Device& device, void* host, uint64_t size_bytes) {
  device.wrapped_bytes += size_bytes;
  return std::make_unique<Slab>(Slab{&device, static_cast<std::byte*>(host), size_bytes, true});
}

void free_slab(std::unique_ptr<Slab> slab) {
  if (slab->wrapped) {
    slab->device->wrapped_bytes -= slab->size_bytes;
    return;
  }
  std::free(slab->base);
  slab->device->slab_bytes -= slab->size_bytes;
  --slab->device->slab_count;
}

}  // namespace tessera::hal::null
