// A model, loaded and ready to run: the one place where compiling meets running. The command line,
// Python and C stand on this.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/codegen/mlir/mode.h"
#include "tessera/ir/graph.h"
#include "tessera/kernels/rates.h"
#include "tessera/op/tensor.h"
#include "tessera/passes/assign.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/precision.h"
#include "tessera/passes/views.h"
#include "tessera/plan/plan.h"

namespace tessera::import::onnx {
struct ImportedModel;
}

namespace tessera::session {

struct LoadOptions {
  std::map<std::string, int64_t, std::less<>> dims = {};     // sizes of symbols
  std::map<std::string, op::Dims, std::less<>> shapes = {};  // shapes of inputs
  std::string device = "cpu";  // "cpu"; "reference": the interpreter alone
  int threads = 0;             // 0: as many as the process may use
  std::string isa = "";        // caps the instruction set of CPU kernels: "generic", "avx2", ...
  // "own": this project's kernels; "all": oneDNN's, too, by cost; "onednn": oneDNN's wherever it
  // has one, and costs mean nothing; "auto": "all" if a calibration has measured oneDNN, else
  // "own".
  std::string provider = "auto";
  // Code made from tile programs: none; what the cache has; or all, compiled where it has not.
  codegen::mlir::Mode codegen = codegen::mlir::Mode::kCached;
  Bytes memory_limit{0};                        // 0: 80 % of what the machine or its cgroup has
  std::vector<std::string> extra_outputs = {};  // values of the graph to yield behind its outputs
  // What products and convolutions of f32 may round their inputs to: "f32", "f16", "bf16", where a
  // kernel is faster so; "bf16!", "f16!": wherever a kernel can.
  std::string precision = "f32";
  passes::LayoutMode layout = passes::LayoutMode::kOptimal;  // how memory layouts are chosen
  bool fuse = true;  // false: no value disappears inside a group, so that all can be observed
};

struct Port {
  std::string name;
  op::Type type;
};

struct RunOptions {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  // Called with every named value as it is computed (--dump): slow, meant for looking inside.
  std::function<void(const std::string& name, const op::Value&)> observe = {};
};

// What the compiler decided, and on what grounds.
struct Planning {
  ir::Graph fused;  // before layouts were chosen
  ir::Graph graph;  // as it was planned
  op::Bindings sizes;
  passes::Precision precision;  // asked for
  passes::FuseReport fuse;
  passes::AssignReport assign;
  passes::ViewReport views;
  std::shared_ptr<const plan::Plan> plan;
};

// Where the work of the last run was done.
struct Counters {
  int64_t plans = 0;            // how often planning happened since load
  int64_t kernel_launches = 0;  // of the last run: by device kernels,
  int64_t host_operators =
      0;  //   by operators that must run on the host (strings, sequences, control of data),
  int64_t reference_launches = 0;  //   and by the reference interpreter for want of a kernel
  codegen::mlir::Counters code;    // what was made from tile programs since load
  Seconds bind;                    // that the last run spent on sizes it had not seen lately
  // Of the last run on a simulated device, by its own clock.
  std::optional<Seconds> simulated;
};

struct MemoryUse {
  Bytes weights;  // constants and what was made of them at load
  Bytes peak;     // most bytes allocated for values during a run
  Bytes live;     // largest sum of live values over the steps of a run
};

// Safe to use from several threads at once.
class Model {
 public:
  static Result<std::unique_ptr<Model>> load(const std::string& path,
                                             const LoadOptions& options = {});
  static Result<std::unique_ptr<Model>> load_bytes(std::string_view bytes,
                                                   std::shared_ptr<const void> keep,
                                                   const LoadOptions& options = {});
  // A graph of one's own making.
  static Result<std::unique_ptr<Model>> from_graph(ir::Graph graph,
                                                   const LoadOptions& options = {});
  ~Model();

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  const ir::Graph& graph() const;

  // Inputs by name; every input must be given and fit its type. Outputs in the order of outputs().
  Result<std::vector<op::Value>> run(const std::map<std::string, op::Value>& inputs,
                                     const RunOptions& options = {});

  Counters counters() const;
  MemoryUse memory() const;
  // The latest plan; null before the first run of a model with open sizes, and on "reference".
  std::shared_ptr<const plan::Plan> plan() const;
  // A plan for inputs of these sizes, made now unless it is there. kUnimplemented on "reference".
  Result<std::shared_ptr<const plan::Plan>> plan_for(const op::Bindings& sizes);
  // The same with the grounds.
  Result<std::shared_ptr<const Planning>> planning_for(const op::Bindings& sizes);
  // Who was asked for kernels, and the rates behind their costs. @pre not on "reference"
  passes::Sources sources() const;
  const kernels::Rates& rates() const;

 private:
  struct Impl;
  static Result<std::unique_ptr<Model>> make(import::onnx::ImportedModel imported,
                                             const LoadOptions& options);
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::session
