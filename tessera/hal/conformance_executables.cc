#include "tessera/hal/conformance_executables.h"

#include <chrono>
#include <cstring>

namespace tessera::hal {
namespace {

void add(const tessera_launch* l, uint32_t first, uint32_t count) {
  const auto* a = static_cast<const float*>(l->ranges[0].data);
  const auto* b = static_cast<const float*>(l->ranges[1].data);
  auto* c = static_cast<float*>(l->ranges[2].data);
  for (uint32_t i = first; i < first + count; ++i) c[i] = a[i] + b[i];
}

void spin(const tessera_launch* l, uint32_t, uint32_t) {
  uint64_t us = 0;
  std::memcpy(&us, l->constants, sizeof us);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
  ++*static_cast<uint32_t*>(l->ranges[0].data);
}

void trap(const tessera_launch* l, uint32_t, uint32_t) { l->fail(l, "trap"); }

}  // namespace

ConformanceExecutables host_conformance_executables() {
  return {.format = "host_fn", .functions = {{"add", add}, {"spin", spin}, {"trap", trap}}};
}

}  // namespace tessera::hal
