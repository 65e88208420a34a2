// Slabs, wrapped host memory and the figures about them.
#include <algorithm>
#include <cstdint>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

constexpr uint32_t kSlabBytesKnown = 1u << 2, kSlabCountKnown = 1u << 4, kWrappedKnown = 1u << 5;

Status allocates_any_size(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  for (uint32_t space = 0; space < d.info().spaces.size(); ++space) {
    const MemorySpace& s = d.info().spaces[space];
    std::vector<Buffer> buffers;
    for (int64_t size : {0, 1, 3, 63, 64, 65, 4096, 1'000'003}) {
      TRY_ASSIGN(Buffer b, d.allocate(Bytes(size), space));
      CHECK(b.size().value == size);
      const bool visible = (s.flags & TESSERA_SPACE_HOST_VISIBLE) != 0;
      CHECK((b.host() != nullptr) == visible);
      CHECK(reinterpret_cast<uintptr_t>(b.host()) % static_cast<uint64_t>(s.alignment.value) == 0);
      buffers.push_back(std::move(b));
    }
  }
  return {};
}

Status refuses_absurd_sizes(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  for (int shift : {50, 62})
    CHECK_FAILS(Code::kResourceExhausted, bench->device().allocate(Bytes(int64_t{1} << shift)));
  CHECK_FAILS(Code::kInvalidArgument, bench->device().allocate(Bytes(-1)));
  CHECK_FAILS(Code::kOutOfRange, bench->device().allocate(Bytes(1), 1000));
  TRY(bench->device().allocate(Bytes(64)));
  return {};
}

Status counts_slabs(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  const uint32_t space = d.info().default_space;
  TRY_ASSIGN(const tessera_memory before, d.memory(space));
  {
    TRY_ASSIGN(const Buffer b, d.allocate(Bytes(1 << 20)));
    TRY_ASSIGN(const tessera_memory during, d.memory(space));
    if (during.known & kSlabBytesKnown) CHECK(during.slab_bytes >= before.slab_bytes + (1 << 20));
    if (during.known & kSlabCountKnown) CHECK(during.slab_count == before.slab_count + 1);
  }
  TRY_ASSIGN(const tessera_memory after, d.memory(space));
  CHECK(after.slab_bytes == before.slab_bytes);
  CHECK(after.slab_count == before.slab_count);
  CHECK(!d.memory(1000));
  return {};
}

Status wraps_host_memory_in_place(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Device& d = bench->device();
  std::vector<float> host(1024, 1.0f);
  const Bytes size(static_cast<int64_t>(host.size() * sizeof(float)));
  if (!d.info().can(TESSERA_CAN_WRAP_HOST)) {
    CHECK_FAILS(Code::kUnimplemented, d.wrap(host.data(), size));
    return {};
  }
  {
    TRY_ASSIGN(const Buffer b, d.wrap(host.data(), size));
    CHECK(b.host() == reinterpret_cast<std::byte*>(host.data()));
    TRY(bench->run({bench->add(b.slice(), b.slice(), b.slice())}));
    TRY_ASSIGN(const tessera_memory during, d.memory(0));
    if (during.known & kWrappedKnown) CHECK(during.wrapped_bytes == 4096);
  }
  CHECK(std::ranges::count(host, 2.0f) == 1024);
  CHECK_FAILS(Code::kInvalidArgument, d.wrap(nullptr, size));
  return {};
}

Status slices_stay_inside(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer b, bench->device().allocate(Bytes(100)));
  TRY(b.slice(Bytes(100), Bytes(0)));
  TRY(b.slice(Bytes(0), Bytes(100)));
  CHECK_FAILS(Code::kOutOfRange, b.slice(Bytes(0), Bytes(101)));
  CHECK_FAILS(Code::kOutOfRange, b.slice(Bytes(101), Bytes(0)));
  CHECK_FAILS(Code::kOutOfRange, b.slice(Bytes(-1), Bytes(1)));
  CHECK_FAILS(Code::kOutOfRange, b.slice(Bytes(64), Bytes(INT64_MAX)));
  return {};
}

constexpr Case kCases[] = {
    {"memory", "allocates_any_size", allocates_any_size},
    {"memory", "refuses_absurd_sizes", refuses_absurd_sizes},
    {"memory", "counts_slabs", counts_slabs},
    {"memory", "wraps_host_memory_in_place", wraps_host_memory_in_place},
    {"memory", "slices_stay_inside", slices_stay_inside},
};

}  // namespace

std::span<const Case> memory_cases() { return kCases; }

}  // namespace tessera::hal::conformance
