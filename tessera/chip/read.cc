// Chip files: JSON to chips.
//
// A file is read in three steps. Every number becomes an object {"value", "cite"}, its cite the
// nearest one around it. What the file says is laid over what its base says, while `origins` keeps
// which file said what. The whole is read member by member (fields.h).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "tessera/chip/fields.h"

namespace tessera::chip {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 16;  // of objects in a file
constexpr int kMaxBases = 8;   // files that extend each other
constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxText = 2000;                    // characters of a string
constexpr Range kAny{"", -1e18, 1e18, true, false};  // of what other sources say
constexpr size_t kMaxMembers = 500;                  // of a map or list

std::string child(const std::string& at, std::string_view key) {
  std::string result = at + "/";
  for (const char c : key) c == '~' ? result += "~0" : c == '/' ? result += "~1" : result += c;
  return result;
}

struct Origins {
  std::vector<std::string> files;
  std::map<std::string, size_t, std::less<>> of;  // JSON pointer -> which file last said it

  // Of a member that nothing says, the file of what is around it.
  const std::string& file(std::string at) const {
    for (;;) {
      if (auto found = of.find(at); found != of.end()) return files[found->second];
      if (at.empty()) return files.front();
      at.resize(at.rfind('/'));
    }
  }
};

Error fault(std::string_view file, std::string_view at, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("{}: {}: {}", file, at.empty() ? "/" : at, what)};
}

// ---- text to JSON

// The parser tells depth and keys as it goes, so that hostile nesting ends early.
Result<Json> parse(const Source& source) {
  if (source.text.size() > kMaxBytes)
    return error(
        fault(source.file, "", fmt::format("{} bytes, at most {}", source.text.size(), kMaxBytes)));
  bool deep = false;
  std::string twice;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    deep |= depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty())
      if (!keys.back().insert(value.get<std::string>()).second) twice = value.get<std::string>();
    return !deep;
  };
  Json j = Json::parse(source.text, watch, false);
  if (deep) return error(fault(source.file, "", fmt::format("nested deeper than {}", kMaxDepth)));
  if (!twice.empty())
    return error(fault(source.file, "", fmt::format("'{}' is given twice", twice)));
  if (!j.is_object()) return error(fault(source.file, "", "not a JSON object"));
  return j;
}

bool is_fact(const Json& j) {
  const auto value = j.is_object() ? j.find("value") : j.end();
  return j.is_object() && value != j.end() && !value->is_object();
}

// Puts each number into an object with the cite that holds for it.
void cite_numbers(Json& j, const Json* cite) {
  if (j.is_number()) {
    Json fact{{"value", std::move(j)}};
    if (cite) fact["cite"] = *cite;
    j = std::move(fact);
  } else if (is_fact(j)) {
    if (cite && !j.contains("cite")) j["cite"] = *cite;
    if (auto list = j.find("conflicts"); list != j.end() && list->is_array())
      for (Json& conflict : *list)
        if (conflict.is_object() && cite && !conflict.contains("cite")) conflict["cite"] = *cite;
  } else if (j.is_object()) {
    Json own;
    if (auto found = j.find("cite"); found != j.end()) {
      own = *found;
      cite = &own;
      j.erase(found);
    }
    for (auto& member : j.items()) cite_numbers(member.value(), cite);
  }
}

void lay_over(Json& base, Json&& over, const std::string& at, size_t file, Origins& origins) {
  for (auto& member : over.items()) {
    const std::string where = child(at, member.key());
    auto found = base.find(member.key());
    if (member.value().is_null()) {
      if (found != base.end()) base.erase(found);
    } else if (found != base.end() && found->is_object() && member.value().is_object() &&
               !is_fact(*found) && !is_fact(member.value())) {
      lay_over(*found, std::move(member.value()), where, file, origins);
      continue;
    } else {
      base[member.key()] = std::move(member.value());
    }
    origins.of[where] = file;
  }
}

struct Merged {
  Json json;
  Origins origins;
  uint64_t hash = 14695981039346656037u;  // FNV-1a of the files' bytes
};

Result<Merged> merge(const Source& source, const Finder& find, int depth) {
  TRY_ASSIGN(Json j, parse(source));
  const auto schema = j.find("schema");
  if (schema == j.end() || *schema != kSchema)
    return error(fault(source.file, "/schema", fmt::format("must be '{}'", kSchema)));
  j.erase(schema);
  Merged merged{.json = Json::object(), .origins = {}};
  if (auto extends = j.find("extends"); extends != j.end()) {
    if (!extends->is_string()) return error(fault(source.file, "/extends", "must be a string"));
    if (depth == kMaxBases)
      return error(fault(source.file, "/extends",
                         fmt::format("more than {} files that extend each other", kMaxBases)));
    const std::string id = extends->get<std::string>();
    auto base = find(id);
    if (!base) return error(fault(source.file, "/extends", base.error().message));
    TRY_ASSIGN(merged, merge(*base, find, depth + 1));
    j.erase(extends);
  }
  const size_t file = merged.origins.files.size();
  merged.origins.files.push_back(source.file);
  if (file == 0) merged.origins.of[""] = 0;
  for (const char c : source.text)
    merged.hash = (merged.hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  cite_numbers(j, nullptr);
  lay_over(merged.json, std::move(j), "", file, merged.origins);
  return merged;
}

// ---- reading

// Keeps the first error.
class Reader {
 public:
  Reader(const Json& j, std::string at, const Origins& origins, std::optional<Error>& error)
      : j_(j), at_(std::move(at)), origins_(origins), error_(error) {}

  template <class S>
  static void read(const Json& j, const std::string& at, S& s, const Origins& origins,
                   std::optional<Error>& error) {
    Reader reader(j, at, origins, error);
    if (!j.is_object()) return reader.refuse(at, "must be an object");
    fields(reader, s);
    reader.finish();
  }

  void text(std::string_view key, std::string& s, Need need, std::string_view) {
    if (const Json* v = member(key, need)) read_text(*v, child(at_, key), s);
  }

  template <class E, size_t N>
  void choice(std::string_view key, E& e, const std::array<Name<E>, N>& names, Need need,
              std::string_view) {
    if (const Json* v = member(key, need)) read_choice(*v, child(at_, key), e, names);
  }
  template <class E, size_t N>
  void choice(std::string_view key, std::optional<E>& e, const std::array<Name<E>, N>& names,
              std::string_view) {
    if (const Json* v = member(key, kOptional))
      read_choice(*v, child(at_, key), e.emplace(), names);
  }

  void list(std::string_view key, std::vector<std::string>& list, std::string_view) {
    if (const Json* v = member(key, kOptional)) read_value(*v, child(at_, key), list);
  }

  void changes(std::string_view key, std::vector<Change>& changes, std::string_view) {
    std::vector<std::string> texts;
    list(key, texts, {});
    for (size_t i = 0; i < texts.size(); ++i) {
      constexpr std::string_view kArrow = " -> ";
      const size_t arrow = texts[i].find(kArrow);
      if (arrow == std::string::npos)
        return refuse(child(child(at_, key), std::to_string(i)), "must be 'layout -> layout'");
      changes.push_back({texts[i].substr(0, arrow), texts[i].substr(arrow + kArrow.size())});
    }
  }

  template <class T>
  void number(std::string_view key, Fact<T>& fact, const Range& range, std::string_view) {
    if (const Json* v = member(key, kRequired)) read_fact(*v, child(at_, key), fact, range);
  }
  template <class T>
  void number(std::string_view key, std::optional<Fact<T>>& fact, const Range& range,
              std::string_view) {
    if (const Json* v = member(key, kOptional))
      read_fact(*v, child(at_, key), fact.emplace(), range);
  }

  template <class S>
  void object(std::string_view key, S& s, std::string_view) {
    if (const Json* v = member(key, kRequired)) read_value(*v, child(at_, key), s);
  }
  template <class S>
  void object(std::string_view key, std::optional<S>& s, std::string_view) {
    if (const Json* v = member(key, kOptional)) read_value(*v, child(at_, key), s.emplace());
  }
  template <class S>
  void map(std::string_view key, Named<S>& map, std::string_view) {
    if (const Json* v = member(key, kOptional)) read_value(*v, child(at_, key), map);
  }

 private:
  void refuse(const std::string& at, std::string_view what) {
    if (!error_) error_ = fault(origins_.file(at), at, what);
  }

  const Json* member(std::string_view key, Need need) {
    known_.push_back(key);
    const auto found = j_.find(key);
    if (found != j_.end()) return &*found;
    if (need == kRequired && missing_.empty()) missing_ = key;
    return nullptr;
  }

  // An unknown member is told before a missing one: it may be the same, misspelt.
  void finish() {
    for (const auto& item : j_.items())
      if (std::ranges::find(known_, item.key()) == known_.end())
        return refuse(child(at_, item.key()), "no such member");
    if (!missing_.empty()) refuse(child(at_, missing_), "is missing");
  }

  void read_text(const Json& j, const std::string& at, std::string& s) {
    if (!j.is_string()) return refuse(at, "must be a string");
    s = j.get<std::string>();
    if (s.empty() || s.size() > kMaxText)
      return refuse(at, fmt::format("{} bytes, need 1 to {}", s.size(), kMaxText));
    if (std::ranges::any_of(s, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      refuse(at, "has control characters");
  }

  template <class E, size_t N>
  void read_choice(const Json& j, const std::string& at, E& e,
                   const std::array<Name<E>, N>& names) {
    std::string s;
    read_text(j, at, s);
    for (const auto& [value, name] : names)
      if (name == s) {
        e = value;
        return;
      }
    std::string all;
    for (const auto& entry : names)
      all += fmt::format("{}{}", all.empty() ? "" : ", ", entry.second);
    refuse(at, fmt::format("'{}' is none of {}", s, all));
  }

  void read_cite(const Json& j, const std::string& at, Cite& cite) {
    const auto found = j.find("cite");
    if (found == j.end())
      return refuse(at,
                    "has no source and grade: give 'cite' here or around it, as 'published: ...'");
    std::string s;
    read_text(*found, child(at, "cite"), s);
    const size_t colon = s.find(": ");
    const std::string grade = s.substr(0, colon);
    for (const auto& [value, name] : kGrades)
      if (name == grade && colon != std::string::npos && colon + 2 < s.size()) {
        cite = {value, s.substr(colon + 2)};
        return;
      }
    refuse(child(at, "cite"),
           fmt::format("'{}' must be 'published: ', 'derived: ', 'measured: ' or 'assumed: ' and a "
                       "source",
                       s));
  }

  // The member "value" of `j`.
  void read_number(const Json& j, const std::string& at, const Range& range, double& x) {
    const auto found = j.find("value");
    if (found == j.end() || !found->is_number()) return refuse(at, "must be a number");
    x = found->get<double>();
    if (!(range.low_counts ? x >= range.low : x > range.low))
      return refuse(at, fmt::format("{}, need {} {}", x,
                                    range.low_counts ? "at least" : "more than", range.low));
    if (!(x <= range.high)) return refuse(at, fmt::format("{}, need at most {}", x, range.high));
    if (range.whole && x != std::floor(x)) refuse(at, fmt::format("{}, need a whole number", x));
  }

  static void assign(double x, double& v) { v = x; }
  static void assign(double x, int64_t& v) { v = static_cast<int64_t>(x); }
  static void assign(double x, Bytes& v) { v = Bytes(static_cast<int64_t>(x)); }
  static void assign(double x, Seconds& v) { v = Seconds(x); }

  template <class T>
  void read_fact(const Json& j, const std::string& at, Fact<T>& fact, const Range& range) {
    if (!j.is_object()) return refuse(at, "must be a number");
    double x = 0;
    read_number(j, at, range, x);
    if (error_) return;
    assign(x, fact.value);
    read_cite(j, at, fact.cite);
    for (const auto& item : j.items()) {
      const std::string where = child(at, item.key());
      if (item.key() == "choice")
        read_text(item.value(), where, fact.choice);
      else if (item.key() == "fitted_to")
        read_text(item.value(), where, fact.fitted_to);
      else if (item.key() == "conflicts")
        read_conflicts(item.value(), where, fact.conflicts);
      else if (item.key() != "value" && item.key() != "cite")
        refuse(where, "no such member");
    }
    if (!fact.conflicts.empty() && fact.choice.empty())
      refuse(child(at, "choice"), "is missing: there are conflicts");
  }

  void read_conflicts(const Json& j, const std::string& at, std::vector<Conflict>& conflicts) {
    if (!j.is_array() || j.empty() || j.size() > kMaxMembers)
      return refuse(at, "must be a list of values with cites");
    for (size_t i = 0; i < j.size(); ++i) {
      const std::string where = child(at, std::to_string(i));
      if (!j[i].is_object()) return refuse(where, "must be an object");
      Conflict& conflict = conflicts.emplace_back();
      read_number(j[i], where, kAny, conflict.value);
      read_cite(j[i], where, conflict.cite);
      for (const auto& item : j[i].items())
        if (item.key() != "value" && item.key() != "cite")
          refuse(child(where, item.key()), "no such member");
    }
  }

  template <class S>
  void read_value(const Json& j, const std::string& at, S& s) {
    if constexpr (std::is_same_v<S, Real>)
      read_fact(j, at, s, kRates);
    else
      read(j, at, s, origins_, error_);
  }
  void read_value(const Json& j, const std::string& at, std::vector<std::string>& list) {
    if (!j.is_array() || j.size() > kMaxMembers) return refuse(at, "must be a list of strings");
    for (size_t i = 0; i < j.size(); ++i)
      read_text(j[i], child(at, std::to_string(i)), list.emplace_back());
  }
  template <class S>
  void read_value(const Json& j, const std::string& at, Named<S>& map) {
    if (!j.is_object() || j.size() > kMaxMembers) return refuse(at, "must be an object");
    for (const auto& item : j.items()) {
      const auto& name = item.key();
      const bool good = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
      });
      if (!good)
        return refuse(child(at, name),
                      "a name has 1 to 64 lower-case letters, digits, '_' and '.'");
      read_value(item.value(), child(at, name), map[name]);
    }
  }

  const Json& j_;
  std::string at_;
  const Origins& origins_;
  std::optional<Error>& error_;
  std::vector<std::string_view> known_;
  std::string_view missing_;
};

}  // namespace

Result<Chip> read_chip(const Source& source, std::string_view id, const Finder& find) {
  TRY_ASSIGN(Merged merged, merge(source, find, 0));
  Chip chip;
  std::optional<Error> bad;
  Reader::read(merged.json, "", chip, merged.origins, bad);
  if (bad) return error(*std::move(bad));
  if (auto wrong = verify(chip))
    return error(fault(merged.origins.file(wrong->pointer), wrong->pointer, wrong->message));
  chip.id = id;
  chip.hash = merged.hash;
  chip.files.assign(merged.origins.files.rbegin(), merged.origins.files.rend());
  return chip;
}

}  // namespace tessera::chip
