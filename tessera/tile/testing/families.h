// Random problems of the families that there are tile programs for. For tests only.
#pragma once

#include <initializer_list>
#include <optional>
#include <random>

#include "tessera/tile/testing/trial.h"

namespace tessera::tile::testing {

template <class T>
T pick(std::mt19937_64& random, std::initializer_list<T> list) {
  return *(list.begin() + static_cast<int64_t>(random() % list.size()));
}

// At odd sizes, operands placed at random, sometimes with element-wise steps behind; nothing if the
// draw makes no sense.
std::optional<Trial> random_reduction(std::mt19937_64& random);
std::optional<Trial> random_normalization(std::mt19937_64& random);  // and softmax
std::optional<Trial> random_product(std::mt19937_64& random);
std::optional<Trial> random_byte_product(std::mt19937_64& random);  // summed in i32

}  // namespace tessera::tile::testing
