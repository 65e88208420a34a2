// Regions of interest, boxes and unpooling. N, C: batch and channels; R: regions.
#include <algorithm>
#include <cmath>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/window.h"

namespace tessera::ir::reference {
namespace {

bool expired(const Options& options) {
  return options.deadline && std::chrono::steady_clock::now() > *options.deadline;
}
tl::unexpected<Error> too_late() {
  return error(Code::kDeadlineExceeded, "the time limit has passed");
}

// The four elements around a point and their weights; outside by more than one element: all 0.
struct Corners {
  int64_t place[4] = {};
  double weight[4] = {};
};

Corners corners(double y, double x, int64_t height, int64_t width) {
  Corners result;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return result;
  auto split = [](double v, int64_t size, int64_t& low, int64_t& high) {
    v = std::max(v, 0.0);
    low = std::min(static_cast<int64_t>(v), size - 1);
    high = std::min(low + 1, size - 1);
    return low == size - 1 ? 0 : v - static_cast<double>(low);
  };
  int64_t top, bottom, left, right;
  const double dy = split(y, height, top, bottom), dx = split(x, width, left, right);
  const int64_t places[] = {top * width + left, top * width + right, bottom * width + left,
                            bottom * width + right};
  const double weights[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
  std::copy(std::begin(places), std::end(places), result.place);
  std::copy(std::begin(weights), std::end(weights), result.weight);
  return result;
}

// Samples of one axis of a bin: where they begin, how far they are apart, how many.
struct Samples {
  double begin, step;
  int64_t count;
};

// kMost bounds what a hostile region can ask for.
constexpr int64_t kMost = 1 << 14;
std::optional<Samples> samples(double begin, double length, int64_t bins, int64_t bin,
                               int64_t given) {
  const double size = length / static_cast<double>(bins);
  const double count = given > 0 ? static_cast<double>(given) : std::ceil(size);
  if (!std::isfinite(begin) || !(std::abs(count) <= kMost)) return std::nullopt;
  return Samples{begin + static_cast<double>(bin) * size, count > 0 ? size / count : 0,
                 static_cast<int64_t>(count)};
}

Result<std::vector<Value>> roi_align(const Call& call) {
  const Tensor &x = call.t(0), &rois = call.t(1), &batch = call.t(2);
  const op::Attrs& a = call.attrs();
  const bool half = a.i("half_pixel") != 0, average = a.s("mode", "avg") == "avg";
  const double scale = a.f("scale", 1), shift = half ? 0.5 : 0;
  const int64_t given = a.i("samples"), C = x.dim(1), H = x.dim(2), W = x.dim(3);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t out_h = y.dim(2), out_w = y.dim(3);
  const std::vector<double> xs = to_doubles(x);
  if (y.count() > 0 && H * W == 0)
    return call.fail("the image is empty: {}", op::to_string(x.dims()));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const int64_t n = batch.i64(r);
    if (n < 0 || n >= x.dim(0))
      return call.fail("region {} is of image {}, there are {}", r, n, x.dim(0));
    double edge[4];
    for (int i = 0; i < 4; ++i) edge[i] = rois.f64(r * 4 + i) * scale - shift;
    double width = edge[2] - edge[0], height = edge[3] - edge[1];
    if (!half) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    for (int64_t i = 0; i < out_h; ++i)
      for (int64_t j = 0; j < out_w; ++j) {
        if (expired(call.options)) return too_late();
        const auto rows = samples(edge[1], height, out_h, i, given),
                   columns = samples(edge[0], width, out_w, j, given);
        if (!rows || !columns)
          return call.fail("region {} is {} by {} elements, from ({}, {})", r, height, width,
                           edge[1], edge[0]);
        std::vector<Corners> points;
        for (int64_t v = 0; v < rows->count; ++v)
          for (int64_t u = 0; u < columns->count; ++u)
            points.push_back(
                corners(rows->begin + (static_cast<double>(v) + 0.5) * rows->step,
                        columns->begin + (static_cast<double>(u) + 0.5) * columns->step, H, W));
        for (int64_t c = 0; c < C; ++c) {
          const double* image = xs.data() + (n * C + c) * H * W;
          double value = 0;
          for (size_t p = 0; p < points.size(); ++p) {
            double sum = 0, most = -INFINITY;
            for (int k = 0; k < 4; ++k) {
              const double part = points[p].weight[k] * image[points[p].place[k]];
              sum += part;
              most = std::max(most, part);
            }
            value = average ? value + sum : p == 0 ? most : std::max(value, most);
          }
          if (average) value /= std::max<double>(1, static_cast<double>(points.size()));
          y.set_f64(((r * C + c) * out_h + i) * out_w + j, value);
        }
      }
  }
  return one(std::move(y));
}

// Elements of bin `bin` of `bins` over [first, first + length), cut to [0, size).
std::pair<int64_t, int64_t> bin_of(int64_t first, int64_t length, int64_t bins, int64_t bin,
                                   int64_t size) {
  const double width = static_cast<double>(length) / static_cast<double>(bins);
  const double low = std::floor(static_cast<double>(bin) * width) + static_cast<double>(first);
  const double high = std::ceil(static_cast<double>(bin + 1) * width) + static_cast<double>(first);
  const double limit = static_cast<double>(size);
  return {static_cast<int64_t>(std::clamp(low, 0.0, limit)),
          static_cast<int64_t>(std::clamp(high, 0.0, limit))};
}

Result<std::vector<Value>> max_roi_pool(const Call& call) {
  const Tensor &x = call.t(0), &rois = call.t(1);
  const double scale = call.attrs().f("scale", 1);
  const int64_t C = x.dim(1), H = x.dim(2), W = x.dim(3);
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<double> xs = to_doubles(x);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const int64_t n = rois.i64(r * 5);
    if (n < 0 || n >= x.dim(0))
      return call.fail("region {} is of image {}, there are {}", r, n, x.dim(0));
    int64_t edge[4];
    for (int i = 0; i < 4; ++i) {
      const double v = std::round(rois.f64(r * 5 + 1 + i) * scale);
      if (!(std::abs(v) < 1e9)) return call.fail("region {} has an edge at {}", r, v);
      edge[i] = static_cast<int64_t>(v);
    }
    const int64_t width = std::max<int64_t>(edge[2] - edge[0] + 1, 1),
                  height = std::max<int64_t>(edge[3] - edge[1] + 1, 1);
    for (int64_t c = 0; c < C; ++c)
      for (int64_t i = 0; i < y.dim(2); ++i)
        for (int64_t j = 0; j < y.dim(3); ++j) {
          if (expired(call.options)) return too_late();
          const auto [top, bottom] = bin_of(edge[1], height, y.dim(2), i, H);
          const auto [left, right] = bin_of(edge[0], width, y.dim(3), j, W);
          double most = top < bottom && left < right ? -INFINITY : 0;
          for (int64_t v = top; v < bottom; ++v)
            for (int64_t u = left; u < right; ++u)
              most = std::max(most, xs[static_cast<size_t>(((n * C + c) * H + v) * W + u)]);
          y.set_f64(((r * C + c) * y.dim(2) + i) * y.dim(3) + j, most);
        }
  }
  return one(std::move(y));
}

Result<std::vector<Value>> max_unpool(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1);
  const op::Ints kernel = call.attrs().ints("kernel");
  TRY_ASSIGN(const op::Window window, op::window_of(call.attrs(), kernel.size()));
  if (!call.out[0].is_static()) return call.fail("output_shape must be a list of numbers");
  if (indices.dims() != x.dims())
    return call.fail("{} has indices {}", op::to_string(x.dims()), op::to_string(indices.dims()));
  TRY_ASSIGN(Tensor y, call.make(0));
  Dims natural{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < kernel.size(); ++i)
    natural.push_back(op::unwindowed(window, i, op::Expr(x.dims()[i + 2]), op::Expr(kernel[i]), 0)
                          .constant()
                          .value_or(-1));
  TRY_ASSIGN(const int64_t count, op::element_count(natural));
  const Dims from = op::strides_of(natural), to = op::strides_of(y.dims());
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t index = indices.i64(i);
    if (index < 0 || index >= count)
      return call.fail("index {} is {}, outside [0, {})", i, index, count);
    int64_t place = 0;
    bool inside = true;
    for (size_t a = 0; a < natural.size(); ++a) {
      const int64_t at = index / from[a] % natural[a];
      inside &= at < y.dims()[a];
      place += at * to[a];
    }
    if (!inside) return call.fail("index {} lies outside {}", index, op::to_string(y.dims()));
    copy_element(x, i, y, place);
  }
  return one(std::move(y));
}

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// Two opposite corners (y, x, y, x), or centre and sizes (x, y, width, height).
Box box_of(const Tensor& boxes, int64_t at, bool centre) {
  Box box{};
  for (int i = 0; i < 2; ++i) {
    const double first = boxes.f64(at * 4 + i), second = boxes.f64(at * 4 + 2 + i);
    box.low[i] = centre ? first - second / 2 : std::min(first, second);
    box.high[i] = centre ? first + second / 2 : std::max(first, second);
  }
  return box;
}

double overlap(const Box& a, const Box& b) {
  double common = 1;
  for (int i = 0; i < 2; ++i)
    common *= std::max(0.0, std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]));
  if (!(common > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  return common / (a.area() + b.area() - common);
}

// By falling score, ties by place; a box is dropped if it overlaps one taken before by more than
// the threshold.
Result<std::vector<Value>> non_max_suppression(const Call& call) {
  const Tensor &boxes = call.t(0), &scores = call.t(1);
  auto number = [&](size_t i) {
    return call.has(i) && call.t(i).count() > 0 ? std::optional(call.t(i).f64(0)) : std::nullopt;
  };
  const double most = number(2).value_or(0), threshold = number(3).value_or(0);
  const std::optional<double> lowest = number(4);
  const bool centre = call.attrs().i("centre") != 0;
  const int64_t batches = boxes.dim(0), classes = scores.dim(1), count = boxes.dim(1);
  if (scores.dim(0) != batches || scores.dim(2) != count)
    return call.fail("boxes are {}, scores {}", op::to_string(boxes.dims()),
                     op::to_string(scores.dims()));
  std::vector<int64_t> selected;
  for (int64_t n = 0; n < batches; ++n)
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t base = (n * classes + k) * count;
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t i = 0; i < count; ++i) {
        const double score = scores.f64(base + i);
        if (!std::isnan(score) && (!lowest || score > *lowest)) order.emplace_back(score, i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [](auto& a, auto& b) { return a.first > b.first; });
      std::vector<Box> taken;
      for (const auto& [score, i] : order) {
        if (static_cast<double>(taken.size()) >= most) break;
        if (expired(call.options)) return too_late();
        const Box box = box_of(boxes, n * count + i, centre);
        if (std::any_of(taken.begin(), taken.end(),
                        [&](const Box& other) { return overlap(box, other) > threshold; }))
          continue;
        taken.push_back(box);
        selected.insert(selected.end(), {n, k, i});
      }
    }
  TRY_ASSIGN(Tensor y, Tensor::make(DType::kI64, {static_cast<int64_t>(selected.size()) / 3, 3}));
  std::copy(selected.begin(), selected.end(), y.mutable_as<int64_t>().begin());
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"max_roi_pool", max_roi_pool},
    {"max_unpool", max_unpool},
    {"non_max_suppression", non_max_suppression},
    {"roi_align", roi_align},
};

}  // namespace

std::span<const Row> roi_rows() { return kRows; }

}  // namespace tessera::ir::reference
