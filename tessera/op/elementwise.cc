#include "tessera/op/elementwise.h"

#include <algorithm>

namespace tessera::op {

bool elementwise(const OpDef& op) {
  static constexpr std::string_view kAlongAxes[] = {"softmax", "log_softmax", "hardmax"};
  auto in = [&](std::span<const OpDef> rows) {
    return &op >= rows.data() && &op < rows.data() + rows.size();
  };
  return (in(elementwise_rows()) || in(activation_rows())) && op.max_outputs == 1 &&
         std::find(std::begin(kAlongAxes), std::end(kAlongAxes), op.name) == std::end(kAlongAxes);
}

}  // namespace tessera::op
