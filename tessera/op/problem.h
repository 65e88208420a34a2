// What a kernel is asked to do: one operator (or fused group) on concrete types, and how it
// answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/op/attrs.h"
#include "tessera/op/def.h"

namespace tessera::op {

// An input or output with all sizes known. Row-major and packed unless `layout` or `strides` say
// otherwise.
struct Operand {
  DType dtype = DType::kF32;
  Dims dims;
  std::string layout;     // layout expression; empty: row-major
  Dims strides;           // elements per axis; empty: packed
  bool present = true;    // false: an optional input left out
  bool constant = false;  // a weight: its bytes are known when the model is loaded
  std::optional<Ints>
      values;  // elements of a small integer tensor, where known before the kernel runs

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t count() const { return element_count(dims).value_or(0); }
};

// An element-wise operator of a fused group. Its arguments are values of the group: [0, in.size())
// are the problem's inputs, in.size() is the anchor's result, then come the steps' results in
// order.
struct Step {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<int> in;  // values; -1: an optional input left out
  Operand out;          // dtype and dims of the result
};

// An operator on concrete operands, or a fused group: an anchor and the steps behind it. The
// anchor's inputs come first, then what the steps read beside.
struct Problem {
  const OpDef* op = nullptr;  // the anchor
  Attrs attrs;
  std::vector<Operand> in;
  std::vector<Operand> out;
  std::vector<Step> steps = {};
  size_t arity = 0;               // with steps: how many inputs are the anchor's
  Operand result = {};            // with steps: the anchor's result
  std::vector<int> results = {};  // with steps: the value that each output is

  bool fused() const { return !steps.empty(); }
  // What the anchor reads, left-out optional inputs included.
  size_t anchor_inputs() const { return fused() ? arity : in.size(); }
  // What the anchor yields first.
  const Operand& anchor_result() const { return fused() ? result : out[0]; }
  bool has(size_t i) const { return i < anchor_inputs() && in[i].present; }
  // "conv_f32[1,64,56,56]_f32[64,64,3,3]_out_f32[1,64,56,56]_strides=1,1": names a case in tests,
  // bench and reports.
  std::string str() const;
};

// How exactly a kernel computes.
enum class NumericClass : uint8_t {
  kExact,         // bits equal to the reference
  kReassociated,  // sums in another order: within the error budget
  kTransformed,   // sums of transformed inputs: within the budget of kTransformedForm; values that
                  // are not finite spread to neighbours
  kApproximate,   // its own function approximations: within a stated bound
};

// A constant input that the kernel wants in a form of its own, made once when the model is loaded.
struct Packing {
  int input = 0;
  Bytes size;
};

// The answer to a problem: supported, or the reason why not.
struct Claim {
  std::string kernel;
  std::string refusal;  // empty: supported. "input 0 is f16, need f32"
  Picoseconds cost;     // estimate, for the choice between claims
  // What the estimate rests on: multiplications and additions that this kernel does, bytes that it
  // must move, and the part of the arithmetic peak that it reaches.
  double flops = 0;
  double bytes = 0;
  double efficiency = 1;
  Bytes workspace;  // scratch shared by the claim's launches
  std::vector<Packing> packed;
  bool deterministic = true;  // the same bits at any thread count
  NumericClass numeric = NumericClass::kExact;

  bool supported() const { return refusal.empty(); }
  static Claim refuse(std::string kernel_name, std::string why) {
    Claim claim;
    claim.kernel = std::move(kernel_name);
    claim.refusal = std::move(why);
    return claim;
  }
};

// Where one of a launch's ranges comes from.
struct Argument {
  enum Kind : uint8_t { kInput, kOutput, kWorkspace, kPacked } kind = kInput;
  int index = 0;       // of the input, the output or the entry of Claim::packed
  int64_t offset = 0;  // bytes, in the workspace
};

// An executable that a claim source made while it prepared a claim.
struct Binary {
  std::string format;  // as devices name it: "elf", "ptx"
  std::vector<std::byte> bytes;
  std::vector<std::string> entries;
  std::string key;  // where it is equal, so is all else
};

// One launch of a claim: ranges in the order of `arguments`.
struct LaunchSpec {
  std::string_view entry;  // of `binary`, or else of the claim source's own functions
  std::shared_ptr<const Binary> binary = nullptr;
  uint32_t grid = 1;  // work items; the device spreads them over its workers
  std::vector<Argument> arguments;
  std::vector<std::byte> constants;

  // Writes a trivially copyable struct as the constant block.
  template <class T>
  void set_constants(const T& block) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&block);
    constants.assign(bytes, bytes + sizeof(T));
  }
};

// Whoever can turn problems into launches: the kernel table, code generators, plugins.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  virtual std::string_view name() const = 0;
  // Every kernel's answer, refusals included, in the order of the table.
  virtual std::vector<Claim> probe(const Problem& problem) const = 0;
  // One kernel's answer, for who has chosen before; refused where there is no such kernel.
  virtual Claim ask(const Problem& problem, std::string_view kernel) const {
    for (Claim& claim : probe(problem))
      if (claim.kernel == kernel) return std::move(claim);
    return Claim::refuse(std::string(kernel), "no such kernel");
  }
  // The launches of a claim of this source, in order; each sees the results of those before.
  virtual Result<std::vector<LaunchSpec>> prepare(const Problem& problem,
                                                  const Claim& claim) const = 0;
  // Fills the packed form of entry `index` of claim.packed from the constant's bytes.
  virtual Status pack(const Problem& problem, const Claim& claim, int index,
                      const std::byte* source, std::byte* target) const = 0;
};

}  // namespace tessera::op
