#include "tessera/passes/simplify.h"

#include <algorithm>

#include "tessera/passes/attention.h"
#include "tessera/passes/batch_norm.h"
#include "tessera/passes/bias.h"
#include "tessera/passes/common.h"
#include "tessera/passes/gelu.h"
#include "tessera/passes/hard_swish.h"
#include "tessera/passes/identities.h"
#include "tessera/passes/integer.h"
#include "tessera/passes/layer_norm.h"
#include "tessera/passes/mean_pool.h"
#include "tessera/passes/pad.h"
#include "tessera/passes/past.h"
#include "tessera/passes/relu.h"
#include "tessera/passes/reshapes.h"
#include "tessera/passes/rotary.h"
#include "tessera/passes/scale.h"
#include "tessera/passes/sigmoid.h"
#include "tessera/passes/slices.h"
#include "tessera/passes/softmax.h"
#include "tessera/passes/transposes.h"

namespace tessera::passes {
namespace {

// Each round does all passes; what needs more rounds than these stays as it is.
constexpr int kMaxRounds = 12;

struct Row {
  std::string_view name;
  void (*run)(Rewriter&);
};

constexpr Row kRows[] = {
    {"integer", integer},        // quantize(dequantize(x)) -> x
    {"identities", identities},  // x + 0 -> x
    {"common", common},          // f(x), f(x) -> f(x) once
    {"relu", relu},              // max(x, 0) -> relu
    {"sigmoid", sigmoid},        // x * sigmoid(x) -> silu
    {"gelu", gelu},              // x/2 (1 + erf(x / sqrt 2)) -> gelu
    {"hard_swish", hard_swish},  // x * clip(x + 3, 0, 6) / 6 -> hard_swish
    {"softmax", softmax},        // exp(x - max(x)) / sum -> softmax
    {"layer_norm", layer_norm},  // (x - mean(x)) / sqrt(var + e) -> layer_norm
    {"mean_pool", mean_pool},    // mean over the pixels -> global_average_pool
    {"rotary", rotary},          // x c + concat(-x2, x1) s -> rotary
    {"attention", attention},    // softmax(q k^T) v -> attention
    {"past", past},              // attention(q, concat(a, k), ...) -> attention(q, k, ..., a)
    {"slices", slices},          // gather(x, 2) -> slice(x, 2, 3)
    {"transposes", transposes},  // f(transpose(x)) -> transpose(f(x))
    {"reshapes", reshapes},      // reshape(reshape(x)) -> reshape(x)
    {"pad", pad},                // conv(pad(x)) -> conv(x)
    {"batch_norm", batch_norm},  // batch_norm -> mul, add
    {"scale", scale},            // conv(x, w) * c -> conv(x, c w)
    {"bias", bias},              // conv(x, w) + c -> conv(x, w, c)
};

// Done before constants are folded, too.
constexpr Row kFirst[] = {
    {"integer", integer},  // conv(dequantize(x), dequantize(w)) -> conv_integer(x, w) * scale
};

class Pipeline {
 public:
  Pipeline(ir::Graph& graph, const SimplifyOptions& options) : graph_(graph), options_(options) {}

  SimplifyReport run() {
    for (const Row& row : kFirst) {
      if (!wanted(row.name)) continue;
      apply(row, graph_);
      observe(row.name);
    }
    for (bool changed = true; changed && report_.rounds < kMaxRounds; ++report_.rounds) {
      const size_t before = report_.fired.size();
      report_.missed.clear();
      constants();
      for (const Row& row : kRows) {
        if (!wanted(row.name)) continue;
        apply(row, graph_);
        observe(row.name);
      }
      changed = report_.fired.size() > before;
    }
    return std::move(report_);
  }

 private:
  void constants() {
    if (!options_.evaluate || !wanted("fold")) return;
    const FoldReport folded = fold(graph_, options_.evaluate);
    if (folded.folded > 0)
      report_.fired.push_back({"fold", {}, fmt::format("{} nodes of constants", folded.folded)});
    observe("fold");
  }

  void apply(const Row& row, ir::Graph& graph) {
    Rewriter rewriter(graph, row.name, report_.fired, report_.missed);
    row.run(rewriter);
    for (ir::Node& node : graph.nodes)
      for (ir::Graph& body : node.bodies) apply(row, body);
  }

  bool wanted(std::string_view pass) const {
    const auto& only = options_.only;
    return only.empty() || std::find(only.begin(), only.end(), pass) != only.end();
  }

  void observe(std::string_view pass) const {
    if (options_.observe) options_.observe(pass, graph_);
  }

  ir::Graph& graph_;
  const SimplifyOptions& options_;
  SimplifyReport report_;
};

}  // namespace

SimplifyReport simplify(ir::Graph& graph, const SimplifyOptions& options) {
  return Pipeline(graph, options).run();
}

std::vector<std::string_view> simplify_passes() {
  std::vector<std::string_view> names{"fold"};
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

}  // namespace tessera::passes
