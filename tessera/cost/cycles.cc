#include "tessera/cost/cycles.h"

#include <cmath>

namespace tessera::cost {
namespace {

double folds(int64_t size, int64_t by) { return static_cast<double>((size + by - 1) / by); }

double up(double size, const std::optional<chip::Count>& step) {
  if (!step) return size;
  const auto s = static_cast<double>(step->value);
  return std::ceil(size / s) * s;
}

}  // namespace

double systolic_cycles(chip::Dataflow dataflow, int64_t rows, int64_t columns, int64_t m, int64_t n,
                       int64_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  switch (dataflow) {
    case chip::Dataflow::kOutputStationary:
      return folds(m, rows) * folds(n, columns) * (static_cast<double>(k) + r + c - 2) - 1;
    case chip::Dataflow::kInputStationary:
      return folds(k, rows) * folds(m, columns) * (static_cast<double>(n) + 2 * r + c - 2) - 1;
    case chip::Dataflow::kWeightStationary:
    case chip::Dataflow::kStep:
      break;
  }
  return folds(k, rows) * folds(n, columns) * (static_cast<double>(m) + 2 * r + c - 2) - 1;
}

double step_cycles(const chip::Rate& rate, double m, double n, double k) {
  return up(m, rate.m) * up(n, rate.n) * up(k, rate.k) / rate.macs_per_cycle.value;
}

double step_cycles(const chip::Unit& unit, const chip::Rate& rate, double m, double n, double k) {
  return (unit.start_cycles ? unit.start_cycles->value : 0) + step_cycles(rate, m, n, k);
}

double route_cycles(const chip::Route& route, double bytes) {
  const double half = route.half_bytes ? static_cast<double>(route.half_bytes->value.value) : 0;
  const double start = route.start_cycles ? route.start_cycles->value : 0;
  return start + (bytes + half) / route.bytes_per_cycle.value;
}

}  // namespace tessera::cost
