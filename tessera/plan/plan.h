// A plan: what will happen, as plain data. A tree of regions of instructions over slots. Sizes are
// expressions over symbols; decisions (place, kernel) are made once for a class of shapes, binding
// sizes is not planning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/op/def.h"
#include "tessera/op/problem.h"

namespace tessera::plan {

inline constexpr int kNone = -1;

// Where the bytes of a slot are.
enum class Storage : uint8_t {
  kInput,     // handed to the region
  kConstant,  // in the weight store
  kSlab,      // in the region's slab: the size follows from the region's inputs
  kHeap,      // allocated when produced: region outputs, and sizes known only then
  kHost,      // a value on the host: sequences, optionals, strings, tensors placed there
  kAlias,     // the same bytes as another slot, under other sizes
};

struct View {
  op::Expr offset;
  std::vector<op::Expr> strides;
};

struct Slot {
  std::string name;  // of the value in the source model; may be empty
  op::Type type;
  Storage storage = Storage::kSlab;
  int alias = kNone;  // kAlias: the slot that holds the bytes (itself not an alias)
  // kAlias: where its elements lie in the other slot, if not all of them in the same order: the
  // place of element 0 and a distance per axis, in elements.
  std::optional<View> view;
  std::string layout;    // layout expression; empty: row-major. Of views: of the bytes they lie in
  int constant = kNone;  // kConstant: index into Plan::constants
  std::optional<op::Contents> contents;  // elements that follow from sizes
  int first = 0, last = 0;               // instructions from which to which the bytes are needed
};

struct Region;

// An element-wise operator behind the anchor of a fused group; `in` as in op::Step.
struct Step {
  const op::OpDef* op = nullptr;
  op::Attrs attrs;
  std::vector<int> in;
  op::Type type;  // of the result
};

struct Instruction {
  enum class Kind : uint8_t {
    kLaunch,  // a kernel on the device
    kHost,    // an operator on the host: a host operator, or the reference for want of a kernel
    kCopy,    // the same bytes in the memory of another place
    kSizes,   // writes a small integer tensor whose elements follow from sizes
    kBind,    // takes sizes of a slot that has just been computed as symbols
    kBranch,  // regions 0 and 1, by a bool
    kLoop,    // region 0, as op "loop" says
    kScan,    // region 0, as op "scan" says
    kMap,     // region 0 for each item of a sequence, as op "sequence_map" says
  } kind = Kind::kLaunch;
  const op::OpDef* op = nullptr;
  op::Attrs attrs;
  std::vector<int> in;       // slots; kNone where an optional input is left out
  std::vector<int> out;      // slots; kNone where nobody reads the result
  std::vector<Step> steps;   // of a fused group, whose anchor is `op`
  int arity = 0;             // with steps: how many of `in` are the anchor's
  op::Type result;           // with steps: what the anchor yields
  std::vector<int> results;  // with steps: the value that each of `out` is
  std::string kernel;        // kLaunch: the row
  std::string place;         // where it runs, or copies to; empty: on the plan's device
  std::string reason;        // kHost: why no kernel takes it
  std::vector<Region> regions;
  std::vector<std::string> origin;   // names of the source nodes
  std::vector<std::string> symbols;  // that the sizes of its operands depend on, sorted
};

struct Region {
  std::string name;
  std::vector<Slot> slots;
  std::vector<Instruction> body;
  std::vector<int> inputs;   // slots
  std::vector<int> outputs;  // slots
};

// A handle: where the bytes of a constant are is the weight store's business.
struct Constant {
  std::string name;
  op::Type type;
  op::Tensor tensor;  // empty in a plan that was read from JSON
};

// A chip that a plan rests on.
struct ChipUse {
  std::string place;  // empty: the plan's device; else as Instruction::place
  std::string id;
  uint64_t hash = 0;  // of its files

  bool operator==(const ChipUse&) const = default;
};

// What a plan for a chip was made from.
struct Basis {
  std::string model;      // hash of the model as it was simplified, in hexadecimal
  std::string version;    // of Tessera
  std::string precision;  // that floating types were narrowed to; empty: as the model says
  std::vector<ChipUse> chips = {};  // the device's first

  bool operator==(const Basis&) const = default;
};

struct Plan {
  std::string device;
  Region main;
  std::vector<Constant> constants;
  op::Bindings planned_for;         // the sizes at hand when kernels were chosen
  std::string rates;                // where the costs behind the choices come from
  std::optional<Basis> basis = {};  // of plans for chips

  struct Count {
    int64_t launches = 0, host_operators = 0, reference = 0;
  };
  Count count() const;  // instructions of all regions
};

std::string_view name_of(Storage storage);
std::string_view name_of(Instruction::Kind kind);

// {"schema": "tessera.plan/1", ...}: instructions with kernels, slots with sizes and lifetimes;
// constants as names and types, never their bytes.
std::string to_json(const Plan& plan, int indent = 2);
// @post to_json(from_json(to_json(p))) == to_json(p). Constants come without bytes: whoever runs
// the plan supplies them. kInvalidArgument for what is not such a plan, naming the field; what
// parses passes verify().
Result<Plan> from_json(std::string_view text);

// Whether the plan was made from this: kFailedPrecondition tells what differs, and both sides.
Status check_basis(const Plan& plan, const Basis& now, const op::Bindings& sizes);

// Ids in range, slots written before they are read, aliases one deep, lifetimes that cover all
// uses.
Status verify(const Plan& plan);

// The problem that an instruction poses under these sizes. kInvalidArgument while a size is not
// bound.
Result<op::Problem> problem_of(const Plan& plan, const Region& region,
                               const Instruction& instruction, const op::Bindings& bindings);

// Sets first and last of all slots behind which there are bytes. Outputs leave the region, so they
// are not in its slab.
void set_lifetimes(Region& region);

// The sizes of a slot.
Result<op::Dims> dims_of(const Slot& slot, const op::Bindings& bindings);
// What a tensor of these sizes takes in the slot's layout, padding included.
Result<Bytes> bytes_of(const Slot& slot, const op::Dims& dims);

// Offsets of slab slots so that no two that live at the same time overlap.
struct Layout {
  std::vector<int64_t> offsets;  // per slot; -1 where not in the slab
  Bytes size;                    // of the slab
  std::vector<int64_t> live;     // bytes of slab slots alive at each instruction
};
Result<Layout> lay_out(const Region& region, const op::Bindings& bindings);

}  // namespace tessera::plan
