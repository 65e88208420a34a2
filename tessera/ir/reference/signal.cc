// Fourier transforms, by a table of roots of unity: O(n^2).
#include <cmath>
#include <complex>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.141592653589793;

class Transform {
 public:
  Transform(int64_t n, bool inverse) : inverse_(inverse), roots_(static_cast<size_t>(n)) {
    for (int64_t k = 0; k < n; ++k)
      roots_[static_cast<size_t>(k)] = std::polar(
          1.0, (inverse ? 2 : -2) * kPi * static_cast<double>(k) / static_cast<double>(n));
  }
  // Value k; x is as long as the transform or shorter (zeros follow).
  Complex at(const std::vector<Complex>& x, int64_t k) const {
    const size_t n = roots_.size();
    Complex sum = 0;
    size_t turn = 0;
    for (const Complex& v : x) {
      sum += v * roots_[turn];
      turn = (turn + static_cast<size_t>(k)) % n;
    }
    return inverse_ ? sum / static_cast<double>(n) : sum;
  }

 private:
  bool inverse_;
  std::vector<Complex> roots_;
};

Status check_deadline(const Call& call) {
  if (call.options.deadline && std::chrono::steady_clock::now() > *call.options.deadline)
    return error(Code::kDeadlineExceeded, "{}: the time limit has passed", call.op());
  return {};
}

Result<std::vector<Value>> dft(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  if (y.count() == 0) return one(std::move(y));
  TRY_ASSIGN(int axis, op::normalize_axis(call.has(2) ? call.t(2).i64(0) : -2, x.rank()));
  const bool inverse = call.attrs().i("inverse") != 0, real_out = y.dims().back() == 1;
  const int64_t n = call.has(1) ? call.t(1).i64(0) : real_out ? 2 * (x.dim(axis) - 1) : x.dim(axis);
  const int64_t parts = x.dims().back(), values = y.dim(axis);
  const int64_t given = std::min(x.dim(axis), real_out ? n / 2 + 1 : n);
  const Transform transform(n, inverse);
  Dims lines = x.dims();
  lines[static_cast<size_t>(axis)] = 1;
  lines.back() = 1;
  const Dims sx = op::strides_of(x.dims()), sy = op::strides_of(y.dims());
  const int64_t dx = sx[static_cast<size_t>(axis)], dy = sy[static_cast<size_t>(axis)];
  for (Index at(lines); !at.done(); at.next()) {
    TRY(check_deadline(call));
    const int64_t from = at.dot(sx), to = at.dot(sy);
    std::vector<Complex> line(static_cast<size_t>(given));
    for (int64_t k = 0; k < given; ++k)
      line[static_cast<size_t>(k)] = {x.f64(from + k * dx),
                                      parts == 2 ? x.f64(from + k * dx + 1) : 0};
    if (real_out) {  // the other half is the conjugate
      line.resize(static_cast<size_t>(n));
      for (int64_t k = n / 2 + 1; k < n; ++k)
        line[static_cast<size_t>(k)] = std::conj(line[static_cast<size_t>(n - k)]);
    }
    for (int64_t k = 0; k < values; ++k) {
      const Complex v = transform.at(line, k);
      y.set_f64(to + k * dy, v.real());
      if (!real_out) y.set_f64(to + k * dy + 1, v.imag());
    }
  }
  return one(std::move(y));
}

Result<std::vector<Value>> stft(const Call& call) {
  const Tensor& x = call.t(0);
  const int64_t step = call.t(1).i64(0), samples = x.dim(1), parts = x.rank() == 3 ? x.dim(2) : 1;
  const int64_t length = call.has(3) ? call.t(3).i64(0) : call.has(2) ? call.t(2).count() : samples;
  if (parts != 1 && parts != 2)
    return call.fail("the last size is {}, need 1 (real) or 2 (complex)", parts);
  if (length > samples) return call.fail("frames of {} in {} samples", length, samples);
  if (parts == 2 && call.attrs().i("onesided", 1))
    return call.fail("a one-sided transform needs real input");
  TRY_ASSIGN(Tensor y, call.make(0));
  const Transform transform(length, false);
  std::vector<Complex> frame(static_cast<size_t>(length));
  int64_t to = 0;
  for (int64_t b = 0; b < y.dim(0); ++b)
    for (int64_t f = 0; f < y.dim(1); ++f) {
      TRY(check_deadline(call));
      for (int64_t i = 0; i < length; ++i) {
        const int64_t from = (b * samples + f * step + i) * parts;
        const double weight = !call.has(2) ? 1 : i < call.t(2).count() ? call.t(2).f64(i) : 0;
        frame[static_cast<size_t>(i)] =
            weight * Complex(x.f64(from), parts == 2 ? x.f64(from + 1) : 0);
      }
      for (int64_t k = 0; k < y.dim(2); ++k, to += 2) {
        const Complex v = transform.at(frame, k);
        y.set_f64(to, v.real());
        y.set_f64(to + 1, v.imag());
      }
    }
  return one(std::move(y));
}

Result<std::vector<Value>> mel_weights(const Call& call) {
  for (size_t i = 0; i < 5; ++i)
    if (call.t(i).count() != 1)
      return call.fail("input {} has {} elements, need 1", i, call.t(i).count());
  const int64_t bins = call.t(0).i64(0), length = call.t(1).i64(0), rate = call.t(2).i64(0);
  if (rate <= 0) return call.fail("the sample rate is {}", rate);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t height = y.dim(0);
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(call.t(3).f64(0)),
               step = (mel(call.t(4).f64(0)) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    const double place =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(place >= 0 && place < static_cast<double>(height)))
      return call.fail("edge {} lies at {} Hz, beyond the {} bins of the spectrum", i, hertz,
                       height);
    edges.push_back(static_cast<int64_t>(place));
  }
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t left = edges[static_cast<size_t>(i)], peak = edges[static_cast<size_t>(i) + 1],
                  right = edges[static_cast<size_t>(i) + 2];
    for (int64_t j = left; j < right; ++j) {
      const double rising = static_cast<double>(j - left) / static_cast<double>(peak - left);
      const double falling = static_cast<double>(right - j) / static_cast<double>(right - peak);
      y.set_f64(j * bins + i, j < peak ? rising : falling);
    }
    y.set_f64(peak * bins + i, 1);
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"dft", dft}, {"stft", stft}, {"mel_weights", mel_weights}};

}  // namespace

std::span<const Row> signal_rows() { return kRows; }

}  // namespace tessera::ir::reference
