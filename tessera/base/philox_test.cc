#include "tessera/base/philox.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers of the authors' test suite (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordsRunThroughBlocks) {
  EXPECT_EQ(philox_word(0, 0), 0x6627e8d5u);
  EXPECT_EQ(philox_word(0, 3), 0x9b00dbd8u);
  EXPECT_EQ(philox_word(7, 5), philox(7, {1, 0, 0, 0})[1]);
}

}  // namespace
}  // namespace tessera
