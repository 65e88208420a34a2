#include "tessera/cli/values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tessera/base/element.h"
#include "tessera/base/file.h"
#include "tessera/import/onnx/model.h"
#include "tessera/io/npy.h"

namespace tessera::cli {
namespace {

constexpr size_t kLongestStem =
    180;  // file systems take 255 bytes; endings, numbers and ".tmp-" need some

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

double magnitude(const op::Tensor& t, int64_t i) {
  return is_complex(t.dtype()) ? std::abs(load_c128(t.dtype(), t.data(), i)) : t.f64(i);
}

Json number(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : fmt::format("{:.6g}", value.get<double>());
}

void add_rows(const Json& entry, const std::string& name, Table& table) {
  if (entry.contains("items")) {
    table.add(
        {name, fmt::format("sequence of {}", entry["items"].size()), "", "", "", "", "", "", ""});
    for (size_t i = 0; i < entry["items"].size(); ++i)
      add_rows(entry["items"][i], fmt::format("{}#{}", name, i), table);
    return;
  }
  if (entry.contains("value")) {
    if (entry["value"].is_null())
      table.add({name, "none", "", "", "", "", "", "", ""});
    else
      add_rows(entry["value"], name, table);
    return;
  }
  table.add({name, entry["dtype"], op::to_string(entry["shape"].get<op::Dims>()),
             text_of(entry["min"]), text_of(entry["max"]), text_of(entry["mean"]),
             std::to_string(entry["nan"].get<int64_t>()),
             std::to_string(entry["inf"].get<int64_t>()), entry.value("file", "")});
}

std::string place_of(const op::Dims& dims, int64_t index) {
  std::vector<int64_t> at(dims.size());
  for (size_t a = dims.size(); a-- > 0; index /= dims[a]) at[a] = index % dims[a];
  return fmt::format("[{}]", fmt::join(at, ","));
}

void compare_strings(const op::Tensor& actual, const op::Tensor& expected, Difference& d) {
  for (size_t i = 0; i < actual.text().size(); ++i) {
    if (actual.text()[i] == expected.text()[i]) continue;
    if (d.mismatched++ == 0)
      d.first = fmt::format("at {}: \"{}\", expected \"{}\"",
                            place_of(actual.dims(), static_cast<int64_t>(i)), actual.text()[i],
                            expected.text()[i]);
  }
}

std::string element_text(const op::Tensor& t, int64_t i) {
  const DType dtype = t.dtype();
  if (is_complex(dtype)) {
    const auto z = load_c128(dtype, t.data(), i);
    return fmt::format("{}{:+}i", z.real(), z.imag());
  }
  if (dtype == DType::kF64) return fmt::format("{}", t.f64(i));
  if (is_float(dtype)) return fmt::format("{}", static_cast<float>(t.f64(i)));
  return dtype == DType::kU64 ? fmt::format("{}", load_u64(dtype, t.data(), i))
                              : fmt::format("{}", t.i64(i));
}

// Distance and |expected|; a distance of 0 for equal bits, so that large integers need no rounding.
std::pair<double, double> distance(const op::Tensor& a, const op::Tensor& e, int64_t i) {
  if (is_complex(a.dtype())) {
    const auto x = load_c128(a.dtype(), a.data(), i), y = load_c128(e.dtype(), e.data(), i);
    return {x == y ? 0 : std::abs(x - y), std::abs(y)};
  }
  if (is_int(a.dtype()) && bits_of(a.dtype()) == 64) {
    const uint64_t x = load_u64(a.dtype(), a.data(), i), y = load_u64(e.dtype(), e.data(), i);
    const bool less =
        is_signed_int(a.dtype()) ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    return {static_cast<double>(less ? y - x : x - y), std::abs(e.f64(i))};
  }
  const double x = a.f64(i), y = e.f64(i);
  if (std::isnan(x) && std::isnan(y)) return {0, 0};
  return {x == y ? 0 : std::abs(x - y), std::abs(y)};
}

void compare_tensors(const op::Tensor& actual, const op::Tensor& expected,
                     const Tolerance& tolerance, Difference& d) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    d.first = fmt::format("is {}, expected {}", actual.type().str(), expected.type().str());
    ++d.mismatched;
    return;
  }
  d.count += actual.count();
  if (actual.dtype() == DType::kString) return compare_strings(actual, expected, d);
  for (int64_t i = 0; i < actual.count(); ++i) {
    const auto [error, size] = distance(actual, expected, i);
    if (!(error <= d.max_absolute)) d.max_absolute = error;
    if (error != 0 && !(error / size <= d.max_relative)) d.max_relative = error / size;
    if (error <= tolerance.absolute + tolerance.relative * size && !std::isinf(error)) continue;
    if (d.mismatched++ == 0)
      d.first = fmt::format("at {}: {}, expected {}", place_of(actual.dims(), i),
                            element_text(actual, i), element_text(expected, i));
  }
}

void compare_values(const op::Value& actual, const op::Value& expected, const Tolerance& tolerance,
                    Difference& d) {
  auto differ = [&](std::string what) {
    ++d.mismatched;
    if (d.first.empty()) d.first = std::move(what);
  };
  if (actual.is_optional() || expected.is_optional()) {
    const op::Value* a = actual.is_optional() ? actual.optional().value.get() : &actual;
    const op::Value* e = expected.is_optional() ? expected.optional().value.get() : &expected;
    if (!a != !e) return differ(a ? "has a value, expected none" : "has no value, expected one");
    return a ? compare_values(*a, *e, tolerance, d) : void();
  }
  if (actual.is_sequence() && expected.is_sequence()) {
    const auto &a = actual.sequence().items, &e = expected.sequence().items;
    if (a.size() != e.size())
      return differ(fmt::format("has {} items, expected {}", a.size(), e.size()));
    for (size_t i = 0; i < a.size(); ++i) compare_values(a[i], e[i], tolerance, d);
    return;
  }
  if (!actual.is_tensor() || !expected.is_tensor())
    return differ(fmt::format("is {}, expected {}", actual.type().str(), expected.type().str()));
  compare_tensors(actual.tensor(), expected.tensor(), tolerance, d);
}

Result<op::Value> read_value_file(const std::string& path, const op::Type& type) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  auto shared = std::make_shared<MappedFile>(std::move(file));
  const std::string_view bytes(reinterpret_cast<const char*>(shared->bytes().data()),
                               shared->bytes().size());
  auto value = path.ends_with(".npy")
                   ? io::parse_npy(bytes, shared, type.dtype).map([](op::Tensor t) {
                       return op::Value(std::move(t));
                     })
                   : import::onnx::read_value(bytes, shared, type);
  if (!value) return error(std::move(value).error().at(fmt::format("file '{}'", path)));
  return value;
}

// The value that ValueWriter wrote under this stem; nothing if it did not.
Result<std::optional<op::Value>> read_written(const std::string& folder, const std::string& stem,
                                              const op::Type& type) {
  if (type.kind == op::TypeKind::kOptional) {
    TRY_ASSIGN(auto inner, read_written(folder, stem, *type.element));
    if (!inner) return std::optional<op::Value>();
    return std::optional<op::Value>(
        op::Optional{*type.element, std::make_shared<const op::Value>(std::move(*inner))});
  }
  if (type.kind == op::TypeKind::kSequence) {
    op::Sequence sequence{*type.element, {}};
    for (;;) {
      TRY_ASSIGN(auto item, read_written(folder, fmt::format("{}#{}", stem, sequence.items.size()),
                                         *type.element));
      if (!item) break;
      sequence.items.push_back(std::move(*item));
    }
    if (sequence.items.empty()) return std::optional<op::Value>();
    return std::optional<op::Value>(std::move(sequence));
  }
  for (const char* ending : {".npy", ".pb"})
    if (const std::string path = fmt::format("{}/{}{}", folder, stem, ending);
        std::filesystem::exists(path)) {
      TRY_ASSIGN(op::Value value, read_value_file(path, type));
      return std::optional<op::Value>(std::move(value));
    }
  return std::optional<op::Value>();
}

}  // namespace

Figures figures(const op::Tensor& t) {
  Figures f;
  if (t.dtype() == DType::kString) return f;
  double sum = 0;
  int64_t counted = 0;
  for (int64_t i = 0; i < t.count(); ++i) {
    const double v = magnitude(t, i);
    if (std::isnan(v)) {
      ++f.nan;
      continue;
    }
    if (std::isinf(v)) ++f.inf;
    f.min = f.min ? std::min(*f.min, v) : v;
    f.max = f.max ? std::max(*f.max, v) : v;
    sum += v;
    ++counted;
  }
  if (counted > 0 && !std::isnan(sum)) f.mean = sum / static_cast<double>(counted);
  return f;
}

std::string file_stem(std::string_view name) {
  std::string stem;
  for (char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                       c == '+' || (c == '.' && !stem.empty());
    stem += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  if (stem.empty()) return "%";
  return stem.size() <= kLongestStem
             ? stem
             : fmt::format("{}%%{:016x}", stem.substr(0, kLongestStem - 18), fnv1a(name));
}

Result<ValueWriter> ValueWriter::make(std::string folder) {
  if (!folder.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure == std::errc::no_space_on_device)
      return error(Code::kResourceExhausted, "cannot make the folder '{}': {}", folder,
                   failure.message());
    if (!std::filesystem::is_directory(folder))
      return error(Code::kFailedPrecondition, "cannot make the folder '{}': {}", folder,
                   failure ? failure.message() : "a file is there");
  }
  return ValueWriter(std::move(folder));
}

void ValueWriter::remove_stale(const std::string& stem, const std::string& keep) const {
  for (const char* ending : {".npy", ".pb"})
    if (std::error_code ignored; !folder_.empty() && stem + ending != keep)
      std::filesystem::remove(folder_ + "/" + stem + ending, ignored);
}

Result<Json> ValueWriter::write(const op::Value& value, const std::string& name) {
  const std::string stem = file_stem(name);
  std::string own = stem;
  for (int n = 1; !used_.insert(own).second; ++n) own = fmt::format("{}@{}", stem, n);
  return write(value, name, own);
}

Result<Json> ValueWriter::write(const op::Value& value, const std::string& name,
                                const std::string& stem) {
  Json entry{{"name", name}};
  if (value.is_sequence()) {
    entry["items"] = Json::array();
    const auto& items = value.sequence().items;
    for (size_t i = 0; i < items.size(); ++i) {
      TRY_ASSIGN(Json item,
                 write(items[i], fmt::format("{}#{}", name, i), fmt::format("{}#{}", stem, i)));
      entry["items"].push_back(std::move(item));
    }
    remove_stale(fmt::format("{}#{}", stem, items.size()), "");
    return entry;
  }
  if (value.is_optional()) {
    entry["value"] = nullptr;
    if (value.optional().value) {
      TRY_ASSIGN(entry["value"], write(*value.optional().value, name, stem));
    } else {
      remove_stale(stem, "");
    }
    return entry;
  }
  if (!value.is_tensor())
    return error(Code::kUnimplemented, "output '{}' is {}, which has no file format", name,
                 value.type().str());
  const op::Tensor& t = value.tensor();
  entry["dtype"] = name_of(t.dtype());
  entry["shape"] = t.dims();
  if (!folder_.empty()) {
    const bool npy = io::writable_as_npy(t.dtype());
    const std::string file = stem + (npy ? ".npy" : ".pb");
    TRY(write_file(folder_ + "/" + file,
                   npy ? io::write_npy(t) : import::onnx::write_tensor(t, name)));
    remove_stale(stem, file);
    entry["file"] = file;
  }
  const Figures f = figures(t);
  entry["min"] = number(f.min);
  entry["max"] = number(f.max);
  entry["mean"] = number(f.mean);
  entry["nan"] = f.nan;
  entry["inf"] = f.inf;
  return entry;
}

Table table_of(const Json& outputs) {
  Table table({"output", "type", "shape", ">min", ">max", ">mean", ">NaN", ">Inf", "file"});
  for (const Json& entry : outputs) add_rows(entry, entry["name"], table);
  return table;
}

Difference compare(const op::Value& actual, const op::Value& expected, const Tolerance& tolerance) {
  Difference d;
  compare_values(actual, expected, tolerance, d);
  return d;
}

Result<op::Value> read_expected(const std::string& folder, const std::string& name, size_t index,
                                const op::Type& type) {
  TRY_ASSIGN(auto written, read_written(folder, file_stem(name), type));
  if (written) return std::move(*written);
  const std::string path = fmt::format("{}/output_{}.pb", folder, index);
  if (std::filesystem::exists(path)) return read_value_file(path, type);
  if (!std::filesystem::is_directory(folder))
    return error(Code::kNotFound, "'{}' is not a folder", folder);
  // Of none and of an empty sequence nothing is written.
  if (type.kind == op::TypeKind::kOptional) return op::Value(op::Optional{*type.element, nullptr});
  if (type.kind == op::TypeKind::kSequence) return op::Value(op::Sequence{*type.element, {}});
  return error(
      Code::kNotFound,
      "'{}' has no expected value for output '{}': neither {}.npy nor .pb, nor output_{}.pb",
      folder, name, file_stem(name), index);
}

}  // namespace tessera::cli
