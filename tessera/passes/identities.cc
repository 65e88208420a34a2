#include "tessera/passes/identities.h"

#include <algorithm>
#include <limits>

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Neutral {
  std::string_view op;
  double number;
  bool left;  // also as the first operand
};
constexpr Neutral kNeutral[] = {
    {"add", 0, true},         {"sub", 0, false}, {"mul", 1, true},
    {"div", 1, false},        {"pow", 1, false}, {"max", -kInfinity, true},
    {"min", kInfinity, true}, {"and", 1, true},  {"or", 0, true}};

// What the neutral element leaves; kAbsent if there is none.
ir::ValueId beside_neutral(const Site& at) {
  for (const Neutral& row : kNeutral) {
    if (!at.is(row.op)) continue;
    for (size_t side : {1, 0})
      if ((side == 1 || row.left) && number(at, at.in(side)) == row.number) return at.in(1 - side);
  }
  return ir::kAbsent;
}

bool all(const std::optional<op::Ints>& values, int64_t number) {
  return values &&
         std::all_of(values->begin(), values->end(), [=](int64_t v) { return v == number; });
}

// The operator only moves elements, and the result's type being that of the input means that it
// moves none.
bool unmoved(const Site& at) {
  for (std::string_view op : {"reshape", "unsqueeze", "squeeze", "broadcast_to"})
    if (at.is(op)) return true;
  if (at.is("slice")) return at.in(4) == ir::kAbsent || all(at.ints(at.in(4)), 1);
  if (at.is("pad")) return all(at.ints(at.in(1)), 0);
  if (at.is("tile")) return all(at.ints(at.in(1)), 1);
  if (at.is("concat")) return at.node.inputs.size() == 1;
  if (at.is("transpose")) {
    const op::Ints perm = at.node.attrs.ints("perm");
    return std::is_sorted(perm.begin(), perm.end());
  }
  return at.is("convert") && !at.node.attrs.has("round");
}

// All values of `from` are values of `to`.
bool contains(DType to, DType from) {
  if (from == DType::kBool) return is_int(to) || is_float(to);
  if (is_signed_int(from) && is_signed_int(to)) return bits_of(to) >= bits_of(from);
  if (is_unsigned_int(from) && is_unsigned_int(to)) return bits_of(to) >= bits_of(from);
  if (is_unsigned_int(from) && is_signed_int(to)) return bits_of(to) > bits_of(from);
  const bool half = from == DType::kF16 || from == DType::kBF16;
  return (half && (to == DType::kF32 || to == DType::kF64)) ||
         (from == DType::kF32 && to == DType::kF64);
}

bool there_and_back(Site& at) {
  const ir::Node* inner = at.producer(at.in(0), at.node.op->name);
  if (!inner) return false;
  const ir::ValueId x = inner->inputs[0];
  if (at.is("convert") && !contains(at.type(at.in(0)).dtype, at.type(x).dtype)) return false;
  if (!at.is("convert") && !at.is("neg") && !at.is("not")) return false;
  return at.replace(x, fmt::format("{} of {}", at.node.op->name, at.node.op->name));
}

bool selected(Site& at) {
  if (!at.is("select")) return false;
  const auto condition = number(at, at.in(0));
  return condition && at.replace(at.in(*condition != 0 ? 1 : 2), "select of a constant");
}

bool without_empty(Site& at) {
  if (!at.is("concat") || at.node.inputs.size() < 2) return false;
  std::vector<ir::ValueId> rest;
  for (ir::ValueId id : at.node.inputs) {
    const op::Type& type = at.type(id);
    if (!type.is_static() || op::element_count(type.dims()).value_or(1) != 0) rest.push_back(id);
  }
  if (rest.empty() || rest.size() == at.node.inputs.size()) return false;
  return at.replace(at.build().op("concat", std::move(rest), at.node.attrs), "concat of nothing");
}

bool identity(Site& at) {
  if (at.node.outputs.size() != 1 || at.node.inputs.empty()) return false;
  if (at.is("identity")) return at.rename(std::span(&at.node.inputs[0], 1), "identity");
  if (const ir::ValueId x = beside_neutral(at); x != ir::kAbsent)
    return at.replace(x, std::string(at.node.op->name));
  if (unmoved(at) && at.type(at.in(0)) == at.type(at.out()))
    return at.replace(at.in(0), std::string(at.node.op->name));
  return there_and_back(at) || selected(at) || without_empty(at);
}

}  // namespace

void identities(Rewriter& rewriter) { rewriter.walk(identity); }

}  // namespace tessera::passes
