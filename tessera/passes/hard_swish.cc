#include "tessera/passes/hard_swish.h"

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

// min(max(y, 0), top)
struct Clip {
  ir::ValueId y = ir::kAbsent;
  double top = 0;
  std::vector<const ir::Node*> nodes;
};

std::optional<Clip> clip_of(const Site& at, ir::ValueId id) {
  Clip clip{id, -1, {}};
  bool bottom = false;
  for (int i = 0; i < 2; ++i) {
    const ir::Node* node = at.producer(clip.y);
    if (!node || at.uses(clip.y) != 1) return std::nullopt;
    clip.nodes.push_back(node);
    if (node->op->name == "relu" && !bottom) {
      bottom = true;
      clip.y = node->inputs[0];
      continue;
    }
    const bool max = node->op->name == "max", min = node->op->name == "min";
    if ((!max || bottom) && (!min || clip.top >= 0)) return std::nullopt;
    const size_t side = number(at, node->inputs[1]) ? 1 : 0;
    const auto bound = number(at, node->inputs[side]);
    if (!bound || (max && *bound != 0) || (min && *bound <= 0)) return std::nullopt;
    bottom = bottom || max;
    if (min) clip.top = *bound;
    clip.y = node->inputs[1 - side];
  }
  return bottom && clip.top > 0 ? std::optional(std::move(clip)) : std::nullopt;
}

// The value that `id` is a line of: what remains below sums with and products by numbers.
ir::ValueId base_of(const Site& at, ir::ValueId id) {
  for (int steps = 0; steps < 4; ++steps) {
    const ir::Node* node = at.producer(id);
    if (!node || at.uses(id) != 1) break;
    const std::string_view op = node->op->name;
    if (op != "add" && op != "sub" && op != "mul" && op != "div") break;
    if (number(at, node->inputs[1]))
      id = node->inputs[0];
    else if (op != "div" && number(at, node->inputs[0]))
      id = node->inputs[1];
    else
      break;
  }
  return id;
}

bool line(Site& at) {
  if (!at.is("mul") && !at.is("div")) return false;
  Product p = product(at, at.node);
  for (size_t i = 0; i < p.factors.size(); ++i) {
    auto clip = clip_of(at, p.factors[i]);
    if (!clip || !about(at.type(at.out()).dtype, p.coefficient * clip->top, 1)) continue;
    const ir::ValueId x = base_of(at, clip->y);
    const auto y =
        x == clip->y ? std::optional(Polynomial{0, 1}) : polynomial(at, clip->y, x, clip->nodes);
    if (!y || *y != Polynomial{(*y)[0], (*y)[1]}) continue;
    clip->nodes.insert(clip->nodes.end(), p.nodes.begin(), p.nodes.end());
    ir::Builder& b = at.build(clip->nodes);
    ir::ValueId result =
        b.op("hard_sigmoid", {x}, {{"alpha", (*y)[1] / clip->top}, {"beta", (*y)[0] / clip->top}});
    for (size_t k = 0; k < p.factors.size(); ++k)
      if (k != i) result = b.mul(p.factors[k], result);
    return at.replace(result, "hard_sigmoid");
  }
  return false;
}

bool swish(Site& at) {
  if (!at.is("mul")) return false;
  const DType dtype = at.type(at.out()).dtype;
  for (size_t side : {0, 1}) {
    const ir::Node* gate = at.producer(at.in(side), "hard_sigmoid");
    if (!gate || gate->inputs[0] != at.in(1 - side) || at.uses(at.in(side)) != 1) continue;
    if (!about(dtype, gate->attrs.f("alpha", 0.2), 1.0 / 6) ||
        !about(dtype, gate->attrs.f("beta", 0.5), 0.5))
      return false;
    return at.replace(at.build({gate}).unary("hard_swish", at.in(1 - side)), "hard_swish");
  }
  return false;
}

}  // namespace

void hard_swish(Rewriter& rewriter) {
  rewriter.walk([](Site& at) { return line(at) || swish(at); });
}

}  // namespace tessera::passes
