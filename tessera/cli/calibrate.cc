// tessera calibrate: measures what this machine reaches, for the choice of kernels and layouts.
#include <chrono>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/terminal.h"
#include "tessera/session/calibration.h"

namespace tessera::cli {
namespace {

struct CalibrateArguments {
  std::string output;
  std::string provider = "own";
  bool json = false;
};

std::string report(const session::Calibration& c, const std::string& path) {
  Table table({"figure", ">value"});
  table.add({"processor", c.cpu});
  table.add({"instruction set", c.isa});
  table.add({"peak, one core", fmt::format("{:.1f} GFLOP/s", c.rates.flops_per_ps * 1e3)});
  table.add({"memory, read + write", fmt::format("{:.1f} GB/s", c.rates.bytes_per_ps * 1e3)});
  table.add({"launch", fmt::format("{:.2f} us", c.rates.launch_ps * 1e-6)});
  for (const auto& [kernel, part] : c.rates.efficiency)
    table.add({kernel, fmt::format("{:.0f} % of the peak", 100 * part)});
  return table.str() + fmt::format("\nwritten to {}\n", path);
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
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
      return error(Code::kInvalidArgument, "cannot make folder '{}': {}", folder.string(),
                   failure.message());
  }
  TRY(write_file(path, text));
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
    "Examples:\n  tessera calibrate\n  tessera calibrate --output here.json --json";

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
  verb.flag("--json", a->json, "Print what was measured as one JSON object");
  verb.footer(kFooter);
  return [a] { return calibrate(*a); };
}

}  // namespace tessera::cli
