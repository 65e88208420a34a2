// tessera.h over session::Model.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "tessera/dlpack/tensor.h"
#include "tessera/session/model.h"
#include "tessera/tessera.h"

// What a port points to.
struct PortText {
  std::string type;
  std::vector<int64_t> shape;
};

struct tessera_model {
  std::unique_ptr<tessera::session::Model> model;
  std::vector<PortText> inputs, outputs;
};

namespace {

using namespace tessera;

static_assert(static_cast<int>(Code::kInvalidArgument) + 1 == TESSERA_INVALID_ARGUMENT &&
              static_cast<int>(Code::kInternal) + 1 == TESSERA_INTERNAL);

constexpr size_t kHeader = offsetof(tessera_error, message);

int32_t report(const Error& e, tessera_error* out) {
  const int32_t code = static_cast<int32_t>(e.code) + 1;
  if (!out || out->struct_size <= kHeader) return code;
  out->code = code;
  const size_t room = std::min<size_t>(out->struct_size, sizeof(tessera_error)) - kHeader - 1,
               length = std::min(room, e.message.size());
  std::memcpy(out->message, e.message.data(), length);
  out->message[length] = '\0';
  return code;
}

// Nothing thrown below, such as std::bad_alloc, reaches the caller.
template <class Body>
int32_t guarded(tessera_error* error_out, Body body) {
  try {
    const Status status = body();
    return status ? TESSERA_OK : report(status.error(), error_out);
  } catch (const std::bad_alloc&) {
    return report({Code::kResourceExhausted, "memory ran out"}, error_out);
  } catch (const std::exception& e) {
    return report({Code::kInternal, e.what()}, error_out);
  }
}

// What the caller knows of a struct, the rest zero.
template <class T>
T known_part(const T* given) {
  T whole{};
  if (given) std::memcpy(&whole, given, std::min<size_t>(given->struct_size, sizeof(T)));
  return whole;
}

// As the caller knows the struct.
template <class T>
void fill(T value, T* out) {
  const uint32_t size = out->struct_size;
  value.struct_size = size;
  std::memcpy(out, &value, std::min<size_t>(size, sizeof(T)));
}

session::LoadOptions load_options(const tessera_load_options* given) {
  const tessera_load_options o = known_part(given);
  session::LoadOptions options;
  if (o.device) options.device = o.device;
  if (o.precision) options.precision = o.precision;
  options.threads = o.threads;
  options.memory_limit =
      Bytes(static_cast<int64_t>(std::min<uint64_t>(o.memory_limit_bytes, INT64_MAX)));
  for (size_t i = 0; o.dims && i < o.dim_count; ++i)
    if (o.dims[i].name) options.dims[o.dims[i].name] = o.dims[i].size;
  return options;
}

std::vector<PortText> texts_of(const std::vector<session::Port>& ports) {
  std::vector<PortText> texts;
  for (const session::Port& port : ports) {
    PortText text{port.type.str(), {}};
    if (port.type.ranked())
      for (const op::Expr& size : *port.type.shape)
        text.shape.push_back(size.constant().value_or(-1));
    texts.push_back(std::move(text));
  }
  return texts;
}

Status adopt(std::unique_ptr<session::Model> model, tessera_model** out) {
  auto handle = std::make_unique<tessera_model>();
  handle->inputs = texts_of(model->inputs());
  handle->outputs = texts_of(model->outputs());
  handle->model = std::move(model);
  *out = handle.release();
  return {};
}

Status describe(const std::vector<session::Port>& ports, const std::vector<PortText>& texts,
                size_t index, std::string_view what, tessera_port* out) {
  if (index >= ports.size())
    return error(Code::kOutOfRange, "{} {} of {}", what, index, ports.size());
  if (!out)
    return error(Code::kInvalidArgument, "there is no place for the {}'s description", what);
  const session::Port& port = ports[index];
  tessera_port text{};
  const auto dtype = dlpack::to_dl(port.type.dtype);
  text.is_tensor = port.type.is_tensor() && dtype;
  text.name = port.name.c_str();
  text.type = texts[index].type.c_str();
  if (text.is_tensor) text.dtype = *dtype;
  text.ndim = port.type.ranked() ? port.type.rank() : -1;
  text.shape = texts[index].shape.data();
  fill(text, out);
  return {};
}

struct Given {
  std::map<std::string, op::Value> values;
  std::vector<op::Tensor> tensors;
};

Result<Given> gather_inputs(const session::Model& model, const DLTensor* const* inputs,
                            size_t count) {
  if (count != model.inputs().size())
    return error(Code::kInvalidArgument, "{} inputs for a model with {}", count,
                 model.inputs().size());
  Given given;
  for (size_t i = 0; i < count; ++i) {
    const session::Port& port = model.inputs()[i];
    if (!inputs || !inputs[i])
      return error(Code::kInvalidArgument, "input '{}' ({}) is missing", port.name,
                   port.type.str());
    auto tensor = dlpack::to_tensor(*inputs[i], nullptr);
    if (!tensor) return error(std::move(tensor).error().at(fmt::format("input '{}'", port.name)));
    given.values[port.name] = op::Value(*tensor);
    given.tensors.push_back(std::move(*tensor));
  }
  return given;
}

Result<std::vector<op::Value>> run(tessera_model& handle, const Given& given, size_t output_count,
                                   const tessera_run_options* given_options) {
  if (output_count != handle.model->outputs().size())
    return error(Code::kInvalidArgument, "{} outputs for a model with {}", output_count,
                 handle.model->outputs().size());
  constexpr double kForever = 1e9;
  const tessera_run_options o = known_part(given_options);
  session::RunOptions options;
  if (o.timeout_seconds > 0 && o.timeout_seconds < kForever)
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(o.timeout_seconds));
  return handle.model->run(given.values, options);
}

Result<op::Tensor> tensor_of(const op::Value& value, const session::Port& port) {
  if (!value.is_tensor() || !dlpack::to_dl(value.tensor().dtype()))
    return error(Code::kUnimplemented, "output '{}' is {}, which DLPack cannot carry", port.name,
                 port.type.str());
  return value.tensor();
}

struct Free {
  void operator()(DLManagedTensor* t) const { t->deleter(t); }
};

}  // namespace

extern "C" {

const char* tessera_version(void) { return TESSERA_VERSION; }

int32_t tessera_load(const char* path, const tessera_load_options* options, tessera_model** model,
                     tessera_error* error_out) {
  return guarded(error_out, [&]() -> Status {
    if (!path || !model)
      return error(Code::kInvalidArgument, "there is no {}", path ? "place for the model" : "path");
    TRY_ASSIGN(auto loaded, session::Model::load(path, load_options(options)));
    return adopt(std::move(loaded), model);
  });
}

int32_t tessera_load_bytes(const void* bytes, size_t size, const tessera_load_options* options,
                           tessera_model** model, tessera_error* error_out) {
  return guarded(error_out, [&]() -> Status {
    if (!bytes || !model)
      return error(Code::kInvalidArgument, "there is no {}",
                   bytes ? "place for the model" : "model");
    TRY_ASSIGN(auto loaded, session::Model::load_bytes({static_cast<const char*>(bytes), size},
                                                       nullptr, load_options(options)));
    return adopt(std::move(loaded), model);
  });
}

void tessera_close(tessera_model* model) { delete model; }

size_t tessera_input_count(const tessera_model* model) { return model->inputs.size(); }
size_t tessera_output_count(const tessera_model* model) { return model->outputs.size(); }

int32_t tessera_input(const tessera_model* model, size_t index, tessera_port* port,
                      tessera_error* error_out) {
  return guarded(error_out, [&] {
    return describe(model->model->inputs(), model->inputs, index, "input", port);
  });
}

int32_t tessera_output(const tessera_model* model, size_t index, tessera_port* port,
                       tessera_error* error_out) {
  return guarded(error_out, [&] {
    return describe(model->model->outputs(), model->outputs, index, "output", port);
  });
}

int32_t tessera_run(tessera_model* model, const DLTensor* const* inputs, size_t input_count,
                    const DLTensor* const* outputs, size_t output_count,
                    const tessera_run_options* options, tessera_error* error_out) {
  return guarded(error_out, [&]() -> Status {
    TRY_ASSIGN(Given given, gather_inputs(*model->model, inputs, input_count));
    TRY_ASSIGN(std::vector<op::Value> values, run(*model, given, output_count, options));
    for (size_t i = 0; outputs && i < output_count; ++i) {
      if (!outputs[i]) continue;
      const session::Port& port = model->model->outputs()[i];
      TRY_ASSIGN(op::Tensor tensor, tensor_of(values[i], port));
      if (auto ok = dlpack::copy_into(tensor, *outputs[i]); !ok)
        return error(std::move(ok).error().at(fmt::format("output '{}'", port.name)));
    }
    return {};
  });
}

int32_t tessera_run_managed(tessera_model* model, const DLTensor* const* inputs, size_t input_count,
                            DLManagedTensor** outputs, size_t output_count,
                            const tessera_run_options* options, tessera_error* error_out) {
  return guarded(error_out, [&]() -> Status {
    if (!outputs) return error(Code::kInvalidArgument, "there is no place for the outputs");
    TRY_ASSIGN(Given given, gather_inputs(*model->model, inputs, input_count));
    TRY_ASSIGN(std::vector<op::Value> values, run(*model, given, output_count, options));
    std::vector<std::unique_ptr<DLManagedTensor, Free>> made;
    for (size_t i = 0; i < output_count; ++i) {
      const session::Port& port = model->model->outputs()[i];
      TRY_ASSIGN(op::Value own, dlpack::detach(std::move(values[i]), given.tensors));
      TRY_ASSIGN(op::Tensor tensor, tensor_of(own, port));
      own = op::Value();
      TRY_ASSIGN(DLManagedTensor * managed, dlpack::to_managed(std::move(tensor)));
      made.emplace_back(managed);
    }
    for (size_t i = 0; i < output_count; ++i) outputs[i] = made[i].release();
    return {};
  });
}
}
