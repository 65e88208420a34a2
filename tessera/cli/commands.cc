#include "tessera/cli/commands.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/import/onnx/model.h"
#include "tessera/io/npy.h"
#include "tessera/session/model.h"

namespace tessera::cli {
namespace {

int exit_code(const Error& e) {
  using enum Code;
  switch (e.code) {
    case kInvalidArgument: case kNotFound: case kAlreadyExists: case kOutOfRange: case kDataLoss: case kFailedPrecondition: return 2;
    case kInternal: return 70;
    default: return 3;
  }
}

std::string escape(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return out;
}

Result<nlohmann::json> describe(const op::Value& value, const std::string& name, const std::string& output_dir) {
  nlohmann::json entry{{"name", name}};
  if (value.is_sequence()) {
    entry["items"] = nlohmann::json::array();
    for (size_t i = 0; i < value.sequence().items.size(); ++i) {
      TRY_ASSIGN(auto item, describe(value.sequence().items[i], fmt::format("{}.{}", name, i), output_dir));
      entry["items"].push_back(item);
    }
    return entry;
  }
  if (value.is_optional()) {
    entry["value"] = nullptr;
    if (value.optional().value) {
      TRY_ASSIGN(entry["value"], describe(*value.optional().value, name, output_dir));
    }
    return entry;
  }
  const op::Tensor& t = value.tensor();
  const bool npy = io::writable_as_npy(t.dtype());
  const std::string file = escape(name) + (npy ? ".npy" : ".pb");
  TRY(write_file(output_dir + "/" + file, npy ? io::write_npy(t) : import::onnx::write_tensor(t, name)));
  entry["dtype"] = std::string(name_of(t.dtype()));
  entry["shape"] = t.dims();
  entry["file"] = file;
  return entry;
}

Result<nlohmann::json> run(const std::string& model_path, const std::string& test_set, const std::string& output_dir, const std::string& device) {
  session::LoadOptions options;
  options.device = device;
  TRY_ASSIGN(auto model, session::Model::load(model_path, options));
  std::map<std::string, op::Value> inputs;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    const auto path = fmt::format("{}/input_{}.pb", test_set, i);
    if (!std::filesystem::exists(path)) continue;
    TRY_ASSIGN(MappedFile file, MappedFile::open(path));
    auto shared = std::make_shared<MappedFile>(std::move(file));
    auto value = import::onnx::read_value({reinterpret_cast<const char*>(shared->bytes().data()), shared->bytes().size()}, shared, model->inputs()[i].type);
    if (!value) return error(std::move(value).error().at(path));
    inputs[model->inputs()[i].name] = *value;
  }
  TRY_ASSIGN(auto outputs, model->run(inputs));
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    TRY_ASSIGN(auto entry, describe(outputs[i], model->outputs()[i].name, output_dir));
    list.push_back(entry);
  }
  const session::Counters c = model->counters();
  return nlohmann::json{{"outputs", list}, {"counters", {{"kernels", c.kernel_launches}, {"host", c.host_operators}, {"reference", c.reference_launches}}}};
}

}  // namespace

int dispatch(const std::vector<std::string>& a) {
  std::string test_set, output_dir = ".", device = "cpu";
  for (size_t i = 3; i + 1 < a.size(); ++i) {
    if (a[i] == "--test-set") test_set = a[i + 1];
    if (a[i] == "--output-dir") output_dir = a[i + 1];
    if (a[i] == "--device") device = a[i + 1];
  }
  if (a.size() < 3 || a[1] != "run") {
    fmt::print(stderr, "usage: tessera run MODEL --test-set DIR --output-dir DIR\n");
    return 2;
  }
  auto result = run(a[2], test_set, output_dir, device);
  if (!result) {
    fmt::print(stderr, "tessera: {}\n", result.error().message);
    return exit_code(result.error());
  }
  fmt::print("{}\n", result->dump());
  return 0;
}

}  // namespace tessera::cli
