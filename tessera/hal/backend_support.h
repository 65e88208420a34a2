// What the body of a table entry needs, whatever the backend: handles, out-structs, and a guard
// that keeps exceptions inside.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "tessera/hal/failure.h"

namespace tessera::hal {

// A handle is the address of the backend's own object.
template <class Handle, class Object>
Handle* handle_of(Object* object) {
  return reinterpret_cast<Handle*>(object);
}
template <class Object, class Handle>
Object& object_of(Handle* handle) {
  return *reinterpret_cast<Object*>(handle);
}

// Copies what both sides of an out-struct know; `to->struct_size` says what the caller knows.
template <class T>
void fill_out(T* to, const T& from) {
  const uint32_t size = std::min<uint32_t>(to->struct_size, sizeof(T));
  std::memcpy(static_cast<void*>(to), &from, size);
  to->struct_size = size;
}

// Runs `body`, which returns a Status, and answers as a table entry must.
template <class F>
int32_t guarded(tessera_error* e, F&& body) noexcept {
  try {
    return to_c(body(), e);
  } catch (const std::bad_alloc&) {
    return to_c(Error{Code::kResourceExhausted, "out of host memory"}, e);
  } catch (const std::exception& x) {
    return to_c(Error{Code::kInternal, x.what()}, e);
  }
}

// The newest version that the host takes and that this plugin, which takes `oldest` to `newest`,
// knows.
inline Result<uint32_t> choose_version(const tessera_host& host, uint32_t oldest, uint32_t newest) {
  const uint32_t version = std::min(host.abi_newest, newest);
  if (version >= oldest && version >= host.abi_oldest) return version;
  return error(Code::kFailedPrecondition,
               "the host takes plugin versions {} to {}, this plugin has {} to {}", host.abi_oldest,
               host.abi_newest, oldest, newest);
}

}  // namespace tessera::hal
