// y = slice(x); dot(y)  ->  dot(x, where y lies in it)      z = concat(f(a), g(b))  ->  f and g
// write into z
//
// Works on a plan: a slice or transpose becomes an alias with strides, what yields a transpose's
// input writes it turned, and the inputs of a concat become parts of its result. Does not fire
// where
//   - a reader or writer is no launch, or no kernel takes the strides,
//   - the value leaves the region, or enters it,
//   - elements are smaller than a byte,
//   - a concat has the same value twice.
#pragma once

#include "tessera/passes/choices.h"
#include "tessera/plan/plan.h"

namespace tessera::passes {

struct ViewReport {
  int views = 0;    // slices and the like that move nothing
  int concats = 0;  // inputs of concats that are written in place
};

// @post plan::verify(plan)
Result<ViewReport> views(plan::Plan& plan, Sources sources);

}  // namespace tessera::passes
