#include "tessera/kernels/cpu/epilogue.h"

#include <algorithm>

#include "tessera/kernels/cpu/elementwise.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int kNoOperand = -1;

// A step's reading of the chain.
struct Link {
  std::string why;  // empty: fine
  const FunctionRow* row = nullptr;
  int operand = kNoOperand;  // input of the problem
  bool swapped = false;      // the operand is the first argument
};

Link link_of(const Problem& p, size_t i, const Dims& dims) {
  const op::Step& step = p.steps[i];
  const int before = static_cast<int>(p.in.size() + i);
  Link link;
  Reason why;
  link.row = function_row(step.op->name);
  why.need(link.row != nullptr, "step {} is {}, need an element-wise function", i, step.op->name);
  if (why.fine())
    why.need((link.row->domain & kFloats) && !link.row->yields_bool && link.row->inputs <= 2 &&
                 std::ssize(step.in) == link.row->inputs,
             "step {}: {} is no function of one or two floats", i, step.op->name);
  why.need(step.out.dtype == DType::kF32, "step {} yields {}, need f32", i,
           name_of(step.out.dtype));
  why.need(step.out.dims == dims, "step {} yields {}, need {}", i, op::to_string(step.out.dims),
           op::to_string(dims));
  if (why.fine())
    why.need(std::count(step.in.begin(), step.in.end(), before) == 1,
             "step {} does not read the result before it once", i);
  if (why.fine() && step.in.size() == 2) {
    link.swapped = step.in[1] == before;
    link.operand = step.in[link.swapped ? 0 : 1];
    const bool input = link.operand >= 0 && link.operand < std::ssize(p.in);
    why.need(input && p.in[static_cast<size_t>(link.operand)].present,
             "step {} reads value {}, need an input", i, link.operand);
  }
  link.why = why.text();
  return link;
}

// How an operand lies beside the result; nothing if it is neither uniform along rows and columns
// nor a matrix.
struct Reading {
  Broadcast broadcast;
  int64_t ld;
};
std::optional<Reading> reading_of(const Operand& o, const ResultShape& shape,
                                  const std::string& layout) {
  const size_t rank = shape.dims.size();
  if (o.dims.size() > rank || (!o.layout.empty() && o.layout != layout)) return std::nullopt;
  // Physical axes, outermost first.
  std::vector<size_t> order(rank);
  for (size_t a = 0; a < rank; ++a) order[a] = a;
  if (shape.channels_last) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  Dims own = o.strides.empty() ? op::strides_of(o.dims) : o.strides;
  if (!o.layout.empty()) {
    if (!o.strides.empty() || o.dims.size() != rank) return std::nullopt;
    int64_t packed = 1;
    for (size_t i = rank; i-- > 0; packed *= o.dims[order[i]]) own[order[i]] = packed;
  }
  Dims dims(rank), strides(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const size_t a = order[i];
    dims[i] = shape.dims[a];
    if (a + o.dims.size() < rank) continue;
    const size_t at = a + o.dims.size() - rank;
    if (o.dims[at] != 1 && o.dims[at] != dims[i]) return std::nullopt;
    if (o.dims[at] != 1) strides[i] = own[at];
  }
  const int64_t cols = rank == 0 ? 1 : dims.back(), across = rank == 0 ? 0 : strides.back();
  Dims row_dims(dims.begin(), dims.end() - (rank > 0));
  std::vector<Dims> row_strides{Dims(strides.begin(), strides.end() - (rank > 0))};
  merge_axes(row_dims, row_strides);
  if (row_dims.size() > 1) return std::nullopt;
  const int64_t down = row_strides[0][0];
  if (cols == 1 || across == 0)
    return down == 0 ? Reading{Broadcast::kScalar, 0} : Reading{Broadcast::kRows, down};
  if (across != 1) return std::nullopt;
  return down == 0 ? Reading{Broadcast::kCols, 0} : Reading{Broadcast::kFull, down};
}

}  // namespace

std::string no_epilogue(const Problem& p, const ResultShape& shape) {
  if (!p.fused()) return {};
  const size_t count = p.steps.size();
  Reason why;
  why.need(count <= kMaxEpilogue, "{} steps, need at most {}", count, kMaxEpilogue);
  why.need(p.results.size() == 1 && p.results[0] == static_cast<int>(p.in.size() + count),
           "another result than the last leaves the group");
  why.need(p.result.dtype == DType::kF32, "the anchor yields {}, need f32",
           name_of(p.result.dtype));
  for (size_t i = 0; why.fine() && i < count; ++i) {
    const Link link = link_of(p, i, shape.dims);
    why.need(link.why.empty(), "{}", link.why);
    if (!why.fine() || link.operand == kNoOperand) continue;
    const Operand& o = p.in[static_cast<size_t>(link.operand)];
    why.need(o.dtype == DType::kF32, "step {} reads {}, need f32", i, name_of(o.dtype));
    if (why.fine())
      why.need(reading_of(o, shape, p.out[0].layout).has_value(),
               "step {} reads {}, which is neither uniform along rows and columns of {} nor a "
               "matrix like it",
               i, op::to_string(o.dims), op::to_string(shape.dims));
  }
  return why.text();
}

void make_epilogue(const Problem& p, const ResultShape& shape, std::vector<Argument>& arguments,
                   Epilogue& epilogue) {
  epilogue = {};
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const op::Step& step = p.steps[i];
    const Link link = link_of(p, i, shape.dims);
    const std::array<double, kMaxParams> params = params_of(*link.row, step.attrs);
    EpilogueStep& s = epilogue.steps[epilogue.count++];
    s.function = function_of(*link.row, step.attrs);
    s.swapped = link.swapped;
    s.params[0] = static_cast<float>(params[0]);
    s.params[1] = static_cast<float>(params[1]);
    if (link.operand == kNoOperand) continue;
    const Operand& o = p.in[static_cast<size_t>(link.operand)];
    const Reading reading = *reading_of(o, shape, p.out[0].layout);
    s.broadcast = reading.broadcast;
    s.ld = reading.ld;
    s.range = static_cast<int32_t>(arguments.size());
    arguments.push_back({Argument::kInput, link.operand, 0});
  }
}

}  // namespace tessera::kernels::cpu
