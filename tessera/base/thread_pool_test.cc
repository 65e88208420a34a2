#include "tessera/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/base/machine.h"

namespace tessera {
namespace {

// How often each item of the grid was computed. Plain ints: TSan sees any overlap.
std::vector<int> visits(ThreadPool& pool, uint32_t grid, Split split) {
  std::vector<int> count(grid);
  pool.parallel_for(
      grid,
      [&](uint32_t first, uint32_t n) {
        for (uint32_t i = 0; i < n; ++i) ++count[first + i];
      },
      split);
  return count;
}

TEST(ThreadPool, EveryItemIsComputedOnce) {
  for (int threads : {1, 2, 3, 0}) {
    ThreadPool pool(threads);
    for (uint32_t grid : {0u, 1u, 2u, 7u, 31u, 32u, 33u, 1000u, 100003u})
      for (Split split : {Split::kDynamic, Split::kStatic})
        EXPECT_EQ(visits(pool, grid, split), std::vector<int>(grid, 1))
            << threads << " threads, grid " << grid;
  }
}

TEST(ThreadPool, TheWholeRangeOfGridsIsCovered) {
  ThreadPool pool;
  std::atomic<uint64_t> items{0};
  pool.parallel_for(UINT32_MAX, [&](uint32_t, uint32_t count) { items += count; });
  EXPECT_EQ(items.load(), uint64_t{UINT32_MAX});
}

TEST(ThreadPool, StaticSplitHasOnePartPerThread) {
  ThreadPool pool;
  std::mutex mutex;
  std::vector<uint32_t> firsts;
  pool.parallel_for(
      1000,
      [&](uint32_t first, uint32_t) {
        const std::lock_guard lock(mutex);
        firsts.push_back(first);
      },
      Split::kStatic);
  EXPECT_EQ(firsts.size(), static_cast<size_t>(pool.threads()));
}

TEST(ThreadPool, NeverLargerThanTheProcessMayBe) {
  EXPECT_LE(ThreadPool(10000).threads(), usable_cpus());
  EXPECT_EQ(ThreadPool(1).threads(), 1);
  EXPECT_EQ(ThreadPool(0).threads(), default_threads());
  EXPECT_LE(default_threads(), usable_cpus());
}

TEST(ThreadPool, MaskOfOneProcessorMeansOneThread) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(default_threads(), 1);
    EXPECT_EQ(ThreadPool(4).threads(), 1);
  }).join();
}

TEST(ThreadPool, OneThreadRunsOnTheCaller) {
  ThreadPool pool(1);
  const std::thread::id caller = std::this_thread::get_id();
  pool.parallel_for(64, [&](uint32_t first, uint32_t count) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(count, 64u);
  });
}

TEST(ThreadPool, PinnedWorkersKeepToDistinctPlaces) {
  ThreadPool pool;
  if (pool.threads() == 1) GTEST_SKIP() << "one processor";
  if (!pool.pinned()) GTEST_SKIP() << "the pool does not fill the affinity mask, or may not pin";
  cpu_set_t whole;
  ASSERT_EQ(sched_getaffinity(0, sizeof whole, &whole), 0);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  std::set<std::thread::id> workers;
  std::set<int> places;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (workers.size() + 1 < static_cast<size_t>(pool.threads()) &&
         std::chrono::steady_clock::now() < deadline)
    pool.parallel_for(1000, [&](uint32_t, uint32_t) {
      if (std::this_thread::get_id() == caller) return std::this_thread::yield();
      cpu_set_t mine;
      EXPECT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
      EXPECT_LT(CPU_COUNT(&mine), CPU_COUNT(&whole));
      const std::lock_guard lock(mutex);
      if (!workers.insert(std::this_thread::get_id()).second) return;
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        EXPECT_TRUE(!CPU_ISSET(cpu, &mine) || places.insert(cpu).second) << cpu;
    });
  EXPECT_EQ(workers.size() + 1, static_cast<size_t>(pool.threads()));
}

TEST(ThreadPool, CallersOnOtherThreadsTakeTurns) {
  ThreadPool pool;
  std::atomic<int> active{0}, most{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        pool.parallel_for(97, [&](uint32_t, uint32_t) {
          const int now = ++active;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          --active;
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most.load(), pool.threads());
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool, other;
  std::atomic<uint64_t> sum{0};
  pool.parallel_for(20, [&](uint32_t, uint32_t outer) {
    const std::thread::id self = std::this_thread::get_id();
    for (ThreadPool* inner : {&pool, &other})
      inner->parallel_for(10, [&](uint32_t, uint32_t count) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        sum += uint64_t{outer} * count;
      });
  });
  EXPECT_EQ(sum.load(), 400u);
}

TEST(ThreadPool, ResultsAreVisibleAcrossManySmallGridsAndSleeps) {
  ThreadPool pool;
  std::vector<uint64_t> data(16);
  for (int round = 0; round < 3000; ++round) {
    pool.parallel_for(16, [&](uint32_t first, uint32_t count) {
      for (uint32_t i = first; i < first + count; ++i) data[i] += i;
    });
    if (round % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(std::accumulate(data.begin(), data.end(), uint64_t{0}), uint64_t{3000 * 120});
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(2);
}

}  // namespace
}  // namespace tessera
