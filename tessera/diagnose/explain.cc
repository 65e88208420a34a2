#include "tessera/diagnose/explain.h"

#include <algorithm>

#include "tessera/passes/problem.h"

namespace tessera::diagnose {
namespace {

std::string name_of(const ir::Node& node) {
  return node.origin.empty() ? std::string(node.op->name) : node.origin.front();
}

std::string shown(const std::string& layout) { return layout.empty() ? "row-major" : layout; }

// The layouts of a problem's operands where any is not row-major.
std::string layouts_of(const op::Problem& p) {
  std::vector<std::string> in, out;
  bool plain = true;
  for (const auto& [side, list] : {std::pair{&p.in, &in}, {&p.out, &out}})
    for (const op::Operand& o : *side) {
      if (!o.present || o.constant) continue;
      plain = plain && o.layout.empty();
      list->push_back(shown(o.layout));
    }
  return plain ? "" : fmt::format("{} -> {}", fmt::join(in, ", "), fmt::join(out, ", "));
}

Result<NodeReport> report_of(session::Model& model, const session::Planning& planning,
                             const ir::Node& node) {
  NodeReport report;
  report.name = name_of(node);
  if (!node.bodies.empty() && node.op->name != "fused") {
    report.problem = node.op->name;
    return report;
  }
  auto problem = passes::problem_of(planning.graph, node, planning.sizes);
  if (!problem) {
    report.problem = node.op->name;
    report.fallback = problem.error().message;
    return report;
  }
  report.problem = problem->str();
  const auto best = passes::cheapest(*problem, model.sources(), &report.fallback);
  if (best) report.fallback.clear();
  auto ask = [&](const op::Problem& p, bool own) {
    for (const op::ClaimSource* source : model.sources())
      for (const op::Claim& claim : source->probe(p))
        report.alternatives.push_back({claim.kernel, layouts_of(p), claim.cost, claim.refusal,
                                       own && best && claim.kernel == best->kernel});
  };
  ask(*problem, true);
  const std::vector<std::string> own = [&] {
    std::vector<std::string> list;
    for (const auto* side : {&problem->in, &problem->out})
      for (const op::Operand& o : *side) list.push_back(o.layout);
    return list;
  }();
  // The other assignments of layouts that some kernel takes.
  for (const passes::Choice& c :
       passes::choices(planning.graph, node, planning.sizes, model.sources())) {
    if (c.kernel.empty() || node.op->name == "fused") continue;
    op::Problem other = *problem;
    for (size_t i = 0; i < other.in.size(); ++i) other.in[i].layout = c.in[i];
    for (size_t i = 0; i < other.out.size(); ++i) other.out[i].layout = c.out[i];
    std::vector<std::string> theirs = c.in;
    theirs.insert(theirs.end(), c.out.begin(), c.out.end());
    if (theirs != own) ask(other, false);
  }
  return report;
}

}  // namespace

Result<ModelReport> explain(session::Model& model, const session::Planning& planning) {
  ModelReport report;
  report.cost = planning.assign.cost;
  report.lower_bound = planning.assign.lower_bound;
  report.optimal = planning.assign.optimal();
  report.width = planning.assign.width;
  report.missed_fusions = planning.fuse.missed;
  report.groups = planning.fuse.groups;
  report.steps = planning.fuse.steps;
  report.views = planning.views.views;
  report.concats = planning.views.concats;
  report.launches = planning.plan->count().launches;
  report.rates = planning.plan->rates;
  report.precision = precision_report(model, planning);
  const ir::Graph& g = planning.graph;
  for (const ir::Node& node : g.nodes) {
    if (node.op->name != "relayout") {
      if (node.bodies.empty() || node.op->name == "fused") {
        auto problem = passes::problem_of(g, node, planning.sizes);
        if (problem && !passes::cheapest(*problem, model.sources()) && !passes::is_view(*node.op)) {
          TRY_ASSIGN(NodeReport r, report_of(model, planning, node));
          report.fallbacks.push_back(std::move(r));
        }
      }
      continue;
    }
    ConversionReport c;
    const ir::ValueInfo &from = g.value(node.inputs[0]), &to = g.value(node.outputs[0]);
    c.value = from.name;
    c.from = from.layout;
    c.to = to.layout;
    c.producer =
        from.producer < 0 ? "an input" : name_of(g.nodes[static_cast<size_t>(from.producer)]);
    c.consumer = "an output";
    for (const ir::Node& reader : g.nodes)
      if (std::find(reader.inputs.begin(), reader.inputs.end(), node.outputs[0]) !=
          reader.inputs.end()) {
        c.consumer = name_of(reader);
        break;
      }
    TRY_ASSIGN(const op::Problem problem, passes::problem_of(g, node, planning.sizes));
    c.bytes = Bytes(2 * packed_bytes(problem.in[0].dtype, problem.in[0].count()));
    if (const auto claim = passes::cheapest(problem, model.sources())) c.cost = claim->cost;
    ir::Graph without = planning.fused;
    TRY_ASSIGN(const passes::AssignReport other,
               passes::assign(without, model.sources(),
                              {.bindings = planning.sizes, .fixed = {node.inputs[0]}}));
    if (other.possible()) c.without = Picoseconds(other.cost.value - report.cost.value);
    report.conversions.push_back(std::move(c));
  }
  return report;
}

Result<std::vector<NodeReport>> explain_node(session::Model& model,
                                             const session::Planning& planning,
                                             std::string_view name) {
  std::vector<NodeReport> reports;
  for (const bool exact : {true, false}) {
    for (const ir::Node& node : planning.graph.nodes) {
      const bool hit = std::any_of(node.origin.begin(), node.origin.end(), [&](auto& o) {
        return exact ? o == name : o.find(name) != std::string::npos;
      });
      if (!hit) continue;
      TRY_ASSIGN(NodeReport r, report_of(model, planning, node));
      reports.push_back(std::move(r));
    }
    if (!reports.empty()) return reports;
  }
  return error(Code::kNotFound, "no node of the model has '{}' in its name", name);
}

Result<Roofline> roofline(session::Model& model, const session::Planning& planning) {
  Roofline result;
  const kernels::Rates& rates = model.rates();
  for (const ir::Node& node : planning.fused.nodes) {
    if (passes::is_view(*node.op)) continue;
    auto problem = passes::problem_of(planning.fused, node, planning.sizes);
    if (!problem) continue;
    Roofline::Node n;
    n.name = name_of(node);
    n.op = problem->op->name;
    for (const auto* side : {&problem->in, &problem->out})
      for (const op::Operand& o : *side)
        if (o.present)
          n.bytes += static_cast<double>(packed_bytes(o.dtype, std::max<int64_t>(0, o.count())));
    // The least arithmetic of any kernel in any layout, by the time that it takes at the peak of
    // what is multiplied.
    double compute = 0;
    bool any = false;
    for (const passes::Choice& c :
         passes::choices(planning.fused, node, planning.sizes, model.sources())) {
      if (node.op->name == "fused") {
        const passes::Group group = passes::group_of(node);
        for (size_t k = 0; k < group.in.size(); ++k) {
          const auto at = std::find(node.inputs.begin(), node.inputs.end(), group.in[k]);
          if (group.in[k] != ir::kAbsent)
            problem->in[k].layout = c.in[static_cast<size_t>(at - node.inputs.begin())];
        }
      } else {
        for (size_t k = 0; k < problem->in.size(); ++k) problem->in[k].layout = c.in[k];
      }
      for (size_t k = 0; k < problem->out.size(); ++k) problem->out[k].layout = c.out[k];
      for (const op::ClaimSource* source : model.sources())
        for (const op::Claim& claim : source->probe(*problem))
          if (const double ps = claim.flops / rates.peak_of(claim.kernel);
              claim.supported() && (!any || ps < compute)) {
            n.flops = claim.flops;
            compute = ps;
            any = true;
          }
    }
    const double memory = n.bytes / rates.bytes_per_ps;
    n.memory_binds = memory > compute;
    n.time = Seconds(std::max(compute, memory) * 1e-12);
    result.time += n.time;
    result.nodes.push_back(std::move(n));
  }
  return result;
}

}  // namespace tessera::diagnose
