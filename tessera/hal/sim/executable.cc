#include <algorithm>
#include <string_view>

#include "tessera/hal/sim/backend.h"
#include "tessera/hal/sim/device.h"
#include "tessera/tile/engine_paths.h"

namespace tessera::hal::sim {

Result<std::unique_ptr<Executable>> load_executable(const Device& device,
                                                    const tessera_executable_source& source) {
  if (std::string_view(source.format) != "engine")
    return error(Code::kUnimplemented,
                 "a simulated {} takes executables of format 'engine', not '{}'", device.chip()->id,
                 source.format);
  TRY_ASSIGN(std::vector<engine::Program> programs,
             engine::parse({static_cast<const char*>(source.bytes), source.size_bytes}));
  auto result = std::make_unique<Executable>();
  for (uint32_t i = 0; i < source.entry_count; ++i) {
    const auto at = std::ranges::find(programs, std::string_view(source.entries[i].name),
                                      &engine::Program::name);
    if (at == programs.end())
      return error(Code::kNotFound, "the executable has no program '{}'", source.entries[i].name);
    TRY_ASSIGN(Loaded l, Loaded::make(device.chip(), *at));
    result->entries.push_back(std::move(l));
  }
  return result;
}

Result<ConformanceExecutables> conformance_executables(const chip::Chip& chip) {
  TRY_ASSIGN(const engine::VectorPath v, engine::find_vector_path(chip));
  const auto& memory = chip.memory.find(v.space)->second;
  const int64_t unit = memory.alignment_bytes ? memory.alignment_bytes->value.value : 1;
  const int64_t bytes = (1024 + unit - 1) / unit * unit;  // of 256 elements of 32 bits
  std::string text =
      fmt::format(R"(engine "add" on {core} {{
  argument a = 0 : f32[grid]
  argument b = 1 : f32[grid]
  argument c = 2 : f32[grid]
  buffer x in {space} at 0 : f32[256]
  buffer y in {space} at {one} : f32[256]
  buffer z in {space} at {two} : f32[256]
  {unit}: set {load} 0
  {store}: set {unit} 1
  for t = core to (grid + 255)/256 by cores {{
    {load}: wait {unit} 0
    {load}: copy x[i] = a[256*t + i] over i = min(256, grid - 256*t)
    {load}: copy y[i] = b[256*t + i] over i = min(256, grid - 256*t)
    {load}: set {unit} 0
    {unit}: wait {load} 0
    {unit}: wait {store} 1
    {unit}: map add z[i] = x[i], y[i] over i = min(256, grid - 256*t)
    {unit}: set {load} 0
    {unit}: set {store} 1
    {store}: wait {unit} 1
    {store}: copy c[256*t + i] = z[i] over i = min(256, grid - 256*t)
    {store}: set {unit} 1
  }}
  {load}: wait {unit} 0
  {unit}: wait {store} 1
}}
engine "spin" on {core} {{
  constants us
  argument n = 0 : u32[1]
  buffer x in {space} at 0 : u32[1]
  for t = core to 1 {{
    {load}: delay 1000*us
    {load}: copy x[i] = n[i] over i = 1
    {load}: set {unit} 0
    {unit}: wait {load} 0
    {unit}: map add x[i] = x[i], whole 1 over i = 1
    {unit}: set {store} 1
    {store}: wait {unit} 1
    {store}: copy n[i] = x[i] over i = 1
  }}
}}
engine "trap" on {core} {{
  {unit}: trap "trap"
}}
)",
                  fmt::arg("core", v.core), fmt::arg("unit", v.unit), fmt::arg("space", v.space),
                  fmt::arg("load", v.load), fmt::arg("store", v.store), fmt::arg("one", bytes),
                  fmt::arg("two", 2 * bytes));
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return ConformanceExecutables{
      .format = "engine", .bytes = {first, first + text.size()}, .functions = {}};
}

}  // namespace tessera::hal::sim
