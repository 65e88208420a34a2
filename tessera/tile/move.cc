// Elements that go from one place to another, as they are: transposes, slices, broadcasts, concats,
// other layouts.
#include <algorithm>

#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {
namespace {

// y[base_y + i...] = x[...]: one nest over `dims`.
struct Move {
  size_t input = 0;
  op::Dims dims;
  // Of each dimension of x: which axis it walks (kNone: none), from where, by what.
  struct Walk {
    int axis = kNone;
    int64_t start = 0, by = 1;
  };
  std::vector<Walk> x;
  op::Dims y_start;  // of each dimension of y, which walks the axis of its number
};

Result<Instance> instance_of(const op::Problem& p, const Move& m) {
  const op::Operand &x = p.in[m.input], &y = p.out[0];
  for (const op::Operand* o : {&x, &y})
    if (is_complex(o->dtype) || o->dtype == DType::kString || bits_of(o->dtype) < 8)
      return refuse("elements of {}", name_of(o->dtype));
  if (std::ranges::find(m.dims, 0) != m.dims.end()) return refuse("nothing to move");
  TRY_ASSIGN(const op::Dims x_strides, operand_strides(x));
  TRY_ASSIGN(const op::Dims y_strides, operand_strides(y));
  Builder b(std::string(p.op->name));
  std::vector<int> axes;
  for (size_t d = 0; d < m.dims.size(); ++d) {
    axes.push_back(b.axis(std::string(1, static_cast<char>('i' + d)), Expr(m.dims[d])));
    b.grid(axes.back());
  }
  const auto tensor = [&](std::string name, Role role, const op::Operand& o,
                          const op::Dims& strides) {
    Tensor t{.name = std::move(name), .role = role, .dtype = o.dtype, .dims = {}};
    for (int64_t d : o.dims) t.dims.emplace_back(d);
    if (strides != op::strides_of(o.dims))
      for (int64_t s : strides) t.strides.emplace_back(s);
    return b.tensor(std::move(t));
  };
  std::vector<Subscript> at_x, at_y;
  for (const Move::Walk& w : m.x)
    at_x.push_back({w.axis == kNone
                        ? Expr(w.start)
                        : Expr(w.start) + Expr(w.by) * b.at(axes[static_cast<size_t>(w.axis)])});
  for (size_t d = 0; d < axes.size(); ++d) at_y.push_back({Expr(m.y_start[d]) + b.at(axes[d])});
  const int tx = tensor("x", Role::kIn, x, x_strides), ty = tensor("y", Role::kOut, y, y_strides);
  b.store(ty, std::move(at_y), b.load(tx, std::move(at_x)));
  Instance instance;
  instance.arguments = {{op::Argument::kInput, static_cast<int>(m.input), 0},
                        {op::Argument::kOutput, 0, 0}};
  TRY_ASSIGN(instance.program, b.finish());
  return instance;
}

Result<std::vector<Move>> moves_of(const op::Problem& p) {
  const std::string_view op = p.op->name;
  const op::Dims& x = p.in[0].dims;
  const op::Dims& y = p.out[0].dims;
  Move m{.dims = y, .x = {}, .y_start = op::Dims(y.size(), 0)};
  m.x.resize(x.size());
  if (op == "relayout" || op == "identity") {
    for (size_t d = 0; d < x.size(); ++d) m.x[d].axis = static_cast<int>(d);
  } else if (op == "transpose") {
    const op::Ints perm = p.attrs.ints("perm");
    for (size_t d = 0; d < perm.size(); ++d)
      m.x[static_cast<size_t>(perm[d])].axis = static_cast<int>(d);
  } else if (op == "broadcast_to") {
    for (size_t d = 0; d < x.size(); ++d)
      if (const size_t to = y.size() - x.size() + d; x[d] == y[to])
        m.x[d].axis = static_cast<int>(to);
  } else if (op == "slice") {
    for (size_t d = 0; d < x.size(); ++d) m.x[d].axis = static_cast<int>(d);
    for (size_t i = 1; i < p.in.size(); ++i)
      if (p.in[i].present && !p.in[i].values) return refuse("a slice that is computed");
    const op::Ints& starts = *p.in[1].values;
    for (size_t k = 0; k < starts.size(); ++k) {
      int64_t a =
          p.in.size() > 3 && p.in[3].present ? (*p.in[3].values)[k] : static_cast<int64_t>(k);
      if (a < 0) a += static_cast<int64_t>(x.size());
      const int64_t by = p.in.size() > 4 && p.in[4].present ? (*p.in[4].values)[k] : 1;
      if (by < 1) return refuse("a slice that goes backwards");
      const int64_t n = x[static_cast<size_t>(a)];
      const int64_t start = starts[k] < 0 ? starts[k] + n : starts[k];
      m.x[static_cast<size_t>(a)].start = std::clamp<int64_t>(start, 0, n);
      m.x[static_cast<size_t>(a)].by = by;
    }
  } else if (op == "concat") {
    int64_t axis = p.attrs.i("axis");
    if (axis < 0) axis += static_cast<int64_t>(y.size());
    const auto a = static_cast<size_t>(axis);
    for (size_t d = 0; d < x.size(); ++d) m.x[d].axis = static_cast<int>(d);
    std::vector<Move> all;
    for (size_t i = 0; i < p.in.size(); ++i) {
      m.input = i;
      m.dims = p.in[i].dims;
      if (m.dims[a] > 0) all.push_back(m);
      m.y_start[a] += m.dims[a];
    }
    return all;
  } else {
    return refuse("{} moves nothing", op);
  }
  return std::vector{std::move(m)};
}

}  // namespace

Result<std::vector<Instance>> moves(const op::Problem& p) {
  if (p.fused() || p.out.size() != 1 || !p.out[0].present) return refuse("steps behind a move");
  constexpr size_t kMostAxes = 7;
  if (p.out[0].dims.size() > kMostAxes) return refuse("a move of {} axes", p.out[0].dims.size());
  TRY_ASSIGN(const std::vector<Move> list, moves_of(p));
  std::vector<Instance> all;
  for (const Move& m : list) {
    TRY_ASSIGN(Instance i, instance_of(p, m));
    all.push_back(std::move(i));
  }
  return all;
}

}  // namespace tessera::tile
