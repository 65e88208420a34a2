// Operators that come down to products of matrices.
#include <algorithm>
#include <cmath>

#include "tessera/cost/attention.h"
#include "tessera/cost/models.h"
#include "tessera/cost/operands.h"
#include "tessera/cost/product.h"

namespace tessera::cost::models {
namespace {

using op::Operand;
using op::Problem;

// Of a row-major operand; 0: it lies in blocks that fill lines.
double row_bytes(const Operand& o) {
  return o.layout.empty() && !o.dims.empty()
             ? static_cast<double>(o.dims.back()) * bytes_per_element(o)
             : 0;
}

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
  product.c_memory = output_bytes(p);
  if (!p.fused()) return;
  product.epilogue_bytes = input_bytes(p, p.arity, p.in.size());
  const auto unit = machine.matrix(product.type);
  const auto vector = machine.vector("f32");
  const bool apart = unit && vector && unit->unit->core != vector->unit->core;
  if (apart && leaves_with_it(p)) return;
  product.epilogue = work_of_steps(p);
  // Vector cores of their own read results through memory and write them again.
  if (apart) product.epilogue_bytes += 2 * bytes_of(p.anchor_result());
}

}  // namespace

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
  q.a_run = row_bytes(a);
  q.b_run = row_bytes(b);
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
  s.a_memory = input_bytes(p);
  s.b_memory = s.batch * s.n * s.k * s.b_bytes;
  s.c_memory = output_bytes(p);
  s.family = "attention";
  TRY_ASSIGN(Tally t, product(machine, s));
  t.kernel = "linear_attention";
  return t;
}

}  // namespace tessera::cost::models
