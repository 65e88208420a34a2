#include "tessera/layout/graph.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace tessera::layout {
namespace {

int64_t product_of_inner(std::span<const Ref> args) {
  int64_t product = 1;
  for (size_t i = 1; i < args.size(); ++i) product *= args[i].size;
  return product;
}

int64_t power_of_two_above(int64_t size) {
  return size == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
}

}  // namespace

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

Result<int64_t> checked_product(std::span<const int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  int64_t product = 1;
  for (const int64_t factor : factors)
    if (product = saturating_product(product, factor); product > kMaxSize)
      return error(Code::kOutOfRange, "size {} exceeds 2^62 elements", fmt::join(factors, " x "));
  return product;
}

size_t Node::segment_of(int64_t position) const {
  size_t j = 0;
  while (position < segments[j].lo || position >= segments[j].hi) ++j;
  return j;
}

Graph::Graph(std::span<const int64_t> extents) : extents_(extents.begin(), extents.end()) {
  nodes_.emplace_back();
}

int Graph::intern(Node node) {
  for (size_t n = 0; n < nodes_.size(); ++n)
    if (nodes_[n].same_term(node)) return static_cast<int>(n);
  if (size() >= kMaxNodes) full_ = true;
  if (full_) return 0;
  nodes_.push_back(std::move(node));
  return size() - 1;
}

Ref Graph::letter(int axis) {
  const int64_t extent = extents_[static_cast<size_t>(axis)];
  if (extent == 1) return {0, 1};
  return {intern({.kind = NodeKind::kLetter, .axis = axis, .bound = extent}), extent};
}

Result<Ref> Graph::add(const Expr& e) {
  Ref ref;
  switch (e.kind) {
    case ExprKind::kLetter:
      ref = letter(e.axis);
      break;
    case ExprKind::kMerge: {
      TRY_ASSIGN(ref, add_merge(e));
      break;
    }
    case ExprKind::kJoin: {
      TRY_ASSIGN(ref, add_join(e));
      break;
    }
    case ExprKind::kXor: {
      TRY_ASSIGN(ref, add_xor(e));
      break;
    }
    case ExprKind::kDiv: {
      TRY_ASSIGN(const Ref arg, add(e.args[0]));
      ref = div(arg, e.by);
      break;
    }
    case ExprKind::kMod: {
      TRY_ASSIGN(const Ref arg, add(e.args[0]));
      ref = mod(arg, e.by);
      break;
    }
  }
  if (full_)
    return error(Code::kInvalidArgument, "layout needs more than {} terms in normal form",
                 kMaxNodes);
  if (ref.size > kMaxSize)
    return error(Code::kOutOfRange, "an expression has size {}, beyond 2^62", ref.size);
  return ref;
}

Result<Ref> Graph::add_merge(const Expr& e) {
  std::vector<Ref> args;
  std::vector<int64_t> sizes;
  for (const Expr& arg : e.args) {
    TRY_ASSIGN(args.emplace_back(), add(arg));
    sizes.push_back(args.back().size);
  }
  TRY_ASSIGN(const int64_t total, checked_product(sizes));
  if (total == 0) return Ref{0, 0};
  return merge(std::move(args));
}

// Drops leading positions that are always 0, unnests, fuses digits; a lone join keeps its own merge
// node, so that divisions of the merge do not act on the segments.
Ref Graph::merge(std::vector<Ref> args) {
  int64_t total = 1;
  for (const Ref& arg : args) total *= arg.size;
  while (flatten(&args) || fuse_digits(&args)) {
  }
  if (args.empty()) return {0, total};
  if (args.size() == 1 && (*this)[args[0].node].kind != NodeKind::kJoin)
    return {args[0].node, total};
  Node node{.kind = NodeKind::kMerge, .args = args};
  int64_t stride = product_of_inner(args);
  bool empty = false;
  node.bound = 1;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) stride /= args[i].size;
    node.strides.push_back(stride);
    const int64_t bound = (*this)[args[i].node].bound;
    empty |= bound == 0;
    node.bound += (bound - 1) * stride;
  }
  if (empty) node.bound = 0;
  node.args[0].size = 0;
  return {intern(std::move(node)), total};
}

bool Graph::flatten(std::vector<Ref>* args) {
  const size_t before = args->size();
  while (!args->empty() && args->front().node == 0) args->erase(args->begin());
  std::erase_if(*args, [](Ref r) { return r.node == 0 && r.size == 1; });
  for (size_t i = 0; i < args->size(); ++i) {
    const Ref ref = (*args)[i];
    const Node& node = (*this)[ref.node];
    if (node.kind != NodeKind::kMerge) continue;
    const int64_t inner = product_of_inner(node.args);
    if (i > 0 && ref.size % inner != 0) continue;
    std::vector<Ref> parts = node.args;
    parts[0].size = std::max<int64_t>(ref.size / inner, 1);
    args->erase(args->begin() + static_cast<std::ptrdiff_t>(i));
    args->insert(args->begin() + static_cast<std::ptrdiff_t>(i), parts.begin(), parts.end());
    return args->size() != 1 || before != 1;
  }
  return args->size() != before;
}

// (... e/k e%k ...) -> (... e ...)
bool Graph::fuse_digits(std::vector<Ref>* args) {
  for (size_t i = 0; i + 1 < args->size(); ++i) {
    const Ref low = (*args)[i + 1];
    const Node digit = (*this)[low.node];
    if (digit.kind != NodeKind::kMod || digit.by != low.size) continue;
    if (div({digit.args[0].node, (*this)[digit.args[0].node].bound}, digit.by).node !=
        (*args)[i].node)
      continue;
    (*args)[i] = {digit.args[0].node, (*args)[i].size * low.size};
    args->erase(args->begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

Result<Ref> Graph::add_join(const Expr& e) {
  const int64_t extent = extents_[static_cast<size_t>(e.axis)];
  int64_t covered = 0;
  int64_t end = 0;
  for (const Segment& s : e.segments) {
    covered += s.hi - s.lo;
    end = std::max(end, s.hi);
  }
  if (covered != extent || end != extent)
    return error(Code::kInvalidArgument,
                 "segments hold {} positions up to {}, but logical axis {} has extent {}", covered,
                 end, e.axis, extent);
  const Ref whole = letter(e.axis);
  if (e.segments.size() == 1) return whole;
  Node node{.kind = NodeKind::kJoin, .args = {whole}, .segments = e.segments};
  return Ref{join(node, 1), extent};
}

// The join of the same segments, each divided by `by`.
int Graph::join(const Node& letter_join, int64_t by) {
  Node node{.kind = NodeKind::kJoin,
            .by = by,
            .args = letter_join.args,
            .segments = letter_join.segments};
  node.bound = 0;
  for (const Segment& s : node.segments) {
    node.bases.push_back(node.bound);
    node.bound += ceil_div(s.hi - s.lo, by);
  }
  return intern(std::move(node));
}

int Graph::join_of(const Node& join_mod) {
  const Node copy = join_mod;
  return join(copy, copy.by);
}

Result<Ref> Graph::add_xor(const Expr& e) {
  Node node{.kind = NodeKind::kXor};
  int64_t size = 0;
  int64_t bound = 0;
  bool empty = false;
  for (const Expr& arg : e.args) {
    TRY_ASSIGN(const Ref ref, add(arg));
    empty |= ref.size == 0;
    size = std::max(size, ref.size);
    bound = std::max(bound, (*this)[ref.node].bound);
    if (ref.node != 0) node.args.push_back({ref.node, 0});
  }
  if (empty) return Ref{0, 0};
  if (size > kMaxSize) return error(Code::kOutOfRange, "xor of size {} exceeds 2^62", size);
  size = power_of_two_above(size);
  if (node.args.empty()) return Ref{0, size};
  if (node.args.size() == 1 && (*this)[node.args[0].node].kind != NodeKind::kJoin)
    return Ref{node.args[0].node, size};
  node.bound = power_of_two_above(bound);
  return Ref{intern(std::move(node)), size};
}

// A remainder of segments divided by g, which divides its modulus.
int Graph::part_of(Node join_mod, int64_t g) {
  join_mod.by = saturating_product(join_mod.by, g);
  join_mod.modulus /= g;
  join_mod.bound = std::min(join_mod.bound, join_mod.modulus);
  return join_mod.modulus == 1 ? 0 : intern(std::move(join_mod));
}

Ref Graph::div(Ref x, int64_t k) {
  const Node node = (*this)[x.node];
  if (node.kind == NodeKind::kJoin) {
    const int quotient = join(node, saturating_product(node.by, k));
    return {quotient, (*this)[quotient].bound};
  }
  const int64_t size = ceil_div(x.size, k);
  if (k == 1) return x;
  if (k >= node.bound) return {0, size};
  if (node.kind == NodeKind::kDiv)
    return {div({node.args[0].node, x.size}, saturating_product(node.by, k)).node, size};
  if (node.kind == NodeKind::kMod)
    if (const int64_t g = std::gcd(node.by, k); g > 1) {
      const Ref part = div({node.args[0].node, (*this)[node.args[0].node].bound}, g);
      return {div(mod(part, node.by / g), k / g).node, size};
    }
  if (node.kind == NodeKind::kJoinMod)
    if (const int64_t g = std::gcd(node.modulus, k); g > 1)
      return {div({part_of(node, g), x.size}, k / g).node, size};
  if (node.kind == NodeKind::kMerge)
    if (const Ref quotient = div_merge(node, x, k); quotient.size >= 0)
      return {quotient.node, size};
  return {intern({.kind = NodeKind::kDiv,
                  .by = k,
                  .args = {{x.node, 0}},
                  .bound = ceil_div(node.bound, k)}),
          size};
}

// (a z)/k with g = gcd(|z|, k): (a z/g)/(k/g). Size -1: g is 1, nothing to gain.
Ref Graph::div_merge(const Node& m, Ref x, int64_t k) {
  std::vector<Ref> args = m.args;
  const Ref last = args.back();
  args[0].size = ceil_div(std::max<int64_t>(x.size, 1), product_of_inner(m.args));
  if (args.size() < 2) return {0, -1};
  const int64_t g = std::gcd(last.size, k);
  if (g == 1 || (g != last.size && (*this)[last.node].kind == NodeKind::kJoin)) return {0, -1};
  args.pop_back();
  if (g != last.size) args.push_back({div(last, g).node, last.size / g});
  return div(merge(std::move(args)), k / g);
}

Ref Graph::mod(Ref x, int64_t k) {
  const Node node = (*this)[x.node];
  if (k == 1) return {0, 1};
  if (node.kind == NodeKind::kJoin) {
    Node part = node;
    part.kind = NodeKind::kJoinMod;
    part.modulus = k;
    part.bases.clear();
    part.bound = k;
    return {intern(std::move(part)), k};
  }
  if (node.bound <= k) return {x.node, k};
  if (node.kind == NodeKind::kMod && node.by % k == 0) return mod({node.args[0].node, k}, k);
  if (node.kind == NodeKind::kJoinMod && node.modulus % k == 0) {
    Node part = node;
    part.modulus = part.bound = k;
    return {intern(std::move(part)), k};
  }
  if (node.kind == NodeKind::kMerge)
    if (const Ref digit = mod_merge(node, x, k); digit.size >= 0) return {digit.node, k};
  return {intern({.kind = NodeKind::kMod, .by = k, .args = {{x.node, 0}}, .bound = k}), k};
}

// (a z)%k with g = gcd(|z|, k): ((a z/g)%(k/g) z%g). Size -1: g is 1, nothing to gain.
Ref Graph::mod_merge(const Node& m, Ref x, int64_t k) {
  const Ref last = m.args.back();
  if (m.args.size() < 2) return {0, -1};
  const int64_t g = std::gcd(last.size, k);
  if (g == 1 || (g != last.size && (*this)[last.node].kind == NodeKind::kJoin)) return {0, -1};
  const Ref low = g == last.size ? last : mod(last, g);
  if (g == k) return low;
  return merge({mod(div(x, g), k / g), low});
}

}  // namespace tessera::layout
