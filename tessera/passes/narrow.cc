#include "tessera/passes/narrow.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/float.h"

namespace tessera::passes {
namespace {

bool wide(DType type) { return type == DType::kF32 || type == DType::kF64; }

Result<op::Tensor> narrowed(const op::Tensor& tensor, DType type) {
  TRY_ASSIGN(op::Tensor result, op::Tensor::make(type, tensor.dims()));
  const FloatFormat& format = float_format(type);
  const double most = decode(format, format.max_finite);
  const std::span<uint16_t> to = result.mutable_as<uint16_t>();
  if (type == DType::kF16 && tensor.dtype() == DType::kF32) {
    const std::span<const float> from = tensor.as<float>();
    const float limit = static_cast<float>(most);
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = f32_to_f16(std::isfinite(from[i]) ? std::clamp(from[i], -limit, limit) : from[i]);
    return result;
  }
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double v = tensor.f64(i);
    to[static_cast<size_t>(i)] =
        static_cast<uint16_t>(encode(format, std::isfinite(v) ? std::clamp(v, -most, most) : v));
  }
  return result;
}

op::Type narrowed(op::Type type, DType to) {
  if (type.is_tensor() && wide(type.dtype)) type.dtype = to;
  return type;
}

class Narrower {
 public:
  Narrower(const ir::Graph& from, DType type)
      : from_(from), type_(type), to_(from.name), now_(from.values.size(), ir::kAbsent) {}

  Result<ir::Graph> run() {
    to_.symbols = from_.symbols;
    for (ir::ValueId id : from_.inputs) {
      now_[at(id)] = to_.add_input(from_.value(id).name, narrowed(from_.type(id), type_));
      to_.value(now_[at(id)]).contents = from_.value(id).contents;
    }
    for (const ir::Node& node : from_.nodes) TRY(add(node));
    for (ir::ValueId id : from_.outputs) {
      TRY_ASSIGN(const ir::ValueId out, value(id));
      to_.outputs.push_back(out);
    }
    to_.output_names = from_.output_names;
    return std::move(to_);
  }

 private:
  static size_t at(ir::ValueId id) { return static_cast<size_t>(id); }

  // What stands for a value; constants come when they are first asked for.
  Result<ir::ValueId> value(ir::ValueId id) {
    if (id == ir::kAbsent || now_[at(id)] != ir::kAbsent)
      return id == ir::kAbsent ? id : now_[at(id)];
    const ir::ValueInfo& info = from_.value(id);
    if (!info.constant)
      return error(Code::kInternal, "value '{}' is read before it is there", info.name);
    op::Tensor tensor = *info.constant;
    if (wide(tensor.dtype())) {
      TRY_ASSIGN(tensor, narrowed(tensor, type_));
    }
    now_[at(id)] = to_.add_constant(std::move(tensor), info.name);
    to_.value(now_[at(id)]).contents = info.contents;
    return now_[at(id)];
  }

  op::Attrs attrs_of(const ir::Node& node) const {
    op::Attrs attrs;
    for (const auto& [name, attr] : node.attrs.all()) {
      if (const auto* d = std::get_if<DType>(&attr); d && wide(*d))
        attrs.set(name, type_);
      else if (const auto* t = std::get_if<op::Type>(&attr))
        attrs.set(name, narrowed(*t, type_));
      else
        attrs.set(name, attr);
    }
    return attrs;
  }

  Status add(const ir::Node& node) {
    std::vector<ir::ValueId> inputs;
    for (ir::ValueId id : node.inputs) {
      TRY_ASSIGN(const ir::ValueId in, value(id));
      inputs.push_back(in);
    }
    std::vector<ir::Graph> bodies;
    for (const ir::Graph& body : node.bodies) {
      TRY_ASSIGN(ir::Graph inner, Narrower(body, type_).run());
      bodies.push_back(std::move(inner));
    }
    const int outputs = static_cast<int>(node.outputs.size());
    auto results = to_.add(*node.op, inputs, attrs_of(node), outputs, bodies, node.origin);
    if (results && fit(node, *results)) {
      take(node, *results);
      for (size_t k = 0; k < results->size(); ++k)
        if (node.outputs[k] == ir::kAbsent) to_.nodes.back().outputs[k] = ir::kAbsent;
      return {};
    }
    if (results) drop(*results);
    return add_wide(node, std::move(inputs));
  }

  // Whether the results are of the types that were there, or narrower.
  bool fit(const ir::Node& node, const std::vector<ir::ValueId>& results) const {
    for (size_t k = 0; k < results.size(); ++k)
      if (node.outputs[k] != ir::kAbsent && to_.type(results[k]).is_tensor() &&
          to_.type(results[k]).dtype != narrowed(from_.type(node.outputs[k]), type_).dtype)
        return false;
    return true;
  }

  // Takes the last node back.
  void drop(const std::vector<ir::ValueId>& results) {
    to_.nodes.pop_back();
    to_.values.resize(to_.values.size() - static_cast<size_t>(std::count_if(
                                              results.begin(), results.end(),
                                              [](auto id) { return id != ir::kAbsent; })));
  }

  // The node as it was, between conversions.
  Status add_wide(const ir::Node& node, std::vector<ir::ValueId> inputs) {
    const op::OpDef& convert = *op::find("convert");
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == ir::kAbsent) continue;
      const op::Type& old = from_.type(node.inputs[i]);
      if (!old.is_tensor() || old.dtype == to_.type(inputs[i]).dtype) continue;
      op::Attrs attrs;
      attrs.set("to", old.dtype);
      TRY_ASSIGN(const auto converted, to_.add(convert, {inputs[i]}, attrs, 1, {}, node.origin));
      inputs[i] = converted[0];
    }
    TRY_ASSIGN(auto results,
               to_.add(*node.op, std::move(inputs), node.attrs,
                       static_cast<int>(node.outputs.size()), node.bodies, node.origin));
    for (size_t k = 0; k < results.size(); ++k) {
      if (node.outputs[k] == ir::kAbsent || !to_.type(results[k]).is_tensor() ||
          !wide(to_.type(results[k]).dtype))
        continue;
      to_.value(results[k]).type = from_.type(node.outputs[k]);
      op::Attrs attrs;
      attrs.set("to", type_);
      TRY_ASSIGN(const auto converted, to_.add(convert, {results[k]}, attrs, 1, {}, node.origin));
      results[k] = converted[0];
    }
    take(node, results);
    return {};
  }

  // Sizes that only a run tells keep their names.
  void take(const ir::Node& node, const std::vector<ir::ValueId>& results) {
    for (size_t k = 0; k < results.size(); ++k) {
      if (node.outputs[k] == ir::kAbsent) continue;
      const ir::ValueInfo& old = from_.value(node.outputs[k]);
      ir::ValueInfo& fresh = to_.value(results[k]);
      fresh.name = old.name;
      fresh.type = narrowed(old.type, type_);
      fresh.contents = old.contents;
      now_[at(node.outputs[k])] = results[k];
    }
  }

  const ir::Graph& from_;
  DType type_;
  ir::Graph to_;
  std::vector<ir::ValueId> now_;  // by value of `from_`
};

}  // namespace

Result<ir::Graph> narrow(const ir::Graph& graph, DType type) {
  TRY_ASSIGN(ir::Graph result, Narrower(graph, type).run());
  TRY(ir::verify(result));
  return result;
}

}  // namespace tessera::passes
