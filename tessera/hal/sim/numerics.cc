#include "tessera/hal/sim/numerics.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/element.h"
#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

tessera::Rounding base_rounding(chip::Rounding rounding) {
  switch (rounding) {
    case chip::Rounding::kNearestEven:
      return Rounding::kNearestEven;
    case chip::Rounding::kNearestAway:
      return Rounding::kNearestAway;
    case chip::Rounding::kTowardZero:
      return Rounding::kTowardZero;
    case chip::Rounding::kDown:
      return Rounding::kDown;
    case chip::Rounding::kUp:
      return Rounding::kUp;
  }
  return Rounding::kNearestEven;
}

int value_or(const std::optional<chip::Count>& count, int otherwise) {
  return count ? static_cast<int>(count->value) : otherwise;
}

Format format_of(DType dtype) {
  const FloatFormat& f = float_format(dtype);
  const int least = 1 - f.bias;
  return {least, (1 << f.exponent_bits) - 2 - f.bias, f.mantissa_bits};
}

static_assert(kDTypeCount <= 32);
uint32_t bit_of(DType dtype) { return 1u << static_cast<int>(dtype); }

// Modes compute on float32; an element type has its own subnormals.
Result<int> operand_least_exponent(std::string_view type) {
  if (type == "tf32" || type == "hf32" || type == "xf32") return -126;
  const std::optional<DType> dtype = dtype_from_name(type);
  if (!dtype || !(is_float(*dtype) || is_int(*dtype)) || *dtype == DType::kF8E8M0)
    return error(Code::kUnimplemented, "matrix units that multiply {} are not simulated", type);
  return is_float(*dtype) ? format_of(*dtype).least_exponent : 0;
}

Status choose_sums(const chip::Numerics& n, const Modes& modes, std::string_view type, Rule& rule) {
  std::string accumulate = n.accumulate;
  if (!modes.accumulate.empty() && modes.accumulate != n.accumulate) {
    if (modes.accumulate != "f16" || !n.f16_rounding)
      return error(Code::kUnimplemented, "sums of {} products are {}{}, not {}", type, n.accumulate,
                   n.f16_rounding ? " or f16" : "", modes.accumulate);
    accumulate = "f16";
    rule.rounding = base_rounding(*n.f16_rounding);
  }
  const std::optional<DType> dtype = dtype_from_name(accumulate);
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kF64 && dtype != DType::kI32)
    return error(Code::kUnimplemented, "sums of {} are not simulated", accumulate);
  rule.accumulate = *dtype;
  if (!is_float(*dtype)) return {};
  rule.sums = format_of(*dtype);
  if (accumulate == n.accumulate)
    rule.sums.mantissa_bits = value_or(n.result_bits, rule.sums.mantissa_bits);
  return {};
}

Status choose_modes(const chip::Numerics& n, const Modes& modes, std::string_view type,
                    Rule& rule) {
  if (modes.operand_rounding) {
    if (!n.operand_bits)
      return error(Code::kUnimplemented,
                   "{} operands lose no bits, so there is no rounding to choose", type);
    rule.operand_rounding = *modes.operand_rounding;
  }
  std::string overflow = modes.overflow;
  if (overflow.empty()) overflow = n.overflow.empty() ? "infinity" : n.overflow.front();
  if (!modes.overflow.empty() &&
      std::find(n.overflow.begin(), n.overflow.end(), overflow) == n.overflow.end())
    return error(Code::kUnimplemented, "{}: overflow '{}' is none of: {}", type, overflow,
                 fmt::join(n.overflow, ", "));
  rule.saturate = overflow == "saturate";
  return {};
}

// What group_sum and the kernels compute.
Status check(const Rule& rule, std::string_view type) {
  using enum chip::SumOrder;
  const bool fused = rule.order == kFused;
  const auto refuse = [&](std::string_view what) {
    return error(Code::kUnimplemented, "numerics of {}: {} is not simulated", type, what);
  };
  if (rule.group > 256) return refuse(fmt::format("group {}, above 256,", rule.group));
  if (rule.accumulate == DType::kF64 && rule.order != kSequential)
    return refuse("f64 in another order than 'sequential'");
  if (!fused && (rule.rounding != Rounding::kNearestEven || rule.sums.mantissa_bits < 23))
    return refuse("rounding other than f32's to nearest even, but of fused sums,");
  if (rule.order == kTree && (rule.group & (rule.group - 1)) != 0)
    return refuse(fmt::format("a tree of {}", rule.group));
  if (rule.fraction_bits > 40 || rule.sum_bits > 40 || rule.total_bits > 40)
    return refuse("alignment to more than 40 bits");
  if (rule.fraction_bits >= 0 && rule.fraction_bits < 8) return refuse("alignment to under 8 bits");
  if (rule.exact > 1 && (rule.sum_bits >= 0 || rule.fraction_bits < 0))
    return refuse("exact without fraction_bits, or with sum_bits,");
  if (rule.sum_bits >= 0 && rule.sum_bits < rule.fraction_bits)
    return refuse("sum_bits below fraction_bits");
  if (rule.sum_bits >= 0 && rule.accumulate != DType::kF32)
    return refuse("sum_bits with sums other than f32");
  return {};
}

Result<Rule> resolve(const chip::Numerics& n, std::string_view type, const Modes& modes) {
  Rule rule;
  rule.order = n.order;
  rule.group = static_cast<int>(std::min<int64_t>(n.group.value, 1 << 20));
  rule.fraction_bits = value_or(n.fraction_bits, -1);
  if (n.alignment) rule.alignment = base_rounding(*n.alignment);
  rule.parts = value_or(n.parts, 1);
  rule.sum_bits = value_or(n.sum_bits, -1);
  rule.total_bits = value_or(n.total_bits, -1);
  rule.reach = value_or(n.reach, -1);
  rule.exact = value_or(n.exact, 1);
  rule.rounding = base_rounding(n.rounding);
  rule.operand_bits = value_or(n.operand_bits, -1);
  if (n.operand_rounding) rule.operand_rounding = base_rounding(*n.operand_rounding);
  rule.flush_operands = n.subnormals != chip::Subnormals::kKept;
  rule.flush_sums = n.subnormals == chip::Subnormals::kFlushed;
  rule.flush_loses_sign = n.order == chip::SumOrder::kTree;
  if (n.nan == chip::Nan::kOnes) rule.nan = 0x7fffffff;
  for (const std::string& name : n.saturated_results)
    if (const auto dtype = dtype_from_name(name)) rule.saturated_results |= bit_of(*dtype);
  TRY_ASSIGN(rule.operand_least_exponent, operand_least_exponent(type));
  rule.operand_least_normal = std::ldexp(1.0f, rule.operand_least_exponent);
  TRY(choose_sums(n, modes, type, rule));
  TRY(choose_modes(n, modes, type, rule));
  TRY(check(rule, type));
  return rule;
}

}  // namespace

Result<MatrixUnit> MatrixUnit::make(const chip::Chip& chip, std::string_view type,
                                    const Modes& modes) {
  const auto found = chip.numerics.find(type);
  if (found != chip.numerics.end()) {
    auto unit = make(found->second, type, modes);
    return unit ? std::move(unit) : error(std::move(unit).error().at(chip.id));
  }
  std::vector<std::string_view> known;
  for (const auto& [name, numerics] : chip.numerics) known.push_back(name);
  return error(Code::kUnimplemented, "{} does not tell how it multiplies {}; it does of: {}",
               chip.id, type, fmt::join(known, ", "));
}

Result<MatrixUnit> MatrixUnit::make(const chip::Numerics& numerics, std::string_view type,
                                    const Modes& modes) {
  TRY_ASSIGN(Rule rule, resolve(numerics, type, modes));
  return MatrixUnit(rule);
}

MatrixUnit::MatrixUnit(const Rule& rule) : rule_(std::make_shared<const Rule>(rule)) {}

DType MatrixUnit::accumulate() const { return rule_->accumulate; }
int64_t MatrixUnit::group() const { return rule_->group; }

OutputCast MatrixUnit::output_cast(DType to) const {
  return {.saturate = rule_->saturate || (rule_->saturated_results & bit_of(to)) != 0};
}

void MatrixUnit::round_operands(std::span<float> values) const {
  if (rule_->operand_bits < 0 && !rule_->flush_operands) return;
  for (float& value : values) value = round_operand(*rule_, value);
}

float round_mantissa(float value, int mantissa_bits, Rounding rounding, bool flush) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff, sign = bits & 0x80000000;
  if (magnitude >= 0x7f800000) return value;
  if (flush && magnitude < 0x00800000) return std::bit_cast<float>(sign);
  const int lost = 23 - mantissa_bits;
  if (lost <= 0) return value;
  const uint32_t unit = 1u << lost, rest = magnitude & (unit - 1), kept = magnitude - rest;
  const bool odd = (kept & unit) != 0;
  bool up = false;
  switch (rounding) {
    using enum Rounding;
    case kNearestEven:
      up = rest > unit / 2 || (rest == unit / 2 && odd);
      break;
    case kNearestAway:
      up = rest >= unit / 2;
      break;
    case kTowardZero:
      break;
    case kAwayFromZero:
      up = rest != 0;
      break;
    case kDown:
      up = rest != 0 && sign != 0;
      break;
    case kUp:
      up = rest != 0 && sign == 0;
      break;
    case kToOdd:
      up = rest != 0 && !odd;
      break;
  }
  // The carry out of the mantissa is the exponent's next value, of mantissa 0.
  return std::bit_cast<float>(sign | (kept + (up ? unit : 0)));
}

namespace {

double rounded_to_integer(double x, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return std::nearbyint(x);
  const double down = std::floor(x), up = std::ceil(x);
  switch (rounding) {
    using enum Rounding;
    case kNearestEven:
      break;
    case kNearestAway:
      return std::round(x);
    case kTowardZero:
      return std::trunc(x);
    case kAwayFromZero:
      return x < 0 ? down : up;
    case kDown:
      return down;
    case kUp:
      return up;
    case kToOdd:
      return std::fmod(down, 2) != 0 ? down : up;
  }
  return x;
}

float integer_result(DType to, const OutputCast& cast, double value) {
  if (std::isnan(value)) return 0;
  const int bits = bits_of(to);
  const bool is_signed = is_signed_int(to);
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
  const double whole = rounded_to_integer(value, cast.rounding);
  if (cast.saturate || std::fabs(whole) > 0x1p62)
    return static_cast<float>(std::clamp(whole, low, high));
  return is_signed ? static_cast<float>(truncate_to_int(whole, bits))
                   : static_cast<float>(truncate_to_uint(whole, bits));
}

}  // namespace

void convert_results(DType to, const OutputCast& cast, std::span<float> values) {
  for (float& value : values) {
    const float scaled = value * cast.scale;
    if (is_int(to)) {
      value = integer_result(to, cast, scaled);
    } else if (cast.saturate && std::isnan(scaled)) {
      value = 0;
    } else {
      const FloatFormat& f = float_format(to);
      value = static_cast<float>(
          decode(f, encode(f, scaled, {.rounding = cast.rounding, .saturate = cast.saturate})));
    }
  }
}

}  // namespace tessera::hal::sim
