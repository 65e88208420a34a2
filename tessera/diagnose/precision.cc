#include "tessera/diagnose/explain.h"

namespace tessera::diagnose {
namespace {

// Whether the kernel takes the problem only because a narrower type was allowed.
bool only_narrow(const op::Problem& plain, std::string_view kernel, passes::Sources sources) {
  for (const op::ClaimSource* source : sources)
    if (source->ask(plain, kernel).supported()) return false;
  return true;
}

void add(const op::Problem& problem, const std::string& name, passes::Sources sources,
         PrecisionReport& report) {
  ++report.products;
  op::Problem plain = problem;
  plain.attrs.set("compute", DType::kF32);
  plain.attrs.set("compute_forced", int64_t{0});
  const auto best = passes::cheapest(problem, sources), wide = passes::cheapest(plain, sources);
  if (best && only_narrow(plain, best->kernel, sources)) {
    ++report.narrow;
    if (wide) report.saved += Picoseconds(wide->cost.value - best->cost.value);
    return;
  }
  std::string why;
  for (const op::ClaimSource* source : sources)
    for (const op::Claim& claim : source->probe(problem)) {
      if (!only_narrow(plain, claim.kernel, sources)) continue;
      if (claim.supported()) {
        ++report.slower;
        return;
      }
      // What was asked for but not this type is no reason.
      if (source->ask(plain, claim.kernel).refusal != claim.refusal)
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", claim.kernel, claim.refusal);
    }
  report.refused.push_back(
      fmt::format("{}: {}", name, why.empty() ? "no kernel for this operator" : why));
}

}  // namespace

PrecisionReport precision_report(session::Model& model, const session::Planning& planning) {
  PrecisionReport report;
  report.type = planning.precision.type;
  report.forced = planning.precision.forced;
  if (report.type == DType::kF32) return report;
  for (const ir::Node& node : planning.graph.nodes) {
    auto problem = passes::problem_of(planning.graph, node, planning.sizes);
    if (!problem || !problem->attrs.has("compute")) continue;
    add(*problem, node.origin.empty() ? std::string(node.op->name) : node.origin.front(),
        model.sources(), report);
  }
  return report;
}

std::string describe(const PrecisionReport& r) {
  if (r.type == DType::kF32) return {};
  std::string text = fmt::format("{} {}: {} of {} products compute in it", name_of(r.type),
                                 r.forced ? "forced" : "asked", r.narrow, r.products);
  if (r.saved.value != 0)
    text += fmt::format(" ({:+.1f} us as estimated)", -static_cast<double>(r.saved.value) * 1e-6);
  if (r.slower > 0) text += fmt::format("; f32 is faster here for {}", r.slower);
  if (!r.refused.empty())
    text += fmt::format("; no kernel for {}, such as {}", r.refused.size(), r.refused.front());
  return text + "\n";
}

}  // namespace tessera::diagnose
