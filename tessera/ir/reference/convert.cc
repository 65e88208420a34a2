// convert: from any element type to any other, strings included.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "tessera/base/element.h"
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

struct Mode {
  std::string_view name;
  Rounding rounding;
};
constexpr Mode kModes[] = {{"even", Rounding::kNearestEven},
                           {"away", Rounding::kNearestAway},
                           {"zero", Rounding::kTowardZero},
                           {"up", Rounding::kUp},
                           {"down", Rounding::kDown}};

// The shortest decimal without an exponent that reads back as the same element.
std::string text_of(const Tensor& x, int64_t i) {
  if (is_unsigned_int(x.dtype())) return std::to_string(static_cast<uint64_t>(x.i64(i)));
  if (!is_float(x.dtype())) return std::to_string(x.i64(i));
  const double v = x.f64(i);
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "INF" : "-INF";
  std::array<char, 2000> buffer;
  const auto end = x.dtype() == DType::kF64
                       ? std::to_chars(buffer.begin(), buffer.end(), v, std::chars_format::fixed)
                       : std::to_chars(buffer.begin(), buffer.end(), static_cast<float>(v),
                                       std::chars_format::fixed);
  return {buffer.begin(), end.ptr};
}

std::optional<double> number(std::string_view text) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (lower == "inf" || lower == "+inf") return infinity;
  if (lower == "-inf") return -infinity;
  std::string_view digits = lower;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty() ||
      failure == std::errc::invalid_argument)
    return std::nullopt;
  if (failure == std::errc::result_out_of_range)
    return digits.find("e-") != digits.npos ? 0 : digits[0] == '-' ? -infinity : infinity;
  return value;
}

// Whole numbers are read exactly; what is no number is an error.
Status store_text(const Call& call, std::string_view text, Tensor& y, int64_t i) {
  const char* end = text.data() + text.size();
  if (int64_t whole = 0; std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) {
    y.set_i64(i, whole);
    if (!is_float(y.dtype()) || whole != 0) return {};
  }
  if (uint64_t whole = 0; y.dtype() == DType::kU64 &&
                          std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) {
    y.set_i64(i, static_cast<int64_t>(whole));
    return {};
  }
  const auto value = number(text);
  if (!value) return call.fail("element {} is '{}', not a number", i, text);
  y.set_f64(i, *value);
  return {};
}

Result<std::vector<Value>> convert(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const DType from = x.dtype(), to = y.dtype();
  if (from == to) return one(x);
  if (to == DType::kString) {
    if (is_complex(from)) return call.fail("is not defined from {} to strings", name_of(from));
    for (int64_t i = 0; i < x.count(); ++i)
      y.mutable_text()[static_cast<size_t>(i)] = text_of(x, i);
    return one(std::move(y));
  }
  if (from == DType::kString) {
    for (int64_t i = 0; i < x.count(); ++i)
      TRY(store_text(call, x.text()[static_cast<size_t>(i)], y, i));
    return one(std::move(y));
  }
  const std::string name = call.attrs().s("round", "even");
  const auto mode =
      std::find_if(std::begin(kModes), std::end(kModes), [&](auto& m) { return m.name == name; });
  if (mode == std::end(kModes)) return call.fail("unknown rounding '{}'", name);
  const FloatCast cast{mode->rounding,
                       is_float(to) && bits_of(to) == 8 && call.attrs().i("saturate", 1) != 0};
  convert_elements(from, x.data(), to, y.mutable_data(), x.count(), cast);
  return one(std::move(y));
}

constexpr Row kRows[] = {{"convert", convert}};

}  // namespace

std::span<const Row> convert_rows() { return kRows; }

}  // namespace tessera::ir::reference
