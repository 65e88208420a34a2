// If, Loop, Scan: bodies are imported with the outer values they use as extra inputs.
#include <algorithm>

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// Rewrites a body so that it takes exactly `captures`, in that order, after its formal inputs.
void align_captures(Importer::Body& body, size_t formals, const std::vector<std::string>& captures,
                    const ir::Graph& outer, const std::vector<ValueId>& ids) {
  std::vector<ValueId> inputs(body.graph.inputs.begin(),
                              body.graph.inputs.begin() + static_cast<int64_t>(formals));
  for (size_t i = 0; i < captures.size(); ++i) {
    auto own = std::find(body.captures.begin(), body.captures.end(), captures[i]);
    if (own != body.captures.end()) {
      inputs.push_back(
          body.graph.inputs[formals + static_cast<size_t>(own - body.captures.begin())]);
    } else {
      inputs.push_back(body.graph.add_input(captures[i], outer.type(ids[i])));
    }
  }
  body.graph.inputs = std::move(inputs);
}

const GraphProto* body_of(NodeContext& c, std::string_view name) {
  const AttributeProto* a = c.node.find(name);
  return a ? a->g.get() : nullptr;
}

Status if_(NodeContext& c) {
  const GraphProto *then_proto = body_of(c, "then_branch"), *else_proto = body_of(c, "else_branch");
  if (!then_proto || !else_proto) return c.fail("needs then_branch and else_branch");
  // Exporters ask about ranks and sizes that are plain here: the branch not taken often does not
  // even fit them.
  if (auto known = c.known_ints(0); known && known->size() == 1) {
    const std::string_view name = !c.node.name.empty()    ? c.node.name
                                  : c.node.output.empty() ? c.node.op_type
                                                          : c.node.output[0];
    TRY_ASSIGN(c.outputs, c.importer.inline_body((*known)[0] ? *then_proto : *else_proto, name));
    if (c.outputs.size() < c.output_count())
      return c.fail("has {} outputs, its branch {}", c.output_count(), c.outputs.size());
    return {};
  }
  TRY_ASSIGN(Importer::Body then_body, c.importer.import_body(*then_proto, {}));
  TRY_ASSIGN(Importer::Body else_body, c.importer.import_body(*else_proto, {}));
  std::vector<std::string> captures = then_body.captures;
  for (const std::string& name : else_body.captures)
    if (std::find(captures.begin(), captures.end(), name) == captures.end())
      captures.push_back(name);
  TRY_ASSIGN(const std::vector<ValueId> ids, c.importer.lookup_all(captures));
  std::vector<ValueId> inputs{c.in(0)};
  inputs.insert(inputs.end(), ids.begin(), ids.end());
  align_captures(then_body, 0, captures, c.b.graph(), ids);
  align_captures(else_body, 0, captures, c.b.graph(), ids);
  std::vector<ir::Graph> bodies;
  bodies.push_back(std::move(then_body.graph));
  bodies.push_back(std::move(else_body.graph));
  c.outputs =
      c.b.ops("if", std::move(inputs), {}, static_cast<int>(c.output_count()), std::move(bodies));
  return {};
}

// A size that changes from one trip to the next is open: `joined` keeps those of `a` that `b`
// confirms.
op::Type generalise(const op::Type& a, const op::Type& b, ir::SymbolSource& symbols) {
  if (a.kind == b.kind && a.element && b.element) {
    op::Type t = a;
    t.element = std::make_shared<const op::Type>(generalise(*a.element, *b.element, symbols));
    return t;
  }
  if (!a.is_tensor() || !b.is_tensor()) return a;
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return op::Type::unranked(a.dtype);
  op::Shape shape;
  for (int i = 0; i < a.rank(); ++i)
    shape.push_back(a.dim(i) == b.dim(i) || a.dim(i).as_symbol() ? a.dim(i) : symbols.fresh());
  return op::Type::tensor(a.dtype, std::move(shape));
}

// Imports a body until the types of its carried values hold for every trip. carried: their places
// among the formal inputs and among the results.
Result<Importer::Body> fixed_point(NodeContext& c, const GraphProto& proto,
                                   std::vector<op::Type> types, size_t first_input,
                                   size_t first_output, size_t carried) {
  for (int round = 0;; ++round) {
    TRY_ASSIGN(Importer::Body body, c.importer.import_body(proto, types));
    if (body.graph.outputs.size() < first_output + carried)
      return error(Code::kInvalidArgument, "{}: the body yields {} values, need at least {}",
                   c.node.op_type, body.graph.outputs.size(), first_output + carried);
    bool stable = true;
    for (size_t i = 0; i < carried; ++i) {
      op::Type& have = types[first_input + i];
      const op::Type& next = body.graph.type(body.graph.outputs[first_output + i]);
      if (next.is_tensor() && have.is_tensor() && next.dtype != have.dtype)
        return error(Code::kInvalidArgument,
                     "{}: carried value {} goes in as {} and comes out as {}", c.node.op_type, i,
                     have.str(), next.str());
      const op::Type wider = generalise(have, next, *body.graph.symbols);
      stable &= wider == have;
      have = wider;
    }
    if (stable || round > 8) return body;
  }
}

Status loop(NodeContext& c) {
  const GraphProto* proto = body_of(c, "body");
  if (!proto) return c.fail("needs a body");
  if (proto->input.size() < 2 || c.input_count() < 2 || proto->input.size() != c.input_count())
    return c.fail("has {} inputs, its body {}: need as many, at least 2", c.input_count(),
                  proto->input.size());
  const size_t carried = c.input_count() - 2;
  std::vector<op::Type> types{op::Type::tensor(DType::kI64, {}),
                              op::Type::tensor(DType::kBool, {})};
  for (size_t i = 0; i < carried; ++i) {
    if (!c.has(i + 2)) return c.fail("carried value {} is missing", i);
    types.push_back(c.type(i + 2));
  }
  TRY_ASSIGN(Importer::Body body, fixed_point(c, *proto, types, 2, 1, carried));
  std::vector<ValueId> inputs = c.inputs;
  TRY_ASSIGN(const std::vector<ValueId> captured, c.importer.lookup_all(body.captures));
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  std::vector<ir::Graph> bodies;
  bodies.push_back(std::move(body.graph));
  c.outputs = c.b.ops("loop", std::move(inputs), {{"carried", static_cast<int64_t>(carried)}},
                      static_cast<int>(c.output_count()), std::move(bodies));
  return {};
}

// Opset 8: (lengths?, states..., scanned...) with a batch axis in front and time as the second
// axis. A scan over the batch whose body scans the time, as far as the length of the batch's
// sequence goes; the outputs are filled up with zeros.
Status batched_scan(NodeContext& c, const GraphProto& proto) {
  const int64_t scanned = c.i("num_scan_inputs", 0);
  const int64_t formals = static_cast<int64_t>(proto.input.size());
  if (scanned < 1 || scanned > formals || static_cast<int64_t>(c.input_count()) != formals + 1)
    return c.fail("num_scan_inputs is {}, with {} inputs and {} of the body", scanned,
                  c.input_count(), formals);
  const size_t states = static_cast<size_t>(formals - scanned);
  const op::Ints directions = c.ints("directions");
  ir::Graph outer(c.node.name.empty() ? "batch" : std::string(c.node.name));
  outer.symbols = c.b.graph().symbols;
  ir::Builder b(outer, c.b.origin());
  std::vector<ValueId> inputs, slices;  // outside, and their parts of one batch
  std::vector<op::Type> types;          // of the inner body's inputs
  const bool ragged = c.has(0);
  for (size_t i = ragged ? 0 : 1; i < c.input_count(); ++i) {
    op::Type t = c.type(i);
    const int rank = i == 0 ? 1 : i > states ? 2 : 1;
    if (!t.ranked() || t.rank() < rank)
      return c.fail("input {} is {}, need rank {} or more", i, t.str(), rank);
    t.shape->erase(t.shape->begin());
    inputs.push_back(c.in(i));
    slices.push_back(outer.add_input(i == 0 ? "length" : std::string(proto.input[i - 1].name), t));
    if (i > states) t.shape->erase(t.shape->begin());
    if (i > 0) types.push_back(std::move(t));
  }
  TRY_ASSIGN(Importer::Body body, fixed_point(c, proto, types, 0, 0, states));
  const int outputs = static_cast<int>(body.graph.outputs.size());
  if (static_cast<int>(c.output_count()) > outputs)
    return c.fail("has {} outputs, its body {}", c.output_count(), outputs);
  const size_t batched = inputs.size();
  std::vector<ValueId> inner(slices.begin() + ragged, slices.end());
  const ValueId first = inner[states];
  const ValueId length = ragged ? b.reshape(slices[0], {1}) : kAbsent;
  for (size_t i = states; ragged && i < inner.size(); ++i)
    inner[i] = b.op("slice", {inner[i], b.ints({0}), length, b.ints({0})});
  TRY_ASSIGN(const std::vector<ValueId> captured, c.importer.lookup_all(body.captures));
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  for (size_t i = 0; i < captured.size(); ++i)
    inner.push_back(outer.add_input(body.captures[i], c.b.type(captured[i])));
  std::vector<ir::Graph> bodies;
  bodies.push_back(std::move(body.graph));
  std::vector<ValueId> results = b.ops("scan", std::move(inner),
                                       {{"states", static_cast<int64_t>(states)},
                                        {"scanned", scanned},
                                        {"input_reverse", directions}},
                                       outputs, std::move(bodies));
  for (size_t i = states; ragged && b.ok() && i < results.size(); ++i) {
    const ValueId missing =
        b.sub(b.op("slice", {b.op("shape_of", {first}), b.ints({0}), b.ints({1})}), length);
    results[i] =
        b.op("pad", {results[i], b.op("concat", {b.ints({0}), missing}, {{"axis", int64_t{0}}}),
                     kAbsent, b.ints({0})});
  }
  TRY(b.status());
  for (size_t i = 0; i < c.output_count(); ++i) {
    outer.outputs.push_back(results[i]);
    outer.output_names.push_back(fmt::format("y{}", i));
  }
  bodies.clear();
  bodies.push_back(std::move(outer));
  c.outputs = c.b.ops("scan", std::move(inputs),
                      {{"states", int64_t{0}}, {"scanned", static_cast<int64_t>(batched)}},
                      static_cast<int>(c.output_count()), std::move(bodies));
  return {};
}

Status scan(NodeContext& c) {
  const GraphProto* proto = body_of(c, "body");
  if (!proto) return c.fail("needs a body");
  if (c.opset < 9) return batched_scan(c, *proto);
  const int64_t scanned = c.i("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(c.input_count()) ||
      proto->input.size() != c.input_count())
    return c.fail("num_scan_inputs is {}, with {} inputs and {} of the body", scanned,
                  c.input_count(), proto->input.size());
  const size_t states = c.input_count() - static_cast<size_t>(scanned);
  const op::Ints axes = c.ints("scan_input_axes");
  std::vector<op::Type> types;
  for (size_t i = 0; i < c.input_count(); ++i) {
    op::Type t = c.type(i);
    if (i >= states && t.ranked()) {
      int64_t axis = i - states < axes.size() ? axes[i - states] : 0;
      if (axis < 0) axis += t.rank();
      if (axis < 0 || axis >= t.rank())
        return c.fail("scan axis {} is outside rank {}", axis, t.rank());
      t.shape->erase(t.shape->begin() + axis);
    }
    types.push_back(t);
  }
  TRY_ASSIGN(Importer::Body body, fixed_point(c, *proto, types, 0, 0, states));
  std::vector<ValueId> inputs = c.inputs;
  TRY_ASSIGN(const std::vector<ValueId> captured, c.importer.lookup_all(body.captures));
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  std::vector<ir::Graph> bodies;
  bodies.push_back(std::move(body.graph));
  c.outputs = c.b.ops("scan", std::move(inputs),
                      {{"states", static_cast<int64_t>(states)},
                       {"scanned", scanned},
                       {"input_axes", axes},
                       {"output_axes", c.ints("scan_output_axes")},
                       {"input_reverse", c.ints("scan_input_directions")},
                       {"output_reverse", c.ints("scan_output_directions")}},
                      static_cast<int>(c.output_count()), std::move(bodies));
  return {};
}

constexpr Converter kRows[] = {{"", "If", if_}, {"", "Loop", loop}, {"", "Scan", scan}};

}  // namespace

std::span<const Converter> control_converters() { return kRows; }

}  // namespace tessera::import::onnx
