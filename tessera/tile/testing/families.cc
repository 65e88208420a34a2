#include "tessera/tile/testing/families.h"

namespace tessera::tile::testing {
namespace {

using Random = std::mt19937_64;

// Alone or with steps behind, its operands placed at random.
std::optional<Trial> finished(Random& random, Result<Trial> trial) {
  if (!trial) return std::nullopt;
  if (random() % 2 && !append_steps(random, *trial, 1 + static_cast<int>(random() % 4)))
    return std::nullopt;
  // Lists of axes and the like stay as they are.
  for (op::Operand& o : trial->problem.in)
    if (!o.values) place(random, o);
  place(random, trial->problem.out[0]);
  return *std::move(trial);
}

}  // namespace

std::optional<Trial> random_reduction(Random& random) {
  const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64, DType::kI32,
                                   DType::kU8, DType::kBool});
  const Dims dims = random_dims(random, 1 + static_cast<int>(random() % 4), 1500);
  std::vector<int64_t> axes;
  for (size_t a = 0; a < dims.size(); ++a)
    if (random() % 2)
      axes.push_back(static_cast<int64_t>(a) -
                     (random() % 2 ? 0 : static_cast<int64_t>(dims.size())));
  const std::string kind = type == DType::kBool
                               ? pick<std::string>(random, {"and", "or"})
                               : pick<std::string>(random, {"sum", "max", "min", "prod"});
  op::Attrs attrs{{"kind", kind}, {"keepdims", static_cast<int64_t>(random() % 2)}};
  std::vector<op::Tensor> in{random_tensor(random, type, dims, random() % 4 == 0)};
  if (random() % 4) in.push_back(op::Tensor::of_i64(axes));
  return finished(random, trial_of("reduce", attrs, std::move(in)));
}

std::optional<Trial> random_normalization(Random& random) {
  const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64});
  const Dims dims = random_dims(random, 1 + static_cast<int>(random() % 4), 1500);
  const auto axis = static_cast<int64_t>(random() % dims.size());
  const std::string name =
      pick<std::string>(random, {"softmax", "log_softmax", "layer_norm", "rms_norm"});
  std::vector<op::Tensor> in{random_tensor(random, type, dims)};
  if (name == "layer_norm" || name == "rms_norm") {
    const Dims tail(dims.begin() + axis, dims.end());
    in.push_back(random_tensor(random, type, tail));
    if (name == "layer_norm" && random() % 2) in.push_back(random_tensor(random, type, tail));
  }
  return finished(random, trial_of(name, {{"axis", axis}}, std::move(in)));
}

std::optional<Trial> random_product(Random& random) {
  const auto size = [&] { return pick<int64_t>(random, {0, 1, 2, 3, 5, 7, 16, 17}); };
  const DType type =
      pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64, DType::kI32});
  const int64_t m = size(), n = size(), k = size();
  op::Attrs attrs;
  Dims a{m, k}, b{k, n};
  if (random() % 2) {
    attrs.set("transpose_a", int64_t{1});
    std::swap(a[0], a[1]);
  }
  if (random() % 2) {
    attrs.set("transpose_b", int64_t{1});
    std::swap(b[0], b[1]);
  }
  const Dims batch = random_dims(random, static_cast<int>(random() % 3), 6);
  for (Dims* side : {&a, &b}) {
    const Dims own = random() % 3 ? batch : broadcastable(random, batch);
    side->insert(side->begin(), own.begin(), own.end());
  }
  if (attrs.empty() && random() % 6 == 0) a = {k};
  if (attrs.empty() && random() % 6 == 0) b = {k};
  return finished(
      random,
      trial_of("dot", attrs, {random_tensor(random, type, a), random_tensor(random, type, b)}));
}

std::optional<Trial> random_byte_product(Random& random) {
  return finished(random,
                  trial_of("dot", {{"accumulate", DType::kI32}},
                           {random_tensor(random, pick(random, {DType::kU8, DType::kI8}), {5, 33}),
                            random_tensor(random, DType::kI8, {33, 7})}));
}

}  // namespace tessera::tile::testing
