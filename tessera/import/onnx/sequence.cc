// Sequences and optionals.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// One operator with the same inputs.
template <const char* kOp>
Status direct(NodeContext& c) {
  c.out(0, c.b.op(kOp, c.inputs));
  return {};
}
constexpr char kConstruct[] = "sequence_construct", kAt[] = "sequence_at",
               kInsert[] = "sequence_insert", kErase[] = "sequence_erase",
               kLength[] = "sequence_length", kGet[] = "optional_get", kHas[] = "optional_has";

Status empty(NodeContext& c) {
  TRY_ASSIGN(DType dtype, dtype_from_onnx(static_cast<int32_t>(c.i("dtype", 1))));
  c.out(0, c.b.op("sequence_empty", {}, {{"dtype", dtype}}));
  return {};
}

Status concat(NodeContext& c) {
  if (!c.has_attr("axis")) return c.fail("needs an axis");
  c.out(0, c.b.op("sequence_concat", c.inputs,
                  {{"axis", c.i("axis", 0)}, {"new_axis", c.i("new_axis", 0)}}));
  return {};
}

Status split(NodeContext& c) {
  c.out(0, c.b.op("sequence_split", c.inputs,
                  {{"axis", c.i("axis", 0)}, {"keepdims", c.i("keepdims", 1)}}));
  return {};
}

Status map(NodeContext& c) {
  const AttributeProto* body_attr = c.node.find("body");
  if (!body_attr || !body_attr->g) return c.fail("needs a body");
  std::vector<op::Type> types;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has(i)) return c.fail("input {} is missing", i);
    const op::Type& t = c.type(i);
    types.push_back(t.kind == op::TypeKind::kSequence ? *t.element : t);
  }
  if (body_attr->g->output.size() != c.output_count())
    return c.fail("has {} outputs, its body {}", c.output_count(), body_attr->g->output.size());
  TRY_ASSIGN(Importer::Body body, c.importer.import_body(*body_attr->g, types));
  std::vector<ValueId> inputs = c.inputs;
  TRY_ASSIGN(const std::vector<ValueId> captured, c.importer.lookup_all(body.captures));
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  std::vector<ir::Graph> bodies;
  bodies.push_back(std::move(body.graph));
  const int64_t mapped = static_cast<int64_t>(c.input_count());
  c.outputs = c.b.ops("sequence_map", std::move(inputs), {{"mapped", mapped}},
                      static_cast<int>(c.output_count()), std::move(bodies));
  return {};
}

Status optional(NodeContext& c) {
  op::Attrs attrs;
  if (const AttributeProto* a = c.node.find("type"); a && a->tp) {
    TRY_ASSIGN(op::Type type, to_type(*a->tp, *c.b.graph().symbols));
    attrs.set("type", std::move(type));
  }
  c.out(0, c.b.op("optional", c.inputs, std::move(attrs)));
  return {};
}

constexpr Converter kRows[] = {
    {"", "SequenceConstruct", direct<kConstruct>},
    {"", "SequenceAt", direct<kAt>},
    {"", "SequenceInsert", direct<kInsert>},
    {"", "SequenceErase", direct<kErase>},
    {"", "SequenceLength", direct<kLength>},
    {"", "SequenceEmpty", empty},
    {"", "ConcatFromSequence", concat},
    {"", "SplitToSequence", split},
    {"", "SequenceMap", map},
    {"", "Optional", optional},
    {"", "OptionalGetElement", direct<kGet>},
    {"", "OptionalHasElement", direct<kHas>},
};

}  // namespace

std::span<const Converter> sequence_converters() { return kRows; }

}  // namespace tessera::import::onnx
