// The laws of the caching allocator, on each backend.
#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

constexpr Bytes kSlab{1 << 16};
constexpr Bytes kLimit{1 << 18};

// Where a buffer lies: its slab and bytes. Law: what is held or in use is disjoint.
bool overlap(const Slice& a, const Slice& b) {
  return a.slab == b.slab && a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

Status hands_out_disjoint_blocks(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kLimit});
  std::mt19937 random(7);
  std::vector<Buffer> held;
  int64_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!held.empty() && random() % 2 == 0) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
      continue;
    }
    const Bytes size(static_cast<int64_t>(1 + random() % (1u << (random() % 16))));
    const AllocatorStatistics before = allocator.statistics();
    Result<Buffer> b = allocator.allocate(size, {.tag = "law"});
    if (!b) {
      CHECK(b.error().code == Code::kResourceExhausted);
      CHECK(before.largest_free < size, "refused {} bytes though {} are free in one block",
            size.value, before.largest_free.value);
      ++refused;
      continue;
    }
    CHECK(b->size() == size);
    CHECK(b->slice().offset_bytes % bench->device().info().range_alignment_bytes == 0);
    for (const Buffer& other : held) CHECK(!overlap(other.slice(), b->slice()));
    held.push_back(std::move(*b));
  }
  const AllocatorStatistics s = allocator.statistics();
  CHECK(s.buffers == static_cast<int64_t>(held.size()));
  CHECK(s.failures == refused);
  CHECK(s.reserved <= kLimit);
  CHECK(s.held.value + s.pending.value + s.free.value == s.reserved.value);
  CHECK(s.slab_allocations < s.allocations / 10, "{} slabs for {} buffers", s.slab_allocations,
        s.allocations);
  held.clear();
  CHECK(allocator.statistics().held.value == 0);
  CHECK(allocator.statistics().requested.value == 0);
  return {};
}

Status gives_memory_back(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const uint32_t space = bench->device().info().default_space;
  TRY_ASSIGN(const tessera_memory before, bench->device().memory(space));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kLimit});
  std::vector<Buffer> held;
  for (int i = 0; i < 100; ++i) {
    TRY_ASSIGN(Buffer b, allocator.allocate(Bytes(1000)));
    held.push_back(std::move(b));
  }
  CHECK(allocator.trim().value >= 0);
  std::ranges::shuffle(held, std::mt19937(3));
  held.clear();
  const AllocatorStatistics s = allocator.statistics();
  CHECK(s.free == s.reserved);
  CHECK(s.largest_free.value * s.slabs == s.reserved.value, "the blocks of a slab did not merge");
  CHECK(allocator.trim() == s.reserved);
  CHECK(allocator.statistics().reserved.value == 0);
  TRY_ASSIGN(const tessera_memory after, bench->device().memory(space));
  CHECK(after.slab_bytes == before.slab_bytes);
  return {};
}

Status spares_blocks_in_use(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kSlab});
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(Buffer in_use, allocator.allocate(Bytes(40'000)));
  const Slice where = in_use.slice();
  TRY(queue.submit({fill(where, 7, 4)}, {gate.point()}, {done.at(1)}));
  in_use.used_until(done.at(1));
  in_use = Buffer();
  CHECK(allocator.statistics().pending.value >= 40'000);
  CHECK(allocator.statistics().held.value == 0);
  TRY_ASSIGN(const Buffer small, allocator.allocate(Bytes(10'000)));
  CHECK(!overlap(small.slice(), where));
  const Result<Buffer> refused = allocator.allocate(Bytes(40'000), {.tag = "second"});
  CHECK_FAILS(Code::kResourceExhausted, refused);
  CHECK(refused.error().message.find("timeline value 1") != std::string::npos, "{}",
        refused.error().message);
  {
    const std::jthread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      (void)gate.set();
    });
    TRY(allocator.allocate(Bytes(40'000), {.tag = "patient", .patience = kHang}));
  }
  TRY(done.wait(1, kHang));
  CHECK(allocator.statistics().pending.value == 0);
  return {};
}

Status frees_what_failed_work_used(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kSlab});
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(Buffer b, allocator.allocate(kSlab));
  TRY(queue.submit({bench->trap()}, {}, {done.at(1)}));
  b.used_until(done.at(1));
  b = Buffer();
  CHECK(!done.wait(1, kHang));
  TRY(allocator.allocate(kSlab, {.patience = kHang}));
  return {};
}

Status explains_out_of_memory(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kLimit});
  TRY_ASSIGN(const Buffer weights, allocator.allocate(Bytes(150'000), {.tag = "weights"}));
  TRY_ASSIGN(const Buffer cache, allocator.allocate(Bytes(50'000), {.tag = "cache"}));
  const Result<Buffer> refused = allocator.allocate(Bytes(100'000), {.tag = "activations"});
  CHECK_FAILS(Code::kResourceExhausted, refused);
  for (const char* part :
       {"'activations'", "'weights' 146.", "'cache' 49", "largest", "pending frees", "limit"})
    CHECK(refused.error().message.find(part) != std::string::npos, "'{}' not in '{}'", part,
          refused.error().message);
  CHECK_FAILS(Code::kInvalidArgument, allocator.allocate(Bytes(-1)));
  CHECK_FAILS(Code::kResourceExhausted, allocator.allocate(Bytes(INT64_MAX)));
  return {};
}

// Unused slabs make room for a request that none of them could hold.
Status reuses_cached_slabs(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab, .limit = kLimit});
  {
    std::vector<Buffer> held;
    for (int i = 0; i < 4; ++i) {
      TRY_ASSIGN(Buffer b, allocator.allocate(kSlab));
      held.push_back(std::move(b));
    }
  }
  CHECK(allocator.statistics().reserved == kLimit);
  return allocator.allocate(kLimit).map([](const Buffer&) {});
}

Status serves_many_threads(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  Allocator allocator(bench->device(), {.slab = kSlab});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        std::vector<Buffer> held;
        for (int i = 0; i < 500; ++i) {
          auto b = allocator.allocate(Bytes(static_cast<int64_t>(4 + random() % 5000)));
          if (!b) {
            ++wrong;
            continue;
          }
          if (b->host() != nullptr) std::fill_n(b->host(), b->size().value, std::byte(t));
          held.push_back(std::move(*b));
          if (held.size() > 20) held.erase(held.begin());
          const Buffer& oldest = held.front();
          if (oldest.host() != nullptr &&
              std::any_of(oldest.host(), oldest.host() + oldest.size().value,
                          [&](std::byte x) { return x != std::byte(t); }))
            ++wrong;
        }
      });
  }
  CHECK(wrong == 0);
  CHECK(allocator.statistics().held.value == 0);
  return {};
}

constexpr Case kCases[] = {
    {"allocator", "hands_out_disjoint_blocks", hands_out_disjoint_blocks},
    {"allocator", "gives_memory_back", gives_memory_back},
    {"allocator", "spares_blocks_in_use", spares_blocks_in_use},
    {"allocator", "frees_what_failed_work_used", frees_what_failed_work_used},
    {"allocator", "explains_out_of_memory", explains_out_of_memory},
    {"allocator", "reuses_cached_slabs", reuses_cached_slabs},
    {"allocator", "serves_many_threads", serves_many_threads},
};

}  // namespace

std::span<const Case> allocator_cases() { return kCases; }

}  // namespace tessera::hal::conformance
