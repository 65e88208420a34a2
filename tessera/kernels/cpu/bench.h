// Runs claims for benchmarks: their memory, their launches, and what the machine could do at best.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "tessera/kernels/cpu/table.h"

namespace tessera::kernels::cpu::bench {

// Processor time of the calling thread, on which kernels and rivals run: machines are busy.
inline double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
inline double seconds(F&& f) {
  const double start = now();
  f();
  return now() - start;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

inline Buffer buffer(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes + 63) / 64 * 64 + 64;
  Buffer b(static_cast<std::byte*>(std::aligned_alloc(64, size)));
  auto* floats = reinterpret_cast<float*>(b.get());
  for (size_t i = 0; i < size / sizeof(float); ++i)
    floats[i] = 0.01f * static_cast<float>(1 + i % 17);
  return b;
}

// Elements that an operand's memory spans.
inline int64_t span_of(const op::Operand& o) {
  if (o.strides.empty() || o.count() == 0) return o.count();
  int64_t last = 0;
  for (size_t a = 0; a < o.dims.size(); ++a) last += (o.dims[a] - 1) * o.strides[a];
  return last + 1;
}

// A claim on f32 operands with its memory, ready to run. Weights that it packs are there `copies`
// times and taken in turn, so that they may be as far away as a large network leaves them.
class Kernel {
 public:
  Kernel(const op::Problem& problem, const op::Claim& claim, int64_t copies = 1)
      : workspace_(buffer(claim.workspace.value)), copies_(static_cast<uint64_t>(copies)) {
    for (const op::Operand& o : problem.in) in_.push_back(buffer(span_of(o) * 4));
    for (const op::Operand& o : problem.out) out_.push_back(buffer(span_of(o) * 4));
    for (size_t i = 0; i < claim.packed.size(); ++i) {
      const int64_t size = (claim.packed[i].size.value + 63) / 64 * 64;
      packed_.push_back(buffer(size * copies));
      packed_bytes_.push_back(static_cast<uint64_t>(size));
      const auto input = static_cast<size_t>(claim.packed[i].input);
      for (int64_t c = 0; c < copies; ++c)
        (void)table().pack(problem, claim, static_cast<int>(i), in_[input].get(),
                           packed_[i].get() + c * size);
    }
    launches_ = *table().prepare(problem, claim);
    for (const op::LaunchSpec& spec : launches_) {
      for (const Entry& e : table().entries())
        if (e.name == spec.entry) entries_.push_back(e.function);
      std::vector<tessera_range> ranges;
      for (const op::Argument& a : spec.arguments) {
        std::byte* at = a.kind == op::Argument::kInput    ? in_[static_cast<size_t>(a.index)].get()
                        : a.kind == op::Argument::kOutput ? out_[static_cast<size_t>(a.index)].get()
                        : a.kind == op::Argument::kPacked
                            ? packed_[static_cast<size_t>(a.index)].get()
                            : workspace_.get();
        ranges.push_back({at + a.offset, UINT64_MAX});
      }
      ranges_.push_back(std::move(ranges));
      Buffer block = buffer(std::ssize(spec.constants));
      std::memcpy(block.get(), spec.constants.data(), spec.constants.size());
      constants_.push_back(std::move(block));
    }
  }

  void run() {
    const uint64_t copy = turn_++ % copies_;
    for (size_t i = 0; i < launches_.size(); ++i) {
      for (size_t r = 0; r < ranges_[i].size(); ++r)
        if (const op::Argument& a = launches_[i].arguments[r]; a.kind == op::Argument::kPacked) {
          const auto at = static_cast<size_t>(a.index);
          ranges_[i][r].data = packed_[at].get() + copy * packed_bytes_[at];
        }
      const tessera_launch launch{sizeof(tessera_launch),
                                  launches_[i].grid,
                                  static_cast<uint32_t>(ranges_[i].size()),
                                  static_cast<uint32_t>(launches_[i].constants.size()),
                                  ranges_[i].data(),
                                  constants_[i].get(),
                                  nullptr,
                                  nullptr};
      entries_[i](&launch, 0, launches_[i].grid);
    }
  }

 private:
  Buffer workspace_;
  uint64_t copies_ = 1, turn_ = 0;
  std::vector<uint64_t> packed_bytes_;
  std::vector<Buffer> in_, out_, packed_, constants_;
  std::vector<op::LaunchSpec> launches_;
  std::vector<tessera_entry> entries_;
  std::vector<std::vector<tessera_range>> ranges_;
};

// Runs twice and keeps the fastest second time: the first finds its operands wherever its rivals
// left them.
template <class F>
inline void time(F&& run, double& fastest) {
  run();
  fastest = std::min(fastest, seconds(run));
}

constexpr double kNever = 1e9;  // seconds

// All claims on a problem of f32, and the fastest time of each.
class Claims {
 public:
  explicit Claims(const op::Problem& problem, int64_t copies = 1)
      : claims_(table().probe(problem)) {
    std::erase_if(claims_, [](const op::Claim& c) { return !c.supported(); });
    for (const op::Claim& c : claims_) kernels_.emplace_back(problem, c, copies);
    best_.assign(claims_.size(), kNever);
  }
  bool empty() const { return claims_.empty(); }

  // Those that took longer than `hopeless` until now are left out.
  void time(double hopeless = 2 * kNever) {
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (best_[i] < hopeless) bench::time([&] { kernels_[i].run(); }, best_[i]);
  }
  double own() const {  // of the cheapest claim
    return best_[static_cast<size_t>(cheapest(claims_) - claims_.data())];
  }
  // Of each: ratio to a rival (estimate of the cost in us).
  std::string label(double other) const {
    std::string text;
    for (size_t i = 0; i < claims_.size(); ++i)
      text += fmt::format("{} {:.2f} ({:.0f}) ", claims_[i].kernel, best_[i] / other,
                          static_cast<double>(claims_[i].cost.value) * 1e-6);
    return text;
  }

 private:
  std::vector<op::Claim> claims_;
  std::vector<Kernel> kernels_;
  std::vector<double> best_;
};

// Multiplications and additions per second of vectors as wide as the processor has.
inline double fma_peak() {
  static const double peak = [] {
    const bool wide = best_isa() >= Isa::kAvx512;
    double best = 0;
    for (int i = 0; i < 100; ++i) {
      constexpr int kTimes = 2000, kChains = 12;
      const double time = seconds([&] {
        for (int k = 0; k < kTimes; ++k)
          if (wide)
            __asm__ volatile(
                ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%zmm12, %%zmm12, "
                "%%zmm\\r\n.endr" ::
                    : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                      "xmm9", "xmm10", "xmm11");
          else
            __asm__ volatile(
                ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%ymm12, %%ymm12, "
                "%%ymm\\r\n.endr" ::
                    : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                      "xmm9", "xmm10", "xmm11");
      });
      best = std::max(best, kTimes * kChains * (wide ? 32 : 16) / time);
    }
    return best;
  }();
  return peak;
}

}  // namespace tessera::kernels::cpu::bench
