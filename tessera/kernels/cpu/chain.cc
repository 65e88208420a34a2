// Element-wise operators, alone or fused: a program whose instructions are the loops of their
// functions, run on blocks that stay in the first cache. A value between two instructions is in a
// slot; slots are taken again once their value has been read for the last time. Halves are kept as
// floats between steps; other narrow types are brought back to their own width after every step.
#include "tessera/kernels/cpu/chain.h"

#include <algorithm>
#include <cstddef>

#include "tessera/kernels/cpu/chain_args.h"
#include "tessera/kernels/cpu/elementwise.h"

namespace tessera::kernels::cpu {
namespace {

constexpr double kStridedFlops = 30;      // what reading an element by a stride costs
constexpr int64_t kItemElements = 16384;  // of a work item whose functions are cheap

static_assert(kDTypeI8 == static_cast<int32_t>(DType::kI8) &&
              kDTypeU8 == static_cast<int32_t>(DType::kU8));

Compute raw_compute(int bytes) {
  return bytes == 1   ? Compute::kRaw1
         : bytes == 2 ? Compute::kRaw2
         : bytes == 4 ? Compute::kRaw4
         : bytes == 8 ? Compute::kRaw8
                      : Compute::kRaw16;
}

bool narrow_float(DType d) { return is_float(d) && bits_of(d) < 32; }

// Half precision is computed in float, which loses nothing that counts: the result of each basic
// operation is the same as if rounded once.
Compute compute_of(const FunctionRow& row, std::span<const DType> in) {
  bool floats = false, wide = false;
  for (DType d : in) {
    floats |= is_float(d);
    wide |= d == DType::kF64 || (!is_float(d) && bits_of(d) > 16);
  }
  if (floats) return wide ? Compute::kF64 : Compute::kF32;
  if (in[0] == DType::kBool) return Compute::kBool;
  if (in[0] == DType::kI32 && row.function != Function::kPow) return Compute::kI32;
  return is_unsigned_int(in[0]) ? Compute::kU64 : Compute::kI64;
}

DType type_of(Compute compute) {
  switch (compute) {
    case Compute::kF32:
      return DType::kF32;
    case Compute::kF64:
      return DType::kF64;
    case Compute::kI32:
      return DType::kI32;
    case Compute::kU64:
      return DType::kU64;
    case Compute::kBool:
      return DType::kBool;
    default:
      return DType::kI64;
  }
}

bool in_domain(DType dtype, int domain) {
  return domain == kAnything || (is_float(dtype) && (domain & kFloats)) ||
         (is_int(dtype) && (domain & kInts)) || (dtype == DType::kBool && (domain & kBools));
}

// One operator of the problem: the anchor or a step.
struct Part {
  const op::OpDef& op;
  const op::Attrs& attrs;
  std::span<const int> in;
  DType out;
};

// Translates parts into instructions. Temporaries are places from `temporaries()` on, in the order
// in which they are made, until allocate() gives them slots.
class Compiler {
 public:
  Compiler(const Problem& p, ChainArgs& args) : p_(p), args_(args) {
    args_.inputs = static_cast<int32_t>(p.in.size());
    args_.outputs = static_cast<int32_t>(p.out.size());
    values_.reserve(p.in.size() + p.steps.size() + 1);
    for (int i = 0; i < args_.inputs; ++i) {
      const DType d = p.in[static_cast<size_t>(i)].dtype;
      const ChainOperand& o = args.operands[i];
      const bool uniform = o.access == Access::kUniform ||
                           (o.access == Access::kRow && o.strides[args.rank - 1] == 0);
      values_.push_back({d, {{d, i, uniform}}});
    }
  }

  // Why the problem is none for this kernel; empty if all is well.
  std::string run() {
    std::vector<int> in(p_.anchor_inputs());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
    add({*p_.op, p_.attrs, in, p_.anchor_result().dtype});
    for (const op::Step& step : p_.steps) add({*step.op, step.attrs, step.in, step.out.dtype});
    for (int o = 0; o < args_.outputs && why_.fine(); ++o) store(o);
    if (why_.fine()) allocate();
    return why_.text();
  }

  double flops() const { return flops_; }
  NumericClass numeric() const { return numeric_; }

 private:
  // A value as elements of `dtype` at a place.
  struct Form {
    DType dtype;
    int place;
    bool uniform;
  };
  struct Value {
    DType dtype;
    std::vector<Form> forms;  // all but the first are conversions of it
  };

  int temporaries() const { return args_.inputs + args_.outputs; }

  ChainInstr* emit(const Form* in, int inputs, DType out, bool* uniform) {
    if (!why_.need(args_.instrs < kMaxChain, "more than {} instructions", kMaxChain))
      return nullptr;
    ChainInstr& instr = args_.program[args_.instrs++];
    instr = {};
    instr.from = instr.to = -1;
    instr.inputs = inputs;
    instr.once = 1;
    for (int k = 0; k < inputs; ++k) {
      instr.in[k] = in[k].place;
      instr.once &= in[k].uniform;
      if (in[k].uniform) instr.uniform |= 1u << k;
    }
    if (instr.once) instr.uniform = 0;
    *uniform = instr.once;
    instr.out = temporaries() + static_cast<int>(bytes_.size());
    bytes_.push_back(bits_of(out) / 8);
    return &instr;
  }

  Form form(int value, DType dtype) {
    std::vector<Form>& forms = values_[static_cast<size_t>(value)].forms;
    for (const Form& f : forms)
      if (f.dtype == dtype) return f;
    Form made{dtype, 0, false};
    if (ChainInstr* instr = emit(&forms[0], 1, dtype, &made.uniform)) {
      instr->from = static_cast<int32_t>(forms[0].dtype);
      instr->to = static_cast<int32_t>(dtype);
      made.place = instr->out;
      flops_ += 2;
    }
    forms.push_back(made);
    return made;
  }

  bool has_form(int value, DType dtype) const {
    const auto& forms = values_[static_cast<size_t>(value)].forms;
    return std::any_of(forms.begin(), forms.end(), [&](const Form& f) { return f.dtype == dtype; });
  }

  bool fits(const Part& part, const FunctionRow* row) {
    const std::string_view name = part.op.name;
    const size_t inputs = row ? static_cast<size_t>(row->inputs) : 1;
    if (!why_.need(row || name == "convert", "{} is not element-wise", name) ||
        !why_.need(part.in.size() == inputs, "{} inputs of {}, need {}", part.in.size(), name,
                   inputs))
      return false;
    for (size_t i = 0; i < inputs; ++i) {
      if (!why_.need(part.in[i] >= 0, "input {} of {} is left out", i, name)) return false;
      const DType d = values_[static_cast<size_t>(part.in[i])].dtype;
      why_.need(bits_of(d) >= 8, "input {} of {} is {}, need elements of whole bytes", i, name,
                name_of(d));
      if (row && row->function == Function::kSelect && i == 0)
        why_.need(d == DType::kBool, "input 0 of select is {}, need bool", name_of(d));
      else if (row)
        why_.need(in_domain(d, row->domain), "input {} is {}, which {} does not take", i,
                  name_of(d), name);
    }
    return why_.need(bits_of(part.out) >= 8, "the result of {} is {}, need elements of whole bytes",
                     name, name_of(part.out));
  }

  void add(const Part& part) {
    if (!why_.fine()) return;
    if (part.op.name == "quantize" || part.op.name == "dequantize") return quantize(part);
    const FunctionRow* row = function_row(part.op.name);
    if (!fits(part, row)) return;
    if (!row) return convert(part);
    if (row->domain == kAnything) return select(part, *row);
    DType types[kMaxInputs];
    for (size_t i = 0; i < part.in.size(); ++i)
      types[i] = values_[static_cast<size_t>(part.in[i])].dtype;
    const Compute compute = compute_of(*row, {types, part.in.size()});
    Form in[kMaxInputs];
    for (size_t i = 0; i < part.in.size(); ++i) in[i] = form(part.in[i], type_of(compute));
    Form result{row->yields_bool ? DType::kBool : type_of(compute), 0, false};
    ChainInstr* instr = emit(in, row->inputs, result.dtype, &result.uniform);
    if (!instr) return;
    instr->function = function_of(*row, part.attrs);
    instr->compute = compute;
    std::ranges::copy(params_of(*row, part.attrs), instr->params);
    result.place = instr->out;
    flops_ += instr->once ? 0 : row->flops;
    numeric_ = std::max(numeric_, row->numeric);
    finish(part, result);
  }

  // What a part yields. Unless it may stay in a wider float, it is brought to its type at once.
  void finish(const Part& part, Form result) {
    values_.push_back({part.out, {result}});
    if (result.dtype == part.out) return;
    if (narrow_float(part.out) && is_float(result.dtype)) {
      if (p_.fused()) numeric_ = std::max(numeric_, NumericClass::kApproximate);
      return;
    }
    const Form own = form(static_cast<int>(values_.size()) - 1, part.out);
    values_.back().forms = {own};
  }

  void select(const Part& part, const FunctionRow& row) {
    for (size_t i : {1, 2})
      why_.need(values_[static_cast<size_t>(part.in[i])].dtype == part.out,
                "input {} of select is {}, need {}", i,
                name_of(values_[static_cast<size_t>(part.in[i])].dtype), name_of(part.out));
    if (!why_.fine()) return;
    const bool own = !narrow_float(part.out) ||
                     (has_form(part.in[1], part.out) && has_form(part.in[2], part.out));
    Form result{own ? part.out : DType::kF32, 0, false};
    const Form in[] = {form(part.in[0], DType::kBool), form(part.in[1], result.dtype),
                       form(part.in[2], result.dtype)};
    ChainInstr* instr = emit(in, 3, result.dtype, &result.uniform);
    if (!instr) return;
    instr->function = row.function;
    instr->compute = raw_compute(bits_of(result.dtype) / 8);
    result.place = instr->out;
    flops_ += row.flops;
    values_.push_back({part.out, {result}});
  }

  void convert(const Part& part) {
    why_.need(part.attrs.s("round", "even") == "even", "convert rounds '{}', need 'even'",
              part.attrs.s("round", "even"));
    why_.need(!is_float(part.out) || bits_of(part.out) > 8 || part.attrs.i("saturate", 1) == 0,
              "convert to {} saturates", name_of(part.out));
    const int value = part.in[0];
    const DType from = values_[static_cast<size_t>(value)].dtype;
    why_.need(!is_complex(from) && !is_complex(part.out), "convert from {} to {}", name_of(from),
              name_of(part.out));
    if (!why_.fine()) return;
    values_.push_back({part.out, {form(value, part.out)}});
  }

  // Between f32 and bytes, by one scale and zero point.
  void quantize(const Part& part) {
    const std::string_view name = part.op.name;
    const bool zero = part.in.size() > 2 && part.in[2] >= 0;
    for (size_t i = 0; i < (zero ? 3 : 2); ++i) {
      const int v = part.in[i];
      if (!why_.need(v >= 0, "input {} of {} is left out", i, name)) return;
      if (i > 0)
        why_.need(v < args_.inputs && p_.in[static_cast<size_t>(v)].count() == 1,
                  "{} by more than one scale or zero point, or by one that is computed", name);
    }
    if (!why_.fine()) return;
    const DType from = values_[static_cast<size_t>(part.in[0])].dtype, to = part.out,
                number = name == "quantize" ? from : to, byte = name == "quantize" ? to : from;
    why_.need(number == DType::kF32 && (byte == DType::kU8 || byte == DType::kI8),
              "{} from {} to {}, need f32 and a byte", name, name_of(from), name_of(to));
    const DType scale = values_[static_cast<size_t>(part.in[1])].dtype,
                precision = part.attrs.dtype("precision", DType::kF32);
    why_.need(scale == DType::kF32 && precision == DType::kF32, "{} by {} in {}, need f32", name,
              name_of(scale), name_of(precision));
    if (!why_.fine()) return;
    Form in[kMaxInputs] = {form(part.in[0], from), form(part.in[1], DType::kF32)};
    if (zero) in[2] = form(part.in[2], DType::kF32);
    if (!why_.need(in[1].uniform && (!zero || in[2].uniform), "{} by scales that differ", name))
      return;
    Form result{to, 0, false};
    ChainInstr* instr = emit(in, zero ? 3 : 2, to, &result.uniform);
    if (!instr) return;
    instr->from = static_cast<int32_t>(from);
    instr->to = static_cast<int32_t>(to);
    result.place = instr->out;
    flops_ += instr->once ? 0 : 6;
    values_.push_back({to, {result}});
  }

  // Lets output o be written by the instruction that makes its value, if it can.
  void store(int o) {
    const Operand& out = p_.out[static_cast<size_t>(o)];
    const int value = p_.fused() ? p_.results[static_cast<size_t>(o)] : args_.inputs;
    if (!why_.need(values_[static_cast<size_t>(value)].dtype == out.dtype,
                   "output {} is {}, need {}", o, name_of(out.dtype),
                   name_of(values_[static_cast<size_t>(value)].dtype)))
      return;
    Form from = form(value, out.dtype);
    const int place = args_.inputs + o;
    if (from.place >= temporaries() && !from.uniform) {
      for (int i = 0; i < args_.instrs; ++i) {
        ChainInstr& instr = args_.program[i];
        for (int k = 0; k < instr.inputs; ++k)
          if (instr.in[k] == from.place) instr.in[k] = place;
        if (instr.out == from.place) instr.out = place;
      }
      for (Value& v : values_)
        for (Form& f : v.forms)
          if (f.place == from.place) f.place = place;
      return;
    }
    const bool uniform = std::exchange(from.uniform, false);
    bool unused = false;
    if (ChainInstr* instr = emit(&from, 1, out.dtype, &unused)) {
      instr->function = Function::kCopy;
      instr->compute = raw_compute(bits_of(out.dtype) / 8);
      instr->uniform = uniform;
      instr->out = place;
    }
  }

  // Slots for the temporaries, behind those of the operands.
  void allocate() {
    std::vector<int> last(bytes_.size(), -1), slot(bytes_.size(), -1), free;
    for (int i = 0; i < args_.instrs; ++i)
      for (int k = 0; k < args_.program[i].inputs; ++k)
        if (args_.program[i].in[k] >= temporaries())
          last[static_cast<size_t>(args_.program[i].in[k] - temporaries())] = i;
    int slots = 0;
    int64_t bytes = 1;
    for (int i = 0; i < args_.inputs + args_.outputs; ++i) {
      ChainOperand& o = args_.operands[i];
      if (o.access == Access::kPeriodic || o.access == Access::kGather) o.slot = slots++;
      bytes = std::max<int64_t>(bytes, o.bytes);
    }
    for (int b : bytes_) bytes = std::max<int64_t>(bytes, b);
    for (int i = 0; i < args_.instrs; ++i) {
      ChainInstr& instr = args_.program[i];
      const int own = instr.out - temporaries();
      // Loops may overwrite an input, element by element, if elements are of one size.
      bool in_place = instr.from < 0 && instr.function != Function::kSelect;
      for (int k = 0; k < instr.inputs; ++k) {
        const int t = instr.in[k] - temporaries();
        in_place &= own >= 0 && t >= 0 && !(instr.uniform >> k & 1) &&
                    bytes_[static_cast<size_t>(t)] == bytes_[static_cast<size_t>(own)];
      }
      auto take = [&] {
        if (own < 0) return;
        if (free.empty()) free.push_back(slots++);
        slot[static_cast<size_t>(own)] = free.back();
        free.pop_back();
        instr.out = temporaries() + slot[static_cast<size_t>(own)];
      };
      if (!in_place) take();
      for (int k = 0; k < instr.inputs; ++k) {
        const int t = instr.in[k] - temporaries();
        if (t < 0) continue;
        int& at = slot[static_cast<size_t>(t)];
        instr.in[k] = temporaries() + at;
        if (last[static_cast<size_t>(t)] != i) continue;
        // An instruction may read a value twice.
        if (std::find(free.begin(), free.end(), at) == free.end()) free.push_back(at);
      }
      if (in_place) take();
    }
    why_.need(slots <= kMaxChainSlots, "{} values at a time, need at most {}", slots,
              kMaxChainSlots);
    args_.slot_bytes = static_cast<int32_t>(bytes);
    slots_ = slots;
  }

 public:
  int64_t slots() const { return slots_; }

 private:
  const Problem& p_;
  ChainArgs& args_;
  std::vector<Value> values_;
  std::vector<int> bytes_;  // of an element, per temporary
  Reason why_;
  double flops_ = 0;
  NumericClass numeric_ = NumericClass::kExact;
  int64_t slots_ = 0;
};

// ---- The iteration space

constexpr int64_t kLongRow = 512;  // rows beyond are walked one by one

// The order of axes, outermost first, in which an operand's elements lie.
std::vector<size_t> order_of(const Dims& strides) {
  std::vector<size_t> order(strides.size());
  for (size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  return order;
}

bool broadcasts(const Dims& from, const Dims& to) {
  return from.size() <= to.size() &&
         std::equal(from.rbegin(), from.rend(), to.rbegin(),
                    [](int64_t a, int64_t b) { return a == 1 || a == b; });
}

// Strides of `o` along the axes of `dims`, 0 where it is broadcast; nothing if it does not
// broadcast to them or lies in a layout without strides.
std::optional<Dims> aligned_strides(const Operand& o, const Dims& dims) {
  const auto own = logical_strides(o);
  if (!own || !broadcasts(o.dims, dims)) return std::nullopt;
  Dims strides(dims.size(), 0);
  const size_t lead = dims.size() - o.dims.size();
  for (size_t a = 0; a < o.dims.size(); ++a) strides[lead + a] = o.dims[a] == 1 ? 0 : (*own)[a];
  return strides;
}

bool one_shape(const Dims& a, const Dims& b) {
  auto first = [](const Dims& d) {
    return std::find_if(d.begin(), d.end(), [](int64_t n) { return n != 1; });
  };
  return std::equal(first(a), a.end(), first(b), b.end());
}

void set_access(const ChainArgs& args, bool input, ChainOperand& o) {
  const int last = args.rank - 1;
  int64_t packed = 1;
  bool contiguous = true, uniform = true;
  int outermost = args.rank;
  for (int a = args.rank; a-- > 0;) {
    contiguous &= o.strides[a] == packed || args.dims[a] == 1;
    uniform &= o.strides[a] == 0;
    packed *= args.dims[a];
    if (o.strides[a] != 0) outermost = a;
  }
  o.period = 1;
  for (int a = outermost; a < args.rank; ++a) o.period *= args.dims[a];
  const int64_t inner = o.strides[last];
  if (contiguous)
    o.access = Access::kContiguous;
  else if (uniform && input)
    o.access = Access::kUniform;
  else if (args.by_rows)
    o.access = inner == 1 || (inner == 0 && input) ? Access::kRow : Access::kGather;
  else
    o.access = input && outermost > 0 && o.period <= kLongRow ? Access::kPeriodic : Access::kGather;
}

// Fills all but the program; an error text if the problem's operands do not fit.
std::string set_space(const Problem& p, ChainArgs& args) {
  Reason why;
  why.need(p.in.size() <= kMaxChainInputs && p.out.size() <= kMaxChainOutputs,
           "{} inputs and {} outputs, need at most {} and {}", p.in.size(), p.out.size(),
           kMaxChainInputs, kMaxChainOutputs);
  why.need(!p.out.empty() && p.out[0].present, "nobody reads output 0");
  if (!why.fine()) return why.text();
  Dims dims = p.out[0].dims;
  for (const op::Step& step : p.steps)
    why.need(broadcasts(step.out.dims, dims), "the result of {} is [{}], need [{}]", step.op->name,
             fmt::join(step.out.dims, ","), fmt::join(dims, ","));
  std::vector<Dims> strides;
  auto add = [&](const Operand& o, std::string_view side, size_t i) {
    if (!why.need(o.present, "{} {} is left out", side, i) ||
        !why.need(bits_of(o.dtype) >= 8, "{} {} is {}, need elements of whole bytes", side, i,
                  name_of(o.dtype)))
      return;
    auto aligned = aligned_strides(o, dims);
    if (!why.need(aligned.has_value(), "{} {} is [{}] in layout '{}': need strides that reach [{}]",
                  side, i, fmt::join(o.dims, ","), o.layout, fmt::join(dims, ",")))
      return;
    args.operands[strides.size()].bytes = bits_of(o.dtype) / 8;
    strides.push_back(std::move(*aligned));
  };
  for (size_t i = 0; i < p.in.size(); ++i) add(p.in[i], "input", i);
  for (size_t i = 0; i < p.out.size(); ++i) {
    add(p.out[i], "output", i);
    why.need(one_shape(p.out[i].dims, dims), "output {} is [{}], need [{}]", i,
             fmt::join(p.out[i].dims, ","), fmt::join(dims, ","));
  }
  why.need(op::element_count(dims).has_value(), "impossible sizes [{}]", fmt::join(dims, ","));
  if (!why.fine()) return why.text();
  args.count = p.out[0].count();
  const std::vector<size_t> order = order_of(strides[p.in.size()]);
  auto permuted = [&](const Dims& d) {
    Dims result(d.size());
    for (size_t a = 0; a < d.size(); ++a) result[a] = d[order[a]];
    return result;
  };
  dims = permuted(dims);
  for (Dims& s : strides) s = permuted(s);
  merge_axes(dims, strides);
  why.need(dims.size() <= kMaxSpaceRank, "{} axes that do not merge, need at most {}", dims.size(),
           kMaxSpaceRank);
  if (!why.fine()) return why.text();
  args.rank = static_cast<int32_t>(dims.size());
  std::ranges::copy(dims, args.dims);
  args.row = dims.back();
  args.by_rows = args.rank > 1 && args.row > kLongRow;
  for (size_t i = 0; i < strides.size(); ++i) {
    std::ranges::copy(strides[i], args.operands[i].strides);
    set_access(args, i < p.in.size(), args.operands[i]);
  }
  return {};
}

// Blocks as long as all slots stay in the arena.
void set_blocks(ChainArgs& args, int64_t slots, double flops) {
  int64_t most =
      std::min(kChainBlock, kChainArena / (std::max<int64_t>(slots, 1) * args.slot_bytes));
  most -= most % 32;
  args.pieces = 1;
  args.block = most;
  if (args.by_rows) {
    args.pieces = ceil_div(args.row, most);
    args.block = ceil_div(ceil_div(args.row, args.pieces), 16) * 16;
    args.pieces = ceil_div(args.row, args.block);
    args.blocks = args.count / args.row * args.pieces;
  } else {
    int64_t period = 1;
    for (ChainOperand& o : std::span(args.operands, static_cast<size_t>(args.inputs))) {
      if (o.access != Access::kPeriodic) continue;
      if (o.period > most)
        o.access = Access::kGather;
      else
        period = std::max(period, o.period);
    }
    args.block = most / period * period;
    args.blocks = ceil_div(args.count, args.block);
  }
  const int64_t elements = flops > 24 ? kItemElements / 4 : kItemElements;
  args.chunk = std::max<int64_t>(1, elements / args.block);
}

struct Chain {
  ChainArgs args;
  std::string refusal;
  double flops = 0;
  NumericClass numeric = NumericClass::kExact;
};

void compile(const Problem& p, Chain& c) {
  c.refusal = set_space(p, c.args);
  if (!c.refusal.empty()) return;
  Compiler compiler(p, c.args);
  c.refusal = compiler.run();
  if (!c.refusal.empty()) return;
  set_blocks(c.args, compiler.slots(), compiler.flops());
  c.flops = compiler.flops();
  c.numeric = compiler.numeric();
  for (const ChainOperand& o : std::span(c.args.operands, p.in.size() + p.out.size()))
    if (o.access == Access::kGather)
      c.flops += std::abs(o.strides[c.args.rank - 1]) > 1 ? kStridedFlops : 1;
}

}  // namespace

Claim probe_chain(const Problem& p) {
  Chain chain{};
  compile(p, chain);
  if (!chain.refusal.empty()) return Claim::refuse("", chain.refusal);
  return claim(chain.flops * static_cast<double>(p.out[0].count()), bytes_of(p), 0.3,
               chain.numeric);
}

Result<std::vector<LaunchSpec>> prepare_chain(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  Chain chain{};
  compile(p, chain);
  if (!chain.refusal.empty())
    return error(Code::kInternal, "prepare without a claim: {}", chain.refusal);
  const ChainArgs& args = chain.args;
  LaunchSpec launch;
  launch.entry = "cpu.chain";
  launch.grid = items(args.blocks, args.chunk);
  launch.arguments = all_arguments(p);
  const auto* bytes = reinterpret_cast<const std::byte*>(&args);
  launch.constants.assign(bytes, bytes + offsetof(ChainArgs, program) +
                                     static_cast<size_t>(args.instrs) * sizeof(ChainInstr));
  launches.push_back(std::move(launch));
  return launches;
}

}  // namespace tessera::kernels::cpu
