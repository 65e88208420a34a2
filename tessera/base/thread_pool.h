// A fixed set of threads that spread one grid at a time. The caller is one of them, so a pool of
// one starts no thread and costs a plain call. Workers spin briefly for the next grid and then
// sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tessera {

// A thread per physical core that this process may use (affinity mask, cgroup CPU quota). At
// least 1.
int default_threads();

// kDynamic: many small chunks, taken as threads become free. kStatic: one equal chunk per thread.
enum class Split : uint8_t { kDynamic, kStatic };

class ThreadPool {
 public:
  // `threads` counts the caller: threads - 1 workers are started, never so many that the pool
  // exceeds the hardware threads this process may use; 0 or less means default_threads(). Where the
  // pool has one thread for each core or hardware thread of the affinity mask, its workers are
  // pinned to them; a smaller pool is left to the system, which alone can keep it clear of other
  // pools. The caller's affinity is never changed.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The caller and the workers that could be started.
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Whether the workers are bound to cores.
  bool pinned() const { return pinned_; }

  // Calls fn(first, count) on disjoint chunks with first < grid that cover [0, grid), and returns
  // when all are done; what they wrote is then visible to the caller. `fn` must not throw. Callers
  // on several threads take turns, so `fn` must not wait for another caller's grid. A call from
  // inside `fn`, on this pool or any other, runs inline.
  template <class F>
  void parallel_for(uint32_t grid, F&& fn, Split split = Split::kDynamic) {
    using Body_ = std::remove_reference_t<F>;
    run({[](void* context, uint32_t first, uint32_t count) {
           (*static_cast<Body_*>(context))(first, count);
         },
         const_cast<void*>(static_cast<const void*>(std::addressof(fn)))},
        grid, split);
  }

 private:
  struct Body {
    void (*call)(void* context, uint32_t first, uint32_t count);
    void* context;
  };

  void run(Body body, uint32_t grid, Split split);
  void work();
  bool may_join(uint32_t seen, uint32_t& state) const;
  void take_chunks();
  void close_and_wait();

  // The published grid; written only while no worker is in it.
  Body body_{};
  uint64_t grid_ = 0;
  uint64_t chunk_ = 1;

  // Epoch of the grid (16 bits), whether it may be joined (1 bit), how many workers are in it (15
  // bits).
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<uint32_t> emptied_{0};
  std::atomic<bool> stop_{false};
  std::mutex turn_;
  bool pinned_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tessera
