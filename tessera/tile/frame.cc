#include "tessera/tile/frame.h"

#include <algorithm>

#include "tessera/layout/bound.h"

namespace tessera::tile {
namespace {

// "i", "j", ...: the k-th of a program's axes.
std::string axis_name(size_t k) {
  const std::string name(1, static_cast<char>('i' + k % 8));
  return k < 8 ? name : name + std::to_string(k / 8);
}

bool broadcasts(const op::Dims& from, const op::Dims& to) {
  return from.size() <= to.size() &&
         std::equal(from.rbegin(), from.rend(), to.rbegin(),
                    [](int64_t a, int64_t b) { return a == 1 || a == b; });
}

}  // namespace

Result<op::Dims> operand_strides(const op::Operand& o) {
  if (o.strides.size() == o.dims.size() && !o.strides.empty()) return o.strides;
  // Along an axis without elements a step is as good as any but 0, which would mean: spread.
  op::Dims walked = o.dims;
  for (int64_t& d : walked) d = std::max<int64_t>(d, 1);
  if (o.layout.empty() || o.count() == 0) return op::strides_of(walked);
  const auto lies_otherwise = [&] {
    return refuse("an operand of [{}] in layout '{}', which is not one of strides",
                  fmt::join(o.dims, ","), o.layout);
  };
  const auto layout = layout::Layout::parse(o.layout);
  if (!layout || layout->rank() != o.rank()) return lies_otherwise();
  const auto bound = layout::BoundLayout::bind(*layout, o.dtype, o.dims);
  if (!bound) return lies_otherwise();
  op::Dims strides(o.dims.size(), 0);
  const op::Dims origin(o.dims.size(), 0);
  for (int a = 0; a < o.rank(); ++a) {
    const auto line = bound->line(origin, a);
    if (line.start != 0 || line.length < o.dims[static_cast<size_t>(a)]) return lies_otherwise();
    strides[static_cast<size_t>(a)] = line.stride;
    for (int other = 0; other < a; ++other)
      if (bound->mixes(a, other)) return lies_otherwise();
  }
  return strides;
}

Frame::Frame(std::string name, const op::Problem& problem, op::Dims dims, std::vector<int> tags,
             std::vector<int> of_result)
    : b(std::move(name)),
      p_(problem),
      dims_(std::move(dims)),
      tags_(std::move(tags)),
      of_result_(std::move(of_result)) {
  for (int a : of_result_) result_dims_.push_back(a == kNone ? 1 : dims_[static_cast<size_t>(a)]);
}

Result<op::Dims> Frame::aligned(const op::Operand& o) const {
  if (!o.present) return refuse("an operand is left out");
  if (is_complex(o.dtype) || o.dtype == DType::kString || bits_of(o.dtype) < 8)
    return refuse("an operand is {}, need elements of whole bytes", name_of(o.dtype));
  TRY_ASSIGN(const op::Dims own, operand_strides(o));
  if (!broadcasts(o.dims, result_dims_))
    return refuse("an operand is [{}], which does not reach [{}]", fmt::join(o.dims, ","),
                  fmt::join(result_dims_, ","));
  op::Dims strides(dims_.size(), 0);
  const size_t lead = result_dims_.size() - o.dims.size();
  for (size_t d = 0; d < o.dims.size(); ++d)
    if (const int a = of_result_[lead + d]; a != kNone && o.dims[d] != 1)
      strides[static_cast<size_t>(a)] = own[d];
  return strides;
}

Status Frame::input(size_t i, op::Dims strides) {
  const op::Operand& o = p_.in[i];
  if (is_complex(o.dtype) || o.dtype == DType::kString || bits_of(o.dtype) < 8)
    return refuse("input {} is {}, need elements of whole bytes", i, name_of(o.dtype));
  // Along an axis of one element nothing is walked.
  for (size_t a = 0; a < dims_.size(); ++a)
    if (dims_[a] == 1) strides[a] = 0;
  entries_.push_back({{op::Argument::kInput, static_cast<int>(i), 0}, o.dtype, std::move(strides)});
  return {};
}

Status Frame::input(size_t i) {
  TRY_ASSIGN(op::Dims strides, aligned(p_.in[i]));
  return input(i, std::move(strides));
}

Status Frame::settle(size_t outputs) {
  if (p_.out.empty() || !p_.out[0].present) return refuse("nobody reads output 0");
  for (size_t i = p_.anchor_inputs(); i < p_.in.size(); ++i) TRY(input(i));
  for (size_t o = 0; o < std::min(outputs, p_.out.size()); ++o) {
    const op::Operand& out = p_.out[o];
    if (!out.present) return refuse("output {} is left out", o);
    TRY_ASSIGN(op::Dims strides, aligned(out));
    for (size_t a = 0; a < dims_.size(); ++a)
      if (strides[a] == 0 && dims_[a] != 1 &&
          std::ranges::count(of_result_, static_cast<int>(a)) > 0)
        return refuse("output {} is [{}], need [{}]", o, fmt::join(out.dims, ","),
                      fmt::join(result_dims_, ","));
    entries_.push_back(
        {{op::Argument::kOutput, static_cast<int>(o), 0}, out.dtype, std::move(strides)});
  }
  merge();
  for (size_t a = 0; a < dims_.size(); ++a) {
    std::string name = axis_name(a), extent = name;
    extent[0] = static_cast<char>(extent[0] - 'a' + 'A');
    axes_.push_back(b.axis(std::move(name), symbol(extent, dims_[a])));
  }
  for (Entry& e : entries_)
    declare(e, e.argument.kind == op::Argument::kInput ? Role::kIn : Role::kOut);
  return {};
}

void Frame::merge() {
  const auto erase = [&](size_t a) {
    dims_.erase(dims_.begin() + static_cast<int64_t>(a));
    tags_.erase(tags_.begin() + static_cast<int64_t>(a));
    for (Entry& e : entries_) e.strides.erase(e.strides.begin() + static_cast<int64_t>(a));
  };
  for (size_t a = dims_.size(); a-- > 0;)
    if (dims_[a] == 1) erase(a);
  for (size_t a = dims_.size(); a-- > 1;) {
    const bool one = tags_[a - 1] == tags_[a] && std::ranges::all_of(entries_, [&](const Entry& e) {
                       return e.strides[a - 1] == e.strides[a] * dims_[a];
                     });
    if (!one) continue;
    dims_[a - 1] *= dims_[a];
    for (Entry& e : entries_) e.strides[a - 1] = e.strides[a];
    erase(a);
  }
}

// Strides of packed rows follow from the extents, the innermost one is mostly 1: these are part of
// the program, all others are symbols.
void Frame::declare(Entry& e, Role role) {
  const size_t number = b.program().tensors.size();
  Tensor t{.name = fmt::format("{}{}", role == Role::kIn ? 'x' : 'y', number),
           .role = role,
           .dtype = e.dtype,
           .dims = {}};
  op::Dims steps, extents;
  for (size_t a = 0; a < axes_.size(); ++a) {
    if (e.strides[a] == 0) continue;
    e.axes.push_back(axes_[a]);
    steps.push_back(e.strides[a]);
    extents.push_back(dims_[a]);
    t.dims.push_back(b.program().axis(axes_[a]).extent);
  }
  if (steps != op::strides_of(extents) && std::ranges::count(extents, 0) == 0)
    for (size_t d = 0; d < steps.size(); ++d)
      t.strides.push_back(
          symbol(fmt::format("s{}{}", number, b.program().axis(e.axes[d]).name), steps[d]));
  instance_.arguments.push_back(e.argument);
  e.tensor = b.tensor(std::move(t));
}

Expr Frame::symbol(const std::string& name, int64_t value) {
  if (value == 1) return Expr(1);
  instance_.symbols[name] = value;
  return Expr::symbol(name);
}

std::vector<int> Frame::axes(int tag) const {
  std::vector<int> list;
  for (size_t a = 0; a < axes_.size(); ++a)
    if (tags_[a] == tag) list.push_back(axes_[a]);
  return list;
}

void Frame::grid(int tag) {
  for (int a : axes(tag)) b.grid(a);
}

Frame::Entry* Frame::find(op::Argument::Kind kind, size_t index) {
  for (Entry& e : entries_)
    if (e.argument.kind == kind && static_cast<size_t>(e.argument.index) == index) return &e;
  return nullptr;
}

std::vector<Subscript> Frame::at(const Entry& e) const {
  std::vector<Subscript> list;
  for (int a : e.axes) list.push_back({b.at(a)});
  return list;
}

int Frame::load(size_t i) {
  const Entry& e = *find(op::Argument::kInput, i);
  return b.load(e.tensor, at(e));
}

void Frame::store(size_t o, int value) {
  const Entry& e = *find(op::Argument::kOutput, o);
  b.store(e.tensor, at(e), value);
}

std::vector<int> Frame::loops(const std::vector<int>& list, std::vector<int> in,
                              const std::vector<int>& carried, const Builder::Body& body) {
  if (list.empty()) return body(in);
  const std::vector<std::vector<int>> shapes(in.size(), carried);
  return b.loop(list[0], std::move(in), shapes, [&](const std::vector<int>& values) {
    return loops({list.begin() + 1, list.end()}, values, carried, body);
  });
}

Status Frame::finish_value(int value) {
  for (const op::Step& step : p_.steps)
    for (int v : step.in)
      if (v >= 0 && static_cast<size_t>(v) < p_.anchor_inputs())
        return refuse("{} reads input {}, which is the anchor's", step.op->name, v);
  Lowering steps(b);
  steps.define(static_cast<int>(p_.in.size()), value);
  return finish_steps(std::move(steps));
}

Status Frame::finish_steps(Lowering steps) {
  const int result = static_cast<int>(p_.in.size());
  for (size_t i = p_.anchor_inputs(); i < p_.in.size(); ++i)
    steps.define(static_cast<int>(i), load(i));
  TRY(steps.apply_steps(p_));
  for (size_t o = 0; o < p_.out.size(); ++o) {
    if (!find(op::Argument::kOutput, o)) continue;
    const int number = p_.fused() ? p_.results[o] : result;
    store(o, steps.tile(number, p_.out[o].dtype));
  }
  numeric_ = std::max(numeric_, steps.numeric());
  return {};
}

Result<Instance> Frame::finish() {
  instance_.numeric = numeric_;
  TRY_ASSIGN(instance_.program, b.finish());
  return std::move(instance_);
}

}  // namespace tessera::tile
