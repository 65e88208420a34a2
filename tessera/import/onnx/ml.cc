// ai.onnx.ml: label maps, encoders, scalers.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

using op::Tensor;

Tensor floats(const op::Floats& values) {
  Tensor t = *Tensor::make(DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_f64(static_cast<int64_t>(i), values[i]);
  return t;
}
Tensor strings(op::Strings values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::strings({n}, std::move(values));
}

// The list that the node holds under one of the names PREFIX_strings, _int64s, _floats, _tensor.
Result<Tensor> list(NodeContext& c, const std::string& prefix) {
  if (c.has_attr(prefix + "_tensor")) return c.tensor(prefix + "_tensor");
  if (c.has_attr(prefix + "_strings")) return strings(c.strings(prefix + "_strings"));
  if (c.has_attr(prefix + "_int64s")) return Tensor::of_i64(c.ints(prefix + "_int64s"));
  if (c.has_attr(prefix + "_floats")) return floats(c.floats(prefix + "_floats"));
  return error(Code::kInvalidArgument, "{}: needs {}_*", c.node.op_type, prefix);
}

Result<Tensor> default_value(NodeContext& c, DType dtype) {
  if (c.has_attr("default_tensor")) return c.tensor("default_tensor");
  if (dtype == DType::kString) return strings({c.s("default_string", "_Unused")});
  return is_float(dtype) ? Tensor::scalar(dtype, c.f("default_float", -0.0))
                         : Tensor::scalar(dtype, c.i("default_int64", -1));
}

Status label_encoder(NodeContext& c) {
  if (c.has_attr("classes_strings")) {  // version 1: strings and their places, either way
    Tensor names = strings(c.strings("classes_strings"));
    std::vector<int64_t> places;
    for (int64_t i = 0; i < names.count(); ++i) places.push_back(i);
    Tensor numbers = Tensor::of_i64(places);
    const bool to_string = c.type(0).dtype != DType::kString;
    TRY_ASSIGN(Tensor otherwise, default_value(c, to_string ? DType::kString : DType::kI64));
    c.out(0, c.b.op("lookup", {c.in(0)},
                    {{"keys", to_string ? numbers : names},
                     {"values", to_string ? names : numbers},
                     {"default", otherwise}}));
    return {};
  }
  TRY_ASSIGN(Tensor keys, list(c, "keys"));
  TRY_ASSIGN(Tensor values, list(c, "values"));
  TRY_ASSIGN(Tensor otherwise, default_value(c, values.dtype()));
  c.out(0,
        c.b.op("lookup", {c.in(0)}, {{"keys", keys}, {"values", values}, {"default", otherwise}}));
  return {};
}

Status category_mapper(NodeContext& c) {
  TRY_ASSIGN(Tensor names, list(c, "cats"));
  Tensor numbers = Tensor::of_i64(c.ints("cats_int64s"));
  const bool to_string = c.type(0).dtype != DType::kString;
  TRY_ASSIGN(Tensor otherwise, default_value(c, to_string ? DType::kString : DType::kI64));
  c.out(0, c.b.op("lookup", {c.in(0)},
                  {{"keys", to_string ? numbers : names},
                   {"values", to_string ? names : numbers},
                   {"default", otherwise}}));
  return {};
}

Status one_hot(NodeContext& c) {
  TRY_ASSIGN(Tensor categories, list(c, "cats"));
  c.out(0, c.b.op("categories", {c.in(0)},
                  {{"categories", categories}, {"strict", int64_t{c.i("zeros", 1) == 0}}}));
  return {};
}

Status binarizer(NodeContext& c) {
  const ValueId above = c.b.op("gt", {c.in(0), c.b.scalar_like(c.in(0), c.f("threshold", 0))});
  c.out(0, c.b.convert(above, c.type(0).dtype));
  return {};
}

// The indices apply to the last axis; a list is a matrix of one row.
Status array_feature_extractor(NodeContext& c) {
  ir::Builder& b = c.b;
  const ValueId x = b.rank(c.in(0)) == 1 ? b.reshape(c.in(0), {1, -1}) : c.in(0);
  c.out(0, b.op("gather", {x, b.reshape(c.in(1), {-1})}, {{"axis", int64_t{-1}}}));
  return {};
}

// Where x equals the value to replace (or is NaN, if that is NaN), the imputed one: one for all or
// one per feature.
Status imputer(NodeContext& c) {
  ir::Builder& b = c.b;
  const bool of_floats = is_float(c.type(0).dtype);
  const double wanted = of_floats ? c.f("replaced_value_float", 0)
                                  : static_cast<double>(c.i("replaced_value_int64", 0));
  Tensor values = of_floats ? floats(c.floats("imputed_value_floats"))
                            : Tensor::of_i64(c.ints("imputed_value_int64s"));
  if (values.count() == 0) return c.fail("needs imputed values");
  const ValueId hit = wanted != wanted ? b.unary("is_nan", c.in(0))
                                       : b.op("eq", {c.in(0), b.scalar_like(c.in(0), wanted)});
  c.out(0, b.select(hit, b.convert(b.constant(values), c.type(0).dtype), c.in(0)));
  return {};
}

Status scaler(NodeContext& c) {
  ir::Builder& b = c.b;
  ValueId x = b.convert(c.in(0), DType::kF32);
  if (c.has_attr("offset")) x = b.sub(x, b.constant(floats(c.floats("offset"))));
  if (c.has_attr("scale")) x = b.mul(x, b.constant(floats(c.floats("scale"))));
  c.out(0, x);
  return {};
}

// Each row by its largest magnitude, or its norm; a row of zeros stays.
Status normalizer(NodeContext& c) {
  ir::Builder& b = c.b;
  const std::string kind = c.s("norm", "MAX");
  const ValueId x = b.convert(c.in(0), DType::kF32), zero = b.scalar(DType::kF32, 0);
  ValueId size;
  if (kind == "MAX")
    size = b.reduce("max", b.unary("abs", x), {-1}, true);
  else if (kind == "L1")
    size = b.reduce("sum", b.unary("abs", x), {-1}, true);
  else if (kind == "L2")
    size = b.unary("sqrt", b.reduce("sum", b.mul(x, x), {-1}, true));
  else
    return c.fail("unknown norm '{}'", kind);
  c.out(0, b.div(x, b.select(b.op("eq", {size, zero}), b.scalar(DType::kF32, 1), size)));
  return {};
}

Status feature_vectorizer(NodeContext& c) {
  ir::Builder& b = c.b;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < c.input_count(); ++i) {
    ValueId x = b.convert(c.in(i), DType::kF32);
    parts.push_back(b.rank(x) == 1 ? b.reshape(x, {1, -1}) : x);
  }
  c.out(0, b.op("concat", parts, {{"axis", int64_t{1}}}));
  return {};
}

constexpr Converter kRows[] = {
    {"ai.onnx.ml", "LabelEncoder", label_encoder},
    {"ai.onnx.ml", "CategoryMapper", category_mapper},
    {"ai.onnx.ml", "OneHotEncoder", one_hot},
    {"ai.onnx.ml", "Binarizer", binarizer},
    {"ai.onnx.ml", "ArrayFeatureExtractor", array_feature_extractor},
    {"ai.onnx.ml", "Imputer", imputer},
    {"ai.onnx.ml", "Scaler", scaler},
    {"ai.onnx.ml", "Normalizer", normalizer},
    {"ai.onnx.ml", "FeatureVectorizer", feature_vectorizer},
};

}  // namespace

std::span<const Converter> ml_converters() { return kRows; }

}  // namespace tessera::import::onnx
