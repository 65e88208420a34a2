// What to change in a model, each change planned.
#include <algorithm>
#include <map>

#include "tessera/forecast/explain.h"
#include "tessera/op/elementwise.h"
#include "tessera/passes/narrow.h"

namespace tessera::forecast {
namespace {

constexpr int64_t kBlock = 16;
constexpr int64_t kBatches[] = {2, 8, 32};

// The graph with other constants and types of inputs, everything behind them inferred anew.
Result<ir::Graph> changed(const ir::Graph& from, const std::map<ir::ValueId, op::Tensor>& constants,
                          const std::map<ir::ValueId, op::Type>& inputs) {
  ir::Graph to(from.name);
  to.symbols = from.symbols;
  std::vector<ir::ValueId> now(from.values.size(), ir::kAbsent);
  const auto at = [&](ir::ValueId id) -> ir::ValueId& { return now[static_cast<size_t>(id)]; };
  for (ir::ValueId id : from.inputs) {
    const auto other = inputs.find(id);
    at(id) =
        to.add_input(from.value(id).name, other == inputs.end() ? from.type(id) : other->second);
  }
  const auto value = [&](ir::ValueId id) -> Result<ir::ValueId> {
    if (id == ir::kAbsent) return id;
    if (at(id) != ir::kAbsent) return at(id);
    const ir::ValueInfo& info = from.value(id);
    if (!info.constant) return error(Code::kInternal, "value '{}' is not there", info.name);
    const auto other = constants.find(id);
    return at(id) = to.add_constant(other == constants.end() ? *info.constant : other->second,
                                    info.name);
  };
  for (const ir::Node& node : from.nodes) {
    std::vector<ir::ValueId> in;
    for (ir::ValueId id : node.inputs) {
      TRY_ASSIGN(const ir::ValueId v, value(id));
      in.push_back(v);
    }
    TRY_ASSIGN(const auto out,
               to.add(*node.op, std::move(in), node.attrs, static_cast<int>(node.outputs.size()),
                      node.bodies, node.origin));
    for (size_t k = 0; k < out.size(); ++k) {
      if (node.outputs[k] == ir::kAbsent) {
        to.nodes.back().outputs[k] = ir::kAbsent;
        continue;
      }
      at(node.outputs[k]) = out[k];
      to.value(out[k]).name = from.value(node.outputs[k]).name;
    }
  }
  for (ir::ValueId id : from.outputs) {
    TRY_ASSIGN(const ir::ValueId v, value(id));
    to.outputs.push_back(v);
  }
  to.output_names = from.output_names;
  TRY(ir::verify(to));
  return to;
}

// A constant with `axis` made longer by zeros.
Result<op::Tensor> padded(const op::Tensor& tensor, size_t axis, int64_t size) {
  op::Dims dims = tensor.dims();
  const int64_t old = dims[axis];
  dims[axis] = size;
  TRY_ASSIGN(op::Tensor result, op::Tensor::make(tensor.dtype(), dims));
  const int bits = bits_of(tensor.dtype());
  if (bits % 8 != 0) return error(Code::kUnimplemented, "elements below a byte");
  int64_t outer = 1, inner = bits / 8;
  for (size_t a = 0; a < axis; ++a) outer *= dims[a];
  for (size_t a = axis + 1; a < dims.size(); ++a) inner *= dims[a];
  for (int64_t o = 0; o < outer; ++o)
    std::copy_n(tensor.data() + o * old * inner, old * inner,
                result.mutable_data() + o * size * inner);
  return result;
}

class Adviser {
 public:
  Adviser(const Subject& subject, const Forecast& forecast)
      : subject_(subject), f_(forecast), before_(forecast.totals.seconds.expected) {}

  Result<std::vector<Advice>> run(size_t most) {
    ports();
    precision();
    layouts();
    own_kernels();
    small_channels();
    columns();
    batch();
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Advice& a, const Advice& b) { return a.saved > b.saved; });
    if (list_.size() > most) list_.resize(most);
    return std::move(list_);
  }

 private:
  // Plans with the change; adds the advice if it saves something worth a line.
  bool consider(std::string change, std::string why, const Subject& subject, const Options& options,
                double items = 1) {
    const auto other = forecast(subject, options);
    if (!other) return false;
    const Seconds after(other->totals.seconds.expected.value / items);
    const Seconds saved = before_ - after;
    if (saved.value < before_.value * 1e-3) return false;
    list_.push_back({std::move(change), std::move(why), saved, before_, after});
    return true;
  }

  void ports() {
    Options options = f_.options;
    options.free_ports = true;
    std::vector<std::string> names;
    for (const Row& row : f_.rows)
      if (row.kind == RowKind::kConversion && row.at_port) names.push_back(row.name);
    if (names.empty()) return;
    consider("let whoever fills the inputs, or reads the outputs, use the chip's layouts",
             fmt::format("{} is converted at the model's border", fmt::join(names, ", ")), subject_,
             options);
  }

  void precision() {
    if (f_.options.precision) return;
    for (const DType type : {DType::kF16, DType::kBF16}) {
      Options options = f_.options;
      options.precision = type;
      consider(fmt::format("plan in {}: --precision {}", tessera::name_of(type),
                           type == DType::kF16 ? "fp16" : "bf16"),
               "half the bytes, and what the matrix unit is made for", subject_, options);
    }
  }

  void layouts() {
    if (f_.layout == passes::LayoutMode::kOptimal) return;
    Options options = f_.options;
    options.layout = passes::LayoutMode::kOptimal;
    consider("keep the chip's layouts between operators: --layout optimal",
             fmt::format("{} conversions and absorbed ones are {:.1f} % of the step",
                         f_.totals.conversions, f_.totals.conversion_share() * 100),
             subject_, options);
  }

  void own_kernels() {
    if (f_.options.kernels == kernels::chip::Set::kOwn) return;
    Options options = f_.options;
    options.kernels = kernels::chip::Set::kOwn;
    options.layout = passes::LayoutMode::kOptimal;
    consider("generate kernels, with element-wise operators in them: --kernels own",
             fmt::format("{} operators run on the host, {} launches", f_.totals.fallback_nodes,
                         f_.totals.launches),
             subject_, options);
  }

  // A first convolution of few channels.
  void small_channels() {
    if (!f_.device->holds("NC1HWC0")) return;
    const auto first = std::find_if(f_.rows.begin(), f_.rows.end(), [](const Row& row) {
      return row.op == "conv" && row.padding_bytes > row.operand_bytes / 2;
    });
    if (first == f_.rows.end()) return;
    Options options = f_.options;
    options.extra_formats = {"NC1HWC0_C04", "FRACTAL_Z_C04"};
    consider(fmt::format("give '{}' its few channels as NC1HWC0_C04", first->name),
             fmt::format("{:.0f} % of its operands is padding",
                         first->padding_bytes / first->operand_bytes * 100),
             subject_, options);
  }

  // Columns of weights, and what is added behind, to whole blocks.
  void columns() {
    const ir::Graph& g = subject_.graph;
    std::vector<std::vector<size_t>> readers(g.values.size());
    for (size_t n = 0; n < g.nodes.size(); ++n)
      for (ir::ValueId id : g.nodes[n].inputs)
        if (id != ir::kAbsent) readers[static_cast<size_t>(id)].push_back(n);
    int left = 3;
    for (const ir::Node& node : g.nodes) {
      if (node.op->name != "dot" || left == 0) continue;
      const auto& weights = g.value(node.inputs[1]).constant;
      if (!weights || weights->rank() != 2) continue;
      const size_t axis = node.attrs.i("transpose_b") != 0 ? 0 : 1;
      const int64_t columns = weights->dim(static_cast<int>(axis));
      const int64_t wanted = (columns + kBlock - 1) / kBlock * kBlock;
      if (columns == wanted || columns < kBlock) continue;
      --left;
      std::map<ir::ValueId, op::Tensor> constants;
      auto longer = padded(*weights, axis, wanted);
      if (!longer) continue;
      constants.emplace(node.inputs[1], *std::move(longer));
      for (ir::ValueId id = node.outputs[0]; readers[static_cast<size_t>(id)].size() == 1;) {
        const ir::Node& next = g.nodes[readers[static_cast<size_t>(id)][0]];
        if (!op::elementwise(*next.op)) break;
        for (ir::ValueId in : next.inputs) {
          if (in == ir::kAbsent || !g.value(in).constant) continue;
          const op::Tensor& c = *g.value(in).constant;
          if (c.rank() == 0 || c.dims().back() != columns) continue;
          if (auto more = padded(c, static_cast<size_t>(c.rank()) - 1, wanted))
            constants.emplace(in, *std::move(more));
        }
        id = next.outputs[0];
      }
      auto graph = changed(g, constants, {});
      if (!graph) continue;
      const std::string name = node.origin.empty() ? "dot" : node.origin.front();
      consider(fmt::format("pad the {} columns of '{}' to {}", columns, name, wanted),
               fmt::format("rows of {} elements end within a block of {}", columns, kBlock),
               {*std::move(graph), subject_.hash, {}}, f_.options);
    }
  }

  // Constant shapes of reshapes that begin with the number of items, for more of them.
  std::map<ir::ValueId, op::Tensor> shapes_of_batch(int64_t times) const {
    const ir::Graph& g = subject_.graph;
    std::map<ir::ValueId, op::Tensor> constants;
    for (const ir::Node& node : g.nodes) {
      if (node.op->name != "reshape" || node.inputs[1] == ir::kAbsent) continue;
      const op::Type& from = g.type(node.inputs[0]);
      const auto& shape = g.value(node.inputs[1]).constant;
      if (!shape || shape->count() == 0 || !from.ranked() || from.rank() == 0) continue;
      const auto items = from.dim(0).eval(f_.options.sizes);
      if (!items || shape->i64(0) != *items) continue;
      op::Ints sizes = shape->to_i64s();
      sizes[0] *= times;
      constants.emplace(node.inputs[1], op::Tensor::of_i64(sizes));
    }
    return constants;
  }

  void batch() {
    const ir::Graph& g = subject_.graph;
    if (g.inputs.empty()) return;
    for (const int64_t times : kBatches) {
      std::map<ir::ValueId, op::Type> types;
      for (ir::ValueId id : g.inputs) {
        op::Type type = g.type(id);
        if (!type.is_tensor() || !type.ranked() || type.rank() == 0) return;
        const auto size = type.dim(0).eval(f_.options.sizes);
        if (!size || *size < 1) return;
        (*type.shape)[0] = op::Expr(*size * times);
        types.emplace(id, std::move(type));
      }
      auto graph = changed(g, shapes_of_batch(times), types);
      if (!graph) return;
      // Nothing else may have taken up the factor.
      for (size_t k = 0; k < g.outputs.size(); ++k) {
        const op::Type &a = g.type(g.outputs[k]), &b = graph->type(graph->outputs[k]);
        if (!a.ranked() || !b.ranked() || a.rank() != b.rank() || a.rank() == 0) return;
        const auto x = a.dim(0).eval(f_.options.sizes), y = b.dim(0).eval(f_.options.sizes);
        if (!x || !y || *y != *x * times) return;
      }
      consider(fmt::format("batch {} times as many items", times),
               fmt::format("launching is {:.0f} % of the step; the time is an item's part",
                           f_.totals.launch_share() * 100),
               {*std::move(graph), subject_.hash, {}}, f_.options, static_cast<double>(times));
    }
  }

  const Subject& subject_;
  const Forecast& f_;
  Seconds before_;
  std::vector<Advice> list_;
};

}  // namespace

Result<std::vector<Advice>> advice(const Subject& subject, const Forecast& forecast, size_t most) {
  return Adviser(subject, forecast).run(most);
}

}  // namespace tessera::forecast
