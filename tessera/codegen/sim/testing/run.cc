#include "tessera/codegen/sim/testing/run.h"

#include <fmt/ranges.h>

#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/backend.h"

namespace tessera::codegen::sim::testing {
namespace {

// Runs a launch to its end.
Status launch(hal::Device& device, const hal::Executable& code, const op::LaunchSpec& spec,
              const std::vector<hal::Slice>& ranges) {
  TRY_ASSIGN(hal::Queue queue, device.queue());
  TRY_ASSIGN(const hal::Timeline done, device.timeline());
  TRY_ASSIGN([[maybe_unused]] const uint64_t number,
             queue.submit(std::vector{hal::launch({.executable = &code,
                                                   .entry = 0,
                                                   .grid = spec.grid,
                                                   .ranges = ranges,
                                                   .constants = spec.constants,
                                                   .label = "trial",
                                                   .site = {}})},
                          {}, std::vector{done.at(1)}));
  return done.wait(1);
}

}  // namespace

Result<Machine> Machine::open(const std::string& chip, const hal::Options& options) {
  TRY_ASSIGN(chip::Chip c, chip::Catalog().load(chip));
  Machine m;
  m.source_ = std::make_shared<const Source>(std::make_shared<const chip::Chip>(c));
  std::vector<chip::Chip> chips;
  chips.push_back(std::move(c));
  TRY_ASSIGN(m.backend_, hal::sim::load(std::move(chips)));
  TRY_ASSIGN(m.device_, hal::Device::open(*m.backend_, 0, options));
  return m;
}

std::optional<std::string> Machine::run(const tile::testing::Trial& t, std::string* why) {
  const op::Claim claim = source_->probe(t.problem)[0];
  if (!claim.supported()) {
    if (why != nullptr) *why = claim.refusal;
    return std::nullopt;
  }
  tile::testing::Memory memory(t);
  const auto launches = source_->prepare(t.problem, claim);
  if (!launches) return launches.error().message;
  std::vector<std::byte> workspace(static_cast<size_t>(claim.workspace.value) + 1);
  std::vector<std::vector<std::byte>> packed;
  for (size_t k = 0; k < claim.packed.size(); ++k) {
    packed.emplace_back(static_cast<size_t>(claim.packed[k].size.value) + 1);
    const auto from = memory.of({op::Argument::kInput, claim.packed[k].input, 0});
    if (const Status ok =
            source_->pack(t.problem, claim, static_cast<int>(k), from.data(), packed.back().data());
        !ok)
      return ok.error().message;
  }
  for (const op::LaunchSpec& spec : *launches) {
    const std::string_view text(reinterpret_cast<const char*>(spec.binary->bytes.data()),
                                spec.binary->bytes.size());
    const auto run = [&]() -> Status {
      TRY_ASSIGN(const hal::Executable code,
                 device_->load(spec.binary->format, spec.binary->bytes, spec.binary->entries));
      std::vector<hal::Buffer> buffers;
      std::vector<hal::Slice> ranges;
      for (const op::Argument& a : spec.arguments) {
        std::span<std::byte> bytes;
        if (a.kind == op::Argument::kWorkspace)
          bytes = std::span(workspace).subspan(static_cast<size_t>(a.offset));
        else if (a.kind == op::Argument::kPacked)
          bytes = packed[static_cast<size_t>(a.index)];
        else
          bytes = memory.of(a);
        const auto size = std::max<int64_t>(1, static_cast<int64_t>(bytes.size()));
        TRY_ASSIGN(hal::Buffer b, device_->wrap(bytes.data(), Bytes(size)));
        ranges.push_back(b.slice());
        buffers.push_back(std::move(b));
      }
      return launch(*device_, code, spec, ranges);
    };
    if (const Status ok = run(); !ok)
      return fmt::format("{}\n{}\n{}", ok.error().message, t.problem.str(), text);
  }
  const std::string fault = memory.fault();
  if (fault.empty()) return fault;
  std::string texts;
  for (const op::LaunchSpec& spec : *launches)
    texts.append(reinterpret_cast<const char*>(spec.binary->bytes.data()),
                 spec.binary->bytes.size());
  return fmt::format("{}\n{}\n{}", fault, t.problem.str(), texts);
}

Result<Seconds> Machine::time(const op::Problem& p) {
  const op::Claim claim = source_->probe(p)[0];
  if (!claim.supported()) return error(Code::kUnimplemented, "{}", claim.refusal);
  TRY_ASSIGN(const std::vector<op::LaunchSpec> launches, source_->prepare(p, claim));
  TRY_ASSIGN(const uint64_t begun, device_->clock_ns());
  for (const op::LaunchSpec& spec : launches) {
    TRY_ASSIGN(const hal::Executable code,
               device_->load(spec.binary->format, spec.binary->bytes, spec.binary->entries));
    std::vector<hal::Buffer> buffers;
    std::vector<hal::Slice> ranges;
    for (const op::Argument& a : spec.arguments) {
      const auto index = static_cast<size_t>(a.index);
      const auto bytes = [](const op::Operand& o) { return packed_bytes(o.dtype, o.count()); };
      const int64_t size = a.kind == op::Argument::kInput    ? bytes(p.in[index])
                           : a.kind == op::Argument::kOutput ? bytes(p.out[index])
                           : a.kind == op::Argument::kPacked ? claim.packed[index].size.value
                                                             : claim.workspace.value - a.offset;
      TRY_ASSIGN(hal::Buffer b, device_->allocate(Bytes(std::max<int64_t>(size, 1))));
      ranges.push_back(b.slice());
      buffers.push_back(std::move(b));
    }
    TRY(launch(*device_, code, spec, ranges));
  }
  TRY_ASSIGN(const uint64_t ended, device_->clock_ns());
  return Seconds(static_cast<double>(ended - begun) * 1e-9);
}

}  // namespace tessera::codegen::sim::testing
