#include "tessera/cost/elements.h"

#include <algorithm>
#include <iterator>

namespace tessera::cost {
namespace {

struct Row {
  std::string_view op;
  ElementWork work;
};

// By their usual formulas: gelu and erf as rational forms with one exponential.
constexpr Row kRows[] = {
    {"acos", {.plain = 12, .sqrt = 1}},
    {"acosh", {.plain = 3, .log = 1, .sqrt = 1}},
    {"asin", {.plain = 12, .sqrt = 1}},
    {"asinh", {.plain = 3, .log = 1, .sqrt = 1}},
    {"atan", {.plain = 14, .div = 1}},
    {"atanh", {.plain = 3, .log = 1, .div = 1}},
    {"clip", {.plain = 2}},
    {"cos", {.sin = 1}},
    {"cosh", {.plain = 2, .exp = 2}},
    {"div", {.div = 1}},
    {"elu", {.plain = 3, .exp = 1}},
    {"erf", {.plain = 10, .exp = 1, .div = 1}},
    {"exp", {.exp = 1}},
    {"gelu", {.plain = 10, .exp = 1, .div = 1}},
    {"hard_sigmoid", {.plain = 3}},
    {"hard_swish", {.plain = 4}},
    {"leaky_relu", {.plain = 2}},
    {"log", {.log = 1}},
    {"mish", {.plain = 3, .exp = 1, .log = 1, .tanh = 1}},
    {"mod", {.plain = 3, .div = 1}},
    {"pow", {.plain = 1, .exp = 1, .log = 1}},
    {"reciprocal", {.div = 1}},
    {"rsqrt", {.sqrt = 1}},
    {"sigmoid", {.plain = 2, .exp = 1, .div = 1}},
    {"silu", {.plain = 3, .exp = 1, .div = 1}},
    {"sin", {.sin = 1}},
    {"sinh", {.plain = 2, .exp = 2}},
    {"softplus", {.plain = 2, .exp = 1, .log = 1}},
    {"sqrt", {.sqrt = 1}},
    {"tan", {.div = 1, .sin = 2}},
    {"tanh", {.tanh = 1}},
};

// Plain operations of a polynomial that stands in for a function.
constexpr double kPolynomial = 20;
constexpr double kNewton = 8;

}  // namespace

ElementWork& ElementWork::operator+=(const ElementWork& o) {
  plain += o.plain;
  exp += o.exp;
  log += o.log;
  div += o.div;
  sqrt += o.sqrt;
  tanh += o.tanh;
  sin += o.sin;
  return *this;
}

ElementWork work_of(std::string_view op) {
  const auto* row =
      std::lower_bound(std::begin(kRows), std::end(kRows), op,
                       [](const Row& r, std::string_view name) { return r.op < name; });
  if (row != std::end(kRows) && row->op == op) return row->work;
  return {.plain = 1};
}

ElementWork work_of_steps(const op::Problem& problem) {
  ElementWork work;
  for (const op::Step& step : problem.steps) work += work_of(step.op->name);
  return work;
}

double seconds_per_element(const Machine& machine, const Engaged& vector, std::string_view type,
                           const ElementWork& work) {
  const double plain = vector.per_second();
  double seconds = work.plain / plain;
  const auto call = [&](double times, std::initializer_list<std::string_view> names,
                        double instead) {
    if (times <= 0) return;
    double rate = 0;
    for (const std::string_view name : names)
      if (rate <= 0) rate = machine.function_rate(vector, name, type);
    seconds += times * (rate > 0 ? 1 / rate : instead / plain);
  };
  call(work.exp, {"exp"}, kPolynomial);
  call(work.log, {"log"}, kPolynomial);
  call(work.div, {"div", "reciprocal"}, kNewton);
  call(work.sqrt, {"rsqrt", "sqrt"}, kNewton);
  call(work.sin, {"sin"}, kPolynomial);
  if (work.tanh > 0 && machine.function_rate(vector, "tanh", type) <= 0) {
    seconds += 2 * work.tanh / plain;
    call(work.tanh, {"exp"}, kPolynomial);
    call(work.tanh, {"div", "reciprocal"}, kNewton);
  } else {
    call(work.tanh, {"tanh"}, kPolynomial);
  }
  return seconds;
}

}  // namespace tessera::cost
