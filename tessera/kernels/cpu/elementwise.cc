// Element-wise functions with broadcasting, for all types of 8 bits and more: row cpu.elementwise
// for each operator.
#include "tessera/kernels/cpu/elementwise.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/kernels/cpu/families.h"

namespace tessera::kernels::cpu {
namespace {

using enum Function;
constexpr NumericClass kClose = NumericClass::kApproximate;
constexpr FunctionRow kFunctionRows[] = {
    {"add", kAdd, 2, kFloats | kInts},
    {"sub", kSub, 2, kFloats | kInts},
    {"mul", kMul, 2, kFloats | kInts},
    {"div", kDiv, 2, kFloats | kInts},
    {"min", kMin, 2, kFloats | kInts},
    {"max", kMax, 2, kFloats | kInts},
    {"mod", kMod, 2, kFloats | kInts, {}, 30},
    {"rem", kRem, 2, kFloats | kInts, {}, 30},
    {"pow", kPow, 2, kFloats | kInts, kClose, 30},
    {"and", kAnd, 2, kInts | kBools},
    {"or", kOr, 2, kInts | kBools},
    {"xor", kXor, 2, kInts | kBools},
    {"bit_and", kBitAnd, 2, kInts},
    {"bit_or", kBitOr, 2, kInts},
    {"bit_xor", kBitXor, 2, kInts},
    {"shift_left", kShiftLeft, 2, kInts},
    {"shift_right", kShiftRight, 2, kInts},
    {"eq", kEq, 2, kFloats | kInts | kBools, {}, 1, {}, true},
    {"lt", kLt, 2, kFloats | kInts | kBools, {}, 1, {}, true},
    {"le", kLe, 2, kFloats | kInts | kBools, {}, 1, {}, true},
    {"gt", kGt, 2, kFloats | kInts | kBools, {}, 1, {}, true},
    {"ge", kGe, 2, kFloats | kInts | kBools, {}, 1, {}, true},
    {"prelu", kPrelu, 2, kFloats | kInts},
    {"select", kSelect, 3, kAnything},
    {"neg", kNeg, 1, kFloats | kInts},
    {"abs", kAbs, 1, kFloats | kInts},
    {"sign", kSign, 1, kFloats | kInts},
    {"floor", kFloor, 1, kFloats | kInts},
    {"ceil", kCeil, 1, kFloats | kInts},
    {"round", kRound, 1, kFloats | kInts},
    {"trunc", kTrunc, 1, kFloats | kInts},
    {"sqrt", kSqrt, 1, kFloats, {}, 4},
    {"exp", kExp, 1, kFloats, kClose, 12},
    {"log", kLog, 1, kFloats, kClose, 16},
    {"sin", kSin, 1, kFloats, kClose, 60},
    {"cos", kCos, 1, kFloats, kClose, 60},
    {"tan", kTan, 1, kFloats, kClose, 60},
    {"asin", kAsin, 1, kFloats, kClose, 60},
    {"acos", kAcos, 1, kFloats, kClose, 60},
    {"atan", kAtan, 1, kFloats, kClose, 60},
    {"sinh", kSinh, 1, kFloats, kClose, 60},
    {"cosh", kCosh, 1, kFloats, kClose, 60},
    {"tanh", kTanh, 1, kFloats, kClose, 30},
    {"asinh", kAsinh, 1, kFloats, kClose, 60},
    {"acosh", kAcosh, 1, kFloats, kClose, 60},
    {"atanh", kAtanh, 1, kFloats, kClose, 60},
    {"erf", kErf, 1, kFloats, kClose, 40},
    {"not", kNot, 1, kInts | kBools},
    {"bit_not", kBitNot, 1, kInts},
    {"is_nan", kIsNan, 1, kFloats, {}, 1, {}, true},
    {"is_inf", kIsInf, 1, kFloats, {}, 1, {{{"positive", 1}, {"negative", 1}}}, true},
    {"relu", kRelu, 1, kFloats | kInts},
    {"leaky_relu", kLeakyRelu, 1, kFloats, {}, 2, {{{"alpha", 0.01}}}},
    {"elu", kElu, 1, kFloats, kClose, 16, {{{"alpha", 1}}}},
    {"sigmoid", kSigmoid, 1, kFloats, kClose, 18},
    {"silu", kSilu, 1, kFloats, kClose, 20, {{{"alpha", 1}}}},
    {"hard_sigmoid", kHardSigmoid, 1, kFloats, kClose, 4, {{{"alpha", 0.2}, {"beta", 0.5}}}},
    {"hard_swish", kHardSwish, 1, kFloats, kClose, 5, {{{"", 1.0 / 6}, {"", 0.5}}}},
    {"gelu", kGelu, 1, kFloats, kClose, 50},
    {"softplus", kSoftplus, 1, kFloats, kClose, 40},
    {"mish", kMish, 1, kFloats, kClose, 70},
};

const FunctionRow& row_of(const Problem& p) { return *function_row(p.op->name); }

Compute raw_compute(int bytes) {
  return bytes == 1   ? Compute::kRaw1
         : bytes == 2 ? Compute::kRaw2
         : bytes == 4 ? Compute::kRaw4
         : bytes == 8 ? Compute::kRaw8
                      : Compute::kRaw16;
}

// Half precision is computed in float, which loses nothing that counts: the result of each basic
// operation is the same as if rounded once.
Compute compute_of(const FunctionRow& row, const Problem& p) {
  if (row.domain == kAnything) return raw_compute(bits_of(p.out[0].dtype) / 8);
  bool floats = false, wide = false;
  for (const Operand& o : p.in) {
    floats |= is_float(o.dtype);
    wide |= o.dtype == DType::kF64 || (!is_float(o.dtype) && bits_of(o.dtype) > 16);
  }
  if (floats) return wide ? Compute::kF64 : Compute::kF32;
  const DType dtype = p.in[0].dtype;
  if (dtype == DType::kI32 && row.function != kPow) return Compute::kI32;
  return is_unsigned_int(dtype) ? Compute::kU64 : Compute::kI64;
}

bool stored_in(DType dtype, Compute compute) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU64};
  const int c = static_cast<int>(compute);
  return c >= static_cast<int>(Compute::kRaw1) || kTypes[c] == dtype;
}

bool in_domain(DType dtype, int domain) {
  return domain == kAnything || (is_float(dtype) && (domain & kFloats)) ||
         (is_int(dtype) && (domain & kInts)) || (dtype == DType::kBool && (domain & kBools));
}

bool fill(const FunctionRow& row, const Problem& p, ElementwiseArgs& args) {
  args.function = function_of(row, p.attrs);
  args.compute = compute_of(row, p);
  args.inputs = row.inputs;
  args.count = p.out[0].count();
  Space<kMaxInputs> space;
  std::vector<Dims> strides;
  for (const Operand& o : p.in) strides.push_back(broadcast_strides(o.dims, p.out[0].dims));
  if (!make_space(p.out[0].dims, strides, space)) return false;
  args.rank = space.rank;
  std::copy(std::begin(space.dims), std::end(space.dims), args.dims);
  for (int k = 0; k < row.inputs; ++k) {
    int64_t packed = 1;
    bool contiguous = true, uniform = true;
    for (int a = space.rank; a-- > 0;) {
      args.strides[k][a] = space.strides[k][a];
      contiguous &= space.strides[k][a] == packed || space.dims[a] == 1;
      uniform &= space.strides[k][a] == 0;
      packed *= space.dims[a];
    }
    args.access[k] = uniform      ? Access::kUniform
                     : contiguous ? Access::kContiguous
                                  : Access::kStrided;
    const DType dtype = p.in[static_cast<size_t>(k)].dtype;
    args.in_bytes[k] = bits_of(dtype) / 8;
    args.in_dtypes[k] = stored_in(dtype, args.compute) ? -1 : static_cast<int32_t>(dtype);
  }
  const DType out = p.out[0].dtype;
  args.out_bytes = bits_of(out) / 8;
  args.out_dtype = row.yields_bool || stored_in(out, args.compute) ? -1 : static_cast<int32_t>(out);
  std::ranges::copy(params_of(row, p.attrs), args.params);
  return true;
}

Claim probe(const Problem& p) {
  const FunctionRow& row = row_of(p);
  Reason why;
  why.need(static_cast<int>(p.in.size()) == row.inputs, "{} inputs, need {}", p.in.size(),
           row.inputs);
  for (size_t i = 0; why.fine() && i < p.in.size(); ++i) {
    const DType d = p.in[i].dtype;
    why.need(p.in[i].present, "input {} is left out", i);
    why.need(bits_of(d) >= 8, "input {} is {}, need elements of whole bytes", i, name_of(d));
    if (row.function == kSelect && i == 0)
      why.need(d == DType::kBool, "input 0 is {}, need bool", name_of(d));
    else
      why.need(in_domain(d, row.domain), "input {} is {}, which {} does not take", i, name_of(d),
               row.op);
  }
  why.need(bits_of(p.out[0].dtype) >= 8, "output 0 is {}, need elements of whole bytes",
           name_of(p.out[0].dtype));
  if (row.domain == kAnything) why.need(p.in.back().dtype == p.out[0].dtype, "types differ");
  ElementwiseArgs args{};
  if (why.fine()) why.need(fill(row, p, args), "more than {} axes that do not merge", kMaxRank);
  if (!why.fine()) return why.refusal();
  return claim(row.flops * static_cast<double>(p.out[0].count()), bytes_of(p), 0.3, row.numeric);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  ElementwiseArgs args{};
  if (!fill(row_of(p), p, args))
    return error(Code::kInternal, "prepare without a claim: {}", p.str());
  LaunchSpec launch;
  launch.entry = "cpu.elementwise";
  launch.grid = items(args.count, kElementwiseChunk);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

}  // namespace

std::span<const FunctionRow> function_rows() { return kFunctionRows; }

const FunctionRow* function_row(std::string_view op) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const FunctionRow*> map;
    for (const FunctionRow& row : kFunctionRows) map.emplace(row.op, &row);
    return map;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

Function function_of(const FunctionRow& row, const op::Attrs& attrs) {
  return row.function == kGelu && attrs.i("tanh") != 0 ? kGeluTanh : row.function;
}

std::array<double, kMaxParams> params_of(const FunctionRow& row, const op::Attrs& attrs) {
  std::array<double, kMaxParams> params{};
  for (size_t i = 0; i < row.params.size(); ++i) {
    const auto& [attr, otherwise] = row.params[i];
    const op::Attr* value = attr.empty() ? nullptr : attrs.find(attr);
    const int64_t* integer = value ? std::get_if<int64_t>(value) : nullptr;
    params[i] = integer ? static_cast<double>(*integer) : attrs.f(attr, otherwise);
  }
  return params;
}

std::span<const Row> elementwise_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list;
    for (const FunctionRow& row : kFunctionRows)
      list.push_back({row.op, "cpu.elementwise", row_major<probe>, prepare});
    return list;
  }();
  return rows;
}

}  // namespace tessera::kernels::cpu
