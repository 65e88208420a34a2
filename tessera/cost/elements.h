// What element-wise operators cost on a vector unit.
#pragma once

#include <string_view>

#include "tessera/cost/machine.h"
#include "tessera/op/problem.h"

namespace tessera::cost {

// Per element: operations that take a lane for a cycle, and calls of functions.
struct ElementWork {
  double plain = 0;
  double exp = 0, log = 0, div = 0, sqrt = 0, tanh = 0, sin = 0;

  ElementWork& operator+=(const ElementWork& other);
};

// Of an element-wise operator by its name; one operation where it is not known.
ElementWork work_of(std::string_view op);
// What the steps of a fused group do for each element of the group's shape.
ElementWork work_of_steps(const op::Problem& problem);

// Seconds for one element, all instances of the vector unit together. A function that the unit
// lacks is a polynomial.
double seconds_per_element(const Machine& machine, const Engaged& vector, std::string_view type,
                           const ElementWork& work);

}  // namespace tessera::cost
