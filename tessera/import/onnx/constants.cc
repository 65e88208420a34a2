// Operators that make values, or make them another type.
#include <algorithm>

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

Status constant(NodeContext& c) {
  ir::Builder& b = c.b;
  if (c.node.attribute.size() != 1)
    return c.fail("has {} attributes, need one", c.node.attribute.size());
  const AttributeProto& a = c.node.attribute[0];
  op::Tensor t;
  if (a.name == "value") {
    TRY_ASSIGN(t, c.tensor("value"));
  } else if (a.name == "sparse_value" && a.sparse) {
    TRY_ASSIGN(t, to_dense(*a.sparse, c.importer.source()));
  } else if (a.name == "value_int") {
    t = op::Tensor::scalar(DType::kI64, c.i("value_int", 0));
  } else if (a.name == "value_ints") {
    t = op::Tensor::of_i64(c.ints("value_ints"));
  } else if (a.name == "value_float") {
    t = op::Tensor::scalar(DType::kF32, c.f("value_float", 0));
  } else if (a.name == "value_floats") {
    const op::Floats values = c.floats("value_floats");
    TRY_ASSIGN(t, op::Tensor::make(DType::kF32, {static_cast<int64_t>(values.size())}));
    for (size_t i = 0; i < values.size(); ++i) t.set_f64(static_cast<int64_t>(i), values[i]);
  } else if (a.name == "value_string") {
    TRY_ASSIGN(t, op::Tensor::strings({}, {c.s("value_string", "")}));
  } else if (a.name == "value_strings") {
    op::Strings values = c.strings("value_strings");
    const op::Dims dims{static_cast<int64_t>(values.size())};
    TRY_ASSIGN(t, op::Tensor::strings(dims, std::move(values)));
  } else {
    return c.fail("attribute '{}' is not a value", a.name);
  }
  c.out(0, b.constant(std::move(t)));
  return {};
}

Status constant_of_shape(NodeContext& c) {
  op::Tensor value = op::Tensor::scalar(DType::kF32, 0.0);
  if (c.has_attr("value")) {
    TRY_ASSIGN(value, c.tensor("value"));
  }
  if (value.count() != 1) return c.fail("the value has {} elements, need 1", value.count());
  c.out(0, c.b.broadcast_to(c.b.constant(value.reshaped({})), c.in(0)));
  return {};
}

Status range(NodeContext& c) {
  if (c.input_count() != 3) return c.fail("has {} inputs, need 3", c.input_count());
  c.out(0, c.b.op("range", c.inputs));
  return {};
}

// How ONNX's round_mode rounds the positive numbers of f8e8m0.
Result<std::string> rounding(NodeContext& c, DType to) {
  if (to != DType::kF8E8M0) return std::string("even");
  const std::string mode = c.s("round_mode", "up");
  if (mode == "up") return mode;
  if (mode == "down") return std::string("zero");
  if (mode == "nearest") return std::string("away");
  return error(Code::kInvalidArgument, "{}: unknown round_mode '{}'", c.node.op_type, mode);
}

Status cast_to(NodeContext& c, DType to) {
  TRY_ASSIGN(std::string mode, rounding(c, to));
  op::Attrs attrs{{"to", to}};
  if (mode != "even") attrs.set("round", mode);
  if (c.i("saturate", 1) == 0) attrs.set("saturate", int64_t{0});
  c.out(0, c.b.op("convert", {c.in(0)}, std::move(attrs)));
  return {};
}

// Cast: the type is a name in opsets before 6.
Status cast(NodeContext& c) {
  const AttributeProto* a = c.node.find("to");
  if (!a) return c.fail("needs 'to'");
  if (c.opset < 6) {
    const auto to = dtype_from_name(a->s);
    if (!to) return c.fail("'{}' is not an element type", a->s);
    return cast_to(c, *to);
  }
  TRY_ASSIGN(DType to, dtype_from_onnx(
                           static_cast<int32_t>(std::clamp<int64_t>(c.i("to", 0), 0, INT32_MAX))));
  return cast_to(c, to);
}
Status cast_like(NodeContext& c) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  return cast_to(c, c.type(1).dtype);
}

constexpr Converter kRows[] = {
    {"", "Cast", cast},         {"", "CastLike", cast_like},
    {"", "Constant", constant}, {"", "ConstantOfShape", constant_of_shape},
    {"", "Range", range},
};

}  // namespace

std::span<const Converter> constant_converters() { return kRows; }

}  // namespace tessera::import::onnx
