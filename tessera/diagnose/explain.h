// Why a model is computed as it is: for each node the kernel and layouts chosen, the alternatives
// and their costs, the refusals; for the model every conversion and copy with what it costs and
// what removing it would cost, and the fusions that did not happen.
#pragma once

#include <string>
#include <vector>

#include "tessera/session/model.h"

namespace tessera::diagnose {

struct Alternative {
  std::string kernel;
  std::string layouts;  // "nchw -> nhwc" by the texts of layouts; empty: row-major throughout
  Picoseconds cost;
  std::string refusal;  // empty: it could have been taken
  bool chosen = false;
};

struct NodeReport {
  std::string name;     // the first source node
  std::string problem;  // operator and operands
  std::vector<Alternative> alternatives;
  std::string fallback;  // why the host computes it; empty: a kernel does
};

struct ConversionReport {
  std::string value;     // its name, or the node that yields it
  std::string from, to;  // layouts; empty: row-major
  std::string producer, consumer;
  Bytes bytes;  // read and written
  Picoseconds cost;
  // The estimate for the whole model without this conversion, less that with it. Nothing: it cannot
  // be removed.
  std::optional<Picoseconds> without;
};

// What became of a precision that was asked for.
struct PrecisionReport {
  DType type = DType::kF32;
  bool forced = false;
  int products = 0;                  // dot and conv of f32
  int narrow = 0;                    // computed in `type`
  int slower = 0;                    // in f32, which is faster here
  Picoseconds saved;                 // by those that are narrow, beside the best in f32
  std::vector<std::string> refused;  // which no kernel computes in `type`, and why
};
PrecisionReport precision_report(session::Model& model, const session::Planning& planning);
// A line about it; empty where f32 was asked for.
std::string describe(const PrecisionReport& report);

struct ModelReport {
  Picoseconds cost, lower_bound;
  bool optimal = false;
  int width = 0;
  std::vector<ConversionReport> conversions;
  std::vector<std::string> missed_fusions;
  std::vector<NodeReport> fallbacks;
  int64_t launches = 0;
  int groups = 0, steps = 0, views = 0, concats = 0;
  std::string rates;
  PrecisionReport precision;
};

Result<ModelReport> explain(session::Model& model, const session::Planning& planning);

// Nodes one of whose source nodes is called `name`, or has it in its name if none is.
// kNotFound if there is none.
Result<std::vector<NodeReport>> explain_node(session::Model& model,
                                             const session::Planning& planning,
                                             std::string_view name);

// The least time that the machine could take: the sum over nodes of
// max(arithmetic of the cheapest kernel / peak, bytes of the operands / bandwidth).
struct Roofline {
  struct Node {
    std::string name, op;
    double flops = 0, bytes = 0;
    Seconds time;
    bool memory_binds = false;
  };
  std::vector<Node> nodes;
  Seconds time;
};
Result<Roofline> roofline(session::Model& model, const session::Planning& planning);

}  // namespace tessera::diagnose
