#include "tessera/tile/problems.h"

#include "tessera/op/elementwise.h"

namespace tessera::tile {
namespace {

struct Row {
  std::string_view op;
  Result<Instance> (*build)(const op::Problem&);
};
constexpr Row kRows[] = {
    {"reduce", reduction},         {"softmax", softmax},        {"log_softmax", softmax},
    {"layer_norm", normalization}, {"rms_norm", normalization}, {"dot", product},
    {"attention", attention},
};

}  // namespace

Result<Instance> instance_of(const op::Problem& problem) {
  if (op::elementwise(*problem.op)) return elementwise(problem);
  for (const Row& row : kRows)
    if (row.op == problem.op->name) return row.build(problem);
  return error(Code::kUnimplemented, "there is no tile program for {}", problem.op->name);
}

}  // namespace tessera::tile
