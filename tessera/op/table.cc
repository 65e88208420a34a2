#include <algorithm>
#include <array>

#include "tessera/op/def.h"

namespace tessera::op {
namespace {

// The visible list of families.
constexpr auto kFamilies = std::array{
    elementwise_rows, shape_rows,      move_rows,    index_rows,      rnn_rows,      attention_rows,
    reduce_rows,      dot_rows,        control_rows, quantize_rows,   sequence_rows, ml_rows,
    random_rows,      signal_rows,     string_rows,  activation_rows, norm_rows,     conv_rows,
    pool_rows,        batch_norm_rows, image_rows,
};

std::vector<const OpDef*> sorted_rows() {
  std::vector<const OpDef*> rows;
  for (auto family : kFamilies)
    for (const OpDef& row : family()) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return rows;
}

const std::vector<const OpDef*>& rows() {
  static const std::vector<const OpDef*> all = sorted_rows();
  return all;
}

}  // namespace

Status check_kinds(const OpDef& op, std::span<const Type* const> inputs) {
  const bool any = op.bodies > 0 || op.name == "identity" || op.name.starts_with("sequence_") ||
                   op.name.starts_with("optional");
  for (size_t i = 0; i < inputs.size() && !any; ++i)
    if (inputs[i] && !inputs[i]->is_tensor())
      return error(Code::kInvalidArgument, "{}: input {} is {}, need a tensor", op.name, i,
                   inputs[i]->str());
  return {};
}

const OpDef* find(std::string_view name) {
  auto at = std::lower_bound(rows().begin(), rows().end(), name,
                             [](auto* row, std::string_view n) { return row->name < n; });
  return at != rows().end() && (*at)->name == name ? *at : nullptr;
}

std::span<const OpDef* const> all_ops() { return rows(); }

}  // namespace tessera::op
