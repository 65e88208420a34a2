#include "tessera/runtime/binaries.h"

#include <algorithm>

namespace tessera::runtime {

Result<Entry> BinaryStore::find(const op::Binary& binary, std::string_view entry) {
  const auto index = std::ranges::find(binary.entries, entry);
  if (index == binary.entries.end())
    return error(Code::kInternal, "the executable '{}' has no entry '{}'", binary.key, entry);
  const std::lock_guard lock(mutex_);
  auto found = loaded_.find(binary.key);
  if (found == loaded_.end()) {
    TRY_ASSIGN(hal::Executable executable,
               device_->load(binary.format, binary.bytes, binary.entries));
    found = loaded_.emplace(binary.key, std::move(executable)).first;
  }
  return Entry{&found->second, static_cast<uint32_t>(index - binary.entries.begin())};
}

size_t BinaryStore::size() const {
  const std::lock_guard lock(mutex_);
  return loaded_.size();
}

}  // namespace tessera::runtime
