// What probes have in common: checks that end in a reason, cost estimates, iteration spaces.
#pragma once

#include <optional>
#include <string>

#include "tessera/kernels/table.h"

namespace tessera::kernels::cpu {

using op::Argument;
using op::Claim;
using op::Dims;
using op::LaunchSpec;
using op::NumericClass;
using op::Operand;
using op::Problem;

// The first reason against a claim. Checks after it are skipped: probes may read what earlier
// checks made sure of.
class Reason {
 public:
  // Keeps the text if `ok` is false and nothing was wrong before; returns whether all was fine so
  // far.
  template <class... Args>
  bool need(bool ok, fmt::format_string<Args...> format, Args&&... args) {
    if (text_.empty() && !ok) text_ = fmt::format(format, std::forward<Args>(args)...);
    return text_.empty();
  }
  bool input_is(const Problem& p, size_t i, DType dtype);
  bool output_is(const Problem& p, size_t i, DType dtype);
  bool fine() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  Claim refusal() const { return Claim::refuse("", text_); }

 private:
  std::string text_;
};

// Why a kernel for packed row-major operands, which writes output 0 in any case if `first`, cannot
// take the problem; empty if it can.
std::string not_packed(const Problem& p, bool first);

// A probe that refuses other layouts before it asks `Probe`.
template <Claim (*Probe)(const Problem&), bool kFirst = true>
Claim row_major(const Problem& p) {
  if (std::string why = not_packed(p, kFirst); !why.empty())
    return Claim::refuse("", std::move(why));
  return Probe(p);
}

// A supported claim, whose cost follows from the table's rates: see op::Claim.
Claim claim(double flops, double bytes, double efficiency = 1,
            NumericClass numeric = NumericClass::kExact);
double bytes_of(const Operand& o);
double bytes_of(const Problem& p);  // all operands present, read or written once

inline constexpr int kMaxRank = 8;  // of iteration spaces, after merging

// Nested loops over an output with one stride per operand and axis, in elements; the last axis is
// the innermost.
template <int kOperands>
struct Space {
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kOperands][kMaxRank] = {};
};

// Elements between neighbours along each of the operand's (logical) axes; nothing for layouts that
// are more than an order of the axes.
std::optional<Dims> logical_strides(const Operand& o);

// Strides that read `from` as if broadcast to `to`: 0 along broadcast axes. @pre from broadcasts to
// `to`
Dims broadcast_strides(const Dims& from, const Dims& to);

// Drops axes of size 1 and merges neighbours that every operand walks as one. The result has at
// least one axis. `dims` and each of `strides` have the same length.
void merge_axes(Dims& dims, std::vector<Dims>& strides);

// Merges and stores; false if more than kMaxRank axes remain.
template <int kOperands>
bool make_space(Dims dims, std::vector<Dims> strides, Space<kOperands>& space) {
  merge_axes(dims, strides);
  if (dims.size() > kMaxRank) return false;
  space.rank = static_cast<int32_t>(dims.size());
  for (size_t a = 0; a < dims.size(); ++a) {
    space.dims[a] = dims[a];
    for (size_t k = 0; k < strides.size(); ++k) space.strides[k][a] = strides[k][a];
  }
  return true;
}

int64_t ceil_div(int64_t a, int64_t b);
// The number of work items of `chunk` elements, at least 1.
uint32_t items(int64_t count, int64_t chunk);

// All inputs that are present, then all outputs: the arguments of most launches.
std::vector<Argument> all_arguments(const Problem& p);

}  // namespace tessera::kernels::cpu
