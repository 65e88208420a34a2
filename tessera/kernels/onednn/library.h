// oneDNN's shared library, opened when first asked for.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "tessera/base/result.h"

namespace tessera::kernels::onednn {

// Functions that are looked up by name.
#define TESSERA_DNNL_FUNCTIONS(X)               \
  X(dnnl_version)                               \
  X(dnnl_engine_create)                         \
  X(dnnl_stream_create)                         \
  X(dnnl_stream_destroy)                        \
  X(dnnl_memory_create)                         \
  X(dnnl_memory_destroy)                        \
  X(dnnl_memory_desc_init_by_strides)           \
  X(dnnl_memory_desc_init_by_tag)               \
  X(dnnl_memory_desc_get_size)                  \
  X(dnnl_dilated_convolution_forward_desc_init) \
  X(dnnl_matmul_desc_init)                      \
  X(dnnl_pooling_v2_forward_desc_init)          \
  X(dnnl_layer_normalization_forward_desc_init) \
  X(dnnl_post_ops_create)                       \
  X(dnnl_post_ops_destroy)                      \
  X(dnnl_post_ops_append_binary)                \
  X(dnnl_primitive_attr_create)                 \
  X(dnnl_primitive_attr_destroy)                \
  X(dnnl_primitive_attr_set_post_ops)           \
  X(dnnl_primitive_attr_set_scratchpad_mode)    \
  X(dnnl_primitive_desc_create)                 \
  X(dnnl_primitive_desc_destroy)                \
  X(dnnl_primitive_desc_query)                  \
  X(dnnl_primitive_desc_query_md)               \
  X(dnnl_reorder_primitive_desc_create)         \
  X(dnnl_primitive_create)                      \
  X(dnnl_primitive_destroy)                     \
  X(dnnl_primitive_execute)

struct Library {
#define TESSERA_DNNL_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_DNNL_FUNCTIONS(TESSERA_DNNL_MEMBER)
#undef TESSERA_DNNL_MEMBER
  // Of the OpenMP that it came with: how many threads a parallel region of the calling thread has.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  dnnl_engine_t engine = nullptr;  // the CPU
};

// kUnavailable, with what the system says, where it is missing or of another version. The same
// answer each time; it stays open.
const Result<Library>& library();

// Keeps OpenMP's regions on the calling thread to that thread: work is spread by its caller.
class OneThread {
 public:
  explicit OneThread(const Library& library)
      : library_(library), before_(library.omp_get_max_threads()) {
    if (before_ != 1) library_.omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) library_.omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const Library& library_;
  int before_;
};

}  // namespace tessera::kernels::onednn
