#include "tessera/cost/families.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tessera/cost/attention.h"
#include "tessera/cost/operands.h"
#include "tessera/cost/product.h"
#include "tessera/cost/stream.h"
#include "tessera/op/elementwise.h"

namespace tessera::cost {
namespace {

using op::Operand;
using op::Problem;

double dim(const Operand& o, size_t axis) {
  return axis < o.dims.size() ? static_cast<double>(o.dims[axis]) : 1;
}

double product_of(const op::Dims& dims, size_t first, size_t last) {
  double p = 1;
  for (size_t i = first; i < last && i < dims.size(); ++i) p *= static_cast<double>(dims[i]);
  return p;
}

double bytes_per_element(const Operand& o) { return bits_of_elements(o) / 8; }

double inputs(const Problem& p, size_t first, size_t last) {
  double bytes = 0;
  for (size_t i = first; i < last && i < p.in.size(); ++i) bytes += bytes_of(p.in[i]);
  return bytes;
}
double inputs(const Problem& p) { return inputs(p, 0, p.in.size()); }

double outputs(const Problem& p) {
  double bytes = 0;
  for (const Operand& o : p.out) bytes += bytes_of(o);
  return bytes;
}

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

// ---- products

std::string compute_type(const Problem& p) {
  const DType own = p.in[0].dtype;
  return std::string(name_of(p.attrs.dtype("compute", own)));
}

bool multiplies_in_steps(const Engaged& unit) {
  return !unit.unit->dataflow || *unit.unit->dataflow == chip::Dataflow::kStep;
}

Status check_layouts(const Machine& machine, const Product& product, const Problem& p,
                     bool result_too) {
  const auto unit = machine.matrix(product.type);
  if (!unit || machine.chip().threads || !multiplies_in_steps(*unit)) return {};
  const auto refuse = [&](std::string_view what, const Operand& o, const char* name) {
    return error(Code::kUnimplemented, "no route of chip '{}' {} {}[{}] as it lies ({}), needs {}",
                 machine.chip().id, what, name_of(o.dtype), fmt::join(o.dims, ","),
                 o.layout.empty() ? "row-major" : o.layout,
                 fmt::join(reachable(machine, *unit->unit, name), " or "));
  };
  if (!reaches(machine, *unit->unit, "a", p.in[0])) return refuse("reads", p.in[0], "a");
  if (!reaches(machine, *unit->unit, "b", p.in[1])) return refuse("reads", p.in[1], "b");
  if (result_too && !reaches(machine, *unit->unit, "c", p.out[0]))
    return refuse("writes", p.out[0], "c");
  return {};
}

// Steps behind a product that its way out does: adding a constant row and clamping.
bool leaves_with_it(const Problem& p) {
  return std::all_of(p.steps.begin(), p.steps.end(), [&](const op::Step& s) {
    const std::string_view name = s.op->name;
    if (name == "relu" || name == "clip" || name == "convert") return true;
    if (name != "add" && name != "max" && name != "min" && name != "mul") return false;
    return std::all_of(s.in.begin(), s.in.end(), [&](int v) {
      if (v < 0 || static_cast<size_t>(v) >= p.in.size()) return true;
      return elements_of(p.in[static_cast<size_t>(v)]) <= 65536;
    });
  });
}

void add_epilogue(const Machine& machine, const Problem& p, Product& product) {
  product.c_memory = outputs(p);
  if (!p.fused()) return;
  product.epilogue_bytes = inputs(p, p.arity, p.in.size());
  const auto unit = machine.matrix(product.type);
  const auto vector = machine.vector("f32");
  const bool apart = unit && vector && unit->unit->core != vector->unit->core;
  if (apart && leaves_with_it(p)) return;
  product.epilogue = work_of_steps(p);
  // Vector cores of their own read results through memory and write them again.
  if (apart) product.epilogue_bytes += 2 * bytes_of(p.anchor_result());
}

Result<Tally> dot(const Machine& machine, const Problem& p) {
  const Operand &a = p.in[0], &b = p.in[1], &c = p.anchor_result();
  const bool ta = p.attrs.i("transpose_a") != 0, tb = p.attrs.i("transpose_b") != 0;
  const size_t ra = a.dims.size(), rb = b.dims.size();
  if (ra == 0 || rb == 0)
    return error(Code::kInvalidArgument, "dot needs rank 1 or more, got {} and {}", ra, rb);
  Product q;
  q.type = compute_type(p);
  q.k = ra == 1 ? dim(a, 0) : dim(a, ta ? ra - 2 : ra - 1);
  q.m = ra == 1 ? 1 : dim(a, ta ? ra - 1 : ra - 2);
  q.n = rb == 1 ? 1 : dim(b, tb ? rb - 2 : rb - 1);
  const double results = elements_of(c);
  q.batch = q.m * q.n > 0 ? results / (q.m * q.n) : 0;
  // A right side that all of the batch share makes it one product of more rows.
  if (rb <= 2 && q.batch > 1) {
    q.m *= q.batch;
    q.batch = 1;
  }
  q.a_bytes = bytes_per_element(a);
  q.b_bytes = bytes_per_element(b);
  q.c_bytes = bytes_per_element(p.out[0]);
  q.a_memory = bytes_of(a);
  q.b_memory = bytes_of(b);
  add_epilogue(machine, p, q);
  TRY(check_layouts(machine, q, p, true));
  return product(machine, q);
}

// As a product of windows: m = images and places, k = channels of a group and taps.
Result<Tally> conv(const Machine& machine, const Problem& p) {
  const Operand &x = p.in[0], &w = p.in[1], &y = p.anchor_result();
  const bool transposed = p.op->name == "conv_transpose";
  const double groups = static_cast<double>(std::max<int64_t>(p.attrs.i("groups", 1), 1));
  const double taps = product_of(w.dims, 2, w.dims.size());
  const double channels = transposed ? dim(x, 1) / groups : dim(w, 1);
  const Operand& places = transposed ? x : y;
  Product q;
  q.type = compute_type(p);
  q.family = "conv";
  q.batch = groups;
  q.m = dim(places, 0) * product_of(places.dims, 2, places.dims.size());
  q.n = transposed ? dim(w, 1) * taps : dim(w, 0) / groups;
  q.k = channels * (transposed ? 1 : taps);
  q.a_bytes = bytes_per_element(x);
  q.b_bytes = bytes_per_element(w);
  q.c_bytes = bytes_per_element(p.out[0]);
  q.a_memory = bytes_of(x);
  q.b_memory = bytes_of(w) + (p.has(2) ? bytes_of(p.in[2]) : 0);
  if (const auto unit = machine.matrix(q.type); unit && !transposed && multiplies_in_steps(*unit)) {
    // Channels are taken in whole steps of k; few channels with their taps.
    const double step = unit->rate->k ? static_cast<double>(unit->rate->k->value) : 8;
    q.depth =
        channels <= 4 ? round_up(taps * 4, step) : round_up(channels, std::min(step, 16.0)) * taps;
  }
  add_epilogue(machine, p, q);
  TRY(check_layouts(machine, q, p, false));
  TRY_ASSIGN(Tally t, product(machine, q));
  t.kernel = "conv";
  t.flops = q.flops();
  return t;
}

// LSTM and the like: inputs of all steps in one product, then a product for each step.
Result<Tally> recurrent(const Machine& machine, const Problem& p) {
  const Operand &x = p.in[0], &w = p.in[1];
  const double steps = dim(x, 0), batch = dim(x, 1), directions = dim(w, 0);
  const double columns = dim(w, 1), input = dim(w, 2), hidden = dim(p.in[2], 2);
  Product q;
  q.type = compute_type(p);
  q.family = "rnn";
  q.batch = directions;
  q.m = steps * batch;
  q.n = columns;
  q.k = input;
  q.a_bytes = q.b_bytes = q.c_bytes = bytes_per_element(x);
  q.a_memory = bytes_of(x);
  q.b_memory = bytes_of(w);
  q.c_memory = directions * q.m * columns * q.c_bytes;
  TRY_ASSIGN(Tally t, product(machine, q));
  Product each = q;
  each.m = batch;
  each.k = hidden;
  each.a_memory = directions * batch * hidden * q.a_bytes;
  each.b_memory = bytes_of(p.in[2]);
  each.c_memory = directions * batch * columns * q.c_bytes;
  each.epilogue = {.plain = 4, .tanh = 2};
  TRY_ASSIGN(const Tally step, product(machine, each));
  // Weights of a step stay on the chip where a cache holds them.
  const double between = machine.constant("recurrent_step_seconds", 2e-6);
  t.kernel = "rnn";
  t.seconds += steps * (step.seconds + between);
  t.flops += steps * step.flops;
  t.padded_flops += steps * step.padded_flops;
  t.cycles += steps * step.cycles;
  for (const auto& [name, bytes] : step.bytes) t.bytes[name] += steps * bytes;
  for (const auto& [name, busy] : step.busy) t.busy[name] += steps * busy;
  return t;
}

Result<Tally> attention_of(const Machine& machine, const Problem& p) {
  const Operand &q = p.in[0], &k = p.in[1], &v = p.in[2];
  const double past = p.has(4) ? dim(p.in[4], 2) : 0;
  AttentionShape s{.batch = dim(q, 0),
                   .heads = dim(q, 1),
                   .key_heads = dim(k, 1),
                   .queries = dim(q, 2),
                   .keys = dim(k, 2) + past,
                   .head = dim(q, 3),
                   .value_head = dim(v, 3),
                   .causal = p.attrs.i("causal") != 0,
                   .mask_bytes = p.has(3) ? bytes_of(p.in[3]) : 0,
                   .type = std::string(name_of(q.dtype)),
                   .element_bytes = bytes_per_element(q)};
  if (elements_of(q) <= 0 || elements_of(v) <= 0 || s.keys <= 0) s.keys = s.queries = 0;
  return attention(machine, s);
}

// Chunks of a recurrence over a state: two products with the state for each step.
Result<Tally> linear_attention(const Machine& machine, const Problem& p) {
  const Operand &q = p.in[0], &v = p.in[2];
  Product s;
  s.type = std::string(name_of(q.dtype));
  s.batch = dim(q, 0) * dim(q, 1);
  s.m = dim(q, 2);
  s.n = dim(v, 3);
  s.k = 2 * dim(q, 3);
  s.a_bytes = s.b_bytes = s.c_bytes = bytes_per_element(q);
  s.a_memory = inputs(p);
  s.b_memory = s.batch * s.n * s.k * s.b_bytes;
  s.c_memory = outputs(p);
  s.family = "attention";
  TRY_ASSIGN(Tally t, product(machine, s));
  t.kernel = "linear_attention";
  return t;
}

// ---- passes over memory

Result<Tally> pass_of(const Machine& machine, const Problem& p, Pass pass) {
  if (pass.read <= 0) pass.read = inputs(p);
  pass.written = outputs(p);
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

Result<Tally> elementwise(const Machine& machine, const Problem& p) {
  Pass pass{.kernel = "elementwise", .family = "elementwise", .type = type_of(machine, p)};
  pass.elements = elements_of(p.anchor_result());
  pass.work = work_of(p.op->name);
  return pass_of(machine, p, std::move(pass));
}

// Bytes of a row that the cores keep to themselves between passes.
double kept_elements(const Machine& machine) {
  double scratch = 0;
  for (const auto& entry : machine.chip().memory)
    if (!entry.second.core.empty() && entry.second.kind != chip::MemoryKind::kCache)
      scratch = std::max(scratch, static_cast<double>(entry.second.capacity_bytes.value.value));
  return scratch > 0 ? scratch / 12 : 4096;  // in f32, twice, and results
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
  pass.read = outputs(p);
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
    pass.read = inputs(p);
  } else if (name == "slice" || name == "concat" || name == "pad" || name == "split") {
    // The innermost axis as it is in the smaller tensor.
    double run = x.dims.empty() ? element : static_cast<double>(x.dims.back()) * element;
    if (!p.out.empty() && !p.out[0].dims.empty())
      run = std::min(run, static_cast<double>(p.out[0].dims.back()) * element);
    pass.run = run < machine.line() ? std::max(run, element) : 0;
    if (name == "concat" || name == "pad") pass.read = std::min(inputs(p), pass.read);
  }
  pass.written = outputs(p);
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

using Model = Result<Tally> (*)(const Machine&, const Problem&);
struct Row {
  std::string_view op;
  size_t inputs;  // that the model needs
  Model model;
};
// Sorted by name.
constexpr Row kRows[] = {
    {"argmax", 1, reduce},
    {"argmin", 1, reduce},
    {"attention", 3, attention_of},
    {"average_pool", 1, pool},
    {"batch_norm", 1, elementwise},
    {"broadcast_to", 1, move},
    {"concat", 1, move},
    {"conv", 2, conv},
    {"conv_transpose", 2, conv},
    {"dot", 2, dot},
    {"gather", 1, move},
    {"gather_elements", 1, move},
    {"gather_nd", 1, move},
    {"global_average_pool", 1, pool},
    {"global_lp_pool", 1, pool},
    {"global_max_pool", 1, pool},
    {"group_norm", 1, norm},
    {"gru", 3, recurrent},
    {"hardmax", 1, softmax},
    {"identity", 1, view},
    {"instance_norm", 1, norm},
    {"layer_norm", 1, norm},
    {"linear_attention", 3, linear_attention},
    {"log_softmax", 1, softmax},
    {"lp_pool", 1, pool},
    {"lstm", 3, recurrent},
    {"max_pool", 1, pool},
    {"pad", 1, move},
    {"reduce", 1, reduce},
    {"relayout", 1, relayout},
    {"reshape", 1, view},
    {"rms_norm", 1, norm},
    {"rnn", 3, recurrent},
    {"scatter_elements", 1, move},
    {"scatter_nd", 1, move},
    {"slice", 1, move},
    {"softmax", 1, softmax},
    {"squeeze", 1, view},
    {"tile", 1, move},
    {"top_k", 1, sort},
    {"transpose", 1, transpose},
    {"unsqueeze", 1, view},
};

const Row* row_of(std::string_view name) {
  const auto* row = std::lower_bound(std::begin(kRows), std::end(kRows), name,
                                     [](const Row& r, std::string_view n) { return r.op < n; });
  return row != std::end(kRows) && row->op == name ? row : nullptr;
}

}  // namespace

Result<Tally> tally_of(const Machine& machine, const op::Problem& problem) {
  if (!problem.op || problem.out.empty())
    return error(Code::kInvalidArgument, "a problem needs an operator and a result");
  const op::OpDef& def = *problem.op;
  if (def.kind == op::OpClass::kHost || def.bodies > 0)
    return error(Code::kUnimplemented, "operator '{}' has no cost on a chip: {}", def.name,
                 def.bodies > 0 ? "its bodies have" : "it is the host's");
  const auto text = [](const Operand& o) { return o.present && o.dtype == DType::kString; };
  if (std::any_of(problem.in.begin(), problem.in.end(), text) ||
      std::any_of(problem.out.begin(), problem.out.end(), text))
    return error(Code::kUnimplemented, "operator '{}' on strings is the host's", def.name);
  const Row* row = row_of(def.name);
  const Model model = row ? row->model : op::elementwise(def) ? elementwise : anything;
  const size_t needed = row ? row->inputs : 0;
  size_t present = 0;
  while (present < problem.in.size() && problem.in[present].present) ++present;
  if (present < needed)
    return error(Code::kInvalidArgument, "operator '{}' has {} inputs, need {}", def.name, present,
                 needed);
  return model(machine, problem).map_error([&](Error e) {
    return std::move(e).at(fmt::format("op '{}'", def.name));
  });
}

}  // namespace tessera::cost
