#include "tessera/codegen/mlir/testing/run.h"

#include "tessera/codegen/mlir/compiler.h"
#include "tessera/codegen/mlir/emit.h"
#include "tessera/codegen/mlir/launch.h"
#include "tessera/codegen/mlir/schedule.h"
#include "tessera/hal/cpu/backend.h"
#include "tessera/kernels/cpu/isa.h"
#include "tessera/tile/problems.h"
#include "tessera/tile/text.h"

namespace tessera::codegen::mlir::testing {
namespace {

using tile::Schedule;

Status launch(hal::Device& device, std::span<const std::byte> elf, const LaunchShape& shape,
              const std::vector<std::span<std::byte>>& memory) {
  TRY_ASSIGN(const hal::Executable code, device.load("elf", elf, std::vector{std::string(kEntry)}));
  std::vector<hal::Buffer> buffers;
  std::vector<hal::Slice> ranges;
  for (const auto& bytes : memory) {
    // There are guards behind an operand without elements.
    const auto size = std::max<int64_t>(1, static_cast<int64_t>(bytes.size()));
    TRY_ASSIGN(hal::Buffer b, device.wrap(bytes.data(), Bytes(size)));
    ranges.push_back(b.slice());
    buffers.push_back(std::move(b));
  }
  TRY_ASSIGN(hal::Queue queue, device.queue());
  TRY_ASSIGN(const hal::Timeline done, device.timeline());
  const std::vector<hal::Command> commands{hal::launch({.executable = &code,
                                                        .entry = 0,
                                                        .grid = shape.grid,
                                                        .ranges = ranges,
                                                        .constants = shape.constants,
                                                        .label = "compiled",
                                                        .site = {}})};
  TRY_ASSIGN(const uint64_t number, queue.submit(commands, {}, std::vector{done.at(1)}));
  (void)number;
  return done.wait(1);
}

}  // namespace

Schedule draw_schedule(std::mt19937_64& random, const tile::Program& p, const Target& target) {
  Schedule s = vectors_of(p, target);
  if (random() % 3 == 0) {
    for (tile::AxisSchedule& a : s.axes) a = {};
    if (!s.axes.empty() && random() % 4)
      s.axes[random() % s.axes.size()] = {target.vector_bytes / 4, target.vector_bytes / 4};
  }
  constexpr int64_t kPieces[] = {1, 2, 3, 7, 1000};
  for (int a : p.grid) {
    tile::AxisSchedule& axis = s.axes[static_cast<size_t>(a)];
    axis.tile = axis.vector * kPieces[random() % std::size(kPieces)];
  }
  return s;
}

std::vector<Target> targets() {
  std::vector<Target> list;
  for (kernels::cpu::Isa isa : kernels::cpu::available_isas())
    if (Target t = target_for(kernels::cpu::name_of(isa));
        list.empty() || list.back().features != t.features)
      list.push_back(std::move(t));
  return list;
}

Machine::Machine()
    : registry_({{"cpu", hal::cpu::plugin_main, ""}}),
      device_(*registry_.open("cpu", {{"threads", "2"}})) {}

std::optional<std::string> Machine::run(std::mt19937_64& random, const tile::testing::Trial& t,
                                        const Target& target) {
  const auto instance = tile::instance_of(t.problem);
  if (!instance || !refusal(instance->program, target).empty()) return std::nullopt;
  const tile::Program& p = instance->program;
  const Schedule schedule = draw_schedule(random, p, target);
  const std::string where =
      "\n" + t.problem.str() + "\n" + print(p) + print(schedule, p) + " for " + target.isa + "\n";
  tile::testing::Memory memory(t);
  std::vector<std::span<std::byte>> spans;
  for (const op::Argument& a : instance->arguments) spans.push_back(memory.of(a));
  if (const Status ran = execute(p, schedule, instance->symbols, target, spans); !ran)
    return ran.error().message + where;
  const std::string fault = memory.fault();
  return fault.empty() ? fault : fault + where;
}

Status Machine::execute(const tile::Program& p, const Schedule& schedule,
                        const op::Bindings& symbols, const Target& target,
                        const std::vector<std::span<std::byte>>& memory) {
  TRY_ASSIGN(const std::string text, emit(p, schedule, target));
  TRY_ASSIGN(const Compiler* compiler, Compiler::open());
  auto elf = compiler->compile(text, target);
  if (!elf) return error(std::move(elf).error().at("\n" + text));
  TRY_ASSIGN(const auto constants, constants_of(p));
  TRY_ASSIGN(const LaunchShape shape, launch_shape(p, schedule, symbols, constants));
  return launch(*device_, *elf, shape, memory);
}

}  // namespace tessera::codegen::mlir::testing
