// Small ONNX models, written field by field, for tests.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace tessera::import::onnx::test {

using Names = std::vector<std::string>;
using protozero::pbf_writer;

// A message written by `fill`.
template <class Fn>
std::string message(Fn fill) {
  std::string bytes;
  pbf_writer w(bytes);
  fill(w);
  return bytes;
}

// ---- attributes ----
inline std::string attr(std::string_view name, int type, const std::string& rest) {
  return message([&](pbf_writer& w) {
           w.add_string(1, name.data(), name.size());
           w.add_int32(20, type);
         }) +
         rest;
}
inline std::string int_attr(std::string_view name, int64_t v) {
  return attr(name, 2, message([&](pbf_writer& w) { w.add_int64(3, v); }));
}
inline std::string float_attr(std::string_view name, float v) {
  return attr(name, 1, message([&](pbf_writer& w) { w.add_float(2, v); }));
}
inline std::string floats_attr(std::string_view name, const std::vector<float>& v) {
  return attr(name, 6, message([&](pbf_writer& w) { w.add_packed_float(7, v.begin(), v.end()); }));
}
inline std::string ints_attr(std::string_view name, const std::vector<int64_t>& v) {
  return attr(name, 7, message([&](pbf_writer& w) { w.add_packed_int64(8, v.begin(), v.end()); }));
}
inline std::string string_attr(std::string_view name, const std::string& v) {
  return attr(name, 3, message([&](pbf_writer& w) { w.add_bytes(4, v); }));
}
inline std::string tensor_attr(std::string_view name, const std::string& t) {
  return attr(name, 4, message([&](pbf_writer& w) { w.add_message(5, t); }));
}
inline std::string graph_attr(std::string_view name, const std::string& g) {
  return attr(name, 5, message([&](pbf_writer& w) { w.add_message(6, g); }));
}
inline std::string ref_attr(std::string_view name, int type, const std::string& of) {
  return attr(name, type, message([&](pbf_writer& w) { w.add_string(21, of); }));
}

// ---- tensors ----
inline std::string tensor_head(const std::vector<int64_t>& dims, int type,
                               const std::string& name) {
  return message([&](pbf_writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, type);
    w.add_string(8, name);
  });
}
inline std::string floats(const std::vector<int64_t>& dims, const std::vector<float>& v,
                          const std::string& name = "") {
  std::string raw(v.size() * 4, '\0');
  if (!v.empty()) std::memcpy(raw.data(), v.data(), raw.size());
  return tensor_head(dims, 1, name) + message([&](pbf_writer& w) { w.add_bytes(9, raw); });
}
inline std::string ints(const std::vector<int64_t>& dims, const std::vector<int64_t>& v,
                        const std::string& name = "") {
  return tensor_head(dims, 7, name) +
         message([&](pbf_writer& w) { w.add_packed_int64(7, v.begin(), v.end()); });
}
inline std::string external(const std::vector<int64_t>& dims, const std::string& name,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  return tensor_head(dims, 1, name) + message([&](pbf_writer& w) {
           for (const auto& entry : entries)
             w.add_message(13, message([&](pbf_writer& e) {
                             e.add_string(1, entry.first);
                             e.add_string(2, entry.second);
                           }));
           w.add_int32(14, 1);
         });
}

// ---- graphs ----
// An f32 value (or of another type); a size below -1 is left out.
inline std::string value(const std::string& name, const std::vector<int64_t>& dims = {},
                         int type = 1) {
  const std::string shape = message([&](pbf_writer& w) {
    for (int64_t d : dims)
      w.add_message(1, message([&](pbf_writer& e) {
                      if (d >= -1) e.add_int64(1, d);
                    }));
  });
  const std::string tensor = message([&](pbf_writer& w) {
    w.add_int32(1, type);
    w.add_message(2, shape);
  });
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(2, message([&](pbf_writer& t) { t.add_message(1, tensor); }));
  });
}
inline std::string named(const std::string& name) {
  return message([&](pbf_writer& w) { w.add_string(1, name); });
}

inline std::string node(const std::string& op, const Names& in, const Names& out,
                        const std::vector<std::string>& attrs = {}, const std::string& name = "",
                        const std::string& domain = "") {
  return message([&](pbf_writer& w) {
    for (const std::string& i : in) w.add_string(1, i);
    for (const std::string& o : out) w.add_string(2, o);
    if (!name.empty()) w.add_string(3, name);
    w.add_string(4, op);
    for (const std::string& a : attrs) w.add_message(5, a);
    if (!domain.empty()) w.add_string(7, domain);
  });
}

struct GraphParts {
  std::vector<std::string> nodes, inputs, outputs, initializers, sparse;
};
inline std::string graph(const GraphParts& g) {
  return message([&](pbf_writer& w) {
    for (const std::string& n : g.nodes) w.add_message(1, n);
    w.add_string(2, "g");
    for (const std::string& t : g.initializers) w.add_message(5, t);
    for (const std::string& v : g.inputs) w.add_message(11, v);
    for (const std::string& v : g.outputs) w.add_message(12, v);
    for (const std::string& t : g.sparse) w.add_message(15, t);
  });
}

inline std::string opset(const std::string& domain, int64_t version) {
  return message([&](pbf_writer& w) {
    w.add_string(1, domain);
    w.add_int64(2, version);
  });
}

struct FunctionParts {
  std::string name;
  Names inputs, outputs, attributes;
  std::vector<std::string> defaults, nodes;
};
inline std::string function(const FunctionParts& f) {
  return message([&](pbf_writer& w) {
    w.add_string(1, f.name);
    for (const std::string& i : f.inputs) w.add_string(4, i);
    for (const std::string& o : f.outputs) w.add_string(5, o);
    for (const std::string& a : f.attributes) w.add_string(6, a);
    for (const std::string& n : f.nodes) w.add_message(7, n);
    w.add_message(9, opset("", 20));
    w.add_message(9, opset("own", 1));
    w.add_string(10, "own");
    for (const std::string& d : f.defaults) w.add_message(11, d);
  });
}

inline std::string model(const std::string& graph_bytes,
                         const std::vector<std::string>& functions = {}, int64_t version = 20) {
  return message([&](pbf_writer& w) {
    w.add_int64(1, 10);
    w.add_message(7, graph_bytes);
    w.add_message(8, opset("", version));
    w.add_message(8, opset("own", 1));
    w.add_message(8, opset("com.microsoft", 1));
    for (const std::string& f : functions) w.add_message(25, f);
  });
}

}  // namespace tessera::import::onnx::test
