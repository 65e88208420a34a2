// Short notation for engine programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/tile/engine.h"

namespace tessera::codegen::sim {

namespace engine = tile::engine;

inline engine::Step on(int e, engine::Kind kind) {
  engine::Step s;
  s.kind = kind;
  s.engine = e;
  return s;
}
inline engine::Step set(int e, int other, engine::Expr id) {
  engine::Step s = on(e, engine::Kind::kSet);
  s.other = other;
  s.id = std::move(id);
  return s;
}
inline engine::Step wait(int e, int other, engine::Expr id) {
  engine::Step s = on(e, engine::Kind::kWait);
  s.other = other;
  s.id = std::move(id);
  return s;
}
inline engine::Step loop(int symbol, engine::Expr from, engine::Expr to, engine::Expr by,
                         std::vector<engine::Step> body) {
  engine::Step s;
  s.kind = engine::Kind::kFor;
  s.symbol = symbol;
  s.from = std::move(from);
  s.to = std::move(to);
  s.by = std::move(by);
  s.body = std::move(body);
  return s;
}
inline engine::Operand at(int buffer, std::vector<engine::Index> indices) {
  engine::Operand o;
  o.buffer = buffer;
  o.at = std::move(indices);
  return o;
}
// offset + the axis of this number times `by`.
inline engine::Index along(size_t axis, engine::Expr offset = 0, int64_t by = 1) {
  engine::Index i{std::move(offset), std::vector<int64_t>(axis + 1, 0)};
  i.coefficients[axis] = by;
  return i;
}
inline engine::Step copy(int e, engine::Operand to, engine::Operand from,
                         std::vector<engine::StepAxis> over) {
  engine::Step s = on(e, engine::Kind::kCopy);
  s.out = std::move(to);
  s.in.push_back(std::move(from));
  s.over = std::move(over);
  return s;
}
inline void append(std::vector<engine::Step>& to, std::vector<engine::Step> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace tessera::codegen::sim
