#include <cstring>

#include "tessera/base/file.h"
#include "tessera/forecast/forecast.h"
#include "tessera/import/onnx/model.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/ir/text.h"
#include "tessera/passes/simplify.h"

namespace tessera::forecast {
namespace {

// Of what simplifying computes; the same on every machine.
constexpr Bytes kMostMemory{int64_t{8} << 30};

uint64_t hash_of(std::string_view text, uint64_t hash = 14695981039346656037u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// Eight bytes at a time: models are large.
uint64_t hash_of_bytes(std::span<const std::byte> bytes) {
  uint64_t hash = bytes.size() * 0x9e3779b97f4a7c15u;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash_of({reinterpret_cast<const char*>(bytes.data()) + i, bytes.size() - i}, hash);
}

Status simplify(Subject& subject) {
  const auto evaluate = [](const ir::Node& node, std::span<const op::Value* const> inputs) {
    ir::reference::Options options;
    options.memory_limit = kMostMemory;
    return ir::reference::evaluate(node, inputs, options);
  };
  for (const passes::Event& e :
       passes::simplify(subject.graph, {.evaluate = evaluate, .observe = {}}).missed)
    subject.missed.push_back(
        fmt::format("{} of {}: {}", e.pass, fmt::join(e.origin, ", "), e.text));
  return ir::verify(subject.graph);
}

}  // namespace

Result<Subject> read_subject(const std::string& path, const SubjectOptions& options) {
  uint64_t hash = 0;
  {
    TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
    hash = hash_of_bytes(file.bytes());
  }
  for (const auto& [name, size] : options.dims)
    hash = hash_of(fmt::format("{}={};", name, size), hash);
  for (const auto& [name, dims] : options.shapes)
    hash = hash_of(fmt::format("{}={};", name, op::to_string(dims)), hash);
  TRY_ASSIGN(auto imported, import::onnx::import_file(path, {options.dims, options.shapes, ""}));
  Subject subject;
  subject.graph = std::move(imported.graph);
  subject.hash = fmt::format("{:016x}", hash);
  TRY(simplify(subject));
  return subject;
}

Result<Subject> subject_of(ir::Graph graph) {
  TRY(ir::verify(graph));
  Subject subject;
  subject.hash = fmt::format("{:016x}", hash_of(ir::print(graph)));
  subject.graph = std::move(graph);
  TRY(simplify(subject));
  return subject;
}

}  // namespace tessera::forecast
