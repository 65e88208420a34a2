// The table of element-wise operators. Each has the row cpu.chain.
#include "tessera/kernels/cpu/elementwise.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/kernels/cpu/chain.h"
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
      list.push_back({row.op, "cpu.chain", probe_chain, prepare_chain, nullptr, true});
    for (std::string_view op : {"convert", "quantize", "dequantize"})
      list.push_back({op, "cpu.chain", probe_chain, prepare_chain, nullptr, true});
    return list;
  }();
  return rows;
}

}  // namespace tessera::kernels::cpu
