// One query's scores on their way to weights, a block of keys at a time. With the running maximum m
// and sum l of a query, scores being in base 2,
//   m' = max(m, max scores);  p = 2^(scores - m');  l = l 2^(m - m') + sum p
#pragma once

#include "tessera/kernels/cpu/attention_args.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/rows.h"
#include "tessera/tessera_plugin.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

constexpr float kHidden = -__builtin_inff();

// What happens to the scores of a (b, h).
struct Scoring {
  float scale;             // of products
  float cap, cap_inverse;  // cap 0: none
  AttentionMask kind;
  const void* mask;  // of the first query and key
  int64_t mask_row, mask_key;
  int64_t keys;  // those beyond are hidden
  int64_t past;  // query s sees keys up to s + past; negative: all

  // How many keys query s sees.
  int64_t seen(int64_t s) const { return past < 0 ? keys : least(keys, s + past + 1); }
};

// What a launch reads beside; null where there is none.
struct Extras {
  const void *mask, *lengths;
};
TESSERA_INLINE Extras extras_of(const AttentionArgs& a, const tessera_range* ranges) {
  Extras extras{};
  if (a.mask != AttentionMask::kNone) extras.mask = (ranges++)->data;
  if (a.length_bytes > 0) extras.lengths = ranges->data;
  return extras;
}

TESSERA_INLINE Scoring scoring_of(const AttentionArgs& a, const Extras& extras, int64_t b,
                                  int64_t h) {
  Scoring c{};
  c.scale = a.scale * kLog2E;
  if (a.softcap > 0) {
    c.cap = a.softcap * kLog2E;
    c.cap_inverse = a.scale / a.softcap;
  }
  const int64_t at = b * a.mask_strides[0] + h * a.mask_strides[1];
  c.kind = a.mask;
  if (a.mask == AttentionMask::kBool) c.mask = static_cast<const uint8_t*>(extras.mask) + at;
  if (a.mask == AttentionMask::kAdded) c.mask = static_cast<const float*>(extras.mask) + at;
  c.mask_row = a.mask_strides[2];
  c.mask_key = a.mask_strides[3];
  c.keys = a.mask == AttentionMask::kNone ? a.T : a.mask_keys;
  if (extras.lengths) {
    const int64_t length = a.length_bytes == 8 ? static_cast<const int64_t*>(extras.lengths)[b]
                                               : static_cast<const int32_t*>(extras.lengths)[b];
    c.keys = most<int64_t>(0, least(c.keys, length));
  }
  c.past = a.causal ? a.past : -1;
  return c;
}

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

// x where the mask's bytes are not 0, else hidden.
TESSERA_INLINE Vec shown(const uint8_t* mask, int64_t count, Vec x) {
  Bytes bytes{};
  __builtin_memcpy(&bytes, mask, static_cast<size_t>(least<int64_t>(count, kLanes)));
  return __builtin_convertvector(bytes, VecI) != 0 ? x : splat(kHidden);
}

// Whether the mask hides keys [t0, t0 + count) from queries [s, s + rows). Stops at the first that
// it does not.
[[maybe_unused]] static bool hides_all(const Scoring& c, int64_t s, int64_t rows, int64_t t0,
                                       int64_t count) {
  if (c.kind == AttentionMask::kNone || c.mask_key == 0) return false;
  if (c.mask_row == 0) rows = 1;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = (s + i) * c.mask_row + t0;
    if (c.kind == AttentionMask::kBool) {
      const auto* bytes = static_cast<const uint8_t*>(c.mask) + at;
      for (int64_t j = 0; j < count; ++j)
        if (bytes[j] != 0) return false;
    } else {
      const auto* added = static_cast<const float*>(c.mask) + at;
      for (int64_t j = 0; j < count; ++j)
        if (added[j] != kHidden) return false;
    }
  }
  return true;
}

// The scores of query s and keys [t0, t0 + count), whose products are in x; the largest. NaN is
// lost.
template <AttentionMask kMask>
float finish_scores(const Scoring& c, int64_t s, int64_t t0, int64_t count, float* x) {
  const int64_t at = s * c.mask_row + t0 * c.mask_key;
  const auto* added = static_cast<const float*>(c.mask) + at;
  const auto* bytes = static_cast<const uint8_t*>(c.mask) + at;
  const Vec hidden = splat(kHidden);
  Vec top = hidden;
  each_vector<float>(
      0, count, [&](auto lanes, int64_t j) __attribute__((always_inline)) {
        const Vec product = lanes.load(x + j);
        Vec y = c.cap > 0 ? tanh_of(product * c.cap_inverse) * c.cap : product * c.scale;
        if constexpr (kMask == AttentionMask::kAdded)
          y += (c.mask_key ? lanes.load(added + j) : splat(*added)) * kLog2E;
        if constexpr (kMask == AttentionMask::kBool)
          y = c.mask_key ? shown(bytes + j, count - j, y) : *bytes ? y : hidden;
        lanes.store(x + j, y);
        top = max_of(lanes.only(y, hidden), top);
      });
  return max_lanes(top);
}

TESSERA_INLINE float finish_scores(const Scoring& c, int64_t s, int64_t t0, int64_t count,
                                   float* x) {
  return c.kind == AttentionMask::kNone ? finish_scores<AttentionMask::kNone>(c, s, t0, count, x)
         : c.kind == AttentionMask::kBool
             ? finish_scores<AttentionMask::kBool>(c, s, t0, count, x)
             : finish_scores<AttentionMask::kAdded>(c, s, t0, count, x);
}

TESSERA_INLINE float largest(const float* x, int64_t count) {
  Vec top[2] = {splat(kHidden), splat(kHidden)};
  int64_t j = 0;
  for (; j + 2 * kLanes <= count; j += 2 * kLanes)
    for (int w = 0; w < 2; ++w) top[w] = max_of(load(x + j + w * kLanes), top[w]);
  each_vector<float>(
      j, count, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        top[0] = max_of(lanes.load(x + i, top[0]), top[0]);
      });
  return max_lanes(max_of(top[0], top[1]));
}

// x = 2^(x scale - top); the sum.
TESSERA_INLINE float exponentials(float* x, int64_t count, float scale, float top) {
  Vec sum[2] = {};
  int64_t j = 0;
  for (; j + 2 * kLanes <= count; j += 2 * kLanes)
    for (int w = 0; w < 2; ++w) {
      const Vec p = exp2_of(load(x + j + w * kLanes) * scale - top);
      store(x + j + w * kLanes, p);
      sum[w] += p;
    }
  each_vector<float>(
      j, count, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        const Vec p = exp2_of(lanes.load(x + i) * scale - top);
        lanes.store(x + i, p);
        sum[0] += lanes.only(p, Vec{});
      });
  return sum_lanes(sum[0] + sum[1]);
}

// Keys or values of a (b, key head).
struct RowsOf {
  const KeyRows& rows;
  const float *past, *fresh;
  float* target;

  // Row t, of a run of rows that are `stride()` apart. @pre t < P + T
  const float* at(int64_t t) const {
    return t < rows.P ? past + t * rows.past[2] : fresh + (t - rows.P) * rows.fresh[2];
  }
  int64_t stride(int64_t t) const { return t < rows.P ? rows.past[2] : rows.fresh[2]; }
  // Copies rows [t0, t1) to the target.
  void write(int64_t t0, int64_t t1) const {
    for (int64_t t = t0; t < t1;) {
      const int64_t end = t < rows.P ? least(t1, rows.P) : t1;
      const bool run = stride(t) == rows.E && rows.target[2] == rows.E;
      const int64_t count = run ? end - t : 1;
      __builtin_memcpy(target + t * rows.target[2], at(t),
                       static_cast<size_t>(count * rows.E) * sizeof(float));
      t += count;
    }
  }
};

// As they come in a launch: past, fresh, target, those that there are.
class RowRanges {
 public:
  RowRanges(const KeyRows& rows, const tessera_range* range) : rows_(rows) {
    if (rows.P > 0) past_ = static_cast<const float*>((range++)->data);
    fresh_ = static_cast<const float*>((range++)->data);
    target_ = static_cast<float*>(range->data);
  }
  // With a target only if that is written.
  int count() const { return (rows_.P > 0) + 1 + (rows_.written != 0); }
  RowsOf at(int64_t b, int64_t h) const {
    const KeyRows& r = rows_;
    return {r, past_ + b * r.past[0] + h * r.past[1], fresh_ + b * r.fresh[0] + h * r.fresh[1],
            target_ + b * r.target[0] + h * r.target[1]};
  }

 private:
  const KeyRows& rows_;
  const float *past_ = nullptr, *fresh_ = nullptr;
  float* target_ = nullptr;
};

// Of a query.
struct Running {
  float top, sum;
};

// Products of query s and keys [t0, t0 + count) in x become weights. Returns by what the values
// summed before are to be multiplied.
TESSERA_INLINE float weigh(const Scoring& c, int64_t s, int64_t t0, int64_t count, float* x,
                           Running& r) {
  // Larger products lose, when scaled, what their difference to the largest is.
  constexpr float kPlain = 1048576.0f;
  float scale = 1, top = 0;
  bool plain = c.kind == AttentionMask::kNone && !(c.cap > 0) && c.scale > 0;
  if (plain) {
    scale = c.scale;
    top = largest(x, count) * scale;
    plain = top < kPlain && top > -kPlain;
  }
  if (!plain) {
    scale = 1;
    top = finish_scores(c, s, t0, count, x);
  }
  const float peak = top > r.top ? top : r.top;
  // Nothing to be seen yet: all weights are 0, unless they are not numbers.
  const float base = peak == kHidden ? 0.0f : peak;
  const float factor = r.top == peak ? 1.0f : exp2_of(splat(r.top - base))[0];
  r.sum = r.sum * factor + exponentials(x, count, scale, base);
  r.top = peak;
  return factor;
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
