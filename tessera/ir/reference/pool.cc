// Pooling. Windows are cut to the input first, so that padding, however wide, costs nothing.
#include <cmath>
#include <limits>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/window.h"

namespace tessera::ir::reference {
namespace {

using op::Window;

// What pooling one axis-aligned window needs.
struct Pool {
  Window window;
  Dims kernel, x_dims, y_dims;  // spatial
  Dims begin, end;              // padding
  Dims strides;                 // of the spatial axes of x
  int64_t images = 0;           // product of the leading sizes
  int64_t x_size = 0, y_size = 0;

  // Calls visit(place in the image) for each element of window `at`, in row-major order.
  template <class Visit>
  void taps(const Index& at, Visit visit) const {
    Dims first(kernel.size()), count(kernel.size());
    int64_t base = 0;
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t start = at[i] * window.strides[i] - begin[i];
      const auto [lo, hi] = op::inside(kernel[i], window.dilations[i], start, x_dims[i]);
      count[i] = hi - lo;
      base += (start + lo * window.dilations[i]) * strides[i];
    }
    Dims step = strides;
    for (size_t i = 0; i < step.size(); ++i) step[i] *= window.dilations[i];
    for (Index tap(count); !tap.done(); tap.next()) visit(base + tap.dot(step));
  }
  // Taps of window `at` that lie in the input or its padding.
  double padded_taps(const Index& at) const {
    double taps = 1;
    for (size_t i = 0; i < kernel.size(); ++i) {
      const auto [lo, hi] = op::inside(kernel[i], window.dilations[i], at[i] * window.strides[i],
                                       x_dims[i] + begin[i] + end[i]);
      taps *= static_cast<double>(hi - lo);
    }
    return taps;
  }
};

Result<Pool> pool_of(const Call& call, const Tensor& y) {
  const Dims &x = call.t(0).dims(), kernel = call.attrs().ints("kernel");
  Pool p;
  TRY_ASSIGN(p.window, op::window_of(call.attrs(), kernel.size()));
  const auto lead = static_cast<int64_t>(x.size() - kernel.size());
  p.kernel = kernel;
  p.x_dims = Dims(x.begin() + lead, x.end());
  p.y_dims = Dims(y.dims().begin() + lead, y.dims().end());
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto [begin, end] = p.window.pads(i, p.x_dims[i], kernel[i]);
    p.begin.push_back(begin);
    p.end.push_back(end);
  }
  p.strides = op::strides_of(p.x_dims);
  p.x_size = *op::element_count(p.x_dims);
  p.y_size = *op::element_count(p.y_dims);
  p.images = p.y_size == 0 ? 0 : y.count() / p.y_size;
  return p;
}

// y = finish(fold of step over the window, window)
template <class Step, class Finish>
Result<std::vector<Value>> pool(const Call& call, Step step, Finish finish) {
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(const Pool p, pool_of(call, y));
  const std::vector<double> x = to_doubles(call.t(0));
  for (int64_t image = 0; image < p.images; ++image)
    for (Index at(p.y_dims); !at.done(); at.next()) {
      double sum = 0;
      int64_t taps = 0;
      p.taps(at, [&](int64_t place) {
        sum = step(sum, x[static_cast<size_t>(image * p.x_size + place)]);
        ++taps;
      });
      y.set_f64(image * p.y_size + at.linear(), finish(p, at, sum, static_cast<double>(taps)));
    }
  return one(std::move(y));
}

Result<std::vector<Value>> average_pool(const Call& call) {
  const bool padding = call.attrs().i("count_include_pad") != 0;
  return pool(
      call, [](double sum, double x) { return sum + x; },
      [padding](const Pool& p, const Index& at, double sum, double taps) {
        return sum / (padding ? p.padded_taps(at) : taps);
      });
}

Result<std::vector<Value>> lp_pool(const Call& call) {
  const double p = call.attrs().f("p", 2);
  return pool(
      call, [p](double sum, double x) { return sum + std::pow(std::abs(x), p); },
      [p](const Pool&, const Index&, double sum, double) { return std::pow(sum, 1 / p); });
}

// The place in the flattened input when the first spatial axis runs fastest.
int64_t column_major(int64_t place, const Dims& dims) {
  int64_t result = 0, step = 1;
  const Dims strides = op::strides_of(dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    result += place / strides[i] % dims[i] * step;
    step *= dims[i];
  }
  return result;
}

// NaN is the greatest; a window that meets padding only yields the lowest value.
Result<std::vector<Value>> max_pool(const Call& call) {
  TRY_ASSIGN(Tensor y, call.make(0));
  const bool indexed = call.node.outputs.size() > 1;
  TRY_ASSIGN(Tensor indices, indexed ? call.make(1) : Tensor::make(DType::kI64, {0}));
  TRY_ASSIGN(const Pool p, pool_of(call, y));
  const Tensor& x = call.t(0);
  const std::vector<double> xs = to_doubles(x);
  const bool columns = call.attrs().i("column_major") != 0;
  for (int64_t image = 0; image < p.images; ++image)
    for (Index at(p.y_dims); !at.done(); at.next()) {
      const int64_t to = image * p.y_size + at.linear();
      int64_t best = -1;
      double top = 0;
      p.taps(at, [&](int64_t place) {
        const double v = xs[static_cast<size_t>(image * p.x_size + place)];
        if (best >= 0 && !(v > top) && !(std::isnan(v) && !std::isnan(top))) return;
        best = place;
        top = v;
      });
      if (best >= 0)
        copy_element(x, image * p.x_size + best, y, to);
      else
        y.set_lowest(to);
      if (indexed)
        indices.set_i64(
            to, image * p.x_size + (columns && best >= 0 ? column_major(best, p.x_dims) : best));
    }
  std::vector<Value> results{Value(std::move(y))};
  if (indexed) results.emplace_back(std::move(indices));
  return results;
}

// y = finish(fold of step over one channel's image)
template <class Step, class Finish>
Result<std::vector<Value>> global(const Call& call, double start, Step step, Finish finish) {
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<double> x = to_doubles(call.t(0));
  const int64_t size = y.count() == 0 ? 0 : call.t(0).count() / y.count();
  for (int64_t i = 0; i < y.count(); ++i) {
    double sum = start;
    for (int64_t j = 0; j < size; ++j) sum = step(sum, x[static_cast<size_t>(i * size + j)]);
    y.set_f64(i, finish(sum, static_cast<double>(size)));
  }
  return one(std::move(y));
}

Result<std::vector<Value>> global_average_pool(const Call& call) {
  return global(
      call, 0, [](double a, double b) { return a + b; },
      [](double sum, double n) { return sum / n; });
}

constexpr Row kRows[] = {
    {"average_pool", average_pool},
    {"global_average_pool", global_average_pool},
    {"lp_pool", lp_pool},
    {"max_pool", max_pool},
};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace tessera::ir::reference
