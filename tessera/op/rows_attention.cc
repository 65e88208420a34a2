// Attention and what goes with it: composites. Letters: B batch, H query heads, Hk key and value
// heads (H is a multiple; query head h uses key head h / (H/Hk)), S queries, P past keys, T new
// keys, E head size, F head size of values.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum AttrKind;

// The shape of input i, open where unknown; an error if its rank is another.
Result<Shape> shape_of_rank(const InferContext& c, size_t i, size_t rank) {
  if (!c.in(i).is_tensor() || (c.in(i).ranked() && c.in(i).shape->size() != rank))
    return error(Code::kInvalidArgument, "{}: input {} is {}, need rank {}", c.op, i, c.in(i).str(),
                 rank);
  return c.in(i).ranked() ? *c.in(i).shape : c.fresh_shape(rank);
}

Status check_equal(const InferContext& c, std::string_view what, const Expr& a, const Expr& b) {
  if (!a.is_constant() || !b.is_constant() || a == b) return {};
  return error(Code::kInvalidArgument, "{}: {} differ: {} and {}", c.op, what, a.str(), b.str());
}

Status check_heads(const InferContext& c, const Expr& query, const Expr& key) {
  if (!query.is_constant() || !key.is_constant()) return {};
  if (*key.constant() > 0 && *query.constant() % *key.constant() == 0) return {};
  return error(Code::kInvalidArgument, "{}: {} query heads are no multiple of {} key heads", c.op,
               query.str(), key.str());
}

// attention(q (B,H,S,E), k (B,Hk,T,E), v (B,Hk,T,F), mask?, past k? (B,Hk,P,E), past v? (B,Hk,P,F),
// lengths? (B))
// -> y (B,H,S,F), k and v with their past (B,Hk,P+T,..), scores (B,H,S,P+T):
//   scores = softmax(mask(softcap(scale q k^T))) v
// mask broadcasts to the scores: bool (false hides) or added; a shorter last axis hides what is
// beyond. causal hides keys j > i + P; lengths hide keys j >= length. scores_mode: which scores are
// the output: 0 before, 1 after softcap, 2 after masking, 3 after softmax.
Result<std::vector<Type>> attention_rule(const InferContext& c) {
  TRY_ASSIGN(const Shape q, shape_of_rank(c, 0, 4));
  TRY_ASSIGN(Shape k, shape_of_rank(c, 1, 4));
  TRY_ASSIGN(Shape v, shape_of_rank(c, 2, 4));
  if (!is_float(c.in(0).dtype) || c.in(0).dtype != c.in(1).dtype || !is_float(c.in(2).dtype))
    return c.fail("q, k, v are {}, {}, {}: need floats, q and k of one type", c.in(0).str(),
                  c.in(1).str(), c.in(2).str());
  TRY(check_equal(c, "head sizes of q and k", q[3], k[3]));
  TRY(check_equal(c, "heads of k and v", k[1], v[1]));
  TRY(check_equal(c, "keys and values", k[2], v[2]));
  TRY(check_heads(c, q[1], k[1]));
  if (c.has(4) != c.has(5)) return c.fail("past keys and values go together");
  if (c.has(4)) {
    TRY_ASSIGN(const Shape past_k, shape_of_rank(c, 4, 4));
    TRY_ASSIGN(const Shape past_v, shape_of_rank(c, 5, 4));
    if (c.in(4).dtype != c.in(1).dtype || c.in(5).dtype != c.in(2).dtype)
      return c.fail("the past has another type");
    TRY(check_equal(c, "past keys and values", past_k[2], past_v[2]));
    TRY(check_equal(c, "head sizes of k and its past", past_k[3], k[3]));
    TRY(check_equal(c, "head sizes of v and its past", past_v[3], v[3]));
    k[2] = k[2] + past_k[2];
    v[2] = v[2] + past_v[2];
  }
  if (c.has(3) && c.in(3).ranked()) {
    if (c.in(3).rank() > 4) return c.fail("the mask is {}, need rank 4 or less", c.in(3).str());
    Shape mask = *c.in(3).shape;
    if (!mask.empty()) {
      const auto columns = mask.back().constant(), keys = k[2].constant();
      if (columns && keys && *columns > *keys)
        return c.fail("the mask {} has more columns than the {} keys", c.in(3).str(), *keys);
      mask.back() = k[2];
    }
    TRY(broadcast_shapes(mask, {q[0], q[1], q[2], k[2]}));
  }
  if (c.has(6) && !is_int(c.in(6).dtype))
    return c.fail("lengths are {}, need integers", c.in(6).str());
  const DType type = c.in(0).dtype;
  return std::vector<Type>{Type::tensor(type, {q[0], q[1], q[2], v[3]}),
                           Type::tensor(c.in(1).dtype, k), Type::tensor(c.in(2).dtype, v),
                           Type::tensor(type, {q[0], q[1], q[2], k[2]})};
}

// Two products of S x (P+T) by the head sizes.
Flops attention_flops(const Attrs&, std::span<const Type* const> in, std::span<const Type> out) {
  const Dims q = in[0]->dims(), y = out[0].dims();
  const int64_t past = in.size() > 4 && in[4] ? in[4]->dims()[2] : 0;
  return Flops(2 * q[0] * q[1] * q[2] * (in[1]->dims()[2] + past) * (q[3] + y[3]));
}

// rotary(x (B,H,S,E), cos, sin, positions? (B,S)): turns the pairs of the first `dim` channels (0:
// all). cos and sin are (B,S,dim/2), or with positions tables (positions, dim/2). A pair is
// channels i and i + dim/2, interleaved: 2i and 2i + 1.
Result<std::vector<Type>> rotary_rule(const InferContext& c) {
  TRY_ASSIGN(const Shape x, shape_of_rank(c, 0, 4));
  const size_t rank = c.has(3) ? 2 : 3;
  TRY_ASSIGN(const Shape cos, shape_of_rank(c, 1, rank));
  TRY_ASSIGN(const Shape sin, shape_of_rank(c, 2, rank));
  const int64_t dim = c.attrs.i("dim");
  const auto size = x[3].constant();
  if (dim < 0 || dim % 2 != 0 || (size && (dim > *size || (dim == 0 && *size % 2 != 0))))
    return c.fail("turns {} of {} channels: need an even number", dim, x[3].str());
  if (dim > 0 || size) {
    TRY(check_equal(c, "half of the channels turned and the columns of cos",
                    Expr((dim > 0 ? dim : *size) / 2), cos.back()));
    TRY(check_equal(c, "columns of cos and sin", cos.back(), sin.back()));
  }
  if (c.has(3)) TRY(shape_of_rank(c, 3, 2));
  return std::vector<Type>{c.in(0)};
}

// linear_attention(q (B,H,T,E), k (B,Hk,T,E), v (B,Hk,T,F), state? (B,Hk,E,F), decay? (B,Hk,T,E or
// 1), beta? (B,Hk or 1,T,1))
// -> y (B,H,T,F), state. At each step
//   state *= exp(decay)[:, None];  v' = beta (v - state^T k) with beta, else v;  state += k v'^T;
//   y = scale q^T state
Result<std::vector<Type>> linear_attention_rule(const InferContext& c) {
  TRY_ASSIGN(const Shape q, shape_of_rank(c, 0, 4));
  TRY_ASSIGN(const Shape k, shape_of_rank(c, 1, 4));
  TRY_ASSIGN(const Shape v, shape_of_rank(c, 2, 4));
  TRY(check_equal(c, "head sizes of q and k", q[3], k[3]));
  TRY(check_equal(c, "heads of k and v", k[1], v[1]));
  TRY(check_equal(c, "steps of q and k", q[2], k[2]));
  TRY(check_equal(c, "steps of k and v", k[2], v[2]));
  TRY(check_heads(c, q[1], k[1]));
  const Shape state{q[0], k[1], k[3], v[3]};
  if (c.has(3)) {
    TRY_ASSIGN(const Shape given, shape_of_rank(c, 3, 4));
    for (size_t i = 0; i < 4; ++i) TRY(check_equal(c, "sizes of the state", given[i], state[i]));
  }
  const std::pair<size_t, Expr> gates[] = {{4, k[3]}, {5, Expr(1)}};
  for (const auto& [i, last] : gates) {
    if (!c.has(i)) continue;
    TRY_ASSIGN(const Shape gate, shape_of_rank(c, i, 4));
    TRY(broadcast_shapes(gate, {q[0], k[1], k[2], last}));
  }
  return std::vector<Type>{Type::tensor(c.in(0).dtype, {q[0], q[1], q[2], v[3]}),
                           Type::tensor(c.has(3) ? c.in(3).dtype : c.in(0).dtype, state)};
}

}  // namespace

std::span<const OpDef> attention_rows() {
  static const std::vector<OpDef> rows{
      {"attention",
       OpClass::kComposite,
       3,
       7,
       1,
       4,
       {{"scale", kFloat},
        {"causal", kInt},
        {"softcap", kFloat},
        {"scores_mode", kInt},
        {"softmax", kDType}},
       attention_rule,
       nullptr,
       attention_flops},
      {"rotary",
       OpClass::kComposite,
       3,
       4,
       1,
       1,
       {{"interleaved", kInt}, {"dim", kInt}},
       rotary_rule},
      {"linear_attention",
       OpClass::kComposite,
       3,
       6,
       1,
       2,
       {{"scale", kFloat}},
       linear_attention_rule},
  };
  return rows;
}

}  // namespace tessera::op
