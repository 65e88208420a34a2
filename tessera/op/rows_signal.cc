// Fourier transforms and what goes with them. Complex numbers are pairs along the last axis.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using Types = Result<std::vector<Type>>;

Result<std::optional<Expr>> scalar_size(const InferContext& c, size_t i) {
  if (!c.has(i)) return std::optional<Expr>();
  const Type& t = c.in(i);
  if (!t.is_tensor() || !is_int(t.dtype))
    return c.fail("input {} is {}, need an integer", i, t.str());
  const Contents* known = c.content(i);
  if (!known || known->size() != 1) return std::optional(c.fresh());
  if (known->front().is_constant() && *known->front().constant() < 1)
    return c.fail("input {} is {}, need at least 1", i, *known->front().constant());
  return std::optional(known->front());
}

// dft(x, length?, axis?){inverse, onesided}: along axis (-2 if absent); x is real (last axis 1) or
// complex (2), cut or padded with zeros to `length`. onesided: a forward transform yields the first
// length/2 + 1 values; an inverse one takes them and yields reals.
Types dft_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || !is_float(x.dtype)) return c.fail("needs floats, got {}", x.str());
  TRY_ASSIGN(auto length, scalar_size(c, 1));
  if (!x.ranked()) return std::vector<Type>{x};
  const auto given = c.has(2) ? c.ints(2) : Ints{-2};
  if (!given)
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(x.rank())))};
  if (given->size() != 1) return c.fail("{} axes, need 1", given->size());
  auto axis = normalize_axis(given->front(), x.rank());
  if (!axis) return error(std::move(axis).error().at(c.op));
  if (*axis == x.rank() - 1) return c.fail("axis {} is the one of real and imaginary parts", *axis);
  const bool inverse = c.attrs.i("inverse") != 0, onesided = c.attrs.i("onesided") != 0;
  const auto parts = x.dim(x.rank() - 1).constant();
  if (parts && *parts != 1 && *parts != 2)
    return c.fail("the last size is {}, need 1 (real) or 2 (complex)", *parts);
  if (parts && onesided && *parts != (inverse ? 2 : 1))
    return c.fail("a one-sided transform needs {} input, got {}", inverse ? "complex" : "real",
                  x.str());
  const Expr size = x.dim(*axis);
  const Expr n = length ? *length : inverse && onesided ? Expr(2) * (size - Expr(1)) : size;
  if (n.is_constant() && *n.constant() < 1)
    return c.fail("a transform of length {}", *n.constant());
  Type y = x;
  (*y.shape)[static_cast<size_t>(*axis)] = onesided && !inverse ? floor_div(n, 2) + Expr(1) : n;
  y.shape->back() = Expr(inverse && onesided ? 1 : 2);
  return std::vector<Type>{y};
}

// stft(signal, step, window?, length?){onesided}: signal is [batch, samples(, 1 or 2)]; the
// transforms of the frames [i * step, i * step + length), weighted by the window: [batch, frames,
// bins, 2]
Types stft_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || !is_float(x.dtype)) return c.fail("needs floats, got {}", x.str());
  if (x.ranked() && x.rank() != 2 && x.rank() != 3)
    return c.fail("needs rank 2 or 3, got {}", x.str());
  TRY_ASSIGN(auto step, scalar_size(c, 1));
  TRY_ASSIGN(auto length, scalar_size(c, 3));
  if (c.has(2) && (!c.in(2).is_tensor() || c.in(2).dtype != x.dtype ||
                   (c.in(2).ranked() && c.in(2).rank() != 1)))
    return c.fail("the window is {}", c.in(2).str());
  if (!length && c.has(2)) length = c.in(2).ranked() ? c.in(2).dim(0) : c.fresh();
  const Shape signal = x.ranked() ? *x.shape : c.fresh_shape(3);
  if (!length) length = signal[1];
  if (length->is_constant() && *length->constant() < 1)
    return c.fail("frames of length {}", *length->constant());
  const Expr frames =
      step->is_constant() ? floor_div(signal[1] - *length, *step) + Expr(1) : c.fresh();
  if (frames.is_constant() && *frames.constant() < 0)
    return c.fail("frames of {} in {} samples", length->str(), signal[1].str());
  const Expr bins = c.attrs.i("onesided", 1) ? floor_div(*length, 2) + Expr(1) : *length;
  return std::vector<Type>{Type::tensor(x.dtype, {signal[0], frames, bins, Expr(2)})};
}

// mel_weights(bins, length, rate, low, high){to}: [length/2 + 1, bins], triangles evenly spaced in
// mel from `low` to `high` Hz
Types mel_rule(const InferContext& c) {
  TRY_ASSIGN(auto bins, scalar_size(c, 0));
  TRY_ASSIGN(auto length, scalar_size(c, 1));
  return std::vector<Type>{
      Type::tensor(c.attrs.dtype("to"), {floor_div(*length, 2) + Expr(1), *bins})};
}

}  // namespace

std::span<const OpDef> signal_rows() {
  using enum OpClass;
  static const std::vector<OpDef> rows{
      {"dft",
       kHost,
       1,
       3,
       1,
       1,
       {{"inverse", AttrKind::kInt}, {"onesided", AttrKind::kInt}},
       dft_rule},
      {"stft", kHost, 2, 4, 1, 1, {{"onesided", AttrKind::kInt}}, stft_rule},
      {"mel_weights", kHost, 5, 5, 1, 1, {{"to", AttrKind::kDType, true}}, mel_rule},
  };
  return rows;
}

}  // namespace tessera::op
