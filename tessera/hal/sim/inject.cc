#include "tessera/hal/sim/inject.h"

#include <algorithm>
#include <array>

#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

constexpr std::array<std::string_view, kFaultCount> kNames{
    "bf16-inputs", "fp16-accumulate", "saturate",    "ignore-strides",
    "swap-layout", "swallow-nan",     "late-error",  "recompile-per-shape",
    "drop-tail",   "skip-collective", "device-lost", "ecc"};

Result<Injection> parse_injection(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    return error(Code::kInvalidArgument, "fault '{}' is none of: {}", name,
                 fmt::join(kNames, ", "));
  Injection injection{.fault = static_cast<Fault>(found - kNames.begin())};
  if (at == std::string_view::npos) return injection;
  injection.node = text.substr(at + 1);
  if (injection.node.empty())
    return error(Code::kInvalidArgument, "fault '{}': a node's name is missing", text);
  return injection;
}

}  // namespace

std::string_view name_of(Fault fault) { return kNames[static_cast<int>(fault)]; }

Result<std::vector<Injection>> parse_injections(std::string_view list) {
  std::vector<Injection> injections;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    TRY_ASSIGN(Injection injection, parse_injection(list.substr(0, comma)));
    injections.push_back(std::move(injection));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return injections;
}

std::string str(std::span<const Injection> injections) {
  std::string text;
  for (const Injection& i : injections) {
    if (!text.empty()) text += ',';
    text += name_of(i.fault);
    if (!i.node.empty()) text += "@" + i.node;
  }
  return text;
}

bool injected(std::span<const Injection> injections, Fault fault, std::string_view node) {
  return std::any_of(injections.begin(), injections.end(), [&](const Injection& i) {
    return i.fault == fault && (i.node.empty() || i.node == node);
  });
}

MatrixUnit with_faults(const MatrixUnit& unit, std::span<const Injection> injections,
                       std::string_view node) {
  constexpr int kBf16Bits = 7;
  Rule rule = unit.rule();
  if (injected(injections, Fault::kBf16Inputs, node) &&
      (rule.operand_bits < 0 || rule.operand_bits > kBf16Bits)) {
    rule.operand_bits = kBf16Bits;
    rule.operand_rounding = Rounding::kNearestEven;
  }
  rule.round_sums_to_f16 |= injected(injections, Fault::kFp16Accumulate, node);
  rule.saturate |= injected(injections, Fault::kSaturate, node);
  rule.swallow_nan |= injected(injections, Fault::kSwallowNan, node);
  rule.drop_tail |= injected(injections, Fault::kDropTail, node);
  return MatrixUnit(rule);
}

void flip_bit(std::span<std::byte> bytes, uint64_t seed) {
  if (bytes.empty()) return;
  // Spreads the seed over all its bits (SplitMix64's last step).
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  seed ^= seed >> 31;
  bytes[seed / 8 % bytes.size()] ^= std::byte{1} << (seed % 8);
}

}  // namespace tessera::hal::sim
