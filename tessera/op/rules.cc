#include "tessera/op/rules.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/op/index.h"

namespace tessera::op {

std::optional<Ints> InferContext::ints(size_t i) const {
  if (i < constants.size() && constants[i] &&
      (is_int(constants[i]->dtype()) || constants[i]->dtype() == DType::kBool))
    return constants[i]->to_i64s();
  const Contents* known = content(i);
  if (!known) return std::nullopt;
  Ints result;
  for (const Expr& e : *known) {
    if (!e.is_constant()) return std::nullopt;
    result.push_back(*e.constant());
  }
  return result;
}

Shape InferContext::fresh_shape(size_t rank) const {
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(fresh());
  return shape;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const Expr x = i < a.size() ? a[a.size() - 1 - i] : Expr(1);
    const Expr y = i < b.size() ? b[b.size() - 1 - i] : Expr(1);
    const auto cx = x.constant(), cy = y.constant();
    if (cx && cy && *cx != *cy && *cx != 1 && *cy != 1)
      return error(Code::kInvalidArgument, "shapes {} and {} do not broadcast: sizes {} and {}",
                   to_string(a), to_string(b), *cx, *cy);
    result[result.size() - 1 - i] = broadcast(x, y);
  }
  return result;
}

Result<std::optional<Shape>> broadcast_shapes(const InferContext& context) {
  Shape shape;
  for (const Type* input : context.inputs) {
    if (!input) continue;
    if (!input->is_tensor()) return context.fail("needs tensors, got {}", input->str());
    if (!input->shape) return std::optional<Shape>();
    auto joined = broadcast_shapes(shape, *input->shape);
    if (!joined) return error(std::move(joined).error().at(context.op));
    shape = *std::move(joined);
  }
  return std::optional(shape);
}

Result<int> normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return error(Code::kOutOfRange, "axis {} is outside [-{}, {}) of a tensor of rank {}", axis,
                 rank, rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> normalize_axes(std::span<const int64_t> axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) {
    TRY_ASSIGN(int a, normalize_axis(axis, rank));
    result.push_back(a);
  }
  if (axes.empty())
    for (int a = 0; a < rank; ++a) result.push_back(a);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Expr window_size(const Expr& size, int64_t pad_begin, int64_t pad_end, const Expr& kernel,
                 int64_t stride, int64_t dilation, bool ceil_mode) {
  const Expr free =
      size + Expr(pad_begin) + Expr(pad_end) - Expr(dilation) * (kernel - Expr(1)) - Expr(1);
  if (!ceil_mode) return floor_div(free, Expr(stride)) + Expr(1);
  // A last window must start inside the input or its left padding.
  const Expr windows = ceil_div(free, Expr(stride)) + Expr(1);
  const Expr starting_inside = floor_div(size + Expr(pad_begin) - Expr(1), Expr(stride)) + Expr(1);
  return min(windows, starting_inside);
}

Type join_types(const InferContext& c, const Type& a, const Type& b) {
  if (a == b) return a;
  if (a.kind != b.kind) return a.kind == TypeKind::kOptional ? a : b;
  if (!a.is_tensor()) {
    Type t = a;
    if (a.element && b.element)
      t.element = std::make_shared<const Type>(join_types(c, *a.element, *b.element));
    return t;
  }
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return Type::unranked(a.dtype);
  Shape shape;
  for (int i = 0; i < a.rank(); ++i) shape.push_back(a.dim(i) == b.dim(i) ? a.dim(i) : c.fresh());
  return Type::tensor(a.dtype, std::move(shape));
}

Type open_sizes(const InferContext& c, Type t) {
  if (t.ranked())
    for (Expr& d : *t.shape)
      if (!d.is_constant()) d = c.fresh();
  if (t.element) t.element = std::make_shared<const Type>(open_sizes(c, *t.element));
  return t;
}

std::optional<Contents> elementwise_contents(const InferContext& c, const Type& output,
                                             ElementFn fn) {
  if (!output.is_static()) return std::nullopt;
  const Dims dims = output.dims();
  const auto count = element_count(dims);
  if (!count || *count > static_cast<int64_t>(kMaxContents)) return std::nullopt;
  std::vector<Dims> strides;
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.content(i) || !c.in(i).is_static()) return std::nullopt;
    strides.push_back(broadcast_strides(c.in(i).dims(), dims));
  }
  Contents result;
  std::vector<Expr> operands(c.size());
  for (Index at(dims); !at.done(); at.next()) {
    for (size_t i = 0; i < c.size(); ++i)
      operands[i] = (*c.content(i))[static_cast<size_t>(at.dot(strides[i]))];
    std::optional<Expr> value = fn(operands);
    if (!value) return std::nullopt;
    // Beyond this, a float may round.
    if (is_float(output.dtype) && value->is_constant() && std::abs(*value->constant()) > (1 << 24))
      return std::nullopt;
    result.push_back(*std::move(value));
  }
  return result;
}

Result<std::vector<Type>> same_as_input(const InferContext& context) {
  return std::vector<Type>{context.in(0)};
}

Result<std::vector<Type>> broadcast_same_dtype(const InferContext& context) {
  TRY_ASSIGN(auto shape, broadcast_shapes(context));
  const DType dtype = context.in(context.size() - 1).dtype;
  if (context.size() == 2 && context.in(0).dtype != dtype)
    return context.fail("types {} and {} differ", name_of(context.in(0).dtype), name_of(dtype));
  return std::vector<Type>{{TypeKind::kTensor, dtype, std::move(shape), nullptr}};
}

Result<std::vector<Type>> broadcast_to_bool(const InferContext& context) {
  TRY_ASSIGN(auto shape, broadcast_shapes(context));
  return std::vector<Type>{{TypeKind::kTensor, DType::kBool, std::move(shape), nullptr}};
}

}  // namespace tessera::op
