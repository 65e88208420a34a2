// Layout expressions bound to extents, as a graph of shared nodes in a normal form: equal values
// are (mostly) one node. Internal to layout. Node ids are topological: arguments come before their
// users.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/layout/layout.h"

namespace tessera::layout {

inline constexpr int kMaxNodes = 512;
inline constexpr int64_t kMaxSize = int64_t{1} << 62;

enum class NodeKind : uint8_t {
  kZero,
  kLetter,
  kMerge,    // sum of args[i] * strides[i]
  kDiv,      // args[0] / by
  kMod,      // args[0] % by
  kJoin,     // in segment j of args[0]: bases[j] + (letter - lo_j) / by
  kJoinMod,  // (letter - lo_j) / by % modulus
  kXor,
};

// A node and the number of positions its expression reserves (padding included).
struct Ref {
  int node = 0;
  int64_t size = 1;
  bool operator==(const Ref&) const = default;
};

struct Node {
  NodeKind kind = NodeKind::kZero;
  int axis = -1;
  int64_t by = 1;
  int64_t modulus = 0;
  std::vector<Ref> args = {};
  std::vector<int64_t> strides = {};  // kMerge; of args[0] the size is not used and 0
  std::vector<Segment> segments = {};
  std::vector<int64_t> bases = {};
  int64_t bound = 1;  // values of elements are below it

  // The segment that holds `position`, which must be covered.
  size_t segment_of(int64_t position) const;
  bool same_term(const Node& o) const {
    return kind == o.kind && axis == o.axis && by == o.by && modulus == o.modulus &&
           args == o.args && segments == o.segments;
  }
};

// value + t * slope for 0 <= t < length, as one axis moves by t. Not initialised: arrays of it lie
// on hot stacks.
struct Affine {
  int64_t value;
  int64_t slope;
  int64_t length;
};

class Graph {
 public:
  explicit Graph(std::span<const int64_t> extents);

  // kInvalidArgument: segments that do not cover their axis; kOutOfRange: sizes beyond kMaxSize.
  Result<Ref> add(const Expr& e);
  // Normal forms of quotients and parts, for the solver. After overflow of kMaxNodes they return
  // the node zero.
  Ref div(Ref x, int64_t k);
  int join_of(const Node& join_mod);  // the kJoin whose remainder by `modulus` this node is

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](int node) const { return nodes_[static_cast<size_t>(node)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  std::span<const int64_t> extents() const { return extents_; }

  // values[n] of every node; the span holds size() entries.
  void evaluate(std::span<const int64_t> index, std::span<int64_t> values) const;
  int64_t evaluate_node(const Node& node, std::span<const int64_t> values) const;
  void evaluate_lines(std::span<const int64_t> index, int axis, std::span<Affine> lines) const;
  // Which logical axes node depends on, as a flag per axis.
  std::vector<bool> axes_of(int node) const;

 private:
  int intern(Node node);
  Ref mod(Ref x, int64_t k);
  Ref letter(int axis);
  Result<Ref> add_merge(const Expr& e);
  Result<Ref> add_join(const Expr& e);
  Result<Ref> add_xor(const Expr& e);
  Ref merge(std::vector<Ref> args);
  int part_of(Node join_mod, int64_t g);
  int join(const Node& letter_join, int64_t by);
  bool flatten(std::vector<Ref>* args);
  bool fuse_digits(std::vector<Ref>* args);
  Ref div_merge(const Node& m, Ref x, int64_t k);
  Ref mod_merge(const Node& m, Ref x, int64_t k);

  std::vector<int64_t> extents_;
  std::vector<Node> nodes_;
  bool full_ = false;
};

int64_t ceil_div(int64_t a, int64_t b);
int64_t saturating_product(int64_t a, int64_t b);
// kOutOfRange beyond kMaxSize; 0 if any factor is 0.
Result<int64_t> checked_product(std::span<const int64_t> factors);

}  // namespace tessera::layout
