// What a chip is, as data: the planner, the cost model, the simulator and the numerics read the
// same description, so that adding a chip is adding a file (docs/chips.md).
//
// Every number is a Fact: a value with its source and how far it can be trusted. Rates are those of
// one instance; cores say how many there are. Names of units, memories and so on are the file's
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"

namespace tessera::chip {

// How a number came about: its maker or a primary document says so; it follows by arithmetic from
// numbers that are; it was measured; it is the best guess there is.
enum class Grade : uint8_t { kPublished, kDerived, kMeasured, kAssumed };
std::string_view name_of(Grade grade);

struct Cite {
  Grade grade = Grade::kAssumed;
  std::string source;  // never empty in a chip that was read

  std::string str() const;  // "published: CANN guide"
  bool operator==(const Cite&) const = default;
};

// What another source says instead.
struct Conflict {
  double value = 0;
  Cite cite;
};

template <class T>
struct Fact {
  T value{};
  Cite cite;
  std::vector<Conflict> conflicts = {};
  std::string choice = {};     // with conflicts: why `value` was taken
  std::string fitted_to = {};  // of a constant that was fitted: to what
};

using Count = Fact<int64_t>;
using Size = Fact<Bytes>;
using Real = Fact<double>;
using Time = Fact<Seconds>;
template <class T>
using Named = std::map<std::string, T, std::less<>>;

// A kind of core, of which a chip has `count`, all the same.
struct Core {
  Count count;
  Real clock_hz;                                // the highest it reaches under work
  std::optional<Real> sustained_clock_hz = {};  // what its power allows in the long run
  std::optional<Count> flags = {};              // between each two of its engines
  std::optional<Count> cross_core_flags = {};   // between cores
};

// What a unit does of one element type in one cycle. The type is one of base's or a way to compute
// (kModes). Sizes are rounded up to multiples of the step, which takes m n k / macs_per_cycle
// cycles.
struct Rate {
  Real macs_per_cycle;  // multiply-adds, each 2 FLOP; of vectors: lanes
  std::optional<Count> m = {}, n = {}, k = {};
  std::string accumulate = {};  // element type of sums; "": that of the operands
};

// A type of computing that is none of storage, and the bits of its elements in memory.
struct Mode {
  std::string_view name;
  int bits;
};
inline constexpr Mode kModes[] = {
    {"tf32", 32}, {"hf32", 32}, {"xf32", 32}, {"hif8", 8}, {"mxf6", 6}};
// Bits of an element of that type or mode; nothing for any other name, and for strings.
std::optional<int> storage_bits(std::string_view type);

enum class UnitKind : uint8_t { kMatrix, kVector, kScalar };
// How operands meet: all products of a step at once, or a systolic array in which one stays.
enum class Dataflow : uint8_t { kStep, kWeightStationary, kOutputStationary, kInputStationary };

struct Operand {
  std::string memory;
  std::vector<std::string> layouts = {};  // formats by name (layout/formats.h), or expressions
};

struct Unit {
  UnitKind kind = UnitKind::kVector;
  std::string core;
  Count per_core;
  std::optional<Real> clock_hz = {};  // if it is not its core's
  std::optional<Dataflow> dataflow = {};
  std::optional<Count> rows = {}, columns = {};  // of a systolic array
  std::optional<Real> start_cycles = {};         // before the first step, when it was idle
  std::optional<Count> max_m = {}, max_n = {}, max_k = {};  // of one instruction
  std::optional<Size> width_bytes = {};                     // of one vector register or instruction
  Named<Rate> rates = {};                                   // by element type
  Named<Named<Real>> functions = {};  // elements per cycle: "exp" -> "f32" -> 32
  Named<Operand> operands = {};       // "a", "b", "c" of c[m,n] += a[m,k] b[k,n]
};

enum class MemoryKind : uint8_t { kDevice, kScratchpad, kCache, kRegisters };

struct Memory {
  MemoryKind kind = MemoryKind::kScratchpad;
  std::string core = {};  // whose each is; "": one, shared by all
  Size capacity_bytes;
  std::optional<Real> bytes_per_second = {};       // of all of it
  std::optional<Real> bytes_per_cycle = {};        // of one, read, at its core's clock
  std::optional<Real> write_bytes_per_cycle = {};  // if that differs
  std::optional<Time> latency_seconds = {};
  std::optional<Size> alignment_bytes = {};
  std::optional<Size> line_bytes = {};  // what moves at once
  std::optional<Count> banks = {};
  std::optional<Size> bank_bytes = {};
  std::optional<Count> bank_groups = {};
};

// A layout that becomes another on the way.
struct Change {
  std::string from, to;  // as Operand::layouts
};

struct Route {
  std::string from, to;  // memories
  Real bytes_per_cycle;  // at the core's clock
  std::optional<Real> start_cycles = {};
  std::optional<Size> half_bytes = {};  // a copy of B bytes reaches B / (B + half) of the rate
  std::vector<Change> changes = {};
};

// Does one thing at a time, in order, beside the other engines of its core.
struct Engine {
  std::string core;
  Named<Route> routes = {};
};

enum class LinkKind : uint8_t { kDie, kDevice, kHost, kNetwork };

struct Link {
  LinkKind kind = LinkKind::kDevice;
  Count count;            // how many a chip has
  Real bytes_per_second;  // of one, one way
  std::optional<Time> latency_seconds = {};
  std::string topology = {};  // "full mesh", "3-D torus 16 x 16 x 16"
};

// What a launch takes when it does nothing; by kind of work where that differs.
struct Launch {
  Time seconds;
  std::optional<Time> matrix_seconds = {}, vector_seconds = {}, collective_seconds = {};
};

enum class SumOrder : uint8_t { kFused, kTree, kSequential, kEvenOdd };
enum class Rounding : uint8_t { kNearestEven, kNearestAway, kTowardZero, kDown, kUp };
enum class Subnormals : uint8_t { kKept, kFlushedInputs, kFlushed };
enum class Overflow : uint8_t { kInfinity, kSaturate };

// What a sum that is no number becomes: the quiet NaN of its format, or sign 0 and all other
// bits 1.
enum class Nan : uint8_t { kQuiet, kOnes };

// How a matrix unit rounds, for one type or mode of its operands: products are exact; `group` of
// them and the sum so far are added in `order`, and each sum is rounded to `result_bits` of
// mantissa.
//   kFused       all at once, aligned to the largest exponent with `fraction_bits` kept of each, or
//                exactly. A product's exponent is the sum of its operands'; that of a subnormal is
//                the least of its format, and zeros lift nothing. With `sum_bits`, the products are
//                added so among themselves, `parts` of them apart (2: those of even and those of
//                odd k), and the accumulator joins their sum in a second step, all rounded down.
//   kTree        products rounded to the accumulator's type, then added in pairs, and so on; the
//                accumulator last. Operands that are flushed lose their sign.
//   kSequential  multiplied and added one after the other, each rounded once
//   kEvenOdd     as kSequential, products of even k and of odd k to sums of their own from 0; both
//                are added, and then the accumulator
struct Numerics {
  std::string accumulate;
  SumOrder order = SumOrder::kFused;
  Count group;
  std::optional<Count> fraction_bits = {};  // kFused: kept when aligned; none: exact
  std::optional<Rounding> alignment = {};   // kFused: what becomes of the bits beyond
  std::optional<Count> parts = {};          // kFused with sum_bits: sums of products; 1 if not said
  std::optional<Count> sum_bits = {};       // fractional bits of the sum of products
  std::optional<Count> total_bits = {};     // and of its total with the accumulator, normalised
  std::optional<Count> reach = {};  // an accumulator whose exponent is further below counts as 0
  std::optional<Count> exact = {};  // kFused: products that become one addend, of their scales'
                                    // exponent, without loss
  Rounding rounding = Rounding::kNearestEven;
  std::optional<Rounding> f16_rounding = {};  // where sums may be kept in f16: theirs
  std::optional<Count> result_bits = {};      // none: all of `accumulate`
  std::optional<Count> operand_bits = {};     // mantissa kept of each operand, the leading 1 aside
  std::optional<Rounding> operand_rounding = {};
  Subnormals subnormals = Subnormals::kKept;
  std::vector<std::string> overflow = {};           // "infinity", "saturate"; the default first
  std::vector<std::string> saturated_results = {};  // types that sums become with saturation always
  std::optional<Nan> nan = {};
  std::string note = {};
};

// What bounds the blocks of threads that a core holds at once.
struct Threads {
  Count warp;  // lanes
  Count warps_per_core;
  Count blocks_per_core;
  Count threads_per_block;
  Count registers_per_core;  // of 32 bits
  Count register_unit;       // registers are given to a warp in multiples of this
  Count warp_unit;           // warps that registers allow: in multiples of this
  Count registers_per_thread;
  Size shared_bytes_per_core;
  Size shared_bytes_per_block;
  Size shared_unit_bytes;
  std::optional<Size> shared_reserved_bytes = {};  // of each block
};

// What the vendor's own library takes, for `--kernels vendor`.
struct VendorKernel {
  std::vector<std::string> types = {};           // of elements
  Named<std::vector<std::string>> layouts = {};  // by operand, the wish first
  std::string source;
};

struct Chip {
  std::string id;  // the name of its file
  std::string name, vendor, architecture;
  std::string note = {};
  std::vector<std::string> files = {};  // that it was read from, the outermost first
  uint64_t hash = 0;                    // of their bytes
  std::optional<Count> dies = {};       // in the package; 1 if not said
  Named<Core> cores = {};
  Named<Unit> units = {};
  Named<Memory> memory = {};
  Named<Engine> engines = {};
  Named<Link> links = {};
  Launch launch = {};
  Named<Numerics> numerics = {};
  std::optional<Threads> threads = {};
  Named<VendorKernel> vendor_kernels = {};
  Named<Real> constants = {};  // of the cost model, fitted: each says to what

  // The one of kind kDevice.
  const Memory& device_memory() const;
  double clock_of(const Unit& unit) const;  // hertz
  int64_t count_of(const Unit& unit) const;
  // Bytes per second of all instances together; 0 if nothing says.
  double bandwidth_of(const Memory& memory) const;
};

// Something that does not fit together, and where: a JSON pointer.
struct Fault {
  std::string pointer;
  std::string message;
};
// Names that nothing has, tiles that are larger than their memory, no device memory. Ranges of
// single numbers are the reader's business.
std::optional<Fault> verify(const Chip& chip);

// A chip file: its name for messages, and its text.
struct Source {
  std::string file;
  std::string text;
};
using Finder = std::function<Result<Source>(std::string_view id)>;

// Reads a file and, through `find`, those that it extends: what a file says replaces what its base
// says, member by member; null removes. Errors (kInvalidArgument) name the file and the JSON
// pointer.
Result<Chip> read_chip(const Source& source, std::string_view id, const Finder& find);
// The whole chip, each number with its source; reads back the same, without `extends`.
std::string to_json(const Chip& chip);
// Of chip files, as JSON Schema: what read_chip takes, but for what `extends` supplies.
std::string json_schema();

}  // namespace tessera::chip
