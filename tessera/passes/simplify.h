// The rewrites in front of fusion, run in order until none fires: the table is in simplify.cc.
// What passes rewrite has the same meaning: the same bits where only structure changes, else what
// rounding explains. Sizes stay what they are, open ones too.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/passes/fold.h"
#include "tessera/passes/rewriter.h"

namespace tessera::passes {

struct SimplifyOptions {
  // Computes nodes of constants, as fold does.
  Evaluate evaluate = {};
  // Called after each pass of each round with the whole graph.
  std::function<void(std::string_view pass, const ir::Graph&)> observe = {};
  // These passes only; empty: all.
  std::vector<std::string_view> only = {};
};

struct SimplifyReport {
  int rounds = 0;
  std::vector<Event> fired;   // in order
  std::vector<Event> missed;  // what the last round saw and left, and why
};

// Rewrites the graph in place, body graphs included.
// @post verify(graph); inputs, outputs and their types are as before
SimplifyReport simplify(ir::Graph& graph, const SimplifyOptions& options);

// In the order in which they run.
std::vector<std::string_view> simplify_passes();

}  // namespace tessera::passes
