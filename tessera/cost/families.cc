#include "tessera/cost/families.h"

#include <algorithm>
#include <iterator>

#include "tessera/cost/models.h"
#include "tessera/op/elementwise.h"

namespace tessera::cost {
namespace {

struct Row {
  std::string_view op;
  size_t inputs;  // that the model needs
  models::Model model;
};
// Sorted by name.
constexpr Row kRows[] = {
    {"argmax", 1, models::reduce},
    {"argmin", 1, models::reduce},
    {"attention", 3, models::attention_of},
    {"average_pool", 1, models::pool},
    {"batch_norm", 1, models::elementwise},
    {"broadcast_to", 1, models::move},
    {"concat", 1, models::move},
    {"conv", 2, models::conv},
    {"conv_transpose", 2, models::conv},
    {"dot", 2, models::dot},
    {"gather", 1, models::move},
    {"gather_elements", 1, models::move},
    {"gather_nd", 1, models::move},
    {"global_average_pool", 1, models::pool},
    {"global_lp_pool", 1, models::pool},
    {"global_max_pool", 1, models::pool},
    {"group_norm", 1, models::norm},
    {"gru", 3, models::recurrent},
    {"hardmax", 1, models::softmax},
    {"identity", 1, models::view},
    {"instance_norm", 1, models::norm},
    {"layer_norm", 1, models::norm},
    {"linear_attention", 3, models::linear_attention},
    {"log_softmax", 1, models::softmax},
    {"lp_pool", 1, models::pool},
    {"lstm", 3, models::recurrent},
    {"max_pool", 1, models::pool},
    {"pad", 1, models::move},
    {"reduce", 1, models::reduce},
    {"relayout", 1, models::relayout},
    {"reshape", 1, models::view},
    {"rms_norm", 1, models::norm},
    {"rnn", 3, models::recurrent},
    {"scatter_elements", 1, models::move},
    {"scatter_nd", 1, models::move},
    {"slice", 1, models::move},
    {"softmax", 1, models::softmax},
    {"squeeze", 1, models::view},
    {"tile", 1, models::move},
    {"top_k", 1, models::sort},
    {"transpose", 1, models::transpose},
    {"unsqueeze", 1, models::view},
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
  const auto text = [](const op::Operand& o) { return o.present && o.dtype == DType::kString; };
  if (std::any_of(problem.in.begin(), problem.in.end(), text) ||
      std::any_of(problem.out.begin(), problem.out.end(), text))
    return error(Code::kUnimplemented, "operator '{}' on strings is the host's", def.name);
  if (machine.bandwidth() <= 0)
    return error(Code::kUnimplemented, "chip '{}' does not say how fast its memory '{}' is",
                 machine.chip().id, machine.memory());
  const Row* row = row_of(def.name);
  const models::Model model = row                    ? row->model
                              : op::elementwise(def) ? models::elementwise
                                                     : models::anything;
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
