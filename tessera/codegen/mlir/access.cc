#include <algorithm>
#include <map>

#include "tessera/codegen/mlir/emit.h"
#include "tessera/codegen/mlir/functions.h"

namespace tessera::codegen::mlir {

using tile::Expr;
using tile::Instruction;
using tile::Kind;
using tile::kNone;
using tile::Program;

namespace {

std::vector<Expr> strides_of(const tile::Tensor& t) {
  if (!t.strides.empty()) return t.strides;
  std::vector<Expr> strides(t.dims.size(), Expr(1));
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * t.dims[d];
  return strides;
}

std::string refusal(const Program& p, const Instruction& i, const Target& target) {
  for (const tile::Subscript& s : i.at)
    if (s.value != kNone) return "places that are computed";
  if (i.pad) return "loads beyond a tensor's end";
  if (i.kind == Kind::kLoad || i.kind == Kind::kStore) {
    const DType d = p.tensor(i.tensor).dtype;
    return convert_refusal(target, d, d);
  }
  if (i.kind == Kind::kMap) {
    const size_t typed = i.function == tile::Function::kSelect ? 1 : 0;
    return refusal(target, i.function, p.value(i.in[typed]).dtype, p.value(i.out[0]).dtype);
  }
  if (i.kind == Kind::kReduce) {
    const DType d = p.value(i.out[0]).dtype;
    return refusal(target, i.function, d, d);
  }
  if (i.kind == Kind::kDot) {
    const DType from = p.value(i.in[0]).dtype, to = p.value(i.out[0]).dtype;
    if (std::string why = refusal(target, tile::Function::kMul, to, to); !why.empty()) return why;
    return convert_refusal(target, from, to);
  }
  if (i.kind == Kind::kConstant) {
    const DType d = p.value(i.out[0]).dtype;
    if (is_float(d) && tessera::bits_of(d) < 32) return "a constant of a narrow float";
  }
  return "";
}

}  // namespace

std::string refusal(const Program& program, const Target& target) {
  if (!program.whole.empty()) return "an axis that is never cut";
  for (const tile::Tensor& t : program.tensors)
    if (!t.layout.empty()) return "a layout without strides";
  std::string why;
  tile::for_each(program.body, [&](const Instruction& i) {
    if (why.empty()) why = refusal(program, i, target);
  });
  return why;
}

Expr Access::coefficient(int axis) const {
  for (const auto& [a, c] : terms)
    if (a == axis) return c;
  return Expr(0);
}

Result<Access> access_of(const Program& p, const Instruction& i) {
  std::map<int, Expr> terms;
  Access access{{}, Expr(0)};
  const std::vector<Expr> strides = strides_of(p.tensor(i.tensor));
  for (size_t d = 0; d < i.at.size(); ++d) {
    const auto name = i.at[d].at.as_symbol();
    if (const int a = name ? p.find_axis(*name) : kNone; a != kNone) {
      terms[a] = terms[a] + strides[d];
      continue;
    }
    TRY_ASSIGN(const tile::Affine part, tile::affine(p, i.at[d].at));
    for (const auto& [a, c] : part.terms) terms[a] = terms[a] + c * strides[d];
    access.offset = access.offset + part.offset * strides[d];
  }
  access.terms.assign(terms.begin(), terms.end());
  return access;
}

Result<std::vector<Expr>> constants_of(const Program& p) {
  std::vector<Expr> list;
  const auto add = [&](const Expr& e) {
    if (!e.is_constant() && std::ranges::find(list, e) == list.end()) list.push_back(e);
  };
  for (const tile::Axis& a : p.axes) add(a.extent);
  Status status;
  tile::for_each(p.body, [&](const Instruction& i) {
    if (i.kind == Kind::kSize) add(i.size);
    if ((i.kind != Kind::kLoad && i.kind != Kind::kStore) || !status) return;
    const auto access = access_of(p, i);
    if (!access) {
      status = tl::unexpected(access.error());
      return;
    }
    add(access->offset);
    for (const auto& [a, c] : access->terms) add(c);
  });
  TRY(std::move(status));
  return list;
}

}  // namespace tessera::codegen::mlir
