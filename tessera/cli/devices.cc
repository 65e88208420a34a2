// tessera devices: what there is to run on.
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/cli/chips.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/terminal.h"
#include "tessera/hal/device.h"
#include "tessera/session/machine.h"

namespace tessera::cli {
namespace {

Json describe(const std::string& name, const hal::DeviceInfo& info) {
  Json spaces = Json::array();
  for (const hal::MemorySpace& space : info.spaces)
    spaces.push_back({{"name", space.name},
                      {"capacity_bytes", space.capacity.value},
                      {"alignment_bytes", space.alignment.value}});
  return {{"name", name},
          {"available", true},
          {"description", info.name},
          {"chip", info.chip},
          {"compute_units", info.compute_units},
          {"formats", info.formats},
          {"memory", std::move(spaces)}};
}

Json unavailable(const std::string& name, const Error& e) {
  return {{"name", name}, {"available", false}, {"reason", e.message}};
}

Json list_devices() {
  Json devices = Json::array();
  for (const hal::BackendRow& row : session::registry().rows()) {
    auto backend = session::registry().find(row.name);
    auto count =
        backend ? (*backend)->device_count() : Result<uint32_t>(tl::unexpected(backend.error()));
    if (!count) {
      devices.push_back(unavailable(row.name, count.error()));
      continue;
    }
    for (uint32_t n = 0; n < *count; ++n) {
      std::string name = fmt::format("{}:{}", row.name, n);
      auto info = hal::describe_device(**backend, n);
      // Simulated devices are called by their chip.
      if (info && row.name == "sim") name = fmt::format("{}:{}", row.name, info->chip);
      devices.push_back(info ? describe(name, *info) : unavailable(name, info.error()));
    }
  }
  return devices;
}

Status print_table(const Json& devices) {
  Table table({"device", "description", ">units", "memory", "formats"});
  for (const Json& d : devices) {
    if (!d["available"]) {
      table.add({d["name"], "not available: " + d["reason"].get<std::string>(), "", "", ""});
      continue;
    }
    std::vector<std::string> spaces;
    for (const Json& space : d["memory"])
      spaces.push_back(fmt::format("{} {}", space["name"].get<std::string>(),
                                   space["capacity_bytes"] == 0
                                       ? "?"
                                       : to_string(Bytes(space["capacity_bytes"].get<int64_t>()))));
    table.add({d["name"], d["description"], std::to_string(d["compute_units"].get<int64_t>()),
               fmt::format("{}", fmt::join(spaces, ", ")),
               fmt::format("{}", fmt::join(d["formats"].get<std::vector<std::string>>(), ", "))});
  }
  return print_text(table.str());
}

Status print_devices(bool json) {
  const Json devices = list_devices();
  return json ? print_json(Json{{"schema", "tessera.devices/1"}, {"devices", devices}})
              : print_table(devices);
}

}  // namespace

Job devices_command(Parser& parser) {
  struct Arguments {
    std::string name;
    bool catalog = false, schema = false, json = false;
  };
  Verb verb = parser.verb("devices", "List what models can run on, and what is known of chips");
  auto a = std::make_shared<Arguments>();
  verb.option("name", a->name, "A chip of the catalog, or the path of a chip file")
      .type_name("NAME");
  verb.flag("--catalog", a->catalog, "List the chips that can be planned for");
  verb.flag("--schema", a->schema, "Print the JSON Schema of chip files");
  verb.flag("--json", a->json, "Print one JSON object");
  verb.footer(
      "TESSERA_CHIPS lists folders of further chip files, separated by colons.\n\n"
      "Examples:\n  tessera devices\n  tessera devices --catalog\n  tessera devices h100_sxm "
      "--json");
  return {[a]() -> Result<int> {
    if (!a->name.empty() + a->catalog + a->schema > 1)
      return error(Code::kInvalidArgument, "NAME, --catalog and --schema exclude each other");
    if (a->schema)
      TRY(print_chip_schema());
    else if (a->catalog)
      TRY(print_catalog(a->json));
    else if (!a->name.empty())
      TRY(print_chip(a->name, a->json));
    else
      TRY(print_devices(a->json));
    return kFine;
  }};
}

}  // namespace tessera::cli
