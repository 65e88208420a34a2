// Random numbers.
#include <algorithm>
#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

uint64_t key_of(const Call& call) { return static_cast<uint64_t>(call.attrs().i("key")); }

Result<std::vector<Value>> random(const Call& call) {
  TRY_ASSIGN(Tensor y, call.make(0));
  auto words = y.mutable_as<uint32_t>();
  for (size_t i = 0; i < words.size(); ++i) words[i] = philox_word(key_of(call), i);
  return one(std::move(y));
}

Result<std::vector<Value>> multinomial(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t classes = x.dim(1), samples = y.dim(1);
  if (classes == 0 && y.count() > 0) return call.fail("no classes to draw from");
  std::vector<double> sums(static_cast<size_t>(classes));
  for (int64_t b = 0; b < x.dim(0); ++b) {
    double highest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; ++k) highest = std::max(highest, x.f64(b * classes + k));
    for (int64_t k = 0; k < classes; ++k)
      sums[static_cast<size_t>(k)] = sum += std::exp(x.f64(b * classes + k) - highest);
    if (!(sum > 0) || std::isinf(sum)) return call.fail("row {} holds no probabilities", b);
    for (int64_t s = 0; s < samples; ++s) {
      const double u = philox_word(key_of(call), static_cast<uint64_t>(b * samples + s)) * 0x1p-32;
      const auto at = std::upper_bound(sums.begin(), sums.end(), u * sum);
      y.set_i64(b * samples + s, std::min(at - sums.begin(), classes - 1));
    }
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"random", random}, {"multinomial", multinomial}};

}  // namespace

std::span<const Row> random_rows() { return kRows; }

}  // namespace tessera::ir::reference
