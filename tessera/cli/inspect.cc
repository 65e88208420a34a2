// tessera inspect: what a model is, without running it.
#include <algorithm>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/cli/commands.h"

#include "tessera/cli/inputs.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/terminal.h"
#include "tessera/import/onnx/model.h"
#include "tessera/import/onnx/proto.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/ir/text.h"
#include "tessera/passes/simplify.h"

namespace tessera::cli {
namespace {

using Counts = std::map<std::string, int64_t>;

struct InspectArguments : ModelOptions {
  bool ir = false;
  std::string after;
  bool rewrites = false;
};

void count_source(const std::vector<import::onnx::NodeProto>& nodes, Counts& counts) {
  for (const auto& node : nodes) {
    ++counts[node.domain.empty() || node.domain == "ai.onnx"
                 ? std::string(node.op_type)
                 : fmt::format("{}.{}", node.domain, node.op_type)];
    for (const auto& attribute : node.attribute) {
      if (attribute.g) count_source(attribute.g->node, counts);
      for (const auto& graph : attribute.graphs) count_source(graph->node, counts);
    }
  }
}

// The type with sizes as numbers: symbols that are not known count as 1.
op::Type settled(const op::Type& type, op::Bindings& sizes) {
  op::Type result = type;
  if (!type.ranked()) return result;
  for (op::Expr& size : *result.shape) {
    for (const std::string& symbol : size.symbols()) sizes.emplace(symbol, 1);
    size = op::Expr(size.eval(sizes).value_or(1));
  }
  return result;
}

int64_t saturated(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t flops_of(const ir::Graph& graph, op::Bindings& sizes, int depth = 0);

// Operators without a count of their own: the sum over their decomposition, else one for each
// element of the result.
int64_t flops_of(const ir::Graph& graph, const ir::Node& node, op::Bindings& sizes, int depth) {
  constexpr int kDeepest = 64;
  int64_t sum = 0;
  for (const ir::Graph& body : node.bodies) sum = saturated(sum, flops_of(body, sizes, depth + 1));
  if (node.op->kind == op::OpClass::kHost || !node.bodies.empty()) return sum;
  std::vector<op::Type> inputs, outputs;
  for (ir::ValueId id : node.inputs)
    inputs.push_back(id == ir::kAbsent ? op::Type() : settled(graph.type(id), sizes));
  for (ir::ValueId id : node.outputs)
    if (id != ir::kAbsent) outputs.push_back(settled(graph.type(id), sizes));
  auto ranked = [](const op::Type& t) { return t.ranked(); };
  std::vector<const op::Type*> present;
  for (size_t i = 0; i < inputs.size(); ++i)
    present.push_back(node.inputs[i] == ir::kAbsent ? nullptr : &inputs[i]);
  if (!std::all_of(outputs.begin(), outputs.end(), ranked) ||
      !std::all_of(present.begin(), present.end(),
                   [&](const op::Type* t) { return !t || ranked(*t); }))
    return sum;
  if (node.op->flops) return saturated(sum, node.op->flops(node.attrs, present, outputs).value);
  if (node.op->kind == op::OpClass::kComposite && depth < kDeepest)
    if (auto body = ir::decompose(node, inputs))
      return saturated(sum, flops_of(*body, sizes, depth + 1));
  for (const op::Type& type : outputs)
    if (type.dtype != DType::kString)
      sum = saturated(sum, op::element_count(type.dims()).value_or(0));
  return sum;
}

int64_t flops_of(const ir::Graph& graph, op::Bindings& sizes, int depth) {
  int64_t sum = 0;
  for (const ir::Node& node : graph.nodes)
    sum = saturated(sum, flops_of(graph, node, sizes, depth));
  return sum;
}

int64_t constant_bytes(const ir::Graph& graph) {
  int64_t sum = 0;
  for (const ir::ValueInfo& value : graph.values)
    if (value.constant) sum = saturated(sum, value.constant->bytes().value);
  for (const ir::Node& node : graph.nodes)
    for (const ir::Graph& body : node.bodies) sum = saturated(sum, constant_bytes(body));
  return sum;
}

Json ports_json(const std::vector<session::Port>& ports) {
  Json list = Json::array();
  for (const session::Port& port : ports) {
    Json entry{{"name", port.name}, {"type", port.type.str()}};
    if (port.type.is_tensor()) entry["dtype"] = name_of(port.type.dtype);
    if (port.type.ranked()) {
      entry["shape"] = Json::array();
      for (const op::Expr& size : *port.type.shape) {
        if (const auto fixed = size.constant())
          entry["shape"].push_back(*fixed);
        else
          entry["shape"].push_back(size.str());
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// Most frequent first.
std::vector<std::pair<std::string, int64_t>> by_count(const Json& counts) {
  std::vector<std::pair<std::string, int64_t>> list;
  for (const auto& [name, count] : counts.items()) list.emplace_back(name, count.get<int64_t>());
  std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.second > b.second; });
  return list;
}

std::string report_text(const Json& r) {
  std::vector<std::string> opsets;
  for (const auto& [domain, version] : r["opsets"].items())
    opsets.push_back(fmt::format("{} {}", domain, version.get<int64_t>()));
  std::string out = fmt::format("{}: ONNX IR {}, {}", visible(r["model"].get<std::string>()),
                                r["ir_version"].get<int64_t>(),
                                visible(fmt::format("{}", fmt::join(opsets, ", "))));
  if (const auto producer = r["producer"].get<std::string>(); !producer.empty())
    out += ", made by " + visible(producer);
  Table ports({"", "name", "type"});
  for (const Json& p : r["inputs"]) ports.add({"input", p["name"], p["type"]});
  for (const Json& p : r["outputs"]) ports.add({"output", p["name"], p["type"]});
  out += "\n\n" + ports.str() + "\n";
  Table operators({"operator", ">count"});
  for (const auto& [name, count] : by_count(r["operators"]))
    operators.add({name, std::to_string(count)});
  out += operators.str() + "\n";
  const auto symbols = r["symbols"].get<std::vector<std::string>>();
  out += fmt::format("parameters  {} ({})\n", r["parameters"].get<int64_t>(),
                     to_string(Bytes(r["parameter_bytes"].get<int64_t>())));
  out += fmt::format("work        {}{}\n", to_string(Flops(r["flops"].get<int64_t>())),
                     symbols.empty() ? "" : " with open sizes as 1");
  return out + fmt::format(
                   "open sizes  {}\n",
                   symbols.empty() ? "none" : visible(fmt::format("{}", fmt::join(symbols, ", "))));
}

Result<Counts> source_operators(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  TRY_ASSIGN(auto proto,
             import::onnx::parse_model(
                 {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}));
  Counts counts;
  count_source(proto.graph.node, counts);
  return counts;
}

// The graph after the pass, in the last round in which it ran, and what happened until then.
struct Simplified {
  std::string text;
  passes::SimplifyReport report;
};

Result<Simplified> simplified(ir::Graph graph, const std::string& after) {
  const auto names = passes::simplify_passes();
  const bool whole = after.empty() || after == "simplify";
  if (!whole && std::find(names.begin(), names.end(), after) == names.end())
    return error(Code::kInvalidArgument, "no pass '{}': {}, or simplify for all of them", after,
                 fmt::join(names, ", "));
  Simplified result;
  passes::SimplifyOptions options;
  options.evaluate = [](const ir::Node& node, std::span<const op::Value* const> inputs) {
    return ir::reference::evaluate(node, inputs, {});
  };
  options.observe = [&](std::string_view pass, const ir::Graph& g) {
    if (pass == after) result.text = ir::print(g);
  };
  result.report = passes::simplify(graph, options);
  if (whole) result.text = ir::print(graph);
  return result;
}

std::string events_text(const passes::SimplifyReport& report) {
  auto list = [](const std::vector<passes::Event>& events) {
    Table table({"pass", "what", "nodes"});
    for (const passes::Event& e : events)
      table.add({std::string(e.pass), e.text, fmt::format("{}", fmt::join(e.origin, ", "))});
    return table.str();
  };
  return fmt::format("Rewrites, in {} rounds\n\n{}\nNot done\n\n{}", report.rounds,
                     list(report.fired), list(report.missed));
}

Json events_json(const std::vector<passes::Event>& events) {
  Json list = Json::array();
  for (const passes::Event& e : events)
    list.push_back({{"pass", e.pass}, {"what", e.text}, {"origin", e.origin}});
  return list;
}

Result<int> inspect_passes(const InspectArguments& a, const ir::Graph& graph) {
  TRY_ASSIGN(Simplified result, simplified(graph, a.after));
  if (!a.json) {
    TRY(print_text(a.rewrites ? events_text(result.report) : result.text));
    return kFine;
  }
  TRY(print_json({{"schema", "tessera.rewrites/1"},
                  {"model", a.model},
                  {"rounds", result.report.rounds},
                  {"fired", events_json(result.report.fired)},
                  {"missed", events_json(result.report.missed)},
                  {"ir", result.text}}));
  return kFine;
}

Result<int> inspect(const InspectArguments& a) {
  auto progress = std::make_unique<Progress>(fmt::format("reading {}", a.model));
  TRY_ASSIGN(session::LoadOptions load, load_options(a));
  TRY_ASSIGN(auto imported, import::onnx::import_file(a.model, {load.dims, load.shapes, ""}));
  if (!a.after.empty() || a.rewrites) {
    progress.reset();
    return inspect_passes(a, imported.graph);
  }
  TRY_ASSIGN(Counts operators, source_operators(a.model));
  const ir::Graph& graph = imported.graph;
  std::vector<session::Port> inputs, outputs;
  for (ir::ValueId id : graph.inputs) inputs.push_back({graph.value(id).name, graph.type(id)});
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    outputs.push_back({graph.output_names[i], graph.type(graph.outputs[i])});
  op::Bindings sizes;
  std::vector<std::string> symbols;
  for (const auto& [name, size] : assume_sizes(inputs, sizes)) symbols.push_back(name);
  Json opsets = Json::object();
  for (const auto& [domain, version] : imported.opsets)
    opsets[domain.empty() ? "ai.onnx" : domain] = version;
  Counts nodes;
  for (const ir::Node& node : graph.nodes) ++nodes[std::string(node.op->name)];
  Json report{{"schema", "tessera.inspect/1"},
              {"model", a.model},
              {"ir_version", imported.ir_version},
              {"opsets", std::move(opsets)},
              {"producer", imported.producer},
              {"inputs", ports_json(inputs)},
              {"outputs", ports_json(outputs)},
              {"operators", operators},
              {"nodes", nodes},
              {"parameters", imported.parameters},
              {"parameter_bytes", constant_bytes(graph)},
              {"flops", flops_of(graph, sizes)},
              {"symbols", symbols}};
  progress.reset();
  if (a.json) {
    if (a.ir) report["ir"] = ir::print(graph);
    TRY(print_json(report));
  } else {
    TRY(print_text(a.ir ? ir::print(graph) : report_text(report)));
  }
  return kFine;
}

}  // namespace

Job inspect_command(Parser& parser) {
  Verb verb =
      parser.verb("inspect", "Show a model's inputs, outputs, operators, parameters and work");
  auto a = std::make_shared<InspectArguments>();
  add_model_options(verb, *a);
  verb.flag("--ir", a->ir, "Print the graph as Tessera sees it");
  verb.option("--after", a->after,
              "Print the graph after this rewrite; simplify: after all of them");
  verb.flag("--rewrites", a->rewrites, "List what the rewrites did, and what not and why");
  verb.footer(
      "The work counts a multiplication and an addition as two; bodies of loops count "
      "once.\n\nExamples:\n  tessera inspect resnet50.onnx\n  tessera inspect bert.onnx --dim "
      "batch=1 --dim sequence=128 --json\n  tessera inspect model.onnx --ir\n  tessera inspect "
      "model.onnx --after simplify\n  tessera inspect model.onnx --rewrites");
  return [a] { return inspect(*a); };
}

}  // namespace tessera::cli
