#include "tessera/kernels/cpu/integer.h"

#include <algorithm>

#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/elementwise.h"

namespace tessera::kernels::cpu {
namespace {

bool is_byte(DType d) { return d == DType::kU8 || d == DType::kI8; }

constexpr size_t kXZero = 2, kWZero = 3, kBias = 4;

// The steps between the conversion and the quantisation, as steps behind a result in f32.
struct Behind {
  std::string why;
  Problem floats;
  const op::Step* quantize = nullptr;
};

// Value `v` of the problem, where the converted sum is what the floats' anchor yields.
int renumbered(const Problem& p, int v) { return v > std::ssize(p.in) ? v - 1 : v; }

bool one_input(const Problem& p, int v, DType dtype) {
  return v >= 0 && v < std::ssize(p.in) && p.in[static_cast<size_t>(v)].present &&
         p.in[static_cast<size_t>(v)].dtype == dtype && p.in[static_cast<size_t>(v)].count() == 1;
}

void check_quantize(const Problem& p, const op::Step& step, int last, Reason& why) {
  const DType to = step.out.dtype;
  why.need(is_byte(to), "quantises to {}, need u8 or i8", name_of(to));
  why.need(!step.in.empty() && step.in[0] == last, "quantises another value than the last");
  why.need(step.in.size() > 1 && one_input(p, step.in[1], DType::kF32),
           "quantises with another scale than one f32");
  if (step.in.size() > 2 && step.in[2] >= 0)
    why.need(one_input(p, step.in[2], to), "quantises with another zero point than one {}",
             name_of(to));
  const DType precision = step.attrs.dtype("precision", DType::kF32);
  why.need(precision == DType::kF32, "divides in {}, need f32", name_of(precision));
}

Behind behind(const Problem& p) {
  Behind b;
  Reason why;
  const op::Step& first = p.steps.front();
  const int sums = static_cast<int>(p.in.size());
  size_t count = p.steps.size();
  why.need(first.op->name == "convert" && first.out.dtype == DType::kF32,
           "step 0 is {} to {}, need a conversion to f32", first.op->name,
           name_of(first.out.dtype));
  why.need(p.results.size() == 1 && p.results[0] == sums + static_cast<int>(count),
           "another result than the last leaves the group");
  if (p.steps.back().op->name == "quantize") {
    --count;
    b.quantize = &p.steps.back();
    if (why.fine()) check_quantize(p, *b.quantize, sums + static_cast<int>(count), why);
  }
  for (size_t i = 1; i < count; ++i)
    why.need(std::ranges::find(p.steps[i].in, sums) == p.steps[i].in.end(),
             "step {} reads the sum of integers", i);
  b.why = why.text();
  if (!why.fine()) return b;
  b.floats.op = p.op;
  b.floats.in = p.in;
  b.floats.out = p.out;
  b.floats.arity = p.arity;
  b.floats.result = p.result;
  b.floats.result.dtype = DType::kF32;
  b.floats.results = {sums + static_cast<int>(count) - 1};
  for (size_t i = 1; i < count; ++i) {
    b.floats.steps.push_back(p.steps[i]);
    for (int& v : b.floats.steps.back().in) v = renumbered(p, v);
  }
  return b;
}

}  // namespace

Reason check_integer(const Problem& p, int64_t columns) {
  Reason why;
  for (size_t i : {0, 1})
    if (why.need(p.has(i), "input {} is left out", i))
      why.need(is_byte(p.in[i].dtype), "input {} is {}, need u8 or i8", i, name_of(p.in[i].dtype));
  for (size_t i : {kXZero, kWZero, kBias}) {
    if (!why.fine() || !p.has(i)) continue;
    const Operand& o = p.in[i];
    why.need(o.layout.empty() && o.strides.empty(), "input {} is not packed", i);
    if (i == kBias)
      why.input_is(p, i, DType::kI32);
    else
      why.need(o.count() == 1 || (i == kWZero && o.count() == columns && o.dims.back() == columns),
               "zero point {} is {}, need one element{}", i, op::to_string(o.dims),
               i == kWZero ? " or one per column" : "");
  }
  return why;
}

Reason check_integer_conv(const Problem& p, int axes, ConvShape& s) {
  Reason why;
  why.need(p.has(0) && p.has(1) && p.out[0].present, "an operand is missing");
  if (why.fine())
    why.need(p.in[1].rank() >= 3 && p.in[1].rank() <= axes + 2, "{} spatial axes, need 1 to {}",
             p.in[1].rank() - 2, axes);
  if (why.fine())
    why.need(p.in[1].constant && p.in[1].layout.empty() && p.in[1].strides.empty(),
             "the weights are not constant, or not row-major");
  for (const Operand* o : {&p.in[0], &p.in[1], &p.out[0]})
    if (why.fine())
      why.need(op::element_count(o->dims).has_value(), "impossible sizes {}",
               op::to_string(o->dims));
  if (!why.fine()) return why;
  const Status filled = fill_shape(p, s);
  why.need(filled.has_value(), "{}", filled ? "" : filled.error().message);
  return why;
}

std::string no_integer_result(const Problem& p, const ResultShape& shape) {
  Reason why;
  why.need(p.anchor_result().dtype == DType::kI32, "the sums are {}, need i32",
           name_of(p.anchor_result().dtype));
  if (!p.fused() || !why.fine()) return why.text();
  const Behind b = behind(p);
  return b.why.empty() ? no_epilogue(b.floats, shape) : b.why;
}

void make_integer(const Problem& p, const ResultShape& shape, std::vector<Argument>& arguments,
                  IntegerTerms& terms, IntegerResult& result) {
  auto range_of = [&](int input) {
    arguments.push_back({Argument::kInput, input, 0});
    return static_cast<int32_t>(arguments.size()) - 1;
  };
  auto optional = [&](size_t i) { return p.has(i) ? range_of(static_cast<int>(i)) : -1; };
  IntegerPack signs{};
  set_signs(p, signs);
  terms.x_signed = p.in[0].dtype == DType::kI8;
  terms.w_signed = p.in[1].dtype == DType::kI8;
  terms.moved = signs.moved;
  terms.x_zero = optional(kXZero);
  terms.w_zero = optional(kWZero);
  terms.w_zeros = p.has(kWZero) && p.in[kWZero].count() > 1;
  terms.bias = optional(kBias);
  result.type = IntegerType::kI32;
  result.scale = result.zero = -1;
  result.steps = {};
  if (!p.fused()) return;
  const Behind b = behind(p);
  make_epilogue(b.floats, shape, arguments, result.steps);
  result.type = IntegerType::kF32;
  if (!b.quantize) return;
  result.type = b.quantize->out.dtype == DType::kI8 ? IntegerType::kI8 : IntegerType::kU8;
  result.scale = range_of(b.quantize->in[1]);
  if (b.quantize->in.size() > 2 && b.quantize->in[2] >= 0)
    result.zero = range_of(b.quantize->in[2]);
}

NumericClass integer_class(const Problem& p) {
  NumericClass numeric = NumericClass::kExact;
  for (const op::Step& step : p.steps)
    if (const FunctionRow* row = function_row(step.op->name))
      numeric = std::max(numeric, row->numeric);
  return numeric;
}

void set_signs(const Problem& p, IntegerPack& pack) {
  pack.stored_signed = p.in[0].dtype != DType::kI8;
  const bool given_signed = p.in[1].dtype == DType::kI8;
  pack.moved = given_signed == (pack.stored_signed != 0) ? 0 : given_signed ? 128 : -128;
}

int64_t packed_bytes(const IntegerPack& p) {
  const int64_t depth = p.outer * p.inner;
  return panels_of(p.columns) * kPanel * (p.terms * ceil_div(depth, kQuad) * kQuad + 4);
}

void pack_integer(const IntegerPack& p, const uint8_t* w, uint8_t* packed) {
  const int64_t depth = p.outer * p.inner, quads = ceil_div(depth, kQuad);
  const int64_t panel = p.terms * quads * kQuad * kPanel, panels = panels_of(p.columns);
  std::fill_n(packed, panels * panel, uint8_t{0});
  auto* sums = reinterpret_cast<int32_t*>(packed + panels * panel);
  std::fill_n(sums, panels * kPanel, 0);
  for (int64_t n = 0; n < p.columns; ++n) {
    uint8_t* column = packed + n / kPanel * panel + n % kPanel * kQuad;
    uint32_t sum = 0;
    for (int64_t t = 0; t < p.terms; ++t, column += quads * kQuad * kPanel) {
      const uint8_t* term = w + n * p.column_stride + t * p.term_stride;
      int64_t k = 0;
      for (int64_t o = 0; o < p.outer; ++o)
        for (int64_t i = 0; i < p.inner; ++i, ++k) {
          const auto byte =
              static_cast<uint8_t>(term[o * p.outer_stride + i * p.inner_stride] + p.moved);
          column[k / kQuad * kQuad * kPanel + k % kQuad] = byte;
          sum += static_cast<uint32_t>(p.stored_signed ? static_cast<int8_t>(byte) : int32_t{byte});
        }
    }
    sums[n] = static_cast<int32_t>(sum);
  }
}

}  // namespace tessera::kernels::cpu
