#include "tessera/base/units.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace tessera {
namespace {

template <size_t N>
std::string scaled(double value, double step, const std::array<std::string_view, N>& units) {
  size_t unit = 0;
  while (std::abs(value) >= step && unit + 1 < N) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace

std::string to_string(Bytes bytes) {
  return scaled(static_cast<double>(bytes.value), 1024,
                std::array<std::string_view, 5>{"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string to_string(Flops flops) {
  return scaled(static_cast<double>(flops.value), 1000,
                std::array<std::string_view, 5>{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"});
}

std::string to_string(Seconds seconds) {
  return scaled(seconds.value * 1e9, 1000, std::array<std::string_view, 4>{"ns", "us", "ms", "s"});
}

}  // namespace tessera
