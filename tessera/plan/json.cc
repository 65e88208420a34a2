// Plans as JSON and back.
#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "tessera/plan/plan.h"

namespace tessera::plan {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Instruction::Kind;

constexpr std::string_view kSchema = "tessera.plan/1";
constexpr int kMaxDepth = 32;
constexpr Storage kStorages[] = {Storage::kInput, Storage::kConstant, Storage::kSlab,
                                 Storage::kHeap,  Storage::kHost,     Storage::kAlias};
constexpr Kind kKinds[] = {Kind::kLaunch, Kind::kHost, Kind::kCopy, Kind::kSizes, Kind::kBind,
                           Kind::kBranch, Kind::kLoop, Kind::kScan, Kind::kMap};

// ---- writing ----

Json json_of(const op::Attr& attr) {
  struct {
    Json operator()(int64_t v) { return v; }
    Json operator()(double v) { return {{"float", fmt::format("{}", v)}}; }
    Json operator()(const std::string& v) { return v; }
    Json operator()(const op::Ints& v) { return v; }
    Json operator()(const op::Floats& v) {
      Json list = Json::array();
      for (double x : v) list.push_back(fmt::format("{}", x));
      return {{"floats", std::move(list)}};
    }
    Json operator()(const op::Strings& v) { return {{"strings", v}}; }
    Json operator()(DType v) { return {{"dtype", name_of(v)}}; }
    Json operator()(const op::Type& v) { return {{"type", v.str()}}; }
    Json operator()(const op::Tensor& v) { return {{"tensor", v.type().str()}}; }
  } visitor;
  return std::visit(visitor, attr);
}

Json json_of(const Slot& slot) {
  Json j{{"name", slot.name},
         {"type", slot.type.str()},
         {"storage", name_of(slot.storage)},
         {"first", slot.first},
         {"last", slot.last}};
  if (slot.alias != kNone) j["alias"] = slot.alias;
  if (slot.constant != kNone) j["constant"] = slot.constant;
  if (!slot.layout.empty()) j["layout"] = slot.layout;
  if (slot.view) {
    j["view"] = {{"offset", slot.view->offset.str()}, {"strides", Json::array()}};
    for (const op::Expr& e : slot.view->strides) j["view"]["strides"].push_back(e.str());
  }
  if (slot.contents) {
    j["contents"] = Json::array();
    for (const op::Expr& e : *slot.contents) j["contents"].push_back(e.str());
  }
  return j;
}

Json json_of(const op::Attrs& attrs) {
  Json j = Json::object();
  for (const auto& [name, value] : attrs.all()) j[name] = json_of(value);
  return j;
}

Json json_of(const Step& step) {
  Json j{{"op", step.op->name}};
  if (!step.attrs.empty()) j["attrs"] = json_of(step.attrs);
  j["in"] = step.in;
  j["type"] = step.type.str();
  return j;
}

Json json_of(const Region& region);

Json json_of(const Instruction& i) {
  Json j{{"kind", name_of(i.kind)}};
  if (i.op) j["op"] = i.op->name;
  if (!i.attrs.empty()) j["attrs"] = json_of(i.attrs);
  if (!i.steps.empty()) {
    j["arity"] = i.arity;
    j["result"] = i.result.str();
    j["steps"] = Json::array();
    for (const Step& step : i.steps) j["steps"].push_back(json_of(step));
    j["results"] = i.results;
  }
  if (!i.kernel.empty()) j["kernel"] = i.kernel;
  if (!i.place.empty()) j["place"] = i.place;
  if (!i.reason.empty()) j["reason"] = i.reason;
  j["in"] = i.in;
  j["out"] = i.out;
  if (!i.origin.empty()) j["origin"] = i.origin;
  if (!i.symbols.empty()) j["symbols"] = i.symbols;
  if (!i.regions.empty()) {
    j["regions"] = Json::array();
    for (const Region& r : i.regions) j["regions"].push_back(json_of(r));
  }
  return j;
}

Json json_of(const Region& region) {
  Json slots = Json::array(), body = Json::array();
  for (const Slot& slot : region.slots) slots.push_back(json_of(slot));
  for (const Instruction& i : region.body) body.push_back(json_of(i));
  return {{"name", region.name},
          {"inputs", region.inputs},
          {"outputs", region.outputs},
          {"slots", std::move(slots)},
          {"body", std::move(body)}};
}

Json json_of(const Basis& basis) {
  Json chips = Json::array();
  for (const ChipUse& c : basis.chips)
    chips.push_back({{"place", c.place}, {"id", c.id}, {"hash", fmt::format("{:016x}", c.hash)}});
  return {{"model", basis.model},
          {"version", basis.version},
          {"precision", basis.precision},
          {"chips", std::move(chips)}};
}

// ---- reading: every accessor checks kind and presence ----

tl::unexpected<Error> bad(std::string_view field, std::string_view need) {
  return error(Code::kInvalidArgument, "plan: '{}' must be {}", field, need);
}

Result<const Json*> member(const Json& j, const char* name) {
  if (!j.is_object()) return bad(name, "in an object");
  auto found = j.find(name);
  if (found == j.end()) return bad(name, "given");
  return &*found;
}
Result<std::string> text(const Json& j, const char* name) {
  TRY_ASSIGN(const Json* v, member(j, name));
  if (!v->is_string()) return bad(name, "a string");
  return v->get<std::string>();
}
Result<std::string> optional_text(const Json& j, const char* name) {
  if (!j.contains(name)) return std::string();
  return text(j, name);
}
Result<int> index(const Json& j, const char* name) {
  if (!j.is_number_integer()) return bad(name, "an integer");
  const auto v = j.is_number_unsigned()
                     ? static_cast<int64_t>(std::min<uint64_t>(j.get<uint64_t>(), INT64_MAX))
                     : j.get<int64_t>();
  if (v < kNone || v > INT32_MAX) return bad(name, "between -1 and 2^31 - 1");
  return static_cast<int>(v);
}
Result<int> index_member(const Json& j, const char* name) {
  TRY_ASSIGN(const Json* v, member(j, name));
  return index(*v, name);
}
Result<const Json*> array(const Json& j, const char* name) {
  TRY_ASSIGN(const Json* v, member(j, name));
  if (!v->is_array()) return bad(name, "an array");
  return v;
}
Result<std::vector<int>> indices(const Json& j, const char* name) {
  TRY_ASSIGN(const Json* v, array(j, name));
  std::vector<int> list;
  for (const Json& item : *v) {
    TRY_ASSIGN(int k, index(item, name));
    list.push_back(k);
  }
  return list;
}
Result<std::vector<std::string>> texts(const Json& j, const char* name) {
  std::vector<std::string> list;
  if (!j.contains(name)) return list;
  TRY_ASSIGN(const Json* v, array(j, name));
  for (const Json& item : *v) {
    if (!item.is_string()) return bad(name, "a list of strings");
    list.push_back(item.get<std::string>());
  }
  return list;
}

template <class T, size_t N>
Result<T> named(const std::string& name, const T (&all)[N], const char* what) {
  for (T value : all)
    if (name_of(value) == name) return value;
  return error(Code::kInvalidArgument, "plan: no {} '{}'", what, name);
}

Result<double> floating(const Json& j) {
  if (!j.is_string()) return bad("float", "a string");
  const std::string s = j.get<std::string>();
  char* end = nullptr;
  const double v = std::strtod(s.c_str(), &end);
  if (s.empty() || *end) return bad("float", "a number");
  return v;
}

Result<op::Attr> attr_of(const Json& j) {
  if (j.is_number_integer())
    return op::Attr(j.is_number_unsigned() && j.get<uint64_t>() > INT64_MAX ? INT64_MAX
                                                                            : j.get<int64_t>());
  if (j.is_string()) return op::Attr(j.get<std::string>());
  if (j.is_array()) {
    op::Ints v;
    for (const Json& item : j) {
      if (!item.is_number_integer()) return bad("attrs", "lists of integers");
      v.push_back(item.get<int64_t>());
    }
    return op::Attr(std::move(v));
  }
  if (!j.is_object() || j.size() != 1) return bad("attrs", "values");
  const Json& v = j.begin().value();
  const std::string kind = j.begin().key();
  if (kind == "float") {
    TRY_ASSIGN(double x, floating(v));
    return op::Attr(x);
  }
  if (kind == "floats" && v.is_array()) {
    op::Floats list;
    for (const Json& item : v) {
      TRY_ASSIGN(double x, floating(item));
      list.push_back(x);
    }
    return op::Attr(std::move(list));
  }
  if (kind == "strings") {
    TRY_ASSIGN(op::Strings list, texts(j, "strings"));
    return op::Attr(std::move(list));
  }
  if (kind == "dtype" && v.is_string())
    if (auto d = dtype_from_name(v.get<std::string>())) return op::Attr(*d);
  if (kind == "type" && v.is_string()) {
    TRY_ASSIGN(op::Type t, op::Type::parse(v.get<std::string>()));
    return op::Attr(std::move(t));
  }
  if (kind == "tensor")
    return error(Code::kUnimplemented,
                 "plan: an attribute holds a tensor, whose bytes are not in the plan");
  return bad("attrs", "values");
}

Result<std::vector<op::Expr>> expressions(const Json& j, const char* name) {
  TRY_ASSIGN(std::vector<std::string> list, texts(j, name));
  std::vector<op::Expr> result;
  for (const std::string& e : list) {
    TRY_ASSIGN(op::Expr expression, op::Expr::parse(e));
    result.push_back(std::move(expression));
  }
  return result;
}

Result<Slot> slot_of(const Json& j) {
  Slot slot;
  TRY_ASSIGN(slot.name, text(j, "name"));
  TRY_ASSIGN(std::string type, text(j, "type"));
  TRY_ASSIGN(slot.type, op::Type::parse(type));
  TRY_ASSIGN(std::string storage, text(j, "storage"));
  TRY_ASSIGN(slot.storage, named(storage, kStorages, "storage"));
  TRY_ASSIGN(slot.first, index_member(j, "first"));
  TRY_ASSIGN(slot.last, index_member(j, "last"));
  if (j.contains("alias")) {
    TRY_ASSIGN(slot.alias, index_member(j, "alias"));
  }
  if (j.contains("constant")) {
    TRY_ASSIGN(slot.constant, index_member(j, "constant"));
  }
  TRY_ASSIGN(slot.layout, optional_text(j, "layout"));
  if (j.contains("view")) {
    View view;
    TRY_ASSIGN(const Json* v, member(j, "view"));
    TRY_ASSIGN(std::string offset, text(*v, "offset"));
    TRY_ASSIGN(view.offset, op::Expr::parse(offset));
    TRY_ASSIGN(view.strides, expressions(*v, "strides"));
    slot.view = std::move(view);
  }
  if (j.contains("contents")) {
    TRY_ASSIGN(slot.contents, expressions(j, "contents"));
  }
  return slot;
}

Result<op::Attrs> attrs_of(const Json& j) {
  op::Attrs attrs;
  if (!j.contains("attrs")) return attrs;
  TRY_ASSIGN(const Json* list, member(j, "attrs"));
  if (!list->is_object()) return bad("attrs", "an object");
  for (const auto& [name, value] : list->items()) {
    TRY_ASSIGN(op::Attr attr, attr_of(value));
    attrs.set(name, std::move(attr));
  }
  return attrs;
}

Result<const op::OpDef*> op_of(const Json& j) {
  TRY_ASSIGN(std::string name, optional_text(j, "op"));
  const op::OpDef* op = op::find(name);
  if (!op && !name.empty()) return error(Code::kInvalidArgument, "plan: no operator '{}'", name);
  return op;
}

Result<op::Type> type_member(const Json& j, const char* name) {
  TRY_ASSIGN(std::string type, text(j, name));
  return op::Type::parse(type);
}

Status steps_of(const Json& j, Instruction& i) {
  TRY_ASSIGN(i.arity, index_member(j, "arity"));
  TRY_ASSIGN(i.result, type_member(j, "result"));
  TRY_ASSIGN(i.results, indices(j, "results"));
  TRY_ASSIGN(const Json* steps, array(j, "steps"));
  for (const Json& s : *steps) {
    Step step;
    TRY_ASSIGN(step.op, op_of(s));
    TRY_ASSIGN(step.attrs, attrs_of(s));
    TRY_ASSIGN(step.in, indices(s, "in"));
    TRY_ASSIGN(step.type, type_member(s, "type"));
    i.steps.push_back(std::move(step));
  }
  return {};
}

Result<Region> region_of(const Json& j, int depth);

Result<Instruction> instruction_of(const Json& j, int depth) {
  Instruction i;
  TRY_ASSIGN(std::string kind, text(j, "kind"));
  TRY_ASSIGN(i.kind, named(kind, kKinds, "kind of instruction"));
  TRY_ASSIGN(i.op, op_of(j));
  TRY_ASSIGN(i.attrs, attrs_of(j));
  if (j.contains("steps")) TRY(steps_of(j, i));
  TRY_ASSIGN(i.kernel, optional_text(j, "kernel"));
  TRY_ASSIGN(i.place, optional_text(j, "place"));
  TRY_ASSIGN(i.reason, optional_text(j, "reason"));
  TRY_ASSIGN(i.in, indices(j, "in"));
  TRY_ASSIGN(i.out, indices(j, "out"));
  TRY_ASSIGN(i.origin, texts(j, "origin"));
  TRY_ASSIGN(i.symbols, texts(j, "symbols"));
  if (j.contains("regions")) {
    TRY_ASSIGN(const Json* regions, array(j, "regions"));
    for (const Json& r : *regions) {
      TRY_ASSIGN(Region region, region_of(r, depth + 1));
      i.regions.push_back(std::move(region));
    }
  }
  return i;
}

Result<Region> region_of(const Json& j, int depth) {
  if (depth > kMaxDepth)
    return error(Code::kInvalidArgument, "plan: regions are nested deeper than {}", kMaxDepth);
  Region region;
  TRY_ASSIGN(region.name, text(j, "name"));
  TRY_ASSIGN(region.inputs, indices(j, "inputs"));
  TRY_ASSIGN(region.outputs, indices(j, "outputs"));
  TRY_ASSIGN(const Json* slots, array(j, "slots"));
  for (const Json& s : *slots) {
    TRY_ASSIGN(Slot slot, slot_of(s));
    region.slots.push_back(std::move(slot));
  }
  TRY_ASSIGN(const Json* body, array(j, "body"));
  for (const Json& i : *body) {
    TRY_ASSIGN(Instruction instruction, instruction_of(i, depth));
    region.body.push_back(std::move(instruction));
  }
  return region;
}

Result<Basis> basis_of(const Json& j) {
  Basis basis;
  TRY_ASSIGN(basis.model, text(j, "model"));
  TRY_ASSIGN(basis.version, text(j, "version"));
  TRY_ASSIGN(basis.precision, text(j, "precision"));
  TRY_ASSIGN(const Json* chips, array(j, "chips"));
  for (const Json& c : *chips) {
    ChipUse use;
    TRY_ASSIGN(use.place, text(c, "place"));
    TRY_ASSIGN(use.id, text(c, "id"));
    TRY_ASSIGN(const std::string hash, text(c, "hash"));
    const auto [end, failure] =
        std::from_chars(hash.data(), hash.data() + hash.size(), use.hash, 16);
    if (failure != std::errc() || end != hash.data() + hash.size())
      return bad("hash", "a number in hexadecimal");
    basis.chips.push_back(std::move(use));
  }
  return basis;
}

}  // namespace

std::string to_json(const Plan& plan, int indent) {
  const Plan::Count count = plan.count();
  Json constants = Json::array();
  for (const Constant& c : plan.constants)
    constants.push_back({{"name", c.name}, {"type", c.type.str()}});
  Json j{{"schema", kSchema},
         {"device", plan.device},
         {"planned_for", plan.planned_for},
         {"rates", plan.rates},
         {"launches", count.launches},
         {"host_operators", count.host_operators},
         {"reference", count.reference},
         {"constants", std::move(constants)},
         {"main", json_of(plan.main)}};
  if (plan.basis) j["basis"] = json_of(*plan.basis);
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<Plan> from_json(std::string_view json) {
  // The parser reports depth as it goes, so that hostile nesting ends early.
  bool deep = false;
  const Json j = Json::parse(
      json, [&](int depth, Json::parse_event_t, Json&) { return !(deep |= depth > 8 * kMaxDepth); },
      false);
  if (deep) return error(Code::kInvalidArgument, "plan: nested too deep");
  if (j.is_discarded()) return error(Code::kInvalidArgument, "plan: not JSON");
  TRY_ASSIGN(std::string schema, text(j, "schema"));
  if (schema != kSchema)
    return error(Code::kInvalidArgument, "plan: schema '{}', need '{}'", schema, kSchema);
  Plan plan;
  TRY_ASSIGN(plan.device, text(j, "device"));
  TRY_ASSIGN(plan.rates, optional_text(j, "rates"));
  TRY_ASSIGN(const Json* sizes, member(j, "planned_for"));
  if (!sizes->is_object()) return bad("planned_for", "an object");
  for (const auto& [name, value] : sizes->items()) {
    if (!value.is_number_integer()) return bad("planned_for", "sizes by name");
    plan.planned_for[name] = value.get<int64_t>();
  }
  TRY_ASSIGN(const Json* constants, array(j, "constants"));
  for (const Json& c : *constants) {
    Constant constant;
    TRY_ASSIGN(constant.name, text(c, "name"));
    TRY_ASSIGN(std::string type, text(c, "type"));
    TRY_ASSIGN(constant.type, op::Type::parse(type));
    plan.constants.push_back(std::move(constant));
  }
  TRY_ASSIGN(const Json* main, member(j, "main"));
  TRY_ASSIGN(plan.main, region_of(*main, 0));
  if (j.contains("basis")) {
    TRY_ASSIGN(plan.basis, basis_of(j["basis"]));
  }
  if (auto ok = verify(plan); !ok) return error(Code::kInvalidArgument, "{}", ok.error().message);
  return plan;
}

}  // namespace tessera::plan
