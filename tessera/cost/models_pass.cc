// Operators that pass over memory.
#include <algorithm>
#include <cmath>

#include "tessera/cost/families.h"
#include "tessera/cost/models.h"
#include "tessera/cost/operands.h"
#include "tessera/cost/stream.h"

namespace tessera::cost::models {
namespace {

using op::Operand;
using op::Problem;

// The axis that softmax, argmax and the like work along, and what is beside it.
struct Along {
  double rows = 1, length = 1, inner = 1;
};
Along along(const Operand& x, int64_t axis) {
  const auto rank = static_cast<int64_t>(x.dims.size());
  if (rank == 0) return {};
  const auto at =
      static_cast<size_t>(std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1));
  Along a;
  a.length = static_cast<double>(x.dims[at]);
  a.inner = product_of(x.dims, at + 1, x.dims.size());
  a.rows = product_of(x.dims, 0, at) * a.inner;
  return a;
}

// Vector units of cores with threads compute 16-bit floats in f32.
std::string computed_in(const Machine& machine, DType dtype) {
  if (machine.chip().threads && is_float(dtype) && bits_of(dtype) < 32) return "f32";
  return std::string(name_of(dtype));
}
ElementWork widening(const Machine& machine, DType dtype) {
  if (computed_in(machine, dtype) == name_of(dtype)) return {};
  return {.plain = 2};
}

Result<Tally> pass_of(const Machine& machine, const Problem& p, Pass pass) {
  if (pass.read <= 0) pass.read = input_bytes(p);
  pass.written = output_bytes(p);
  if (p.fused()) {
    pass.work += work_of_steps(p);
    pass.elements = std::max(pass.elements, elements_of(p.anchor_result()));
  }
  const ElementWork wide = widening(machine, p.in.empty() ? DType::kF32 : p.in[0].dtype);
  pass.work += wide;
  TRY_ASSIGN(Tally t, stream(machine, pass));
  t.flops = pass.elements * std::max(pass.work.plain - wide.plain, 1.0);
  return t;
}

std::string type_of(const Machine& machine, const Problem& p) {
  return computed_in(machine, p.in.empty() ? DType::kF32 : p.in[0].dtype);
}

// Bytes of a row that the cores keep to themselves between passes.
double kept_elements(const Machine& machine) {
  double scratch = 0;
  for (const auto& entry : machine.chip().memory)
    if (!entry.second.core.empty() && entry.second.kind != chip::MemoryKind::kCache)
      scratch = std::max(scratch, static_cast<double>(entry.second.capacity_bytes.value.value));
  return scratch > 0 ? scratch / 12 : 4096;  // in f32, twice, and results
}

}  // namespace

Result<Tally> elementwise(const Machine& machine, const Problem& p) {
  Pass pass{.kernel = "elementwise", .family = "elementwise", .type = type_of(machine, p)};
  pass.elements = elements_of(p.anchor_result());
  pass.work = work_of(p.op->name);
  return pass_of(machine, p, std::move(pass));
}

Result<Tally> softmax(const Machine& machine, const Problem& p) {
  const Operand& x = p.in[0];
  const Along a = along(x, p.attrs.i("axis", -1));
  Pass pass{.kernel = "softmax", .family = "softmax", .type = type_of(machine, p)};
  pass.elements = elements_of(x);
  pass.work = {.plain = 4, .exp = 1};
  if (p.op->name == "log_softmax") pass.work.plain += 1;
  pass.rows = a.rows;
  // Rows that no core keeps are read for the maximum, the sum and the result.
  if (a.length > machine.constant("softmax_row_elements", kept_elements(machine)))
    pass.again = 2 * bytes_of(x);
  return pass_of(machine, p, std::move(pass));
}

Result<Tally> norm(const Machine& machine, const Problem& p) {
  const Operand& x = p.in[0];
  const std::string_view name = p.op->name;
  double rows = 1;
  if (name == "layer_norm" || name == "rms_norm") {
    const auto rank = static_cast<int64_t>(x.dims.size());
    int64_t axis = p.attrs.i("axis", -1);
    if (axis < 0) axis += rank;
    rows = product_of(x.dims, 0, static_cast<size_t>(std::clamp<int64_t>(axis, 0, rank)));
  } else {
    rows = dim(x, 0) *
           (name == "group_norm" ? static_cast<double>(p.attrs.i("groups", 1)) : dim(x, 1));
  }
  Pass pass{.kernel = "norm", .family = "norm", .type = type_of(machine, p)};
  pass.elements = elements_of(x);
  pass.work = {.plain = name == "rms_norm" ? 4.0 : 7.0};
  pass.rows = rows;
  const double length = rows > 0 ? pass.elements / rows : 0;
  if (length > machine.constant("norm_row_elements", kept_elements(machine)))
    pass.again = bytes_of(x);
  return pass_of(machine, p, std::move(pass));
}

Result<Tally> reduce(const Machine& machine, const Problem& p) {
  const Operand& x = p.in[0];
  const double results = elements_of(p.out[0]);
  Pass pass{.kernel = "reduce", .family = "reduce", .type = type_of(machine, p)};
  pass.elements = elements_of(x);
  pass.work = {.plain = 1};
  pass.read = bytes_of(x);
  // Fewer results than cores: parts first, then what they yield.
  const auto unit = machine.vector(pass.type);
  const bool twice = unit && results < unit->cores && pass.elements > 65536;
  pass.rows = twice ? 0 : results;
  TRY_ASSIGN(Tally t, pass_of(machine, p, std::move(pass)));
  if (twice) t.seconds += machine.constant("split_seconds", 2e-6);
  return t;
}

Result<Tally> pool(const Machine& machine, const Problem& p) {
  const op::Ints kernel = p.attrs.ints("kernel");
  double taps = 1;
  for (const int64_t k : kernel) taps *= static_cast<double>(k);
  if (kernel.empty()) taps = elements_of(p.in[0]) / std::max(elements_of(p.out[0]), 1.0);
  Pass pass{.kernel = "pool", .family = "pool", .type = type_of(machine, p)};
  pass.elements = elements_of(p.out[0]);
  pass.work = {.plain = taps};
  return pass_of(machine, p, std::move(pass));
}

// What is read is as much as what is written; rows of it lie together.
Result<Tally> move(const Machine& machine, const Problem& p) {
  Pass pass{.kernel = "copy", .family = "move"};
  const std::string_view name = p.op->name;
  pass.read = output_bytes(p);
  const Operand& x = p.in.empty() ? p.out[0] : p.in[0];
  const double element = bytes_per_element(x);
  if (name == "gather" && p.in.size() > 1) {
    const auto rank = static_cast<int64_t>(x.dims.size());
    int64_t axis = p.attrs.i("axis", 0);
    if (axis < 0) axis += rank;
    pass.run = std::max(
        product_of(x.dims, static_cast<size_t>(std::max<int64_t>(axis, 0)) + 1, x.dims.size()) *
            element,
        element);
    pass.read += bytes_of(p.in[1]);
  } else if (name == "gather_elements" || name == "gather_nd" || name.starts_with("scatter")) {
    pass.run = element;
    if (name == "gather_nd" && p.in.size() > 1 && !p.in[1].dims.empty()) {
      const auto tuple = static_cast<size_t>(std::max<int64_t>(p.in[1].dims.back(), 0));
      pass.run = std::max(product_of(x.dims, tuple, x.dims.size()) * element, element);
    }
    pass.read = input_bytes(p);
  } else if (name == "slice" || name == "concat" || name == "pad" || name == "split") {
    // The innermost axis as it is in the smaller tensor.
    double run = x.dims.empty() ? element : static_cast<double>(x.dims.back()) * element;
    if (!p.out.empty() && !p.out[0].dims.empty())
      run = std::min(run, static_cast<double>(p.out[0].dims.back()) * element);
    pass.run = run < machine.line() ? std::max(run, element) : 0;
    if (name == "concat" || name == "pad") pass.read = std::min(input_bytes(p), pass.read);
  }
  pass.written = output_bytes(p);
  TRY_ASSIGN(Tally t, stream(machine, pass));
  t.flops = 0;
  return t;
}

// Cheaper than its operands' bytes: another view of the same ones.
Result<Tally> view(const Machine&, const Problem&) {
  Tally t;
  t.kernel = t.family = "view";
  return t;
}

Result<Tally> relayout(const Machine& machine, const Problem& p) {
  return conversion_tally(machine, p.in[0], p.out[0]);
}

Result<Tally> transpose(const Machine& machine, const Problem& p) {
  Operand from = p.in[0], to = p.out[0];
  from.dims = to.dims;  // the same elements, other strides
  from.layout.clear();
  to.layout.clear();
  from.strides.clear();
  TRY_ASSIGN(Tally t, conversion_tally(machine, from, to));
  t.kernel = "transpose";
  return t;
}

// n log n comparisons of each row.
Result<Tally> sort(const Machine& machine, const Problem& p) {
  const Operand& x = p.in[0];
  const Along a = along(x, p.attrs.i("axis", -1));
  Pass pass{.kernel = "sort", .family = "sort", .type = type_of(machine, p)};
  pass.elements = elements_of(x);
  const double levels = std::log2(std::max(a.length, 2.0));
  const auto unit = machine.vector(pass.type);
  const double rate = unit ? machine.function_rate(*unit, "sort", pass.type) : 0;
  pass.work = {.plain = rate > 0 ? levels / 4 * unit->per_second() / rate : 4 * levels};
  pass.rows = a.rows;
  return pass_of(machine, p, std::move(pass));
}

// By what the table of operators says that it computes, or one operation for each element.
Result<Tally> anything(const Machine& machine, const Problem& p) {
  Pass pass{.kernel = std::string(p.op->name), .family = "other", .type = type_of(machine, p)};
  for (const Operand& o : p.out) pass.elements = std::max(pass.elements, elements_of(o));
  pass.work = {.plain = 4};
  return pass_of(machine, p, std::move(pass));
}

}  // namespace tessera::cost::models
