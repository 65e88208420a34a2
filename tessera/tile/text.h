// Tile programs and schedules as text: see the example in program.h.
//
//   program  := "program" name "(" tensor ("," tensor)* ")" "{" "axes" ... "grid" ... "whole" ...
//               statement* "}"
//   tensor   := name ":" ("in" | "out" | "inout") dtype "[" sizes "]" ("layout" string |
//               "strides" "(" sizes ")")?
//   %1 = constant f32 -inf
//   %2 = index n : i64(n)
//   %2 = size M*N + 1 : i64
//   %3 = load x[m, 2*n + 1, %2] pad 0.0 : f32(m, n)
//   %4 = add(%3, %1) : f32(m, n)
//   %5 = reduce add(%4) over n : f32(m)
//   %6 = dot(%3, %4, %5) over n : f32(m)
//   %8, %10 = for n (%7 = %1, %9 = %5) : f32(m), f32(m) { ... yield %7, %9 }
//   store y[m, n] = %4
//
// and of a schedule: "m: 1, n: 64 vector 16".
#pragma once

#include <string>
#include <string_view>

#include "tessera/tile/program.h"
#include "tessera/tile/schedule.h"

namespace tessera::tile {

// Values are numbered as they come: of a loop first what it carries, then its results, then what
// its body makes.
// @post parse(print(p)) prints the same again
std::string print(const Program& program);

// kInvalidArgument with line and column. What comes back is not verified.
Result<Program> parse(std::string_view text);

// @post parse_schedule(print(s, p), p) == s
std::string print(const Schedule& schedule, const Program& program);
Result<Schedule> parse_schedule(std::string_view text, const Program& program);

}  // namespace tessera::tile
