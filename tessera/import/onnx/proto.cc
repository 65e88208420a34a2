#include "tessera/import/onnx/proto.h"

#include <cstring>
#include <new>

namespace tessera::import::onnx {
namespace {

// Thrown inside this file only; the public functions turn it into an Error.
struct TooDeep {};
struct Malformed {};

}  // namespace
}  // namespace tessera::import::onnx

// A field of another wire type than the schema's is bad input, not a bug.
#define protozero_assert(x) ((x) ? (void)0 : throw ::tessera::import::onnx::Malformed{})
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

namespace tessera::import::onnx {
namespace {

using Reader = protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kMaxDepth = 100;

std::string_view text(Reader& r) {
  const auto v = r.get_view();
  return {v.data(), v.size()};
}
Reader message(std::string_view bytes) { return Reader(bytes.data(), bytes.size()); }

void read_ints(Reader& r, std::vector<int64_t>& to) {
  if (r.wire_type() == pbf_wire_type::varint) {
    to.push_back(r.get_int64());
    return;
  }
  for (auto v : r.get_packed_int64()) to.push_back(v);
}

TensorProto tensor(Reader r);

SparseTensorProto sparse_tensor(Reader r) {
  SparseTensorProto s;
  while (r.next()) switch (r.tag()) {
      case 1:
        s.values = tensor(r.get_message());
        break;
      case 2:
        s.indices = tensor(r.get_message());
        break;
      case 3:
        read_ints(r, s.dims);
        break;
      default:
        r.skip();
    }
  return s;
}

// A numeric list may come packed or element by element.
void read_list(Reader& r, TensorProto& t, TypedList list) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    t.packed[list].push_back(text(r));
  } else if (r.wire_type() == pbf_wire_type::varint) {
    t.varints.push_back(r.get_uint64());
  } else if (r.wire_type() == pbf_wire_type::fixed32) {
    t.varints.push_back(r.get_fixed32());
  } else {
    t.varints.push_back(r.get_fixed64());
  }
}

TensorProto tensor(Reader r) {
  TensorProto t;
  while (r.next()) switch (r.tag()) {
      case 1:
        read_ints(r, t.dims);
        break;
      case 2:
        t.data_type = r.get_int32();
        break;
      case 4:
        read_list(r, t, kFloatData);
        break;
      case 5:
        read_list(r, t, kInt32Data);
        break;
      case 6:
        t.string_data.push_back(text(r));
        break;
      case 7:
        read_list(r, t, kInt64Data);
        break;
      case 8:
        t.name = text(r);
        break;
      case 9:
        t.raw_data = text(r);
        t.has_raw = true;
        break;
      case 10:
        read_list(r, t, kDoubleData);
        break;
      case 11:
        read_list(r, t, kUint64Data);
        break;
      case 13: {
        Reader entry = r.get_message();
        std::pair<std::string_view, std::string_view> pair;
        while (entry.next()) switch (entry.tag()) {
            case 1:
              pair.first = text(entry);
              break;
            case 2:
              pair.second = text(entry);
              break;
            default:
              entry.skip();
          }
        t.external_data.push_back(pair);
        break;
      }
      case 14:
        t.external = r.get_int32() == 1;
        break;
      default:
        r.skip();
    }
  return t;
}

TypeProto type(Reader r, int depth) {
  if (depth > kMaxDepth) throw TooDeep{};
  TypeProto t;
  while (r.next()) switch (r.tag()) {
      case 1:
      case 8: {  // tensor_type, sparse_tensor_type
        t.kind = r.tag() == 1 ? TypeProto::kTensor : TypeProto::kSparse;
        Reader m = r.get_message();
        while (m.next()) switch (m.tag()) {
            case 1:
              t.elem_type = m.get_int32();
              break;
            case 2: {
              t.has_shape = true;
              Reader shape = m.get_message();
              while (shape.next()) {
                if (shape.tag() != 1) {
                  shape.skip();
                  continue;
                }
                DimProto d;
                Reader dim = shape.get_message();
                while (dim.next()) switch (dim.tag()) {
                    case 1:
                      d.value = dim.get_int64();
                      break;
                    case 2:
                      d.param = text(dim);
                      break;
                    default:
                      dim.skip();
                  }
                t.shape.push_back(d);
              }
              break;
            }
            default:
              m.skip();
          }
        break;
      }
      case 4:
      case 9: {  // sequence_type, optional_type
        t.kind = r.tag() == 4 ? TypeProto::kSequence : TypeProto::kOptional;
        Reader m = r.get_message();
        while (m.next()) {
          if (m.tag() == 1)
            t.element = std::make_shared<const TypeProto>(type(m.get_message(), depth + 1));
          else
            m.skip();
        }
        break;
      }
      case 5: {  // map_type
        t.kind = TypeProto::kMap;
        Reader m = r.get_message();
        while (m.next()) switch (m.tag()) {
            case 1:
              t.elem_type = m.get_int32();
              break;
            case 2:
              t.element = std::make_shared<const TypeProto>(type(m.get_message(), depth + 1));
              break;
            default:
              m.skip();
          }
        break;
      }
      default:
        r.skip();
    }
  return t;
}

ValueInfoProto value_info(Reader r, int depth) {
  ValueInfoProto v;
  while (r.next()) switch (r.tag()) {
      case 1:
        v.name = text(r);
        break;
      case 2:
        v.type = type(r.get_message(), depth + 1);
        break;
      default:
        r.skip();
    }
  return v;
}

GraphProto graph(Reader r, int depth);

AttributeProto attribute(Reader r, int depth) {
  if (depth > kMaxDepth) throw TooDeep{};
  AttributeProto a;
  while (r.next()) switch (r.tag()) {
      case 1:
        a.name = text(r);
        break;
      case 2:
        a.f = r.get_float();
        break;
      case 3:
        a.i = r.get_int64();
        break;
      case 4:
        a.s = text(r);
        break;
      case 5:
        a.t = tensor(r.get_message());
        break;
      case 6:
        a.g = std::make_shared<const GraphProto>(graph(r.get_message(), depth + 1));
        break;
      case 7:
        if (r.wire_type() == pbf_wire_type::fixed32)
          a.floats.push_back(r.get_float());
        else
          for (auto v : r.get_packed_float()) a.floats.push_back(v);
        break;
      case 8:
        read_ints(r, a.ints);
        break;
      case 9:
        a.strings.push_back(text(r));
        break;
      case 10:
        a.tensors.push_back(tensor(r.get_message()));
        break;
      case 11:
        a.graphs.push_back(std::make_shared<const GraphProto>(graph(r.get_message(), depth + 1)));
        break;
      case 14:
        a.tp = type(r.get_message(), depth + 1);
        break;
      case 15:
        a.type_protos.push_back(type(r.get_message(), depth + 1));
        break;
      case 20:
        a.type = r.get_int32();
        break;
      case 21:
        a.ref_attr_name = text(r);
        break;
      case 22:
        a.sparse = sparse_tensor(r.get_message());
        break;
      default:
        r.skip();
    }
  return a;
}

NodeProto node(Reader r, int depth) {
  NodeProto n;
  while (r.next()) switch (r.tag()) {
      case 1:
        n.input.push_back(text(r));
        break;
      case 2:
        n.output.push_back(text(r));
        break;
      case 3:
        n.name = text(r);
        break;
      case 4:
        n.op_type = text(r);
        break;
      case 5:
        n.attribute.push_back(attribute(r.get_message(), depth + 1));
        break;
      case 7:
        n.domain = text(r);
        break;
      case 8:
        n.overload = text(r);
        break;
      default:
        r.skip();
    }
  return n;
}

GraphProto graph(Reader r, int depth) {
  if (depth > kMaxDepth) throw TooDeep{};
  GraphProto g;
  while (r.next()) switch (r.tag()) {
      case 1:
        g.node.push_back(node(r.get_message(), depth));
        break;
      case 2:
        g.name = text(r);
        break;
      case 5:
        g.initializer.push_back(tensor(r.get_message()));
        break;
      case 11:
        g.input.push_back(value_info(r.get_message(), depth));
        break;
      case 12:
        g.output.push_back(value_info(r.get_message(), depth));
        break;
      case 13:
        g.value_info.push_back(value_info(r.get_message(), depth));
        break;
      case 15:
        g.sparse_initializer.push_back(sparse_tensor(r.get_message()));
        break;
      default:
        r.skip();
    }
  return g;
}

OpsetProto opset(Reader r) {
  OpsetProto o;
  while (r.next()) switch (r.tag()) {
      case 1:
        o.domain = text(r);
        break;
      case 2:
        o.version = r.get_int64();
        break;
      default:
        r.skip();
    }
  return o;
}

FunctionProto function(Reader r) {
  FunctionProto f;
  while (r.next()) switch (r.tag()) {
      case 1:
        f.name = text(r);
        break;
      case 4:
        f.input.push_back(text(r));
        break;
      case 5:
        f.output.push_back(text(r));
        break;
      case 6:
        f.attribute.push_back(text(r));
        break;
      case 7:
        f.node.push_back(node(r.get_message(), 0));
        break;
      case 9:
        f.opset_import.push_back(opset(r.get_message()));
        break;
      case 10:
        f.domain = text(r);
        break;
      case 11:
        f.attribute_defaults.push_back(attribute(r.get_message(), 0));
        break;
      case 13:
        f.overload = text(r);
        break;
      default:
        r.skip();
    }
  return f;
}

ModelProto model(Reader r) {
  ModelProto m;
  while (r.next()) switch (r.tag()) {
      case 1:
        m.ir_version = r.get_int64();
        break;
      case 2:
        m.producer_name = text(r);
        break;
      case 7:
        m.graph = graph(r.get_message(), 0);
        m.has_graph = true;
        break;
      case 8:
        m.opset_import.push_back(opset(r.get_message()));
        break;
      case 25:
        m.functions.push_back(function(r.get_message()));
        break;
      default:
        r.skip();
    }
  return m;
}

SequenceProto elements(Reader r, bool optional) {
  SequenceProto s;
  while (r.next()) {
    if (r.tag() == 2 && r.wire_type() == pbf_wire_type::varint)
      s.elem_type = r.get_int32();
    else if (r.tag() >= 3 && r.tag() <= 7 && r.wire_type() == pbf_wire_type::length_delimited)
      s.elements.push_back(text(r));
    else
      r.skip();
  }
  if (optional && s.elements.size() > 1) throw Malformed{};
  return s;
}

template <class Fn>
auto guarded(std::string_view what, Fn fn) -> Result<decltype(fn())> {
  try {
    return fn();
  } catch (const protozero::exception& e) {
    return error(Code::kDataLoss, "not a well-formed ONNX {}: {}", what, e.what());
  } catch (const TooDeep&) {
    return error(Code::kDataLoss, "not an ONNX {} to be read: nested deeper than {}", what,
                 kMaxDepth);
  } catch (const Malformed&) {
    return error(Code::kDataLoss, "not a well-formed ONNX {}", what);
  } catch (const std::bad_alloc&) {
    return error(Code::kResourceExhausted, "no memory to read this ONNX {}", what);
  }
}

}  // namespace

const AttributeProto* NodeProto::find(std::string_view attribute_name) const {
  for (const AttributeProto& a : attribute)
    if (a.name == attribute_name) return &a;
  return nullptr;
}

Result<ModelProto> parse_model(std::string_view bytes) {
  TRY_ASSIGN(ModelProto m, guarded("model", [&] { return model(message(bytes)); }));
  if (!m.has_graph)
    return error(Code::kDataLoss, "not an ONNX model: no graph in {} bytes", bytes.size());
  return m;
}
Result<TensorProto> parse_tensor(std::string_view bytes) {
  return guarded("tensor", [&] { return tensor(message(bytes)); });
}
Result<TypeProto> parse_type(std::string_view bytes) {
  return guarded("type", [&] { return type(message(bytes), 0); });
}
Result<SequenceProto> parse_sequence(std::string_view bytes) {
  return guarded("sequence", [&] { return elements(message(bytes), false); });
}
Result<SequenceProto> parse_optional(std::string_view bytes) {
  return guarded("optional", [&] { return elements(message(bytes), true); });
}

}  // namespace tessera::import::onnx
