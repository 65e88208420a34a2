// A chip as the models ask for it: who computes a type, how fast memory is, and what was fitted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/cost/cost.h"

namespace tessera::cost {

// A unit that computes a type, all its instances together.
struct Engaged {
  std::string_view name;
  const chip::Unit* unit = nullptr;
  const chip::Rate* rate = nullptr;
  double clock = 0;      // hertz, the highest
  double sustained = 0;  // hertz under the power limit, as its core has it
  double cores = 0;
  double macs_per_cycle = 0;  // of one core
  int passes = 1;             // over a narrower type that make up one of this

  double per_second() const { return macs_per_cycle * cores * clock / passes; }
};

// A step of a way through memories.
struct Leg {
  std::string_view engine;
  const chip::Route* route = nullptr;
  std::string_view core;
};

class Machine {
 public:
  explicit Machine(const chip::Chip& chip);

  const chip::Chip& chip() const { return chip_; }
  // One of the chip's `constants`.
  double constant(std::string_view name, double otherwise) const;
  // Of a matrix unit's rate when it has its operands: TYPE_matrix_efficiency (f8 for all of 8
  // bits), or matrix_efficiency.
  double matrix_efficiency(std::string_view type, double otherwise) const;

  // The matrix unit for operands of this type, by its own rate or that of a format of the same
  // width that differs in special values alone. Types with an equal sum of narrower products (f32
  // on arrays that take bf16) have `passes`.
  std::optional<Engaged> matrix(std::string_view type) const;
  // The vector unit, or the scalar one where there is no other, for a type; one that it lacks is
  // computed in f32 or i32.
  std::optional<Engaged> vector(std::string_view type) const;
  // Elements per second of a function on all instances of a vector unit; 0: it has none.
  double function_rate(const Engaged& vector, std::string_view function,
                       std::string_view type) const;

  // The device's memory.
  std::string_view memory() const { return memory_; }
  double bandwidth() const { return bandwidth_; }  // bytes per second, as published
  double latency() const;                          // seconds
  double line() const;                             // bytes that move at once
  // The cache that all cores share and that is nearest to memory; null: none.
  const chip::Memory* cache() const { return cache_; }
  std::string_view cache_name() const { return cache_name_; }
  double cache_bytes() const;
  double cache_bandwidth() const;  // of the one nearest to the cores

  // The shortest way from one memory to another, leg by leg; empty: none.
  std::vector<Leg> way(std::string_view from, std::string_view to) const;

 private:
  const chip::Chip& chip_;
  std::string_view memory_, cache_name_;
  const chip::Memory* cache_ = nullptr;
  double bandwidth_ = 0, cache_bandwidth_ = 0;
};

// What a kernel's model found out.
struct Tally {
  std::string kernel, tile;
  double flops = 0, padded_flops = 0;
  double seconds = 0;         // without the launch
  double launch = 0;          // seconds
  double cycles = 0;          // of the matrix unit, on the core that has most to do
  std::string family;         // of constants: "matmul", "softmax", "norm", "elementwise", ...
  chip::Named<double> bytes;  // by memory
  chip::Named<double> busy;   // seconds, by unit, engine or memory
};

enum class Work : uint8_t { kMatrix, kVector };
double launch_seconds(const Machine& machine, Work work);
Estimate finish(const Machine& machine, Tally tally);

// (a^p + b^p + ...)^(1/p): what stages that overlap take together; p = 1 is one after the other, a
// large p as long as the longest.
double overlapped(double p, std::span<const double> stages);
double overlapped(double p, std::initializer_list<double> stages);

inline double ceil_div(double a, double b) { return b > 0 ? __builtin_ceil(a / b) : 0; }
inline double round_up(double a, double b) { return b > 0 ? ceil_div(a, b) * b : a; }

}  // namespace tessera::cost
