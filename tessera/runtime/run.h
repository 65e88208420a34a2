// One execution of a plan, and what an executor keeps between executions. Internal to the module.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/runtime/executor.h"

namespace tessera::runtime {

using plan::Instruction;
using plan::kNone;
using plan::Region;
using plan::Slot;
using plan::Storage;
using Kind = Instruction::Kind;

// Adds the time of its life to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(Seconds* sum) : sum_(sum) {}
  ~Stopwatch() {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    *sum_ += Seconds(spent.count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Seconds* sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string label_of(const Instruction& i);
// The symbols' values, INT64_MIN where unbound.
std::vector<int64_t> values_of(const std::vector<std::string>& symbols,
                               const op::Bindings& bindings);

// A launch instruction under certain sizes: claimed, when the plan is asked whether it fits them;
// ready, once it is launched.
struct Executor::Prepared {
  std::vector<int64_t> sizes;               // of the instruction's symbols
  const op::ClaimSource* source = nullptr;  // null: its kernel does not take them
  bool ready = false;
  op::Problem problem;
  op::Claim claim;
  std::vector<op::LaunchSpec> launches;
  std::vector<Entry> entries;
  std::vector<Cell> packed;
};

struct Executor::RegionState {
  // Per instruction, the latest sizes first.
  std::vector<std::vector<std::unique_ptr<Prepared>>> prepared;
  std::vector<std::string> slab_symbols;  // that slab sizes depend on
  std::vector<int64_t> slab_sizes;
  bool laid_out = false;
  plan::Layout layout;
  hal::Buffer slab;
  Bytes slab_bytes;
  Cell workspace;
  std::vector<std::string> labels;
};

// One execution of the plan.
struct Executor::Run {
  Executor& e;
  const RunOptions& options;
  std::vector<hal::Command> commands;
  // What pending commands point to: stable addresses until flush.
  std::vector<std::unique_ptr<std::vector<hal::Slice>>> ranges;
  std::vector<Cell> garbage;
  Bytes held;  // heap and host values
  Bytes slabs;

  // kDeadlineExceeded once the time limit has passed.
  Status check(const Instruction& i) const;
  // Hands over what is pending and waits for it.
  Status flush();
  // Notes the peak, given what is live in the slab.
  void account(Bytes slab_live);
  // Counts a value outside the slabs. kResourceExhausted beyond the memory limit.
  Status hold(const Cell& cell, const Instruction& i);

  Result<std::vector<Cell>> region(const Region& r, std::vector<Cell> inputs,
                                   op::Bindings bindings);
  // The region's slab, large enough for these sizes.
  Status lay_out(const Region& r, RegionState& state, const op::Bindings& bindings);
  // One cell per slot: inputs and constants are filled.
  std::vector<Cell> cells_of(const Region& r, std::vector<Cell> inputs) const;
  // Gives up blocks of their own that instruction n is the last to use; what commands still read
  // goes after the next flush.
  void release(const Region& r, size_t n, std::vector<Cell>& cells);
  Result<std::vector<Cell>> outputs(const Region& r, std::vector<Cell>& cells,
                                    const op::Bindings& bindings);
  Status instruction(const Region& r, RegionState& state, size_t n, std::vector<Cell>& cells,
                     op::Bindings& bindings);
  Status launch(const Region& r, RegionState& state, size_t n, std::vector<Cell>& cells,
                const op::Bindings& bindings);
  // Makes a claimed instruction ready.
  Status prepare(const Region& r, RegionState& state, size_t n, Prepared& p);
  Status host(const Region& r, size_t n, std::vector<Cell>& cells);
  Status sizes(const Region& r, size_t n, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status branch(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status loop(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status scan(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status map(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status deliver(const Instruction& i, std::vector<Cell>& cells, std::vector<Cell> results);
  // The cell with its bytes where kernels can reach them.
  Status to_device(const Region& r, int id, std::vector<Cell>& cells);
  // An alias looks at what its root holds now.
  Status look(const Region& r, int id, std::vector<Cell>& cells, const op::Bindings& bindings);
  // A place for a result: in the slab, or a block of its own, or a part of another slot.
  Status place(const Region& r, RegionState& state, int slot, std::vector<Cell>& cells,
               const op::Bindings& bindings, const Instruction& i);
  Result<Cell> stack(const Instruction& i, const std::vector<Cell>& slices, const op::Type& type,
                     int64_t axis, bool reverse);
  Result<Cell> slice(const Cell& cell, int64_t axis, int64_t at);
};

}  // namespace tessera::runtime
