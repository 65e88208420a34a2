// Quantities carry their unit in the type: a Bytes never adds to a Seconds.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace tessera {

// A count of `Tag` held in `Rep`. Sums and comparisons stay inside one unit; scaling is by plain
// numbers.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Bytes = Quantity<struct BytesTag, int64_t>;
using Flops = Quantity<struct FlopsTag, int64_t>;  // a multiply and an add count as two
using Picoseconds =
    Quantity<struct PicosecondsTag, int64_t>;  // costs: integers, so that plans are deterministic
using Seconds = Quantity<struct SecondsTag, double>;

// "1.5 MiB", "17 B"; "2.3 GFLOP"; "1.25 ms".
std::string to_string(Bytes bytes);
std::string to_string(Flops flops);
std::string to_string(Seconds seconds);

}  // namespace tessera
