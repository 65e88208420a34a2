// Tries a trial's program on the interpreter.
#pragma once

#include <random>

#include "tessera/tile/schedule.h"
#include "tessera/tile/testing/trial.h"

namespace tessera::tile::testing {

// Pieces of 1, of some, or all of each axis, at random.
Schedule random_schedule(std::mt19937_64& random, const Program& program);

// What is wrong with what the program of the trial's problem computes, with its text and a random
// schedule; empty if nothing is. Nothing if there is no program for it.
std::optional<std::string> run(std::mt19937_64& random, const Trial& trial);

}  // namespace tessera::tile::testing
