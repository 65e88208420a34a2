#include "tessera/tile/program.h"

#include <algorithm>
#include <set>

namespace tessera::tile {

int Program::find_axis(std::string_view axis_name) const {
  const auto found = std::ranges::find(axes, axis_name, &Axis::name);
  return found == axes.end() ? kNone : static_cast<int>(found - axes.begin());
}

std::vector<std::string> Program::symbols() const {
  std::set<std::string> names;
  auto add = [&](const Expr& e) {
    for (std::string& symbol : e.symbols())
      if (find_axis(symbol) == kNone) names.insert(std::move(symbol));
  };
  for (const Axis& a : axes) add(a.extent);
  for (const Tensor& t : tensors) {
    for (const Expr& d : t.dims) add(d);
    for (const Expr& s : t.strides) add(s);
  }
  for_each(body, [&](const Instruction& i) {
    add(i.size);
    for (const Subscript& s : i.at) add(s.at);
  });
  return {names.begin(), names.end()};
}

Result<Affine> affine(const Program& program, const Expr& at) {
  std::map<std::string, Expr, std::less<>> zeros;
  Affine result;
  for (const std::string& name : at.symbols())
    if (program.find_axis(name) != kNone) zeros.emplace(name, Expr(0));
  result.offset = at.substitute(zeros);
  Expr rebuilt = result.offset;
  for (const auto& [name, zero] : zeros) {
    auto one = zeros;
    one[name] = Expr(1);
    const Expr coefficient = at.substitute(one) - result.offset;
    result.terms.emplace_back(program.find_axis(name), coefficient);
    rebuilt = rebuilt + coefficient * Expr::symbol(name);
  }
  std::ranges::sort(result.terms, {}, [](const auto& term) { return term.first; });
  if (!(rebuilt == at))
    return error(Code::kInvalidArgument, "'{}' is not affine in the axes", at.str());
  return result;
}

void for_each(const std::vector<Instruction>& body,
              const std::function<void(const Instruction&)>& visit) {
  for (const Instruction& i : body) {
    visit(i);
    for_each(i.body, visit);
  }
}

void for_each_read(const Instruction& i, const std::function<void(int)>& visit) {
  for (const auto* list : {&i.in, &i.yields})
    for (int v : *list) visit(v);
  for (const Subscript& s : i.at)
    if (s.value != kNone) visit(s.value);
}

}  // namespace tessera::tile
