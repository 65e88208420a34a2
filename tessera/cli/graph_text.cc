#include "tessera/cli/graph_text.h"

#include <type_traits>
#include <variant>

#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

std::string reference(const ir::Graph& graph, ir::ValueId id) {
  if (id == ir::kAbsent) return "_";
  const std::string& name = graph.value(id).name;
  return name.empty() ? fmt::format("%{}", id) : fmt::format("%{}\"{}\"", id, visible(name));
}

std::string typed(const ir::Graph& graph, ir::ValueId id) {
  return id == ir::kAbsent ? "_"
                           : fmt::format("{}: {}", reference(graph, id), graph.type(id).str());
}

std::string attribute_text(const op::Attr& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>)
          return fmt::format("\"{}\"", visible(value));
        else if constexpr (std::is_same_v<T, op::Ints> || std::is_same_v<T, op::Floats>)
          return fmt::format("[{}]", fmt::join(value, ","));
        else if constexpr (std::is_same_v<T, op::Strings>)
          return fmt::format("[\"{}\"]", visible(fmt::format("{}", fmt::join(value, "\",\""))));
        else if constexpr (std::is_same_v<T, DType>)
          return std::string(name_of(value));
        else if constexpr (std::is_same_v<T, op::Type>)
          return value.str();
        else if constexpr (std::is_same_v<T, op::Tensor>)
          return value.type().str();
        else
          return fmt::format("{}", value);
      },
      attribute);
}

template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ", ") + text(item);
  return out;
}

std::string node_text(const ir::Graph& graph, const ir::Node& node, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string out = fmt::format(
      "{}{} = {}({})", margin,
      joined(node.outputs, [&](ir::ValueId id) { return typed(graph, id); }), node.op->name,
      joined(node.inputs, [&](ir::ValueId id) { return reference(graph, id); }));
  if (!node.attrs.empty())
    out += fmt::format(" {{{}}}", joined(node.attrs.all(), [](const auto& a) {
                         return a.first + "=" + attribute_text(a.second);
                       }));
  if (!node.origin.empty())
    out += fmt::format("  # {}", visible(fmt::format("{}", fmt::join(node.origin, ", "))));
  out += "\n";
  for (const ir::Graph& body : node.bodies) out += graph_text(body, indent + 2);
  return out;
}

}  // namespace

std::string graph_text(const ir::Graph& graph, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string out =
      fmt::format("{}graph {}({}) {{\n", margin, visible(graph.name),
                  joined(graph.inputs, [&](ir::ValueId id) { return typed(graph, id); }));
  for (size_t id = 0; id < graph.values.size(); ++id)
    if (graph.values[id].constant)
      out += fmt::format("{}  {} = constant\n", margin, typed(graph, static_cast<ir::ValueId>(id)));
  for (const ir::Node& node : graph.nodes) out += node_text(graph, node, indent + 2);
  return out +
         fmt::format("{}  return {}\n{}}}\n", margin,
                     joined(graph.outputs, [&](ir::ValueId id) { return reference(graph, id); }),
                     margin);
}

}  // namespace tessera::cli
