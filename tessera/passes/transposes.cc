#include "tessera/passes/transposes.h"

#include <algorithm>

#include "tessera/op/elementwise.h"
#include "tessera/passes/constants.h"
#include "tessera/passes/shapes.h"

namespace tessera::passes {
namespace {

bool join(Site& at) {
  const ir::Node* inner = at.is("transpose") ? at.producer(at.in(0), "transpose") : nullptr;
  if (!inner) return false;
  op::Ints perm;
  const op::Ints first = inner->attrs.ints("perm");
  for (int64_t p : at.node.attrs.ints("perm")) perm.push_back(first[static_cast<size_t>(p)]);
  if (std::is_sorted(perm.begin(), perm.end()))
    return at.replace(inner->inputs[0], "there and back");
  return at.replace(at.build({inner}).transpose(inner->inputs[0], std::move(perm)),
                    "two transposes");
}

// c as it stands beside x, where it stood beside the transposed x.
std::optional<op::Tensor> moved(const op::Tensor& c, const op::Ints& perm) {
  if (c.count() == 1 && c.rank() == 0) return c;
  op::Dims dims(perm.size() - static_cast<size_t>(std::min<int64_t>(c.rank(), std::ssize(perm))),
                1);
  if (c.rank() > static_cast<int>(perm.size())) return std::nullopt;
  dims.insert(dims.end(), c.dims().begin(), c.dims().end());
  auto result = transposed(c.reshaped(dims), inverse(perm));
  if (!result) return std::nullopt;
  // Leading axes of 1 say nothing.
  op::Dims own = result->dims();
  while (!own.empty() && own.front() == 1) own.erase(own.begin());
  return result->reshaped(own);
}

// transpose below an element-wise operator
bool sink(Site& at) {
  if (!op::elementwise(*at.node.op) || at.node.outputs.size() != 1 || at.value(at.out()).contents)
    return false;
  op::Ints perm;
  std::vector<const ir::Node*> nodes;
  for (ir::ValueId id : at.node.inputs) {
    if (id == ir::kAbsent) return false;
    if (at.constant(id)) continue;
    const ir::Node* t = at.producer(id, "transpose");
    const int reads =
        static_cast<int>(std::count(at.node.inputs.begin(), at.node.inputs.end(), id));
    if (!t || at.uses(id) != reads || (!perm.empty() && perm != t->attrs.ints("perm")) ||
        !(at.type(id).shape == at.type(at.out()).shape))
      return false;
    perm = t->attrs.ints("perm");
    nodes.push_back(t);
  }
  if (perm.empty()) return false;
  ir::Builder& b = at.build(nodes);
  std::vector<ir::ValueId> inputs;
  for (ir::ValueId id : at.node.inputs) {
    if (const op::Tensor* c = at.constant(id)) {
      const auto beside = moved(*c, perm);
      if (!beside) return false;
      inputs.push_back(b.constant(*beside));
    } else {
      inputs.push_back(at.producer(id)->inputs[0]);
    }
  }
  const ir::ValueId y = b.op(at.node.op->name, std::move(inputs), at.node.attrs);
  return at.replace(b.transpose(y, std::move(perm)),
                    fmt::format("{} before transpose", at.node.op->name));
}

// concat(transpose(x), transpose(y))
bool below_concat(Site& at) {
  if (!at.is("concat") || at.node.inputs.size() < 2) return false;
  op::Ints perm;
  std::vector<const ir::Node*> nodes;
  std::vector<ir::ValueId> inputs;
  for (ir::ValueId id : at.node.inputs) {
    const ir::Node* t = at.producer(id, "transpose");
    if (!t || at.uses(id) != 1 || (!perm.empty() && perm != t->attrs.ints("perm"))) return false;
    perm = t->attrs.ints("perm");
    nodes.push_back(t);
    inputs.push_back(t->inputs[0]);
  }
  const int64_t axis = at.node.attrs.i("axis");
  const int64_t own =
      perm[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(perm.size()) : axis)];
  ir::Builder& b = at.build(nodes);
  return at.replace(b.transpose(b.concat(std::move(inputs), own), std::move(perm)),
                    "concat before transpose");
}

// dot(a, transpose(b))
bool into_dot(Site& at) {
  if (!at.is("dot")) return false;
  const ir::Node* t = at.producer(at.in(1), "transpose");
  if (!t) return false;
  op::Ints perm = t->attrs.ints("perm");
  const auto last = static_cast<int64_t>(perm.size()) - 1;
  if (last < 1 || perm.back() == last) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  if (perm.back() != last) return false;
  op::Attrs attrs = at.node.attrs;
  attrs.set("transpose_b", int64_t{attrs.i("transpose_b") == 0});
  ir::Builder& b = at.build({t});
  const ir::ValueId rows = std::is_sorted(perm.begin(), perm.end())
                               ? t->inputs[0]
                               : b.transpose(t->inputs[0], std::move(perm));
  return at.replace(b.op("dot", {at.in(0), rows}, std::move(attrs)), "transpose in dot");
}

}  // namespace

void transposes(Rewriter& rewriter) {
  rewriter.walk([](Site& at) { return join(at) || sink(at) || below_concat(at) || into_dot(at); });
}

}  // namespace tessera::passes
