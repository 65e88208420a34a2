#include <nlohmann/json.hpp>

#include "tessera/forecast/forecast.h"

namespace tessera::forecast {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const cost::Interval& i) {
  return {{"low", i.low.value}, {"expected", i.expected.value}, {"high", i.high.value}};
}

Json json_of(const Totals& t) {
  return {{"seconds", json_of(t.seconds)},
          {"mfu", t.mfu},
          {"peak_type", t.peak_type},
          {"flops", t.flops},
          {"padded_flops", t.padded_flops},
          {"bytes", t.bytes},
          {"peak_bytes", t.peak_bytes.value},
          {"weight_bytes", t.weight_bytes.value},
          {"activation_bytes", t.activation_bytes.value},
          {"capacity", t.capacity.value},
          {"fits", t.fits},
          {"launches", t.launches},
          {"launch_seconds", t.launch_seconds.value},
          {"launch_share", t.launch_share()},
          {"conversions", t.conversions},
          {"conversion_bytes", t.conversion_bytes},
          {"conversion_seconds", t.conversion_seconds.value},
          {"conversion_share", t.conversion_share()},
          {"relayout_bytes", t.relayout_bytes},
          {"copies", t.copies},
          {"copy_bytes", t.copy_bytes},
          {"copy_seconds", t.copy_seconds.value},
          {"copy_share", t.copy_share()},
          {"fallback_nodes", t.fallback_nodes},
          {"fallback_seconds", t.fallback_seconds.value},
          {"padding_bytes", t.padding_bytes}};
}

Json json_of(const Coverage& c) {
  Json refused = Json::object();
  for (const auto& [op, why] : c.refused) refused[op] = why;
  return {{"flops", c.flops},
          {"bytes", c.bytes},
          {"nodes", c.nodes},
          {"taken", c.taken},
          {"refused", std::move(refused)}};
}

Json json_of(const Row& r) {
  Json j{{"number", r.number},
         {"kind", name_of(r.kind)},
         {"name", r.name},
         {"op", r.op},
         {"device", r.place},
         {"kernel", r.kernel},
         {"steps", r.steps},
         {"tile", r.tile},
         {"in", r.in},
         {"out", r.out},
         {"in_types", r.in_types},
         {"out_types", r.out_types},
         {"seconds", json_of(r.time)},
         {"launch_seconds", r.launch.value},
         {"bound_by", r.bound_by},
         {"flops", r.flops},
         {"padded_flops", r.padded_flops},
         {"bytes", r.bytes},
         {"padding_bytes", r.padding_bytes},
         {"origin", r.origin}};
  if (r.conversion_bytes > 0) j["conversion_bytes"] = r.conversion_bytes;
  if (r.absorbed_bytes > 0) {
    j["absorbed_seconds"] = r.absorbed.value;
    j["absorbed_bytes"] = r.absorbed_bytes;
  }
  if (r.trips != 1) j["trips"] = r.trips;
  if (!r.reason.empty()) j["reason"] = r.reason;
  return j;
}

}  // namespace

std::string to_json(const Forecast& f, int indent) {
  Json j = Json::parse(plan::to_json(f.plan, -1));
  j["kernels"] = kernels::chip::name_of(f.options.kernels);
  j["totals"] = json_of(f.totals);
  const Coverage& used = f.options.kernels == kernels::chip::Set::kOwn ? f.own : f.vendor;
  j["totals"]["coverage_flops"] = used.flops;
  j["totals"]["coverage_bytes"] = used.bytes;
  j["coverage"] = {{"own", json_of(f.own)}};
  if (f.has_vendor) j["coverage"]["vendor"] = json_of(f.vendor);
  j["layout"] = {{"mode", passes::name_of(f.layout)},
                 {"cost_ps", f.assign.cost.value},
                 {"lower_bound_ps", f.assign.lower_bound.value},
                 {"optimal", f.assign.optimal()},
                 {"variables", f.assign.variables},
                 {"width", f.assign.width}};
  j["fused"] = {{"groups", f.fuse.groups}, {"steps", f.fuse.steps}, {"missed", f.fuse.missed}};
  j["operators"] = Json::array();
  for (const Row& row : f.rows) j["operators"].push_back(json_of(row));
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera::forecast
