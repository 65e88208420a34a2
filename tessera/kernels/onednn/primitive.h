// Primitives of oneDNN as plain data: what the launches' constant blocks hold, and where the
// compiled ones are kept.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tessera/kernels/onednn/library.h"

namespace tessera::kernels::onednn {

inline constexpr int kMaxAxes = 6;
inline constexpr int kMaxPostOps = 4;

// An operand in f32.
struct Place {
  int64_t dims[kMaxAxes];
  int64_t strides[kMaxAxes];  // elements
};

enum class Kind : int64_t {
  kConv,
  kDot,
  kAveragePool,         // of the elements inside
  kAveragePoolPadding,  // of padding, too
  kLayerNorm,
};

enum class PostKind : int64_t { kAdd, kMul };
struct PostOp {
  PostKind kind;
  int64_t range;  // of the operand among the launch's
  int64_t rank;
  Place operand;
};

// All words of 8 bytes, none left over: equal specs have equal bytes.
struct Spec {
  Kind kind;
  int64_t rank, weights_rank;  // axes of x and y; of w, where there is one
  Place x, w, y;
  int64_t any_weights;  // w lies as oneDNN likes best
  int64_t has_bias;     // conv, layer_norm: as many elements as channels
  int64_t has_scale;    // layer_norm
  int64_t stride[3], dilation[3], pad[3], pad_end[3], kernel[3];  // innermost spatial axis last
  double epsilon;
  int64_t posts;
  PostOp post[kMaxPostOps];
};

// What oneDNN does for a spec; compiled when that is first needed. Safe to use from several threads
// at once.
class Primitive {
 public:
  // kUnimplemented where oneDNN has none, or none but its reference; `weights`: how w lies, if not
  // as the spec says.
  static Result<std::shared_ptr<const Primitive>> make(const Spec& spec,
                                                       const dnnl_memory_desc_t* weights = nullptr);
  // The same out of a bounded store that all share.
  static Result<std::shared_ptr<const Primitive>> get(const Spec& spec,
                                                      const dnnl_memory_desc_t* weights = nullptr);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  const dnnl_memory_desc_t& weights() const { return weights_; }
  const std::string& implementation() const { return implementation_; }

  Status compile() const;
  // Operands' addresses; those that the spec lacks are not read.
  struct Data {
    const void *x, *w, *bias, *scale;
    void* y;
    const void* posts[kMaxPostOps];
  };
  Status run(const Data& data) const;

 private:
  explicit Primitive(const Library& library) : library_(library) {}

  const Library& library_;
  dnnl_primitive_desc_t desc_ = nullptr;
  mutable std::once_flag once_;
  mutable dnnl_primitive_t primitive_ = nullptr;  // null after `once_`: it failed
  Spec spec_ = {};
  dnnl_memory_desc_t x_ = {}, weights_ = {}, bias_ = {}, y_ = {}, posts_[kMaxPostOps] = {};
  dnnl_memory_desc_t scratch_ = {};
  std::string implementation_;
};

// From the spec's own layout of w to another.
Status reorder_weights(const Spec& spec, const dnnl_memory_desc_t& to, const void* source,
                       void* target);

}  // namespace tessera::kernels::onednn
