// Engine programs on a chip: where the elements of buffers lie, what the names of engines and
// spaces mean, and what holds for every program that a core of the chip can run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/tile/engine.h"

namespace tessera::tile::engine {

// Places of a buffer's elements, in elements from its start: the sum of one per dimension.
struct Places {
  struct Dim {
    int64_t extent = 0;
    int64_t stride = 0;
    std::vector<int64_t> table = {};  // instead of a stride
    int64_t at(int64_t i) const {
      return table.empty() ? i * stride : table[static_cast<size_t>(i)];
    }
  };
  std::vector<Dim> dims;
  int64_t span = 0;  // one more than the last place
};
// kInvalidArgument: no such layout, an extent below 0; kOutOfRange: it would be too large;
// kUnimplemented: elements of less than a byte, layouts in which dimensions mix.
Result<Places> places_of(const Buffer& buffer, std::span<const int64_t> symbols);

// An engine of a program: either copies or computes.
struct Where {
  const chip::Engine* copies = nullptr;
  const chip::Unit* computes = nullptr;
};
std::optional<Where> find_engine(const chip::Chip& chip, std::string_view core,
                                 std::string_view name);
// Null if the engine has none.
const chip::Route* find_route(const chip::Engine& engine, std::string_view from,
                              std::string_view to);
// The name of the chip's device memory.
std::string_view device_space(const chip::Chip& chip);
// Buffers of a space begin at multiples of so many bytes (1 if the chip does not say), and of their
// element's.
int64_t alignment_of(const chip::Memory& memory);
// What serves buffers of any element type.
int64_t slot_alignment(const chip::Memory& memory);
// How many flags there are from one engine to another.
int64_t flags_of(const chip::Chip& chip, std::string_view core);
// The type of what the unit is given, by how it computes: "hf32" is f32 in memory. Nothing if that
// is no type of base.
std::optional<DType> stored_type(std::string_view compute);

// kInvalidArgument with the buffer or step and what is wrong with it; kResourceExhausted: a buffer
// that its space cannot hold, with space and bytes.
//
//   names     core, engines and spaces are the chip's, and of this kind of core
//   buffers   lie within their space, at a multiple of its alignment and of their element's bytes
//   copies    some route of their engine leads there; only what leaves the sums of a matrix unit
//             changes its type
//   matrix    operands lie where the unit takes them, in the type that it takes
//   vectors   functions get what they take
//   flags     for each two engines, someone sets what another waits for
// What depends on loops (indices, flags in pairs, races) is found when it happens.
Status verify(const Program& program, const chip::Chip& chip);

}  // namespace tessera::tile::engine
