#include "tessera/session/calibration.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/ir/builder.h"
#include "tessera/kernels/cpu/isa.h"
#include "tessera/kernels/cpu/peak_args.h"
#include "tessera/passes/choices.h"
#include "tessera/passes/fuse.h"
#include "tessera/runtime/measure.h"
#include "tessera/session/machine.h"

namespace tessera::session {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kSchema = "tessera.calibration/1";

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- the machine

// One launch of a peak entry; its time.
Result<double> peak_launch(const runtime::Machine& machine, hal::Queue& queue,
                           hal::Timeline& timeline, uint64_t& submitted, runtime::Cell& cell,
                           const char* entry, int64_t rounds) {
  const kernels::cpu::PeakArgs args{rounds};
  const std::vector<hal::Slice> ranges{cell.slice};
  std::vector<std::byte> constants(sizeof(args));
  std::memcpy(constants.data(), &args, sizeof(args));
  const std::vector<hal::Command> commands{hal::launch({.executable = &machine.executable,
                                                        .entry = machine.entries.at(entry),
                                                        .grid = 1,
                                                        .ranges = ranges,
                                                        .constants = constants,
                                                        .label = "peak",
                                                        .site = {}})};
  const uint64_t value = ++submitted;
  Status status;
  const double seconds = seconds_of([&] {
    auto number = queue.submit(commands, {}, std::vector<hal::Point>{timeline.at(value)});
    status = number ? timeline.wait(value) : Status(tl::unexpected(number.error()));
  });
  TRY(std::move(status));
  return seconds;
}

Status measure_machine(const runtime::Machine& machine, kernels::Rates& rates) {
  TRY_ASSIGN(hal::Queue queue,
             machine.memory.device->queue({.out_of_order = false, .run_on_submit = true}));
  TRY_ASSIGN(hal::Timeline timeline, machine.memory.device->timeline());
  TRY_ASSIGN(runtime::Cell cell, runtime::allocate(machine.memory, DType::kF32, {2}));
  uint64_t submitted = 0;
  double launch = 1;
  // Bursts so short that some are not disturbed.
  const auto peak = [&](const char* entry, int64_t rounds, int times) -> Result<double> {
    double least = 1;
    for (int k = 0; k < times; ++k) {
      reinterpret_cast<float*>(cell.host)[0] = 0.125f;
      TRY_ASSIGN(double s, peak_launch(machine, queue, timeline, submitted, cell, entry, rounds));
      least = std::min(least, s);
    }
    const double lanes = reinterpret_cast<float*>(cell.host)[1];
    return 2.0 * kernels::cpu::kPeakChains * lanes * static_cast<double>(rounds) / least * 1e-12;
  };
  TRY_ASSIGN(rates.flops_per_ps, peak("cpu.peak", 20'000, 1200));
  TRY_ASSIGN(rates.narrow_flops_per_ps[DType::kBF16], peak("cpu.narrow_peak", 4'000, 600));
  TRY_ASSIGN(rates.narrow_flops_per_ps[DType::kI8], peak("cpu.integer_peak", 4'000, 600));
  for (int k = 0; k < 2000; ++k) {
    TRY_ASSIGN(double s, peak_launch(machine, queue, timeline, submitted, cell, "cpu.peak", 0));
    launch = std::min(launch, s);
  }
  rates.launch_ps = launch * 1e12;
  // Copies of more than any cache holds, read plus write.
  const size_t bytes = size_t{96} << 20;
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
  double copy = 1e9;
  for (int k = 0; k < 8; ++k)
    copy = std::min(copy, seconds_of([&] { std::memcpy(to.data(), from.data(), bytes); }));
  rates.bytes_per_ps = 2.0 * static_cast<double>(bytes) / copy * 1e-12;
  return {};
}

// ---- kernels

op::Type typed(DType dtype, const op::Dims& dims) {
  op::Type type;
  type.dtype = dtype;
  type.shape = op::Shape(dims.begin(), dims.end());
  return type;
}
op::Type f32(const op::Dims& dims) { return typed(DType::kF32, dims); }

// Sizes as networks have them, where arithmetic binds.
Result<std::vector<ir::Graph>> samples() {
  std::vector<ir::Graph> graphs;
  Status status;
  auto add = [&](std::string_view name, std::vector<op::Dims> inputs, op::Attrs attrs,
                 size_t constants_from) {
    const bool bytes = name.ends_with("_integer");
    ir::Graph g("sample");
    std::vector<ir::ValueId> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DType dtype = !bytes ? DType::kF32 : i == 0 ? DType::kU8 : DType::kI8;
      auto tensor = op::Tensor::make(dtype, inputs[i]);
      in.push_back(i < constants_from || !tensor ? g.add_input("", typed(dtype, inputs[i]))
                                                 : g.add_constant(*tensor));
    }
    if (auto added = g.add(*op::find(name), in, std::move(attrs)); !added)
      status = tl::unexpected(added.error());
    graphs.push_back(std::move(g));
  };
  for (auto [m, k, n] : {std::array{512, 512, 512}, {128, 768, 3072}, {196, 384, 384}}) {
    add("dot", {{m, k}, {k, n}}, {}, 1);
    add("dot", {{8, m / 2, k / 8}, {8, k / 8, n / 4}}, {}, 2);
    add("dot_integer", {{m, k}, {k, n}}, {}, 1);
  }
  auto conv = [&](int64_t c, int64_t size, int64_t m, int64_t kernel, int64_t stride,
                  int64_t groups) {
    op::Attrs attrs;
    attrs.set("groups", groups);
    attrs.set("strides", op::Ints{stride, stride});
    const int64_t pad = kernel / 2;
    attrs.set("pads_begin", op::Ints{pad, pad});
    attrs.set("pads_end", op::Ints{pad, pad});
    for (const char* name : {"conv", "conv_integer"})
      add(name, {{1, c, size, size}, {m, c / groups, kernel, kernel}}, attrs, 1);
  };
  for (int64_t size : {128, 384})
    add("attention", {{1, 12, size, 64}, {1, 12, size, 64}, {1, 12, size, 64}}, {}, 3);
  conv(64, 56, 64, 1, 1, 1);
  conv(256, 14, 1024, 1, 1, 1);
  conv(24, 28, 144, 1, 1, 1);
  conv(64, 56, 64, 3, 1, 1);
  conv(256, 14, 256, 3, 1, 1);
  conv(512, 7, 512, 3, 1, 1);
  conv(128, 56, 128, 3, 2, 1);
  conv(3, 224, 64, 7, 2, 1);
  conv(96, 28, 96, 3, 1, 96);
  conv(240, 14, 240, 5, 1, 240);
  conv(128, 28, 128, 3, 1, 8);
  conv(272, 28, 68, 1, 1, 4);
  conv(256, 14, 256, 3, 1, 32);
  // Depthwise, then pointwise, in one.
  for (auto [c, size, m] : {std::array<int64_t, 3>{96, 28, 24}, {240, 14, 80}, {384, 14, 64}}) {
    ir::Graph g("sample");
    ir::Builder b(g);
    auto weights = [&](op::Dims dims) {
      auto tensor = op::Tensor::make(DType::kF32, std::move(dims));
      return tensor ? b.constant(*std::move(tensor)) : ir::kAbsent;
    };
    const ir::ValueId x = g.add_input("", f32({1, c, size, size}));
    const ir::ValueId y =
        b.op("conv", {x, weights({c, 1, 3, 3})},
             {{"groups", c}, {"pads_begin", op::Ints{1, 1}}, {"pads_end", op::Ints{1, 1}}});
    g.outputs = {b.op("conv", {b.unary("relu", y), weights({m, c, 1, 1})})};
    g.output_names = {"y"};
    if (!b.ok()) return error(b.status().error());
    passes::fuse(
        g, {}, [](const op::Problem&) { return std::string(); },
        [](const op::Problem&) { return Picoseconds(1); });
    graphs.push_back(std::move(g));
  }
  TRY(std::move(status));
  return graphs;
}

// Supported claims, those of kernels that take products in a narrower type too: `problem` allows
// the last of those types afterwards.
std::vector<op::Claim> all_claims(const op::ClaimSource& source, op::Problem& problem) {
  std::vector<op::Claim> list;
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (problem.op->name == "dot" || problem.op->name == "conv" || problem.op->name == "attention")
      problem.attrs.set("compute", type);
    for (op::Claim& claim : source.probe(problem))
      if (claim.supported() && std::none_of(list.begin(), list.end(), [&](const op::Claim& other) {
            return other.kernel == claim.kernel;
          }))
        list.push_back(std::move(claim));
  }
  return list;
}

// What a claim costs besides its arithmetic.
double memory_ps(const kernels::Rates& rates, op::Claim claim) {
  claim.flops = 0;
  return static_cast<double>(rates.cost(claim).value) - rates.launch_ps;
}

// Time that the claim's stated work takes at the peak is its efficiency; the median over samples.
// Of oneDNN's, whose speed depends on more than we know, the least: it is to be had where it wins
// for certain.
Status measure_kernels(const runtime::Machine& machine, kernels::Rates& rates,
                       const std::function<void(const std::string&)>& progress) {
  std::map<std::string, std::vector<double>> reached;
  TRY_ASSIGN(const std::vector<ir::Graph> graphs, samples());
  for (const ir::Graph& g : graphs) {
    const ir::Node& node = g.nodes[0];
    for (const passes::Choice& choice : passes::choices(g, node, {}, machine.sources)) {
      TRY_ASSIGN(op::Problem problem, passes::problem_of(g, node, {}));
      for (size_t i = 0; i < problem.in.size(); ++i) problem.in[i].layout = choice.in[i];
      for (size_t i = 0; i < problem.out.size(); ++i) problem.out[i].layout = choice.out[i];
      progress(problem.str());
      for (const op::ClaimSource* source : machine.sources)
        for (const op::Claim& claim : all_claims(*source, problem)) {
          const double at_peak = claim.flops / rates.peak_of(claim.kernel);
          if (at_peak < memory_ps(rates, claim)) continue;
          TRY_ASSIGN(Seconds s, runtime::measure(machine, *source, problem, claim, Seconds(0.06)));
          const double ps = std::max(s.value * 1e12 - rates.launch_ps, 1.0);
          reached[claim.kernel].push_back(at_peak / ps);
        }
    }
  }
  for (auto& [kernel, list] : reached) {
    std::sort(list.begin(), list.end());
    const double part = kernel.starts_with("onednn.") ? list.front() : list[list.size() / 2];
    rates.efficiency[kernel] = std::clamp(part, 1e-3, 64.0);
  }
  return {};
}

// ---- JSON

Result<double> positive(const Json& j, const char* field) {
  const auto found = j.find(field);
  if (found == j.end() || !found->is_number() || !(found->get<double>() > 0) ||
      !(found->get<double>() < 1e18))
    return error(Code::kInvalidArgument, "calibration: '{}' must be a positive number", field);
  return found->get<double>();
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string numbers;  // all that Linux says of Arm's
  for (std::string line; std::getline(info, line) && !(line.empty() && !numbers.empty());) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU implementer")) numbers = "implementer" + line.substr(colon + 1);
    if (line.starts_with("CPU part")) numbers += " part" + line.substr(colon + 1);
  }
  return numbers;
}

Result<Calibration> calibrate(const std::function<void(const std::string&)>& progress,
                              std::string_view provider) {
  TRY_ASSIGN(auto machine, Machine::open("cpu", 1, Bytes(int64_t{4} << 30), "", provider));
  Calibration c;
  c.cpu = cpu_name();
  c.isa = kernels::cpu::name_of(kernels::cpu::best_isa());
  c.rates.multiplies = machine->rates.multiplies;
  progress("the peak, the memory and a launch");
  TRY(measure_machine(machine->runtime, c.rates));
  TRY(measure_kernels(machine->runtime, c.rates, progress));
  return c;
}

std::string to_json(const Calibration& c) {
  Json efficiency = Json::object();
  for (const auto& [kernel, part] : c.rates.efficiency)
    efficiency[kernel] = std::round(part * 1000) / 1000;
  Json narrow = Json::object();
  for (const auto& [type, flops] : c.rates.narrow_flops_per_ps)
    narrow[name_of(type)] = flops * 1e12;
  Json j{{"schema", kSchema},
         {"cpu", c.cpu},
         {"isa", c.isa},
         {"flops_per_second", c.rates.flops_per_ps * 1e12},
         {"narrow_flops_per_second", std::move(narrow)},
         {"bytes_per_second", c.rates.bytes_per_ps * 1e12},
         {"launch_seconds", c.rates.launch_ps * 1e-12},
         {"efficiency", std::move(efficiency)}};
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<Calibration> calibration_from_json(std::string_view text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) return error(Code::kInvalidArgument, "calibration: not a JSON object");
  if (j.value("schema", Json()) != kSchema)
    return error(Code::kInvalidArgument, "calibration: 'schema' must be '{}'", kSchema);
  Calibration c;
  for (auto [field, target] : {std::pair{"cpu", &c.cpu}, {"isa", &c.isa}}) {
    const auto found = j.find(field);
    if (found == j.end() || !found->is_string())
      return error(Code::kInvalidArgument, "calibration: '{}' must be a string", field);
    *target = found->get<std::string>();
  }
  TRY_ASSIGN(const double flops, positive(j, "flops_per_second"));
  TRY_ASSIGN(const double bytes, positive(j, "bytes_per_second"));
  TRY_ASSIGN(const double launch, positive(j, "launch_seconds"));
  c.rates.flops_per_ps = flops * 1e-12;
  c.rates.bytes_per_ps = bytes * 1e-12;
  c.rates.launch_ps = launch * 1e12;
  // Files of before this was measured have none.
  const Json narrow = j.value("narrow_flops_per_second", Json::object());
  if (!narrow.is_object())
    return error(Code::kInvalidArgument,
                 "calibration: 'narrow_flops_per_second' must be an object");
  for (const auto& [type, value] : narrow.items()) {
    const auto dtype = dtype_from_name(type);
    if (!dtype) return error(Code::kInvalidArgument, "calibration: no type '{}'", type);
    TRY_ASSIGN(const double peak, positive(narrow, type.c_str()));
    c.rates.narrow_flops_per_ps[*dtype] = peak * 1e-12;
  }
  const auto efficiency = j.find("efficiency");
  if (efficiency == j.end() || !efficiency->is_object())
    return error(Code::kInvalidArgument, "calibration: 'efficiency' must be an object");
  for (const auto& [kernel, value] : efficiency->items()) {
    TRY_ASSIGN(c.rates.efficiency[kernel], positive(*efficiency, kernel.c_str()));
  }
  // FNV-1a: plans say by which file they were made.
  uint64_t hash = 14695981039346656037u;
  for (char ch : text) hash = (hash ^ static_cast<unsigned char>(ch)) * 1099511628211u;
  c.rates.origin = fmt::format("calibration {:016x}", hash);
  return c;
}

std::string calibration_path() {
  if (const char* path = std::getenv("TESSERA_CALIBRATION"))
    return std::string_view(path) == "none" ? "" : path;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/tessera/calibration.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/tessera/calibration.json";
  return {};
}

std::optional<Calibration> stored_calibration(std::string_view isa) {
  const std::string path = calibration_path();
  if (path.empty()) return std::nullopt;
  auto text = read_file(path, Bytes(1 << 20));
  if (!text) return std::nullopt;
  auto calibration = calibration_from_json(*text);
  if (!calibration || calibration->isa != isa || calibration->cpu != cpu_name())
    return std::nullopt;
  return *std::move(calibration);
}

}  // namespace tessera::session
