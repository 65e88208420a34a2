#include "tessera/cost/cost.h"

namespace tessera::cost {

Interval& Interval::operator+=(const Interval& other) {
  low += other.low;
  expected += other.expected;
  high += other.high;
  return *this;
}

}  // namespace tessera::cost
