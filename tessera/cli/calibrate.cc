// tessera calibrate: measures what this machine reaches, for the choice of kernels and layouts.
#include <chrono>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/base/machine.h"
#include "tessera/chip/catalog.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/terminal.h"
#include "tessera/session/calibration.h"

namespace tessera::cli {
namespace {

struct CalibrateArguments {
  std::string output, chip;
  std::string provider = "own";
  bool json = false;
};

std::string report(const session::Calibration& c, const std::string& path) {
  Table table({"figure", ">value"});
  table.add({"processor", c.cpu});
  table.add({"instruction set", c.isa});
  table.add({"peak, one core", fmt::format("{:.1f} GFLOP/s", c.rates.flops_per_ps * 1e3)});
  for (const auto& [type, flops] : c.rates.narrow_flops_per_ps)
    table.add(
        {fmt::format("peak in {}", name_of(type)), fmt::format("{:.1f} GFLOP/s", flops * 1e3)});
  table.add({"memory, read + write", fmt::format("{:.1f} GB/s", c.rates.bytes_per_ps * 1e3)});
  table.add({"launch", fmt::format("{:.2f} us", c.rates.launch_ps * 1e-6)});
  for (const auto& [kernel, part] : c.rates.efficiency)
    table.add({kernel, fmt::format("{:.0f} % of its peak", 100 * part)});
  return table.str() + fmt::format("\nwritten to {}\n", path);
}

// The chip file of this machine: what is typical of its instruction set, with what was measured.
// Clocks are not: the one written is that at which the units reach the measured peak.
Result<std::string> chip_file(const session::Calibration& c) {
  const std::string base = c.isa == "amx"                ? "cpu_amx"
                           : c.isa.starts_with("avx512") ? "cpu_avx512"
                                                         : "cpu_avx2";
  TRY_ASSIGN(const chip::Chip typical, chip::Catalog().load(base));
  const chip::Unit& fma = typical.units.at("fma");
  const double flops_per_cycle =
      2.0 * static_cast<double>(fma.per_core.value) * fma.rates.at("f32").macs_per_cycle.value;
  const double flops = c.rates.flops_per_ps * 1e12;
  Json dram{{"bytes_per_second", c.rates.bytes_per_ps * 1e12}};
  if (usable_memory().value > 0) dram["capacity_bytes"] = usable_memory().value;
  Json j{{"schema", "tessera.chip/1"},
         {"extends", base},
         {"name", c.cpu.empty() ? "this machine" : c.cpu},
         {"note", fmt::format("As seen by one process; instruction set {}.", c.isa)},
         {"cite", "measured: tessera calibrate"},
         {"cores",
          {{"core",
            {{"count", usable_cpus()},
             {"clock_hz",
              {{"value", flops / flops_per_cycle},
               {"cite", fmt::format("derived: the measured {:.1f} GFLOP/s of a core over {:g} FLOP "
                                    "a cycle",
                                    flops / 1e9, flops_per_cycle)}}}}}}},
         {"memory", {{"dram", std::move(dram)}}},
         {"launch", {{"seconds", c.rates.launch_ps * 1e-12}}}};
  for (const auto& [kernel, part] : c.rates.efficiency)
    j["constants"]["efficiency." + kernel] = {
        {"value", part}, {"fitted_to", "runs of that kernel, share of the peak"}};
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status make_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return {};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    return error(Code::kInvalidArgument, "cannot make folder '{}': {}", folder.string(),
                 failure.message());
  return {};
}

Result<int> calibrate(const CalibrateArguments& a) {
  const std::string path = a.output.empty() ? session::calibration_path() : a.output;
  if (path.empty()) return error(Code::kInvalidArgument, "nowhere to keep it: give --output FILE");
  session::Calibration measured;
  {
    Progress progress("measuring");
    TRY_ASSIGN(measured, session::calibrate(
                             [&](const std::string& what) {
                               progress.set(fmt::format("measuring {}", what));
                             },
                             a.provider));
  }
  const std::string text = session::to_json(measured);
  TRY(make_folder_of(path));
  TRY(write_file(path, text));
  if (!a.chip.empty()) {
    TRY_ASSIGN(const std::string chip, chip_file(measured));
    TRY(make_folder_of(a.chip));
    TRY(write_file(a.chip, chip));
  }
  if (a.json)
    TRY(print_json(Json::parse(text)));
  else
    TRY(print_text(report(measured, path)));
  return kFine;
}

constexpr const char* kFooter =
    "Kernels and layouts are chosen by cost. Without a calibration the costs are those of a "
    "typical "
    "core of the instruction set.\n"
    "The file is used from the next command on, on this processor only; TESSERA_CALIBRATION names "
    "another one, or 'none'.\n\n"
    "Examples:\n  tessera calibrate\n  tessera calibrate --output here.json --json\n"
    "  tessera calibrate --chip here_chip.json";

}  // namespace

Job calibrate_command(Parser& parser) {
  Verb verb = parser.verb("calibrate", "Measure this machine, under a minute");
  auto a = std::make_shared<CalibrateArguments>();
  verb.option("--output", a->output, "Where to write; default: the user's cache folder")
      .type_name("FILE");
  verb.option("--provider", a->provider,
              "Whose kernels: own, or all, which also measures oneDNN's; they are then used where "
              "they win")
      .one_of({"own", "all"})
      .shows_default()
      .type_name("NAME");
  verb.option("--chip", a->chip, "Write a chip file of this machine, too, to plan for it elsewhere")
      .type_name("FILE");
  verb.flag("--json", a->json, "Print what was measured as one JSON object");
  verb.footer(kFooter);
  return [a] { return calibrate(*a); };
}

}  // namespace tessera::cli
