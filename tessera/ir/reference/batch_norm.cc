// Normalisation by channel, and dropout. N, C: batch and channels.
#include <cmath>
#include <random>

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

int64_t image_size(const Tensor& x) {
  return x.count() == 0 ? 0 : x.count() / (x.dim(0) * x.dim(1));
}

Result<std::vector<Value>> batch_norm(const Call& call) {
  const Tensor &x = call.t(0), &scale = call.t(1), &bias = call.t(2), &mean = call.t(3),
               &var = call.t(4);
  const double epsilon = call.attrs().f("epsilon", 1e-5);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t size = image_size(x);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t c = i / size % x.dim(1);
    y.set_f64(
        i, (x.f64(i) - mean.f64(c)) / std::sqrt(var.f64(c) + epsilon) * scale.f64(c) + bias.f64(c));
  }
  return one(std::move(y));
}

Result<std::vector<Value>> instance_norm(const Call& call) {
  const Tensor &x = call.t(0), &scale = call.t(1), &bias = call.t(2);
  const double epsilon = call.attrs().f("epsilon", 1e-5);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t size = image_size(x), images = size == 0 ? 0 : x.count() / size;
  const std::vector<double> xs = to_doubles(x);
  for (int64_t image = 0; image < images; ++image) {
    const double* from = xs.data() + image * size;
    double mean = 0, var = 0;
    for (int64_t i = 0; i < size; ++i) mean += from[i] / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i)
      var += (from[i] - mean) * (from[i] - mean) / static_cast<double>(size);
    const int64_t c = image % x.dim(1);
    const double factor = scale.f64(c) / std::sqrt(var + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y.set_f64(image * size + i, (from[i] - mean) * factor + bias.f64(c));
  }
  return one(std::move(y));
}

Result<std::vector<Value>> lrn(const Call& call) {
  const Tensor& x = call.t(0);
  const op::Attrs& a = call.attrs();
  const int64_t size = a.i("size"), C = x.dim(1), inner = image_size(x), before = (size - 1) / 2;
  const double alpha = a.f("alpha", 1e-4), beta = a.f("beta", 0.75), bias = a.f("bias", 1);
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<double> xs = to_doubles(x);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t c = i / inner % C;
    const int64_t first = std::max<int64_t>(0, c - before), last = std::min(C, c - before + size);
    double sum = 0;
    for (int64_t k = first; k < last; ++k) {
      const double v = xs[static_cast<size_t>(i + (k - c) * inner)];
      sum += v * v;
    }
    y.set_f64(i, xs[static_cast<size_t>(i)] /
                     std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
  }
  return one(std::move(y));
}

// numpy's RandomState(seed).random_sample(): 53 bits of two draws.
class Uniform {
 public:
  explicit Uniform(uint32_t seed) : engine_(seed) {}
  double next() {
    const uint32_t high = static_cast<uint32_t>(engine_()) >> 5,
                   low = static_cast<uint32_t>(engine_()) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

Result<std::vector<Value>> dropout(const Call& call) {
  const Tensor& x = call.t(0);
  if ((call.has(1) && call.t(1).count() != 1) || (call.has(2) && call.t(2).count() != 1))
    return call.fail("ratio and training must be scalars");
  const double ratio = call.has(1) ? call.t(1).f64(0) : 0.5;
  const bool training = call.has(2) && call.t(2).i64(0) != 0 && ratio != 0;
  if (training && !(ratio > 0 && ratio < 1))
    return call.fail("ratio is {}, must be in [0, 1)", ratio);
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(Tensor mask, Tensor::make(DType::kBool, x.dims()));
  Uniform uniform(static_cast<uint32_t>(call.attrs().i("seed")));
  for (int64_t i = 0; i < x.count(); ++i) {
    const bool kept = !training || uniform.next() >= ratio;
    mask.set_i64(i, kept);
    if (!training)
      copy_element(x, i, y, i);
    else if (kept)
      y.set_f64(i, x.f64(i) / (1 - ratio));
  }
  return std::vector<Value>{Value(std::move(y)), Value(std::move(mask))};
}

constexpr Row kRows[] = {
    {"batch_norm", batch_norm},
    {"dropout", dropout},
    {"instance_norm", instance_norm},
    {"lrn", lrn},
};

}  // namespace

std::span<const Row> batch_norm_rows() { return kRows; }

}  // namespace tessera::ir::reference
