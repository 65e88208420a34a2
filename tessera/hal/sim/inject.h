// Faults by name, for tests of what is to find them: `--inject bf16-inputs@node,ecc`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/hal/sim/numerics.h"

namespace tessera::hal::sim {

enum class Fault : uint8_t {
  kBf16Inputs,         // matrix operands lose bits as bf16 does
  kFp16Accumulate,     // sums are rounded to f16 after each group
  kSaturate,           // sums out of range become the largest number, NaN 0
  kIgnoreStrides,      // copies take tensors as contiguous
  kSwapLayout,         // copies that change layout do not
  kSwallowNan,         // NaNs of matrix units become 0
  kLateError,          // an error is told by a later launch
  kRecompilePerShape,  // each shape compiles anew
  kDropTail,           // products beyond the last whole tile of k are left out
  kSkipCollective,     // a collective returns its input
  kDeviceLost,         // the device is gone
  kEcc,                // one bit of a result flips
};
inline constexpr int kFaultCount = static_cast<int>(Fault::kEcc) + 1;

std::string_view name_of(Fault fault);  // "bf16-inputs"

struct Injection {
  Fault fault = Fault::kEcc;
  std::string node = {};  // "": everywhere

  bool operator==(const Injection&) const = default;
};

// A list, separated by commas, of NAME or NAME@NODE. kInvalidArgument, with the names there are,
// for another name and for an empty node.
Result<std::vector<Injection>> parse_injections(std::string_view list);
std::string str(std::span<const Injection> injections);  // what parse_injections reads

// Whether the fault is to happen at that node.
bool injected(std::span<const Injection> injections, Fault fault, std::string_view node);

// The unit with those faults that are its own: bf16-inputs, fp16-accumulate, saturate, swallow-nan,
// drop-tail.
MatrixUnit with_faults(const MatrixUnit& unit, std::span<const Injection> injections,
                       std::string_view node);

// Flips one bit of `bytes`, which one `seed` says. Does nothing to none.
void flip_bit(std::span<std::byte> bytes, uint64_t seed);

}  // namespace tessera::hal::sim
