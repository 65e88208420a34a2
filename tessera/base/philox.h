// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): random bits as a
// function of a key and a counter, so that every device, in any order, draws the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

// Four words for counter `block` under `key`.
constexpr std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> block) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * block[0], b = uint64_t{0xCD9E8D57} * block[2];
    block = {static_cast<uint32_t>(b >> 32) ^ block[1] ^ k0, static_cast<uint32_t>(b),
             static_cast<uint32_t>(a >> 32) ^ block[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return block;
}

// Word `index` of the stream of a key: word index % 4 of block index / 4.
constexpr uint32_t philox_word(uint64_t key, uint64_t index) {
  const uint64_t block = index / 4;
  return philox(
      key, {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0})[index % 4];
}

}  // namespace tessera
