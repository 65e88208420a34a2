#include "tessera/kernels/onednn/primitive.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::kernels::onednn {
namespace {

constexpr size_t kMostKept = 1024;  // compiled primitives
constexpr int kWindowAxes = 3;

tl::unexpected<Error> none(std::string_view doing, dnnl_status_t status) {
  return error(Code::kUnimplemented, "oneDNN cannot {} (status {})", doing,
               static_cast<int>(status));
}

#define TRY_DNNL(call, doing) \
  if (const dnnl_status_t status_ = (call); status_ != dnnl_success) return none(doing, status_)

Result<dnnl_memory_desc_t> described(const Library& l, const Place& p, int64_t rank) {
  dnnl_memory_desc_t md;
  std::memset(&md, 0, sizeof md);
  TRY_DNNL(
      l.dnnl_memory_desc_init_by_strides(&md, static_cast<int>(rank), p.dims, dnnl_f32, p.strides),
      "describe an operand");
  return md;
}

Result<dnnl_memory_desc_t> any_order(const Library& l, const Place& p, int64_t rank) {
  dnnl_memory_desc_t md;
  std::memset(&md, 0, sizeof md);
  TRY_DNNL(l.dnnl_memory_desc_init_by_tag(&md, static_cast<int>(rank), p.dims, dnnl_f32,
                                          dnnl_format_tag_any),
           "describe weights");
  return md;
}

Result<dnnl_memory_desc_t> vector_of(const Library& l, int64_t count) {
  return described(l, {{count}, {1}}, 1);
}

// The objects of one compilation, freed together.
struct Handles {
  const Library& library;
  dnnl_post_ops_t posts = nullptr;
  dnnl_primitive_attr_t attr = nullptr;
  dnnl_primitive_desc_t desc = nullptr;

  explicit Handles(const Library& l) : library(l) {}
  ~Handles() {
    if (desc) library.dnnl_primitive_desc_destroy(desc);
    if (attr) library.dnnl_primitive_attr_destroy(attr);
    if (posts) library.dnnl_post_ops_destroy(posts);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
};

struct Operands {
  dnnl_memory_desc_t x, w, bias, y;
};

// Windows of the spec's spatial axes.
struct Window {
  dnnl_dims_t stride, dilation, pad, pad_end, kernel;
};
Window window_of(const Spec& s) {
  Window w = {};
  const int64_t axes = s.rank - 2;
  for (int64_t a = 0; a < axes; ++a) {
    const int64_t i = kWindowAxes - axes + a;
    w.stride[a] = s.stride[i];
    w.dilation[a] = s.dilation[i] - 1;
    w.pad[a] = s.pad[i];
    w.pad_end[a] = s.pad_end[i];
    w.kernel[a] = s.kernel[i];
  }
  return w;
}

union OpDesc {
  dnnl_convolution_desc_t conv;
  dnnl_matmul_desc_t dot;
  dnnl_pooling_v2_desc_t pool;
  dnnl_layer_normalization_desc_t norm;
};

dnnl_status_t describe(const Library& l, const Spec& s, const Operands& o, OpDesc& d) {
  const Window w = window_of(s);
  const dnnl_memory_desc_t* bias = s.has_bias ? &o.bias : nullptr;
  const auto pool = [&](dnnl_alg_kind_t kind) {
    return l.dnnl_pooling_v2_forward_desc_init(&d.pool, dnnl_forward_inference, kind, &o.x, &o.y,
                                               w.stride, w.kernel, w.dilation, w.pad, w.pad_end);
  };
  switch (s.kind) {
    case Kind::kConv:
      return l.dnnl_dilated_convolution_forward_desc_init(
          &d.conv, dnnl_forward_inference, dnnl_convolution_direct, &o.x, &o.w, bias, &o.y,
          w.stride, w.dilation, w.pad, w.pad_end);
    case Kind::kDot:
      return l.dnnl_matmul_desc_init(&d.dot, &o.x, &o.w, nullptr, &o.y);
    case Kind::kAveragePool:
      return pool(dnnl_pooling_avg_exclude_padding);
    case Kind::kAveragePoolPadding:
      return pool(dnnl_pooling_avg_include_padding);
    case Kind::kLayerNorm:
      return l.dnnl_layer_normalization_forward_desc_init(
          &d.norm, dnnl_forward_inference, &o.x, nullptr, static_cast<float>(s.epsilon),
          (s.has_scale ? unsigned{dnnl_use_scale} : 0u) |
              (s.has_bias ? unsigned{dnnl_use_shift} : 0u));
  }
  return dnnl_invalid_arguments;
}

Status append(const Library& l, const PostOp& post, dnnl_memory_desc_t& operand, Handles& handles) {
  TRY_ASSIGN(operand, described(l, post.operand, post.rank));
  TRY_DNNL(
      l.dnnl_post_ops_append_binary(
          handles.posts, post.kind == PostKind::kAdd ? dnnl_binary_add : dnnl_binary_mul, &operand),
      "add a step");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Primitive>> Primitive::make(const Spec& s,
                                                         const dnnl_memory_desc_t* weights) {
  if (!library()) return tl::unexpected(library().error());
  const Library& l = *library();
  const OneThread one(l);
  std::shared_ptr<Primitive> p(new Primitive(l));
  p->spec_ = s;
  Operands o = {};
  TRY_ASSIGN(o.x, described(l, s.x, s.rank));
  TRY_ASSIGN(o.y, described(l, s.y, s.rank));
  if (s.weights_rank > 0) {
    TRY_ASSIGN(
        o.w, s.any_weights ? any_order(l, s.w, s.weights_rank) : described(l, s.w, s.weights_rank));
    if (weights) o.w = *weights;
  }
  if (s.has_bias || s.has_scale) {
    TRY_ASSIGN(o.bias, vector_of(l, s.kind == Kind::kConv ? s.y.dims[1] : s.x.dims[s.rank - 1]));
  }
  Handles h(l);
  TRY_DNNL(l.dnnl_post_ops_create(&h.posts), "make steps");
  for (int64_t i = 0; i < s.posts; ++i) TRY(append(l, s.post[i], p->posts_[i], h));
  TRY_DNNL(l.dnnl_primitive_attr_create(&h.attr), "make attributes");
  TRY_DNNL(l.dnnl_primitive_attr_set_post_ops(h.attr, h.posts), "set steps");
  TRY_DNNL(l.dnnl_primitive_attr_set_scratchpad_mode(h.attr, dnnl_scratchpad_mode_user),
           "set the scratchpad");
  OpDesc d;
  std::memset(static_cast<void*>(&d), 0, sizeof d);
  TRY_DNNL(describe(l, s, o, d), "describe the operator");
  TRY_DNNL(l.dnnl_primitive_desc_create(&h.desc, &d, h.attr, l.engine, nullptr),
           "do this: it has no implementation");
  const char* name = "";
  TRY_DNNL(l.dnnl_primitive_desc_query(h.desc, dnnl_query_impl_info_str, 0, &name), "name itself");
  p->implementation_ = name;
  if (std::string_view(name).find("ref") != std::string_view::npos)
    return error(Code::kUnimplemented, "oneDNN has only its reference ('{}') for this", name);
  if (s.weights_rank > 0)
    p->weights_ = *l.dnnl_primitive_desc_query_md(h.desc, dnnl_query_weights_md, 0);
  p->scratch_ = *l.dnnl_primitive_desc_query_md(h.desc, dnnl_query_scratchpad_md, 0);
  p->x_ = o.x, p->y_ = o.y, p->bias_ = o.bias;
  p->desc_ = std::exchange(h.desc, nullptr);
  return std::shared_ptr<const Primitive>(std::move(p));
}

Primitive::~Primitive() {
  if (primitive_) library_.dnnl_primitive_destroy(primitive_);
  if (desc_) library_.dnnl_primitive_desc_destroy(desc_);
}

Status Primitive::compile() const {
  std::call_once(once_, [this] {
    const OneThread one(library_);
    if (library_.dnnl_primitive_create(&primitive_, desc_) != dnnl_success) primitive_ = nullptr;
  });
  if (!primitive_) return error(Code::kResourceExhausted, "oneDNN cannot compile this");
  return {};
}

namespace {

// The most recently used ones, by the bytes that they were made from.
class Store {
 public:
  Result<std::shared_ptr<const Primitive>> get(const Spec& spec,
                                               const dnnl_memory_desc_t* weights) {
    std::string key(reinterpret_cast<const char*>(&spec), sizeof spec);
    if (weights) key.append(reinterpret_cast<const char*>(weights), sizeof *weights);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = by_key_.find(key); found != by_key_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
      }
    }
    TRY_ASSIGN(auto made, Primitive::make(spec, weights));
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->second;
    order_.emplace_front(key, made);
    by_key_.emplace(std::move(key), order_.begin());
    if (order_.size() > kMostKept) {
      by_key_.erase(order_.back().first);
      order_.pop_back();
    }
    return made;
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Primitive>>;
  std::mutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

// Memory objects and the stream of one execution.
class Execution {
 public:
  explicit Execution(const Library& library) : library_(library) {
    if (library_.dnnl_stream_create(&stream_, library_.engine, dnnl_stream_default_flags) !=
        dnnl_success)
      stream_ = nullptr;
  }
  ~Execution() {
    for (int i = 0; i < count_; ++i) library_.dnnl_memory_destroy(arguments_[i].memory);
    if (stream_) library_.dnnl_stream_destroy(stream_);
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  void bind(int argument, const dnnl_memory_desc_t& md, const void* data) {
    dnnl_memory_t memory = nullptr;
    if (library_.dnnl_memory_create(&memory, &md, library_.engine, const_cast<void*>(data)) !=
        dnnl_success) {
      fine_ = false;
      return;
    }
    arguments_[count_++] = {argument, memory};
  }
  Status run(dnnl_primitive_t primitive) {
    if (!stream_ || !fine_) return error(Code::kResourceExhausted, "oneDNN cannot bind operands");
    const dnnl_status_t status =
        library_.dnnl_primitive_execute(primitive, stream_, count_, arguments_);
    if (status != dnnl_success)
      return error(Code::kInternal, "oneDNN failed with status {}", static_cast<int>(status));
    return {};
  }

 private:
  const Library& library_;
  dnnl_stream_t stream_ = nullptr;
  int count_ = 0;
  bool fine_ = true;
  dnnl_exec_arg_t arguments_[6 + kMaxPostOps] = {};
};

// Scratch memory of the calling thread, aligned to pages.
void* scratch(size_t bytes) {
  constexpr size_t kAlign = 4096;
  thread_local std::vector<std::byte> memory;
  if (bytes == 0) return nullptr;
  if (memory.size() < bytes + kAlign) memory.resize(bytes + kAlign);
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<void*>((at + kAlign - 1) / kAlign * kAlign);
}

}  // namespace

Result<std::shared_ptr<const Primitive>> Primitive::get(const Spec& spec,
                                                        const dnnl_memory_desc_t* weights) {
  static Store store;
  return store.get(spec, weights);
}

Status Primitive::run(const Data& data) const {
  TRY(compile());
  const OneThread one(library_);
  Execution e(library_);
  e.bind(DNNL_ARG_SRC, x_, data.x);
  e.bind(DNNL_ARG_DST, y_, data.y);
  if (spec_.weights_rank > 0) e.bind(DNNL_ARG_WEIGHTS, weights_, data.w);
  if (spec_.has_scale) e.bind(DNNL_ARG_SCALE, bias_, data.scale);
  if (spec_.has_bias)
    e.bind(spec_.kind == Kind::kLayerNorm ? DNNL_ARG_SHIFT : DNNL_ARG_BIAS, bias_, data.bias);
  for (int i = 0; i < static_cast<int>(spec_.posts); ++i)
    e.bind(DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1, posts_[i], data.posts[i]);
  e.bind(DNNL_ARG_SCRATCHPAD, scratch_, scratch(library_.dnnl_memory_desc_get_size(&scratch_)));
  return e.run(primitive_);
}

Status reorder_weights(const Spec& spec, const dnnl_memory_desc_t& to, const void* source,
                       void* target) {
  if (!library()) return tl::unexpected(library().error());
  const Library& l = *library();
  const OneThread one(l);
  TRY_ASSIGN(const dnnl_memory_desc_t from, described(l, spec.w, spec.weights_rank));
  Handles h(l);
  TRY_DNNL(l.dnnl_reorder_primitive_desc_create(&h.desc, &from, l.engine, &to, l.engine, nullptr),
           "reorder weights");
  dnnl_primitive_t primitive = nullptr;
  TRY_DNNL(l.dnnl_primitive_create(&primitive, h.desc), "compile a reorder");
  Execution e(l);
  e.bind(DNNL_ARG_FROM, from, source);
  e.bind(DNNL_ARG_TO, to, target);
  const Status done = e.run(primitive);
  l.dnnl_primitive_destroy(primitive);
  return done;
}

}  // namespace tessera::kernels::onednn
