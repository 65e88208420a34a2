// Chips as JSON, and the schema of their files.
#include <nlohmann/json.hpp>

#include "tessera/chip/fields.h"

namespace tessera::chip {
namespace {

using Json = nlohmann::ordered_json;

// ---- writing

class Writer {
 public:
  template <class S>
  static Json write(const S& s) {
    Writer writer;
    fields(writer, const_cast<S&>(s));  // the visitor's members are not const; this one only reads
    return std::move(writer.j_);
  }

  void text(const char* key, const std::string& s, Need, std::string_view) {
    if (!s.empty()) j_[key] = s;
  }
  template <class E, size_t N>
  void choice(const char* key, E e, const std::array<Name<E>, N>& names, Need, std::string_view) {
    j_[key] = name_in(names, e);
  }
  template <class E, size_t N>
  void choice(const char* key, std::optional<E> e, const std::array<Name<E>, N>& names,
              std::string_view) {
    if (e) j_[key] = name_in(names, *e);
  }
  void list(const char* key, const std::vector<std::string>& list, std::string_view) {
    if (!list.empty()) j_[key] = list;
  }
  void changes(const char* key, const std::vector<Change>& changes, std::string_view) {
    for (const Change& c : changes) j_[key].push_back(fmt::format("{} -> {}", c.from, c.to));
  }
  template <class T>
  void number(const char* key, const Fact<T>& fact, const Range&, std::string_view) {
    j_[key] = json_of(fact);
  }
  template <class T>
  void number(const char* key, const std::optional<Fact<T>>& fact, const Range&, std::string_view) {
    if (fact) j_[key] = json_of(*fact);
  }
  template <class S>
  void object(const char* key, const S& s, std::string_view) {
    j_[key] = json_of(s);
  }
  template <class S>
  void object(const char* key, const std::optional<S>& s, std::string_view) {
    if (s) j_[key] = json_of(*s);
  }
  template <class S>
  void map(const char* key, const Named<S>& map, std::string_view) {
    if (!map.empty()) j_[key] = json_of(map);
  }

 private:
  static Json number_of(double x) { return x; }
  static Json number_of(int64_t x) { return x; }
  static Json number_of(Bytes x) { return x.value; }
  static Json number_of(Seconds x) { return x.value; }

  template <class T>
  static Json json_of(const Fact<T>& fact) {
    Json j{{"value", number_of(fact.value)}, {"cite", fact.cite.str()}};
    for (const Conflict& c : fact.conflicts)
      j["conflicts"].push_back({{"value", c.value}, {"cite", c.cite.str()}});
    if (!fact.choice.empty()) j["choice"] = fact.choice;
    if (!fact.fitted_to.empty()) j["fitted_to"] = fact.fitted_to;
    return j;
  }
  static Json json_of(const std::vector<std::string>& list) { return list; }
  template <class S>
  static Json json_of(const Named<S>& map) {
    Json j = Json::object();
    for (const auto& [name, value] : map) j[name] = json_of(value);
    return j;
  }
  template <class S>
  static Json json_of(const S& s) {
    return write(s);
  }

  Json j_ = Json::object();
};

// ---- the schema

// Null, by which a derived file removes a member of its base, is allowed everywhere.
class Describer {
 public:
  template <class S>
  static Json describe() {
    S s{};
    Describer d;
    fields(d, s);
    d.properties_["cite"] = reference("cite");
    return {{"type", {"object", "null"}},
            {"properties", std::move(d.properties_)},
            {"additionalProperties", false}};
  }

  static Json reference(std::string_view name) {
    return {{"$ref", fmt::format("#/$defs/{}", name)}};
  }
  // A bare number, or one with its own source.
  static Json describe(const Range& range) {
    const Json value{{"type", range.whole ? "integer" : "number"},
                     {range.low_counts ? "minimum" : "exclusiveMinimum", range.low},
                     {"maximum", range.high}};
    Json fact = reference("fact");
    fact["properties"] = {{"value", value}};
    return {{"anyOf", Json::array({value, std::move(fact), {{"type", "null"}}})}};
  }

  void text(const char* key, std::string&, Need, std::string_view what) {
    add(key, {{"type", {"string", "null"}}}, what);
  }
  template <class E, size_t N>
  void choice(const char* key, E&, const std::array<Name<E>, N>& names, Need,
              std::string_view what) {
    Json list = Json::array();
    for (const auto& entry : names) list.push_back(entry.second);
    list.push_back(nullptr);
    add(key, {{"enum", std::move(list)}}, what);
  }
  template <class E, size_t N>
  void choice(const char* key, std::optional<E>&, const std::array<Name<E>, N>& names,
              std::string_view what) {
    E e{};
    choice(key, e, names, kOptional, what);
  }
  void list(const char* key, std::vector<std::string>&, std::string_view what) {
    add(key, strings(), what);
  }
  void changes(const char* key, std::vector<Change>&, std::string_view what) {
    Json schema = strings();
    schema["items"]["pattern"] = " -> ";
    add(key, std::move(schema), what);
  }
  template <class T>
  void number(const char* key, T&, const Range& range, std::string_view what) {
    add(key, reference(range.name), what);
  }
  template <class S>
  void object(const char* key, S&, std::string_view what) {
    add(key, describe<S>(), what);
  }
  template <class S>
  void object(const char* key, std::optional<S>&, std::string_view what) {
    add(key, describe<S>(), what);
  }
  template <class S>
  void map(const char* key, Named<S>& map, std::string_view what) {
    add(key, schema_of(map), what);
  }

 private:
  void add(const char* key, Json schema, std::string_view what) {
    properties_[key] = {{"description", what}};
    properties_[key].update(schema);
  }

  static Json strings() { return {{"type", {"array", "null"}}, {"items", {{"type", "string"}}}}; }

  template <class S>
  static Json schema_of(const Named<S>&) {
    Json item;
    if constexpr (std::is_same_v<S, Real>)
      item = reference(kRates.name);
    else if constexpr (std::is_same_v<S, std::vector<std::string>>)
      item = strings();
    else if constexpr (std::is_same_v<S, Named<Real>>)
      item = schema_of(Named<Real>{});
    else
      item = describe<S>();
    return {{"type", {"object", "null"}},
            {"properties", {{"cite", reference("cite")}}},
            {"patternProperties", {{"^(?!cite$)[a-z0-9_.]{1,64}$", std::move(item)}}},
            {"additionalProperties", false}};
  }

  Json properties_ = Json::object();
};

}  // namespace

std::string to_json(const Chip& chip) {
  Json j{{"schema", kSchema}};
  j.update(Writer::write(chip));
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_schema() {
  const Json cite{
      {"description", "grade and source of all numbers herein that have none of their own"},
      {"type", "string"},
      {"pattern", "^(published|derived|measured|assumed): ."}};
  const Json reference = Describer::reference("cite");
  const Json conflict{{"type", "object"},
                      {"properties", {{"value", {{"type", "number"}}}, {"cite", reference}}},
                      {"required", {"value"}},
                      {"additionalProperties", false}};
  const Json fact{{"description", "a number with its own source"},
                  {"type", "object"},
                  {"properties",
                   {{"value", {{"type", "number"}}},
                    {"cite", reference},
                    {"conflicts", {{"type", "array"}, {"items", conflict}, {"minItems", 1}}},
                    {"choice", {{"type", "string"}}},
                    {"fitted_to", {{"type", "string"}}}}},
                  {"required", {"value"}},
                  {"dependentRequired", {{"conflicts", {"choice"}}}},
                  {"additionalProperties", false}};
  Json j{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
         {"title", "A chip of Tessera's catalog"},
         {"$defs", {{"cite", cite}, {"fact", fact}}}};
  for (const Range* range : kRanges)
    j["$defs"][std::string(range->name)] = Describer::describe(*range);
  j.update(Describer::describe<Chip>());
  j["type"] = "object";
  j["properties"]["schema"] = {{"const", kSchema}};
  j["properties"]["extends"] = {{"description", "the chip that this one differs from"},
                                {"type", "string"}};
  j["required"] = Json::array({"schema"});
  return j.dump(2) + "\n";
}

}  // namespace tessera::chip
