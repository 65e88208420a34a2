#include "tessera/hal/buffer.h"

#include <utility>

namespace tessera::hal {

Buffer::~Buffer() {
  if (slice_.slab == nullptr) return;
  owner_ ? owner_->release(block_, std::move(uses_)) : table_->slab_free(slice_.slab);
}

Result<Slice> Buffer::slice(Bytes offset, Bytes size) const {
  if (offset.value < 0 || size.value < 0 || offset > this->size() ||
      size > Bytes(this->size().value - offset.value))
    return error(Code::kOutOfRange, "bytes {} to {} + {} of a buffer of {}", offset.value,
                 offset.value, size.value, slice_.size_bytes);
  return Slice{slice_.slab, slice_.offset_bytes + static_cast<uint64_t>(offset.value),
               static_cast<uint64_t>(size.value)};
}

void Buffer::swap(Buffer& o) noexcept {
  std::swap(table_, o.table_);
  std::swap(slice_, o.slice_);
  std::swap(host_, o.host_);
  std::swap(owner_, o.owner_);
  std::swap(block_, o.block_);
  std::swap(uses_, o.uses_);
}

}  // namespace tessera::hal
