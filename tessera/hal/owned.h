// A handle of a backend with its owner's duty to give it back.
#pragma once

#include <utility>

#include "tessera/tessera_plugin.h"

namespace tessera::hal {

template <class Handle, auto Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(const tessera_backend* table, Handle* handle) : table_(table), handle_(handle) {}
  Owned(Owned&& o) noexcept : table_(o.table_), handle_(std::exchange(o.handle_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(table_, o.table_);
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) (table_->*Destroy)(handle_);
  }

  const tessera_backend* table() const { return table_; }
  Handle* get() const { return handle_; }
  Handle* release() { return std::exchange(handle_, nullptr); }

 private:
  const tessera_backend* table_ = nullptr;
  Handle* handle_ = nullptr;
};

}  // namespace tessera::hal
