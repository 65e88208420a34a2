#include "tessera/cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tessera/base/file.h"
#include "tessera/cli/arguments.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/random.h"
#include "tessera/import/onnx/model.h"
#include "tessera/import/onnx/proto.h"
#include "tessera/io/npy.h"
#include "tessera/io/npz.h"
#include "tessera/ir/reference/interpreter.h"

namespace tessera::cli {
namespace {

using session::Port;

struct Mapped {
  std::string_view bytes;
  std::shared_ptr<const void> keep;
};

Result<Mapped> map_file(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  auto shared = std::make_shared<MappedFile>(std::move(file));
  return Mapped{{reinterpret_cast<const char*>(shared->bytes().data()), shared->bytes().size()},
                shared};
}

// The rest of read_inputs()'s job, kept together by what it knows.
class Reader {
 public:
  Reader(const session::Model& model, const InputOptions& options, Bytes memory_limit)
      : model_(model), options_(options), memory_left_(memory_limit) {}

  Result<Inputs> read();

 private:
  const Port* find(std::string_view name) const {
    for (const Port& port : model_.inputs())
      if (port.name == name) return &port;
    return nullptr;
  }
  std::string names() const {
    std::vector<std::string> list;
    for (const Port& port : model_.inputs())
      list.push_back(fmt::format("'{}' ({})", port.name, port.type.str()));
    return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
  }
  Result<const Port*> port(std::string_view name) const {
    if (const Port* found = find(name)) return found;
    return error(Code::kInvalidArgument, "the model has no input '{}'; its inputs: {}", name,
                 names());
  }

  Status read_argument(const std::string& argument);
  Status read_file(const Port& port, const std::string& path);
  Status read_npz(const std::string& path, const Port* only);
  Status read_test_set();
  Result<op::Value> decode(const Port& port, const std::string& path, const Mapped& file) const;
  Result<op::Tensor> decode_raw(const Port& port, const Mapped& file) const;
  Status give(const Port& port, op::Value value, const std::string& path);
  Status fill();

  const session::Model& model_;
  const InputOptions& options_;
  Bytes memory_left_;
  Inputs inputs_;
};

Status Reader::give(const Port& port, op::Value value, const std::string& path) {
  if (auto fits = ir::reference::check_type(value, port.type, port.name); !fits)
    return error(std::move(fits).error().at(fmt::format("input from '{}'", path)));
  if (!inputs_.values.emplace(port.name, std::move(value)).second)
    return error(Code::kInvalidArgument, "input '{}' is given twice", port.name);
  return {};
}

// A type for this input, else the one for all.
Result<op::Tensor> Reader::decode_raw(const Port& port, const Mapped& file) const {
  op::Type type = port.type;
  for (const std::string& text : options_.types) {
    const size_t equals = text.rfind('=');
    if (equals != text.npos && text.substr(0, equals) != port.name) continue;
    auto parsed = op::Type::parse(equals == text.npos ? text : text.substr(equals + 1));
    if (!parsed) return error(std::move(parsed).error().at(fmt::format("--input-type {}", text)));
    type = *parsed;
    if (equals != text.npos) break;
  }
  if (!type.is_tensor() || !type.is_static() || type.dtype == DType::kString)
    return error(Code::kInvalidArgument,
                 "a raw file needs all sizes and a type of numbers, input '{}' is {}: give "
                 "--input-type {}=f32[1,3,224,224]",
                 port.name, type.str(), port.name);
  const op::Dims dims = type.dims();
  TRY_ASSIGN(int64_t count, op::element_count(dims));
  const int64_t needed = packed_bytes(type.dtype, count);
  if (needed < 0 || static_cast<uint64_t>(needed) != file.bytes.size())
    return error(Code::kInvalidArgument, "the file has {} bytes, {} has {}", file.bytes.size(),
                 type.str(), needed);
  return op::Tensor::borrow(type.dtype, dims, file.bytes.data(), file.keep);
}

Result<op::Value> Reader::decode(const Port& port, const std::string& path,
                                 const Mapped& file) const {
  if (path.ends_with(".npy"))
    return io::parse_npy(file.bytes, file.keep,
                         port.type.is_tensor() ? std::optional(port.type.dtype) : std::nullopt);
  if (path.ends_with(".pb")) return import::onnx::read_value(file.bytes, file.keep, port.type);
  if (path.ends_with(".bin")) return decode_raw(port, file);
  return error(Code::kInvalidArgument, "the ending is not one of .npy, .npz, .pb and .bin");
}

Status Reader::read_file(const Port& port, const std::string& path) {
  TRY_ASSIGN(Mapped file, map_file(path));
  auto value = decode(port, path, file);
  if (!value)
    return error(std::move(value).error().at(fmt::format("input '{}' from '{}'", port.name, path)));
  return give(port, std::move(*value), path);
}

Status Reader::read_npz(const std::string& path, const Port* only) {
  TRY_ASSIGN(Mapped file, map_file(path));
  auto members = io::parse_npz(file.bytes, file.keep);
  if (!members) return error(std::move(members).error().at(fmt::format("file '{}'", path)));
  bool found = false;
  for (const io::NpzMember& member : *members) {
    if (only && members->size() > 1 && member.name != only->name) continue;
    found = true;
    const Port* target = only;
    if (!target) {
      TRY_ASSIGN(target, port(member.name));
    }
    auto tensor = io::parse_npy(member.data, member.keep, target->type.dtype);
    if (!tensor)
      return error(
          std::move(tensor).error().at(fmt::format("member '{}' of '{}'", member.name, path)));
    TRY(give(*target, std::move(*tensor), path));
  }
  if (!found)
    return error(Code::kInvalidArgument, "'{}' has no member '{}'", path,
                 only ? only->name : "*.npy");
  return {};
}

// NAME=FILE, where both may contain '=': the first split whose NAME is an input counts.
Status Reader::read_argument(const std::string& argument) {
  for (size_t at = argument.find('='); at != argument.npos; at = argument.find('=', at + 1)) {
    const Port* target = find(std::string_view(argument).substr(0, at));
    if (!target) continue;
    const std::string path = argument.substr(at + 1);
    return path.ends_with(".npz") ? read_npz(path, target) : read_file(*target, path);
  }
  if (argument.ends_with(".npz") && std::filesystem::exists(argument))
    return read_npz(argument, nullptr);
  const size_t at = argument.find('=');
  if (at == argument.npos)
    return error(Code::kInvalidArgument, "--input '{}' is not of the form NAME=FILE", argument);
  return error(std::move(port(argument.substr(0, at))).error());
}

// Files belong to inputs by number; a tensor that bears the name of an input belongs to that.
Status Reader::read_test_set() {
  if (!std::filesystem::is_directory(options_.test_set))
    return error(Code::kNotFound, "'{}' is not a folder", options_.test_set);
  const std::vector<Port>& ports = model_.inputs();
  size_t found = 0;
  for (size_t n = 0; n < ports.size() ||
                     std::filesystem::exists(fmt::format("{}/input_{}.pb", options_.test_set, n));
       ++n) {
    const std::string path = fmt::format("{}/input_{}.pb", options_.test_set, n);
    if (!std::filesystem::exists(path)) continue;
    ++found;
    TRY_ASSIGN(Mapped file, map_file(path));
    const Port* target = n < ports.size() ? &ports[n] : nullptr;
    if (auto proto = import::onnx::parse_tensor(file.bytes);
        proto && (!target || target->type.is_tensor()))
      if (const Port* named = find(proto->name)) target = named;
    if (!target)
      return error(Code::kInvalidArgument, "'{}' is input {} of a model with {}: {}", path, n,
                   ports.size(), names());
    TRY(read_file(*target, path));
  }
  if (found == 0 && !ports.empty() && !options_.seed && options_.inputs.empty())
    return error(Code::kNotFound, "'{}' has no input_N.pb, the model has inputs {}",
                 options_.test_set, names());
  return {};
}

Status Reader::fill() {
  op::Bindings known;
  for (const auto& [name, value] : inputs_.values) {
    const op::Type& type = find(name)->type;
    if (!value.is_tensor() || !type.ranked()) continue;
    for (int i = 0; i < type.rank(); ++i)
      if (auto symbol = type.dim(i).as_symbol()) known.emplace(*symbol, value.tensor().dim(i));
  }
  std::vector<Port> missing;
  for (const Port& port : model_.inputs())
    if (!inputs_.values.contains(port.name)) missing.push_back(port);
  if (missing.empty()) return {};
  if (!options_.seed)
    return error(Code::kInvalidArgument,
                 "input '{}' ({}) is missing: give it with --input {}=FILE, or --random SEED",
                 missing[0].name, missing[0].type.str(), missing[0].name);
  inputs_.assumed = assume_sizes(missing, known);
  for (const Port& port : missing) {
    if (!port.type.is_tensor())
      return error(Code::kInvalidArgument,
                   "input '{}' is {}, which cannot be random: give it with --input {}=FILE.pb",
                   port.name, port.type.str(), port.name);
    if (!port.type.ranked())
      return error(
          Code::kInvalidArgument,
          "input '{}' has no known rank: give it with --input, or its shape with --shape {}=1x3",
          port.name, port.name);
    op::Dims dims;
    for (const op::Expr& size : *port.type.shape) {
      TRY_ASSIGN(int64_t d, size.eval(known));
      dims.push_back(d);
    }
    TRY_ASSIGN(int64_t count, op::element_count(dims));
    const Bytes size(packed_bytes(port.type.dtype, count));
    if (size.value < 0 || size > memory_left_)
      return error(Code::kResourceExhausted, "input '{}' of {} {} is beyond the memory limit",
                   port.name, op::to_string(dims), name_of(port.type.dtype));
    memory_left_ -= size;
    auto tensor = random_tensor(*options_.seed, port.name, port.type.dtype, dims);
    if (!tensor) return error(std::move(tensor).error().at(fmt::format("input '{}'", port.name)));
    inputs_.values.emplace(port.name, std::move(*tensor));
  }
  return {};
}

Result<Inputs> Reader::read() {
  for (const std::string& argument : options_.inputs) TRY(read_argument(argument));
  if (!options_.test_set.empty()) TRY(read_test_set());
  TRY(fill());
  return std::move(inputs_);
}

}  // namespace

void add_input_options(Verb& verb, InputOptions& options) {
  verb.option("--input", options.inputs,
              "An input from .npy, .npz, .pb (TensorProto) or .bin (raw); an .npz without NAME= "
              "gives several")
      .type_name("NAME=FILE")
      .one_value_each();
  verb.option("--input-type", options.types,
              "Type of raw files, e.g. f32[1,3,224,224] or x=u8[10]; default: the input's")
      .type_name("[NAME=]TYPE")
      .one_value_each();
  verb.option("--random", options.seed,
              "Random numbers for the other inputs: floats normal, integers 0 or 1")
      .type_name("SEED");
}

std::map<std::string, int64_t> assume_sizes(const std::vector<Port>& inputs, op::Bindings& known) {
  std::map<std::string, int64_t> assumed;
  for (const Port& port : inputs) {
    if (!port.type.ranked()) continue;
    for (int i = 0; i < port.type.rank(); ++i)
      for (const std::string& symbol : port.type.dim(i).symbols())
        if (known.emplace(symbol, 1).second)
          assumed[symbol.starts_with('_') ? fmt::format("{}[{}]", port.name, i) : symbol] = 1;
  }
  return assumed;
}

std::string describe_assumed(const std::map<std::string, int64_t>& assumed) {
  std::vector<std::string> list;
  for (const auto& [name, size] : assumed) list.push_back(fmt::format("{} = {}", name, size));
  return list.empty() ? "" : fmt::format("sizes that nothing gives: {}\n", fmt::join(list, ", "));
}

Result<Inputs> read_inputs(const session::Model& model, const InputOptions& options,
                           Bytes memory_limit) {
  return Reader(model, options, memory_limit).read();
}

}  // namespace tessera::cli
