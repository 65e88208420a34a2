// Reductions: what is done to each element, the primitive reduction, what is done to the result.
#include <algorithm>

#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

using Step = ValueId (*)(ir::Builder& b, ValueId x);

ValueId absolute(ir::Builder& b, ValueId x) { return b.unary("abs", x); }
ValueId square(ir::Builder& b, ValueId x) { return b.mul(x, x); }
ValueId root(ir::Builder& b, ValueId x) { return b.unary("sqrt", x); }
ValueId log(ir::Builder& b, ValueId x) { return b.unary("log", x); }

struct Row {
  std::string_view onnx, kind;
  Step before = nullptr, after = nullptr;
  bool real = false;  // the steps need floats
};
constexpr Row kReductions[] = {
    {"ReduceSum", "sum"},
    {"ReduceProd", "prod"},
    {"ReduceMax", "max"},
    {"ReduceMin", "min"},
    {"ReduceL1", "sum", absolute},
    {"ReduceL2", "sum", square, root, true},
    {"ReduceSumSquare", "sum", square},
    {"ReduceLogSum", "sum", nullptr, log, true},
};

struct Reducer {
  NodeContext& c;
  ValueId axes = kAbsent;  // kAbsent: all
  bool none = false;       // over an empty set of axes

  ValueId operator()(std::string_view kind, ValueId x, bool keepdims) const {
    if (none) return x;
    return c.b.op("reduce", {x, axes},
                  {{"kind", std::string(kind)}, {"keepdims", int64_t{keepdims}}});
  }
};

// Axes are an attribute, or an input (ReduceSum from opset 13, others from 18).
Result<Reducer> reducer(NodeContext& c) {
  if (!c.has(0)) return error(Code::kInvalidArgument, "{}: needs an input", c.node.op_type);
  Reducer r{c, c.ints_attr_or_input("axes", 1)};
  const bool given = r.axes != kAbsent;
  const op::Type axes = c.b.type(r.axes);
  const bool empty =
      !given || (axes.is_static() && op::element_count(axes.dims()).value_or(1) == 0);
  r.none = empty && c.i("noop_with_empty_axes", 0) != 0;
  if (empty) r.axes = kAbsent;
  return r;
}

bool keeps(NodeContext& c) { return c.i("keepdims", 1) != 0; }

// The input in the type that the steps are computed in: floats of at least 32 bits.
ValueId real(ir::Builder& b, ValueId x) {
  return is_float(b.dtype(x)) ? ir::widen(b, x) : b.convert(x, DType::kF64);
}

Status reduce(NodeContext& c) {
  const Row& row = *std::find_if(std::begin(kReductions), std::end(kReductions),
                                 [&](auto& r) { return r.onnx == c.node.op_type; });
  TRY_ASSIGN(Reducer r, reducer(c));
  ValueId x = c.in(0);
  if (row.real)
    x = real(c.b, x);
  else if (row.before)
    x = ir::widen(c.b, x);
  if (row.before) x = row.before(c.b, x);
  x = r(row.kind, x, keeps(c));
  if (row.after) x = row.after(c.b, x);
  c.out(0, c.b.convert(x, c.type(0).dtype));
  return {};
}

// The count of elements that each result covers, as a scalar.
ValueId count(const Reducer& r, ValueId x) {
  ir::Builder& b = r.c.b;
  if (r.axes == kAbsent) return b.reduce("prod", b.shape_of(x), {0}, false);
  const ValueId sizes = b.shape_of(x);
  ValueId axes = b.convert(r.axes, DType::kI64);
  const ValueId rank = b.op("shape_of", {sizes});
  axes = b.select(b.op("lt", {axes, b.ints({0})}), b.add(axes, rank), axes);
  return b.reduce("prod", b.gather(sizes, axes, 0), {0}, false);
}

// ReduceMean = sum / count; of integers truncated.
Status mean(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(Reducer r, reducer(c));
  const ValueId x = ir::widen(b, c.in(0));
  ValueId y = r("sum", x, keeps(c));
  if (!r.none) {
    const ValueId n = count(r, c.in(0));
    const auto& known = b.ok() ? b.graph().value(n).contents : std::nullopt;
    const bool fixed = known && known->size() == 1 && (*known)[0].is_constant();
    y = b.div(y, fixed ? b.scalar_like(y, static_cast<double>(*(*known)[0].constant()))
                       : b.convert(n, b.dtype(y)));
  }
  c.out(0, b.convert(y, c.type(0).dtype));
  return {};
}

// ReduceLogSumExp = m + log(sum(exp(x - m))), m the maximum where that is finite, so that nothing
// overflows.
Status log_sum_exp(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(Reducer r, reducer(c));
  const ValueId x = real(b, c.in(0));
  const ValueId top = r("max", x, true);
  const ValueId m = b.select(b.unary("is_inf", top), b.scalar_like(x, 0), top);
  ValueId y = b.add(b.unary("log", r("sum", b.unary("exp", b.sub(x, m)), true)), m);
  if (!keeps(c) && !r.none) {
    // One element each: the sum drops the axes.
    y = r("sum", y, false);
  }
  c.out(0, b.convert(y, c.type(0).dtype));
  return {};
}

std::vector<Converter> make_rows() {
  std::vector<Converter> rows;
  for (const Row& row : kReductions) rows.push_back({"", row.onnx, reduce});
  rows.push_back({"", "ReduceMean", mean});
  rows.push_back({"", "ReduceLogSumExp", log_sum_exp});
  return rows;
}

}  // namespace

std::span<const Converter> reduce_converters() {
  static const std::vector<Converter> rows = make_rows();
  return rows;
}

}  // namespace tessera::import::onnx
