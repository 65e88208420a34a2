// Runs a plan on a device: binds sizes, lays out the slab, hands launches to a queue.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/hal/device.h"
#include "tessera/op/problem.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/binaries.h"
#include "tessera/runtime/cell.h"
#include "tessera/runtime/weights.h"

namespace tessera::runtime {

// What all executors on a device share.
struct Machine {
  Memory memory;
  std::vector<const op::ClaimSource*> sources;
  // The executable that holds the sources' own functions, and each one's index in it.
  hal::Executable executable;
  std::unordered_map<std::string_view, uint32_t> entries;
  std::shared_ptr<BinaryStore> binaries;  // what sources make at run time
  std::shared_ptr<WeightStore> weights;

  // Where the launch's code is, loaded if need be. kInternal: no source came with such a function.
  Result<Entry> find(const op::LaunchSpec& spec) const;
};

struct Counters {
  int64_t launches = 0;        // by device kernels
  int64_t host_operators = 0;  // by operators that must run on the host
  int64_t reference = 0;       // by the interpreter, for want of a kernel
  Bytes peak;                  // most bytes held for values at once
  Bytes live;                  // largest sum of live values over the steps
  Seconds bind;                // spent on sizes that were new: claims, launches, offsets
};

struct RunOptions {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  Bytes memory_limit{INT64_MAX};
  // Called with each named result as it is computed; the value is valid during the call only.
  std::function<void(const std::string& name, const op::Value&)> observe;
};

// One plan, run by one thread at a time. Keeps its slab and its prepared launches from run to run.
class Executor {
 public:
  Executor(const Machine& machine, std::shared_ptr<const plan::Plan> plan);
  ~Executor();

  // Whether the plan's kernels take these inputs: its claims hold under the sizes that the inputs
  // bind. False: another plan is needed. Errors: the inputs contradict the model.
  Result<bool> fits(const std::vector<op::Value>& inputs);

  // Inputs in the order of the plan's. Outputs own their bytes.
  Result<std::vector<op::Value>> run(const std::vector<op::Value>& inputs,
                                     const RunOptions& options);

  const Counters& counters() const { return counters_; }  // of the last run
  const plan::Plan& plan() const { return *plan_; }

 private:
  struct RegionState;
  struct Prepared;
  struct Run;

  // The launch instruction under these sizes, claimed; from its few latest sizes if it is there.
  Result<Prepared*> claimed(const plan::Region& region, RegionState& state, size_t n,
                            const op::Bindings& bindings);

  const Machine& machine_;
  std::shared_ptr<const plan::Plan> plan_;
  std::map<const plan::Region*, std::unique_ptr<RegionState>> states_;
  hal::Queue queue_;
  hal::Timeline timeline_;
  uint64_t submitted_ = 0;
  bool ready_ = false;
  Seconds bind_;  // on behalf of the next run
  Counters counters_;
};

// The sizes that inputs of these dims give to the symbols of the region's input types.
// kInvalidArgument where they contradict each other or the type.
Result<op::Bindings> bind_inputs(const plan::Region& region, const std::vector<op::Dims>& dims,
                                 op::Bindings known);

}  // namespace tessera::runtime
