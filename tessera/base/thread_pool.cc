#include "tessera/base/thread_pool.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "tessera/base/machine.h"

namespace tessera {
namespace {

constexpr uint32_t kOpen = 0x8000;
constexpr uint32_t kJoined = 0x7fff;
constexpr uint32_t kEpoch = 0x10000;
constexpr int kSpins = 1000;  // tens of microseconds: the usual gap between two launches
// Waking a thread takes as long as a small launch, so that a worker watches for the length of some
// launches that are not for it before it sleeps; after kSpins it lets others have the core.
constexpr std::chrono::microseconds kWatch(300);
constexpr int kSpinsPerYield = 50;
constexpr uint64_t kChunksPerThread = 8;

thread_local bool inside_grid = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()`; false when that took too long: kSpins, and then `watch`.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds watch = {}) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    relax();
  }
  for (const auto end = std::chrono::steady_clock::now() + watch;
       watch.count() > 0 && std::chrono::steady_clock::now() < end; sched_yield())
    for (int i = 0; i < kSpinsPerYield; ++i) {
      if (done()) return true;
      relax();
    }
  return done();
}

class Topology {
 public:
  Topology() {
    ok_ = hwloc_topology_init(&topology_) == 0;
    if (!ok_) return;
    // It moves to each core in turn to ask it, and waits there while the core is busy; Linux tells
    // the same.
    hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    ok_ = hwloc_topology_load(topology_) == 0;
    allowed_ = hwloc_bitmap_alloc();
    ok_ = ok_ && allowed_ && hwloc_get_cpubind(topology_, allowed_, HWLOC_CPUBIND_THREAD) == 0;
  }
  ~Topology() {
    hwloc_bitmap_free(allowed_);
    if (topology_) hwloc_topology_destroy(topology_);
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // The places of one type (cores, hardware threads) that the affinity mask reaches, each reduced
  // to the mask.
  std::vector<cpu_set_t> places(hwloc_obj_type_t type) const {
    std::vector<cpu_set_t> result;
    if (!ok_) return result;
    hwloc_bitmap_t part = hwloc_bitmap_alloc();
    for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(topology_, type, o)) && part;) {
      hwloc_bitmap_and(part, o->cpuset, allowed_);
      if (!hwloc_bitmap_iszero(part)) result.push_back(to_set(part));
    }
    hwloc_bitmap_free(part);
    return result;
  }

 private:
  static cpu_set_t to_set(hwloc_const_bitmap_t bits) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = -1; (cpu = hwloc_bitmap_next(bits, cpu)) >= 0;)
      if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    return set;
  }

  hwloc_topology_t topology_ = nullptr;
  hwloc_bitmap_t allowed_ = nullptr;
  bool ok_ = false;
};

// One place per thread, or none unless the threads fill every core or every hardware thread.
std::vector<cpu_set_t> places_for(int threads) {
  const Topology topology;
  for (hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {
    std::vector<cpu_set_t> places = topology.places(type);
    if (places.size() == static_cast<size_t>(threads)) return places;
  }
  return {};
}

}  // namespace

int default_threads() {
  const int cores = static_cast<int>(Topology().places(HWLOC_OBJ_CORE).size());
  return cores > 0 ? std::min(cores, usable_cpus()) : usable_cpus();
}

ThreadPool::ThreadPool(int threads) {
  threads = threads > 0 ? std::min(threads, usable_cpus()) : default_threads();
  threads = std::min(threads, static_cast<int>(kJoined));
  if (threads == 1) return;
  workers_.reserve(static_cast<size_t>(threads - 1));
  try {
    while (this->threads() < threads) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system allows no more threads: the pool is smaller.
  }
  const std::vector<cpu_set_t> places = places_for(this->threads());
  pinned_ = !places.empty();
  for (size_t i = 0; i < workers_.size() && pinned_; ++i)
    pinned_ =
        pthread_setaffinity_np(workers_[i].native_handle(), sizeof(cpu_set_t), &places[i + 1]) == 0;
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  state_.fetch_add(kEpoch);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Body body, uint32_t grid, Split split) {
  if (grid == 0) return;
  if (grid == 1 || workers_.empty() || inside_grid) return body.call(body.context, 0, grid);
  const std::lock_guard lock(turn_);
  const auto parts =
      static_cast<uint64_t>(threads()) * (split == Split::kStatic ? 1 : kChunksPerThread);
  body_ = body;
  grid_ = grid;
  chunk_ = (grid + parts - 1) / parts;
  next_.store(0, std::memory_order_relaxed);
  state_.store(((state_.load(std::memory_order_relaxed) & ~(kEpoch - 1)) + kEpoch) | kOpen);
  state_.notify_all();
  take_chunks();
  close_and_wait();
}

void ThreadPool::take_chunks() {
  inside_grid = true;
  for (uint64_t first = 0; (first = next_.fetch_add(chunk_, std::memory_order_relaxed)) < grid_;)
    body_.call(body_.context, static_cast<uint32_t>(first),
               static_cast<uint32_t>(std::min(chunk_, grid_ - first)));
  inside_grid = false;
}

// After this no worker is in the grid, and none can join it.
void ThreadPool::close_and_wait() {
  state_.fetch_and(~kOpen);
  const auto empty = [this] { return (state_.load() & kJoined) == 0; };
  if (spin_until(empty)) return;
  for (;;) {
    const uint32_t before = emptied_.load();
    if (empty()) return;
    emptied_.wait(before);
  }
}

// Whether a grid other than the one of epoch `seen` is open; `state` is what was read.
bool ThreadPool::may_join(uint32_t seen, uint32_t& state) const {
  state = state_.load();
  return stop_.load() || ((state & kOpen) && state / kEpoch != seen);
}

void ThreadPool::work() {
  uint32_t seen = 0, state = 0;
  while (!stop_.load()) {
    if (!spin_until([&] { return may_join(seen, state); }, kWatch)) {
      state_.wait(state);
      continue;
    }
    if (stop_.load() || !state_.compare_exchange_strong(state, state + 1)) continue;
    seen = state / kEpoch;
    take_chunks();
    if (state_.fetch_sub(1) % kEpoch == 1) {
      emptied_.fetch_add(1);
      emptied_.notify_one();
    }
  }
}

}  // namespace tessera
