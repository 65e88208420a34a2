// The extension tessera._tessera: models, and tensors as bytes. What is numpy's business is done in
// Python.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "tessera/chip/catalog.h"
#include "tessera/chip/figures.h"
#include "tessera/dlpack/tensor.h"
#include "tessera/session/model.h"

namespace py = pybind11;

namespace tessera::python {
namespace {

// An Error on its way to Python.
struct Failure {
  Error error;
};

template <class T>
T unwrap(Result<T> result) {
  if (!result) throw Failure{std::move(result).error()};
  return *std::move(result);
}

// tessera._errors.make(code, message) makes the exception.
void raise(const Failure& failure) {
  const py::object exception =
      py::module_::import("tessera._errors")
          .attr("make")(std::string(name_of(failure.error.code)), failure.error.message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

// Holds a Python object for as long as bytes of it are in use, from whatever thread the last use
// ends on.
std::shared_ptr<const void> keep_alive(py::object object) {
  return {object.release().ptr(), [](const void* p) {
            const py::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(p)));
          }};
}

DType dtype_of(const std::string& name) {
  const auto dtype = dtype_from_name(name);
  if (!dtype)
    throw Failure{{Code::kInvalidArgument, fmt::format("'{}' is not an element type", name)}};
  return *dtype;
}

// `address` points to packed elements that `owner` keeps.
op::Tensor from_address(py::object owner, uintptr_t address, const std::string& dtype,
                        op::Dims dims) {
  const DType type = dtype_of(dtype);
  unwrap(op::element_count(dims));
  return op::Tensor::borrow(type, std::move(dims), reinterpret_cast<const void*>(address),
                            keep_alive(std::move(owner)));  // NOLINT
}

op::Tensor from_dlpack(const py::capsule& capsule) {
  if (std::string_view(capsule.name()) != "dltensor")
    throw Failure{
        {Code::kInvalidArgument, fmt::format("a capsule '{}', need 'dltensor'", capsule.name())}};
  auto* managed = static_cast<DLManagedTensor*>(capsule.get_pointer());
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  const std::shared_ptr<const void> keep(managed, [](const DLManagedTensor* m) {
    const py::gil_scoped_acquire gil;
    if (m->deleter) m->deleter(const_cast<DLManagedTensor*>(m));
  });
  return unwrap(dlpack::to_tensor(managed->dl_tensor, keep));
}

op::Tensor from_strings(std::vector<std::string> texts, op::Dims dims) {
  return unwrap(op::Tensor::strings(std::move(dims), std::move(texts)));
}

// Freed by whoever takes the tensor, else with the capsule.
py::object to_dlpack(const op::Tensor& tensor) {
  DLManagedTensor* managed = unwrap(dlpack::to_managed(tensor));
  PyObject* capsule = PyCapsule_New(managed, "dltensor", [](PyObject* self) {
    if (!PyCapsule_IsValid(self, "dltensor")) return;
    auto* unused = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(self, "dltensor"));
    unused->deleter(unused);
  });
  return py::reinterpret_steal<py::object>(capsule);
}

py::buffer_info bytes_of(const op::Tensor& tensor) {
  static std::byte nothing;
  auto* data = const_cast<std::byte*>(tensor.count() > 0 ? tensor.data() : &nothing);
  return {data, 1, py::format_descriptor<uint8_t>::format(), 1, {tensor.bytes().value}, {1}};
}

py::list texts_of(const op::Tensor& tensor) {
  py::list list;
  for (const std::string& text : tensor.text())
    list.append(py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
        text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
  return list;
}

// Tensors, lists for sequences, None or a value for optionals.
op::Value to_value(const py::handle& object, const op::Type& type, std::string_view name) {
  if (type.kind == op::TypeKind::kOptional) {
    if (object.is_none()) return op::Optional{*type.element, nullptr};
    return op::Optional{*type.element,
                        std::make_shared<const op::Value>(to_value(object, *type.element, name))};
  }
  if (type.kind == op::TypeKind::kSequence && py::isinstance<py::list>(object)) {
    op::Sequence sequence{*type.element, {}};
    for (const py::handle& item : object)
      sequence.items.push_back(to_value(item, *type.element, name));
    return sequence;
  }
  if (!py::isinstance<op::Tensor>(object))
    throw Failure{
        {Code::kInvalidArgument, fmt::format("input '{}' is of Python's type '{}', need {}", name,
                                             Py_TYPE(object.ptr())->tp_name, type.str())}};
  return object.cast<op::Tensor>();
}

py::object from_value(op::Value value) {
  if (value.is_tensor()) return py::cast(std::move(std::get<op::Tensor>(value.data)));
  if (value.is_optional())
    return value.optional().value ? from_value(*value.optional().value) : py::none();
  if (!value.is_sequence())
    throw Failure{
        {Code::kUnimplemented,
         fmt::format("a value of type {} has no counterpart in Python", value.type().str())}};
  py::list list;
  for (const op::Value& item : value.sequence().items) list.append(from_value(item));
  return list;
}

void collect_tensors(const op::Value& value, std::vector<op::Tensor>& list) {
  if (value.is_tensor()) list.push_back(value.tensor());
  if (value.is_sequence())
    for (const op::Value& item : value.sequence().items) collect_tensors(item, list);
  if (value.is_optional() && value.optional().value) collect_tensors(*value.optional().value, list);
}

py::object describe(const op::Type& type) {
  py::dict d;
  d["type"] = type.str();
  d["kind"] = type.kind == op::TypeKind::kTensor     ? "tensor"
              : type.kind == op::TypeKind::kSequence ? "sequence"
              : type.kind == op::TypeKind::kOptional ? "optional"
                                                     : "map";
  d["dtype"] = type.is_tensor() ? py::cast(std::string(name_of(type.dtype))) : py::none();
  d["element"] = type.element ? describe(*type.element) : py::none();
  d["shape"] = py::none();
  if (type.ranked()) {
    py::list shape;
    for (const op::Expr& size : *type.shape) {
      if (const auto fixed = size.constant())
        shape.append(*fixed);
      else
        shape.append(size.str());
    }
    d["shape"] = py::tuple(shape);
  }
  return d;
}

py::list describe(const std::vector<session::Port>& ports) {
  py::list list;
  for (const session::Port& port : ports)
    list.append(py::make_tuple(port.name, describe(port.type)));
  return list;
}

using Sizes = std::map<std::string, int64_t>;
using Shapes = std::map<std::string, op::Dims>;

std::unique_ptr<session::Model> load(const py::object& source, const std::string& device,
                                     int threads, const Sizes& dims, const Shapes& shapes,
                                     int64_t memory_limit, const std::string& precision) {
  session::LoadOptions options;
  options.device = device;
  options.threads = threads;
  options.dims = {dims.begin(), dims.end()};
  options.shapes = {shapes.begin(), shapes.end()};
  options.memory_limit = Bytes(memory_limit);
  options.precision = precision;
  if (py::isinstance<py::bytes>(source)) {
    const std::string_view bytes = source.cast<std::string_view>();
    const auto keep = keep_alive(source);
    const py::gil_scoped_release release;
    return unwrap(session::Model::load_bytes(bytes, keep, options));
  }
  const std::string path = source.cast<std::string>();
  const py::gil_scoped_release release;
  return unwrap(session::Model::load(path, options));
}

py::list run(session::Model& model, const py::dict& inputs, double timeout) {
  std::map<std::string, op::Value> values;
  std::vector<op::Tensor> tensors;
  for (const session::Port& port : model.inputs()) {
    if (!inputs.contains(port.name.c_str())) continue;
    const auto at =
        values.emplace(port.name, to_value(inputs[port.name.c_str()], port.type, port.name)).first;
    collect_tensors(at->second, tensors);
  }
  session::RunOptions options;
  if (timeout > 0)
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(timeout));
  std::vector<op::Value> outputs;
  {
    const py::gil_scoped_release release;
    outputs = unwrap(model.run(values, options));
    for (op::Value& value : outputs) value = unwrap(dlpack::detach(std::move(value), tensors));
  }
  py::list list;
  for (op::Value& value : outputs) list.append(from_value(std::move(value)));
  return list;
}

py::dict counters(const session::Model& model) {
  const session::Counters c = model.counters();
  py::dict d;
  d["plans"] = c.plans;
  d["kernels"] = c.kernel_launches;
  d["host"] = c.host_operators;
  d["reference"] = c.reference_launches;
  return d;
}

// The chip as JSON text, and its peaks.
py::tuple chip_of(const std::string& name) {
  const chip::Chip chip = unwrap(chip::Catalog::of_environment().load(name));
  py::list peaks;
  for (const chip::Peak& peak : chip::peaks(chip)) {
    py::dict d;
    d["unit"] = peak.unit;
    d["type"] = peak.type;
    d["flops_per_second"] = peak.flops_per_second;
    d["ridge"] = peak.ridge;
    d["arithmetic"] = peak.arithmetic;
    peaks.append(d);
  }
  return py::make_tuple(chip.id, chip::to_json(chip), peaks);
}

}  // namespace

PYBIND11_MODULE(_tessera, m) {
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Failure& failure) {
      raise(failure);
    }
  });
  m.attr("__version__") = TESSERA_VERSION;
  py::class_<op::Tensor>(m, "Tensor", py::buffer_protocol())
      .def_static("from_address", &from_address)
      .def_static("from_dlpack", &from_dlpack)
      .def_static("from_strings", &from_strings)
      .def_property_readonly("dtype",
                             [](const op::Tensor& t) { return std::string(name_of(t.dtype())); })
      .def_property_readonly("numpy_dtype",
                             [](const op::Tensor& t) { return std::string(info(t.dtype()).numpy); })
      .def_property_readonly("bits", [](const op::Tensor& t) { return bits_of(t.dtype()); })
      .def_property_readonly("shape",
                             [](const op::Tensor& t) { return py::tuple(py::cast(t.dims())); })
      .def_property_readonly("texts", &texts_of)
      .def("__dlpack__", [](const op::Tensor& t, const py::kwargs&) { return to_dlpack(t); })
      .def("__dlpack_device__",
           [](const op::Tensor&) { return py::make_tuple(static_cast<int>(kDLCPU), 0); })
      .def_buffer(&bytes_of);
  py::class_<session::Model>(m, "Model")
      .def_property_readonly("inputs",
                             [](const session::Model& model) { return describe(model.inputs()); })
      .def_property_readonly("outputs",
                             [](const session::Model& model) { return describe(model.outputs()); })
      .def_property_readonly("counters", &counters)
      .def("run", &run);
  m.def("load", &load);
  m.def("chips", [] { return unwrap(chip::Catalog::of_environment().ids()); });
  m.def("chip", &chip_of);
  m.def("numpy_name",
        [](const std::string& dtype) { return std::string(info(dtype_of(dtype)).numpy); });
}

}  // namespace tessera::python
