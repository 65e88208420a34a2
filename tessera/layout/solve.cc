#include "tessera/layout/solve.h"

namespace tessera::layout {
namespace {

// Applies the rules until nothing new follows.
class Solver {
 public:
  Solver(Graph* graph, std::span<const Ref> roots) : graph_(*graph) {
    set_known(0);
    for (const Ref& root : roots) set_known(root.node);
    size_t before = 0;
    do {
      before = steps_.size();
      for (int n = 0; n < graph_.size(); ++n) {
        known(n) ? backward(n) : forward(n);
        if (!known(n)) coarser(n);
      }
    } while (steps_.size() > before);
  }

  std::vector<Step>& steps() { return steps_; }
  bool known(int n) const {
    return static_cast<size_t>(n) < known_.size() && known_[static_cast<size_t>(n)];
  }

 private:
  void set_known(int n) {
    if (static_cast<size_t>(n) >= known_.size()) known_.resize(static_cast<size_t>(n) + 1);
    known_[static_cast<size_t>(n)] = true;
  }
  void conclude(Step step) {
    if (known(step.target)) return;
    set_known(step.target);
    steps_.push_back(step);
  }

  void forward(int n) {
    const Node& node = graph_[n];
    if (node.args.empty()) return;
    for (const Ref& arg : node.args)
      if (!known(arg.node)) return;
    conclude({.kind = StepKind::kForward, .target = n});
  }

  // A quotient or remainder as x/by % modulus; modulus 0: none.
  struct Part {
    int x;
    int64_t by;
    int64_t modulus;
  };
  Part part_of(const Node& node) const {
    const Node& arg = graph_[node.args[0].node];
    if (node.kind == NodeKind::kDiv) return {node.args[0].node, node.by, 0};
    if (arg.kind == NodeKind::kDiv) return {arg.args[0].node, arg.by, node.by};
    return {node.args[0].node, 1, node.by};
  }

  // x/k from x/j with j | k; x/k%m from x/j%l with j | k and (k/j) m | l.
  void coarser(int n) {
    const auto divides = [&](int i) {
      return graph_[i].kind == NodeKind::kDiv || graph_[i].kind == NodeKind::kMod;
    };
    if (!divides(n)) return;
    const Part want = part_of(graph_[n]);
    for (int i = 0; i < graph_.size(); ++i) {
      if (!known(i) || !divides(i)) continue;
      const Part have = part_of(graph_[i]);
      if (have.x != want.x || want.by % have.by != 0) continue;
      const int64_t k = want.by / have.by;
      if (have.modulus != 0 &&
          (want.modulus == 0 || have.modulus % saturating_product(k, want.modulus) != 0))
        continue;
      conclude({.kind = StepKind::kDigit, .target = n, .a = i, .k = k, .m = want.modulus});
    }
  }

  void backward(int n) {
    switch (graph_[n].kind) {
      case NodeKind::kZero:
      case NodeKind::kLetter:
        return;
      case NodeKind::kMerge:
        return unmerge(n);
      case NodeKind::kDiv:
        return quotient(n);
      case NodeKind::kMod:
        return remainder(n);
      case NodeKind::kJoin:
        return unjoin(n);
      case NodeKind::kJoinMod:
        return segment(n);
      case NodeKind::kXor:
        return unxor(n);
    }
  }

  void unmerge(int n) {
    const Node& node = graph_[n];
    for (size_t i = 0; i < node.args.size(); ++i)
      conclude({.kind = StepKind::kDigit,
                .target = node.args[i].node,
                .a = n,
                .k = node.strides[i],
                .m = node.args[i].size});
  }

  // x/k here and x%a known with k | a.
  void quotient(int n) {
    const Node& node = graph_[n];
    for (int r = 0; r < graph_.size(); ++r)
      if (known(r) && graph_[r].kind == NodeKind::kMod && graph_[r].args == node.args &&
          graph_[r].by % node.by == 0)
        conclude(
            {.kind = StepKind::kDigits, .target = node.args[0].node, .a = n, .b = r, .k = node.by});
  }

  // x%k here and x/k, in whatever normal form, known.
  void remainder(int n) {
    const int x = graph_[n].args[0].node;
    const int64_t k = graph_[n].by;
    if (known(x)) return;
    const int q = graph_.div({x, graph_[x].bound}, k).node;
    if (known(q)) conclude({.kind = StepKind::kDigits, .target = x, .a = q, .b = n, .k = k});
  }

  void unjoin(int n) {
    if (graph_[n].by == 1)
      conclude({.kind = StepKind::kUnjoin, .target = graph_[n].args[0].node, .a = n});
  }

  void segment(int n) {
    const int64_t k = graph_[n].modulus;
    const int x = graph_.join_of(graph_[n]);
    if (x == 0 || known(x)) return;
    const int q = graph_.div({x, graph_[x].bound}, k).node;
    if (q != 0 && known(q))
      conclude({.kind = StepKind::kSegment, .target = x, .a = q, .b = n, .k = k});
  }

  void unxor(int n) {
    const Node& node = graph_[n];
    int unknown = -1;
    int count = 0;
    for (const Ref& arg : node.args)
      if (!known(arg.node)) {
        unknown = arg.node;
        ++count;
      }
    if (count == 1) conclude({.kind = StepKind::kUnxor, .target = unknown, .a = n});
  }

  Graph& graph_;
  std::vector<bool> known_;
  std::vector<Step> steps_;
};

// The position among joined segments from quotient and remainder; false if it lies behind its
// segment.
bool join_position(const Node& join, const Node& quotients, int64_t q, int64_t r, int64_t k,
                   int64_t* position) {
  size_t j = join.segments.size();
  while (j > 0 && quotients.bases[j - 1] > q) --j;
  if (j == 0) return false;
  *position = join.bases[j - 1] + (q - quotients.bases[j - 1]) * k + r;
  return *position < (j < join.bases.size() ? join.bases[j] : join.bound);
}

int64_t letter_at(const Node& join, int64_t position) {
  size_t j = join.bases.size() - 1;
  while (join.bases[j] > position) --j;
  return join.segments[j].lo + position - join.bases[j];
}

}  // namespace

Result<Inverse> Inverse::solve(Graph* graph, std::span<const Ref> roots, std::string_view letters) {
  Solver solver(graph, roots);
  for (int axis = 0; axis < static_cast<int>(graph->extents().size()); ++axis) {
    const int64_t extent = graph->extents()[static_cast<size_t>(axis)];
    if (extent <= 1) continue;
    bool found = false;
    for (int n = 0; n < graph->size() && !found; ++n)
      found = (*graph)[n].kind == NodeKind::kLetter && (*graph)[n].axis == axis && solver.known(n);
    if (!found)
      return error(Code::kInvalidArgument,
                   "places do not tell the positions of logical axis {} ('{}', extent {}) apart",
                   axis, letters[static_cast<size_t>(axis)], extent);
  }
  Inverse inverse;
  inverse.steps_ = std::move(solver.steps());
  return inverse;
}

bool Inverse::run(const Graph& graph, std::span<int64_t> values) const {
  const auto v = [&](int n) -> int64_t& { return values[static_cast<size_t>(n)]; };
  for (const Step& s : steps_) {
    switch (s.kind) {
      case StepKind::kDigit:
        v(s.target) = s.m == 0 ? v(s.a) / s.k : v(s.a) / s.k % s.m;
        break;
      case StepKind::kDigits:
        if (v(s.a) > kMaxSize / s.k) return false;
        v(s.target) = v(s.a) * s.k + v(s.b) % s.k;
        break;
      case StepKind::kSegment:
        if (!join_position(graph[s.target], graph[s.a], v(s.a), v(s.b), s.k, &v(s.target)))
          return false;
        break;
      case StepKind::kUnjoin:
        if (v(s.a) >= graph[s.a].bound) return false;
        v(s.target) = letter_at(graph[s.a], v(s.a));
        break;
      case StepKind::kUnxor:
        v(s.target) = v(s.a);
        for (const Ref& arg : graph[s.a].args)
          if (arg.node != s.target) v(s.target) ^= v(arg.node);
        break;
      case StepKind::kForward:
        v(s.target) = graph.evaluate_node(graph[s.target], values);
        break;
    }
    if (v(s.target) >= graph[s.target].bound) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> Inverse::element_at(const Graph& graph,
                                                        std::span<const Ref> roots,
                                                        std::span<const int64_t> place) const {
  std::vector<int64_t> values(static_cast<size_t>(graph.size()));
  for (size_t a = 0; a < roots.size(); ++a) values[static_cast<size_t>(roots[a].node)] = place[a];
  values[0] = 0;
  if (!run(graph, values)) return std::nullopt;
  std::vector<int64_t> index(graph.extents().size());
  for (int n = 0; n < graph.size(); ++n)
    if (graph[n].kind == NodeKind::kLetter)
      index[static_cast<size_t>(graph[n].axis)] = values[static_cast<size_t>(n)];
  for (size_t axis = 0; axis < index.size(); ++axis)
    if (index[axis] >= graph.extents()[axis]) return std::nullopt;
  graph.evaluate(index, values);
  for (size_t a = 0; a < roots.size(); ++a)
    if (values[static_cast<size_t>(roots[a].node)] != place[a]) return std::nullopt;
  return index;
}

}  // namespace tessera::layout
