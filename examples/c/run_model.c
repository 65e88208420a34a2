/* Runs a model once: inputs of ones, open sizes as 1; prints each output's type and first elements.
 *
 *   cc run_model.c $(pkg-config --cflags --libs tessera) -o run_model && ./run_model model.onnx */
#include <stdio.h>
#include <stdlib.h>

#include <tessera/tessera.h>

enum { kMostPorts = 16, kMostRank = 16, kShown = 4 };

static int fail(const tessera_error* error) {
  fprintf(stderr, "run_model: %s\n", error->message);
  return 1;
}

/* Ones in a new buffer; NULL if the input is no tensor of f32. */
static float* make_ones(const tessera_port* port, int64_t* shape, DLTensor* tensor) {
  if (!port->is_tensor || port->dtype.code != kDLFloat || port->dtype.bits != 32 ||
      port->ndim < 0 || port->ndim > kMostRank)
    return NULL;
  int64_t count = 1;
  for (int i = 0; i < port->ndim; ++i) count *= shape[i] = port->shape[i] < 0 ? 1 : port->shape[i];
  float* data = malloc((size_t)(count ? count : 1) * sizeof(float));
  if (!data) return NULL;
  for (int64_t i = 0; i < count; ++i) data[i] = 1;
  *tensor = (DLTensor){.data = data,
                       .device = {kDLCPU, 0},
                       .ndim = port->ndim,
                       .dtype = port->dtype,
                       .shape = shape};
  return data;
}

static void show(const char* name, const DLTensor* t) {
  int64_t count = 1;
  printf("%s [", name);
  for (int i = 0; i < t->ndim; ++i) {
    count *= t->shape[i];
    printf("%s%lld", i ? "," : "", (long long)t->shape[i]);
  }
  printf("]");
  if (t->dtype.code == kDLFloat && t->dtype.bits == 32)
    for (int64_t i = 0; i < count && i < kShown; ++i) printf(" %g", ((const float*)t->data)[i]);
  printf(count > kShown ? " ...\n" : "\n");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run_model MODEL.onnx\n");
    return 2;
  }
  tessera_error error = {.struct_size = sizeof error};
  tessera_model* model = NULL;
  if (tessera_load(argv[1], NULL, &model, &error)) return fail(&error);

  const size_t inputs = tessera_input_count(model), outputs = tessera_output_count(model);
  if (inputs > kMostPorts || outputs > kMostPorts) return 2;
  int64_t shapes[kMostPorts][kMostRank];
  DLTensor tensors[kMostPorts];
  const DLTensor* given[kMostPorts];
  float* buffers[kMostPorts];
  for (size_t i = 0; i < inputs; ++i) {
    tessera_port port = {.struct_size = sizeof port};
    if (tessera_input(model, i, &port, &error)) return fail(&error);
    if (!(buffers[i] = make_ones(&port, shapes[i], &tensors[i]))) {
      fprintf(stderr, "run_model: input '%s' is %s, need a tensor of f32\n", port.name, port.type);
      return 2;
    }
    given[i] = &tensors[i];
  }

  DLManagedTensor* results[kMostPorts];
  if (tessera_run_managed(model, given, inputs, results, outputs, NULL, &error))
    return fail(&error);
  for (size_t i = 0; i < outputs; ++i) {
    tessera_port port = {.struct_size = sizeof port};
    if (tessera_output(model, i, &port, &error)) return fail(&error);
    show(port.name, &results[i]->dl_tensor);
    results[i]->deleter(results[i]);
  }
  for (size_t i = 0; i < inputs; ++i) free(buffers[i]);
  tessera_close(model);
  return 0;
}
