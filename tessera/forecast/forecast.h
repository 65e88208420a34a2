// What a model will do on a chip that need not be here: where each operator runs, by which kernel,
// in which layouts, how long that takes and what bounds it; what is converted and copied, and
// whether it fits.
//
// Planning for a chip reads the model and the chips' files, nothing of the machine that it runs on:
// the same model, files, options and version give the same forecast.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/cost/cost.h"
#include "tessera/ir/graph.h"
#include "tessera/kernels/chip/source.h"
#include "tessera/passes/assign.h"
#include "tessera/passes/fuse.h"
#include "tessera/plan/plan.h"

namespace tessera::forecast {

// A model, read and simplified, in its own types.
struct Subject {
  ir::Graph graph;
  std::string hash;                 // of the file, and of the sizes that were given
  std::vector<std::string> missed;  // rewrites that did not happen, and why
};

struct SubjectOptions {
  std::map<std::string, int64_t, std::less<>> dims = {};
  std::map<std::string, op::Dims, std::less<>> shapes = {};
};
Result<Subject> read_subject(const std::string& path, const SubjectOptions& options);
// A graph of one's own making.
Result<Subject> subject_of(ir::Graph graph);

struct Options {
  std::shared_ptr<const chip::Chip> device, host;
  kernels::chip::Set kernels = kernels::chip::Set::kOwn;
  // What floating types of the model become: kF16, kBF16; nothing: as the model says.
  std::optional<DType> precision = {};
  // Nothing: `optimal` for our own kernels; `none` for the vendor's, which are called one by one.
  std::optional<passes::LayoutMode> layout = {};
  op::Bindings sizes = {};  // what is not given counts as 1
  std::string version = {};
  // Inputs arrive and outputs leave in whatever layouts the plan likes, converted by someone else.
  bool free_ports = false;
  // Formats that kernels may also be asked for: what if the chip took them?
  std::vector<std::string> extra_formats = {};
};

enum class RowKind : uint8_t {
  kKernel,      // on the chip
  kConversion,  // a launch that only changes a layout
  kCopy,        // between the chip and the host
  kHost,        // on the host: the chip does not take it
};
std::string_view name_of(RowKind kind);

// An instruction of the plan that takes time.
struct Row {
  int number = 0;  // in order over all regions
  RowKind kind = RowKind::kKernel;
  std::string name;  // the first source node
  std::vector<std::string> origin;
  std::string op;                  // the anchor
  std::vector<std::string> steps;  // operators in the anchor's kernel behind it
  std::string problem;             // operator and operands
  std::string place, kernel, tile;
  std::vector<std::string> in, out;  // layouts by name
  std::vector<std::string> in_types, out_types;
  cost::Interval time;  // of all trips
  Seconds launch;       // part of `time.expected`
  std::string bound_by;
  double flops = 0, padded_flops = 0;
  double bytes = 0;          // in the device's memory, by the cost model
  double operand_bytes = 0;  // of operands as they lie, padding included
  double padding_bytes = 0;  // the padding's part
  Seconds absorbed;          // what changing a layout on the way adds
  double absorbed_bytes = 0;
  double conversion_bytes = 0;  // of conversions and copies: read and written
  double trips = 1;             // of the loops around it
  bool at_port = false;         // of conversions: of an input, or to an output of the model
  std::string reason;           // of kHost: why the chip does not take it
  chip::Named<double> occupancy;
};

struct Totals {
  cost::Interval seconds;
  double mfu = 0;  // flops / (expected time x peak of the type that most are done in)
  std::string peak_type;
  double flops = 0, padded_flops = 0, bytes = 0;
  Bytes peak_bytes, weight_bytes, activation_bytes, capacity;
  bool fits = false;
  int64_t launches = 0;
  Seconds launch_seconds;
  int64_t conversions = 0;
  double conversion_bytes = 0;  // of conversion launches: read and written
  Seconds conversion_seconds;   // of conversion launches, and what absorbed ones add
  double relayout_bytes = 0;    // of conversion launches and absorbed ones
  int64_t copies = 0;
  double copy_bytes = 0;
  Seconds copy_seconds;
  int64_t fallback_nodes = 0;
  Seconds fallback_seconds;
  double padding_bytes = 0;

  double conversion_share() const;
  double copy_share() const;
  double launch_share() const;
};

// What part of a model a set of kernels takes, in the layouts that it wishes for.
struct Coverage {
  double flops = 1, bytes = 1;  // weighted by those, and by the trips of loops
  int64_t nodes = 0, taken = 0;
  std::map<std::string, std::string> refused = {};  // operator -> the first reason
};

struct Forecast {
  Options options;
  passes::LayoutMode layout = passes::LayoutMode::kOptimal;
  ir::Graph fused;  // before layouts were chosen
  ir::Graph graph;  // as planned
  passes::FuseReport fuse;
  passes::AssignReport assign;
  plan::Plan plan;
  std::vector<Row> rows;
  Totals totals;
  Coverage own, vendor;  // vendor: 0 where the chip's file lists nothing
  bool has_vendor = false;
  std::shared_ptr<const kernels::chip::Source> device, host;
};

// kUnimplemented where the chip cannot be planned for; kInvalidArgument for kernels of a vendor
// whose chip file lists none, and for sizes that do not fit.
Result<Forecast> forecast(const Subject& subject, const Options& options);

// Rows of a plan made for these chips.
Result<std::vector<Row>> rows_of(const plan::Plan& plan, const kernels::chip::Source& device,
                                 const kernels::chip::Source& host);
Totals total(const std::vector<Row>& rows, const kernels::chip::Source& device);

// {"schema": "tessera.plan/1", ...}: the plan, with `totals`, `operators` (a row each), `coverage`
// and what the choice of layouts rests on.
std::string to_json(const Forecast& forecast, int indent = 2);

}  // namespace tessera::forecast
