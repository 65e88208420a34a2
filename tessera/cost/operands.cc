#include "tessera/cost/operands.h"

#include <algorithm>

#include "tessera/layout/bound.h"
#include "tessera/layout/formats.h"
#include "tessera/layout/layout.h"

namespace tessera::cost {
namespace {

bool row_major(const op::Operand& operand) {
  if (operand.layout.empty()) return true;
  const auto parsed = layout::Layout::parse(operand.layout);
  return parsed && parsed->is_row_major();
}

Result<layout::Layout> layout_called(std::string_view name, DType dtype, const op::Dims& dims,
                                     int64_t groups) {
  if (name.find(' ') != std::string_view::npos) return layout::Layout::parse(name);
  return layout::format_layout(name, {.dtype = dtype, .extents = dims, .groups = groups});
}

// One leg's effect on a set of layout names; a route without changes takes all as they are.
std::vector<std::string> through(const chip::Route& route, const std::vector<std::string>& names) {
  if (route.changes.empty()) return names;
  std::vector<std::string> result;
  for (const chip::Change& change : route.changes)
    if (std::find(names.begin(), names.end(), change.from) != names.end())
      result.push_back(change.to);
  return result;
}

std::vector<std::string> sources(const std::vector<Leg>& way) {
  std::vector<std::string> result;
  if (!way.empty())
    for (const chip::Change& change : way.front().route->changes) result.push_back(change.from);
  return result;
}

bool arrives(const std::vector<Leg>& way, std::vector<std::string> names,
             const std::vector<std::string>& wanted) {
  for (const Leg& leg : way) names = through(*leg.route, names);
  if (wanted.empty()) return !names.empty();
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) {
    return std::find(wanted.begin(), wanted.end(), n) != wanted.end();
  });
}

struct Path {
  std::vector<Leg> legs;
  std::vector<std::string> unit;  // layouts that the unit takes or leaves
  bool known = false;             // the chip says something of layouts on the way
};

Path path_of(const Machine& machine, const chip::Unit& unit, std::string_view name) {
  Path path;
  const auto operand = unit.operands.find(name);
  if (operand == unit.operands.end()) return path;
  const bool result = name == "c";
  path.legs = result ? machine.way(operand->second.memory, machine.memory())
                     : machine.way(machine.memory(), operand->second.memory);
  path.unit = operand->second.layouts;
  path.known = !path.unit.empty() && !path.legs.empty() &&
               std::any_of(path.legs.begin(), path.legs.end(),
                           [](const Leg& leg) { return !leg.route->changes.empty(); });
  return path;
}

}  // namespace

double elements_of(const op::Operand& operand) {
  if (!operand.present) return 0;
  double count = 1;
  for (const int64_t d : operand.dims) count *= static_cast<double>(d);
  return count;
}

double bits_of_elements(const op::Operand& operand) {
  return operand.dtype == DType::kString ? 128 : bits_of(operand.dtype);
}

double bytes_of(const op::Operand& operand) {
  const double packed = elements_of(operand) * bits_of_elements(operand) / 8;
  if (operand.layout.empty() || packed <= 0) return packed;
  const auto parsed = layout::Layout::parse(operand.layout);
  if (!parsed) return packed;
  const auto bound = layout::BoundLayout::bind(*parsed, operand.dtype, operand.dims);
  return bound ? static_cast<double>(bound->places()) * bits_of_elements(operand) / 8 : packed;
}

double bytes_per_element(const op::Operand& operand) { return bits_of_elements(operand) / 8; }

double dim(const op::Operand& operand, size_t axis) {
  return axis < operand.dims.size() ? static_cast<double>(operand.dims[axis]) : 1;
}

double product_of(const op::Dims& dims, size_t first, size_t last) {
  double p = 1;
  for (size_t i = first; i < last && i < dims.size(); ++i) p *= static_cast<double>(dims[i]);
  return p;
}

double input_bytes(const op::Problem& problem, size_t first, size_t last) {
  double bytes = 0;
  for (size_t i = first; i < last && i < problem.in.size(); ++i) bytes += bytes_of(problem.in[i]);
  return bytes;
}

double input_bytes(const op::Problem& problem) {
  return input_bytes(problem, 0, problem.in.size());
}

double output_bytes(const op::Problem& problem) {
  double bytes = 0;
  for (const op::Operand& o : problem.out) bytes += bytes_of(o);
  return bytes;
}

std::vector<std::string> layout_names(const op::Operand& operand,
                                      const std::vector<std::string>& names) {
  if (row_major(operand)) return {"ND"};
  const auto own = layout::Layout::parse(operand.layout);
  std::vector<std::string> result;
  if (!own) return result;
  for (const std::string& name : names) {
    const auto called = layout_called(name, operand.dtype, operand.dims, 1);
    if (called && *called == *own) result.push_back(name);
  }
  return result;
}

bool reaches(const Machine& machine, const chip::Unit& unit, std::string_view name,
             const op::Operand& operand) {
  const Path path = path_of(machine, unit, name);
  if (!path.known) return true;
  if (name != "c") return arrives(path.legs, layout_names(operand, sources(path.legs)), path.unit);
  std::vector<std::string> left = path.unit;
  for (const Leg& leg : path.legs) left = through(*leg.route, left);
  return arrives({}, layout_names(operand, left), left);
}

std::vector<std::string> reachable(const Machine& machine, const chip::Unit& unit,
                                   std::string_view name) {
  const Path path = path_of(machine, unit, name);
  if (!path.known) return {};
  if (name == "c") {
    std::vector<std::string> left = path.unit;
    for (const Leg& leg : path.legs) left = through(*leg.route, left);
    return left;
  }
  std::vector<std::string> result;
  for (const std::string& from : sources(path.legs))
    if (arrives(path.legs, {from}, path.unit)) result.push_back(from);
  return result;
}

Result<op::Operand> laid_out(op::Operand operand, std::string_view name, int64_t groups) {
  if (name == "ND") {
    operand.layout.clear();
    return operand;
  }
  TRY_ASSIGN(const layout::Layout layout, layout_called(name, operand.dtype, operand.dims, groups));
  operand.layout = layout.to_string();
  operand.strides.clear();
  return operand;
}

}  // namespace tessera::cost
