// Turns pairs of channels by the angles of their step.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/rows.h"
#include "tessera/kernels/cpu/rotary_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

void turn_halves(const float* x, const float* cos, const float* sin, float* y, int64_t half) {
  each_vector<float>(
      0, half, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        const Vec a = lanes.load(x + i), b = lanes.load(x + half + i), c = lanes.load(cos + i),
                  s = lanes.load(sin + i);
        lanes.store(y + i, c * a - s * b);
        lanes.store(y + half + i, s * a + c * b);
      });
}

void turn_neighbours(const float* x, const float* cos, const float* sin, float* y, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = cos[i] * a - sin[i] * b;
    y[2 * i + 1] = sin[i] * a + cos[i] * b;
  }
}

}  // namespace

void rotary(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RotaryArgs*>(launch->constants);
  const auto* x = static_cast<const float*>(launch->ranges[0].data);
  const auto* cos = static_cast<const float*>(launch->ranges[1].data);
  const auto* sin = static_cast<const float*>(launch->ranges[2].data);
  auto* y = static_cast<float*>(launch->ranges[3].data);
  const int64_t end = least(a.rows, (int64_t{first} + count) * a.chunk);
  for (int64_t r = first * a.chunk; r < end; ++r) {
    const int64_t s = r % a.S, h = r / a.S % a.H, b = r / a.S / a.H;
    const float* from = x + b * a.x[0] + h * a.x[1] + s * a.x[2];
    float* to = y + b * a.y[0] + h * a.y[1] + s * a.y[2];
    (a.interleaved ? turn_neighbours : turn_halves)(from, cos + b * a.cos[0] + s * a.cos[1],
                                                    sin + b * a.sin[0] + s * a.sin[1], to, a.half);
    each_vector<float>(
        2 * a.half, a.E, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
          lanes.store(to + i, lanes.load(from + i));
        });
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
