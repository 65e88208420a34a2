/* Tessera in your program: load an ONNX model, ask what it takes and yields, run it. Compiles as
 * C11 and C++20.
 *
 * Tensors are laid out as DLPack (dlpack/dlpack.h), in the host's memory. Functions that return
 * int32_t return a tessera_code and, where it is not TESSERA_OK, describe it in `error` (which may
 * be NULL; set its struct_size). Structs that begin with struct_size are set up by the caller, all
 * else zero; later versions only grow at the end. Nothing prints, exits or throws. A model may be
 * run from several threads at once; close it when none does. */
#ifndef TESSERA_H
#define TESSERA_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "tessera/tessera_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char* tessera_version(void);

typedef struct tessera_model tessera_model;

typedef struct tessera_dim {
  const char* name;
  int64_t size;
} tessera_dim;

typedef struct tessera_load_options {
  uint32_t struct_size;
  int32_t threads;             /* 0: one for each core that the process may use */
  const char* device;          /* NULL: "cpu" */
  uint64_t memory_limit_bytes; /* of values; 0: 80 % of the machine's memory, or its cgroup's */
  const tessera_dim* dims;     /* sizes of the model's symbols that are known already */
  size_t dim_count;
  const char* precision; /* of products: "f32" (NULL too), or "f16", "bf16" where that is faster */
} tessera_load_options;

/* `options` may be NULL. The model is yours until tessera_close(). */
int32_t tessera_load(const char* path, const tessera_load_options* options, tessera_model** model,
                     tessera_error* error);
/* The bytes of a model must stay until it is closed. */
int32_t tessera_load_bytes(const void* bytes, size_t size, const tessera_load_options* options,
                           tessera_model** model, tessera_error* error);
/* NULL is fine. */
void tessera_close(tessera_model* model);

/* An input or output. What it points to lives as long as the model. */
typedef struct tessera_port {
  uint32_t struct_size;
  int32_t is_tensor; /* 0: a sequence, an optional or strings, which these functions cannot carry */
  const char* name;
  const char* type;     /* "f32[batch,3,224,224]" */
  DLDataType dtype;     /* of a tensor */
  int32_t ndim;         /* of a tensor; -1: known only after a run */
  const int64_t* shape; /* ndim sizes; -1 where the model leaves it open */
} tessera_port;

size_t tessera_input_count(const tessera_model* model);
size_t tessera_output_count(const tessera_model* model);
/* TESSERA_OUT_OF_RANGE if there is no such port. */
int32_t tessera_input(const tessera_model* model, size_t index, tessera_port* port,
                      tessera_error* error);
int32_t tessera_output(const tessera_model* model, size_t index, tessera_port* port,
                       tessera_error* error);

typedef struct tessera_run_options {
  uint32_t struct_size;
  uint32_t reserved;
  double timeout_seconds; /* 0: none */
} tessera_run_options;

/* Runs the model on buffers of the caller's. `inputs` and `outputs` hold as many tensors as the
 * model has, in its order; NULL for an output that is not wanted. Inputs are read in place where
 * they are compact (strides NULL or row-major) and aligned to their elements; on the CPU they are
 * copied unless they start at a multiple of 64 bytes. TESSERA_INVALID_ARGUMENT, naming both sides,
 * where a tensor's type or shape is not the model's. `options` may be NULL. */
int32_t tessera_run(tessera_model* model, const DLTensor* const* inputs, size_t input_count,
                    const DLTensor* const* outputs, size_t output_count,
                    const tessera_run_options* options, tessera_error* error);

/* As tessera_run, for outputs whose sizes are not known beforehand: each of `outputs` is set to a
 * new tensor, which its `deleter` frees (also after the model is closed). On failure none is set.
 */
int32_t tessera_run_managed(tessera_model* model, const DLTensor* const* inputs, size_t input_count,
                            DLManagedTensor** outputs, size_t output_count,
                            const tessera_run_options* options, tessera_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_H */
