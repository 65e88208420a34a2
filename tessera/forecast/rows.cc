// What each instruction of a plan takes.
#include <algorithm>

#include "tessera/forecast/forecast.h"
#include "tessera/forecast/offers.h"

namespace tessera::forecast {
namespace {

using kernels::chip::Source;
using Kind = plan::Instruction::Kind;

bool multiplies(const op::OpDef& op) {
  return op.name == "dot" || op.name == "conv" || op.name == "attention";
}

void scale(Row& row, double trips) {
  row.trips = trips;
  if (trips == 1) return;
  for (Seconds* s : {&row.time.low, &row.time.expected, &row.time.high, &row.launch, &row.absorbed})
    *s = *s * trips;
  for (double* d : {&row.flops, &row.padded_flops, &row.bytes, &row.operand_bytes,
                    &row.padding_bytes, &row.absorbed_bytes, &row.conversion_bytes})
    *d *= trips;
}

class Teller {
 public:
  Teller(const plan::Plan& plan, const Source& device, const Source& host)
      : plan_(plan), device_(device), host_(host) {}

  Result<std::vector<Row>> region(const plan::Region& region, double trips) {
    std::vector<Row> rows;
    for (const plan::Instruction& i : region.body) {
      const int number = number_++;
      if (!i.regions.empty()) {
        TRY_ASSIGN(std::vector<Row> inner, bodies(region, i, trips));
        std::move(inner.begin(), inner.end(), std::back_inserter(rows));
        continue;
      }
      if (i.kind != Kind::kLaunch && i.kind != Kind::kHost && i.kind != Kind::kCopy) continue;
      TRY_ASSIGN(Row row, row_of(region, i));
      row.number = number;
      scale(row, trips);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  // Of a branch, the dearer side counts.
  Result<std::vector<Row>> bodies(const plan::Region& outer, const plan::Instruction& i,
                                  double trips) {
    std::vector<Row> best;
    Seconds most(-1);
    const double inner_trips = trips * trips_of(outer, i);
    for (const plan::Region& r : i.regions) {
      TRY_ASSIGN(std::vector<Row> rows, region(r, inner_trips));
      Seconds sum;
      for (const Row& row : rows) sum += row.time.expected;
      if (sum <= most) continue;
      most = sum;
      best = std::move(rows);
    }
    return best;
  }

  double trips_of(const plan::Region& region, const plan::Instruction& i) const {
    const auto number = [&](int id) -> std::optional<int64_t> {
      if (id == plan::kNone) return std::nullopt;
      const plan::Slot& slot = region.slots[static_cast<size_t>(id)];
      if (slot.storage == plan::Storage::kConstant) {
        const op::Tensor& t = plan_.constants[static_cast<size_t>(slot.constant)].tensor;
        if (t.count() == 1) return t.i64(0);
      }
      if (slot.contents && slot.contents->size() == 1) {
        const auto v = (*slot.contents)[0].eval(plan_.planned_for);
        if (v) return *v;
      }
      return std::nullopt;
    };
    if (i.kind == Kind::kLoop && !i.in.empty())
      return static_cast<double>(std::clamp<int64_t>(number(i.in[0]).value_or(1), 1, 1 << 20));
    if (i.kind == Kind::kScan) {
      const size_t first = static_cast<size_t>(i.attrs.i("states"));
      if (first >= i.in.size() || i.in[first] == plan::kNone) return 1;
      const auto dims =
          plan::dims_of(region.slots[static_cast<size_t>(i.in[first])], plan_.planned_for);
      const op::Ints axes = i.attrs.ints("input_axes");
      if (!dims) return 1;
      int64_t axis = axes.empty() ? 0 : axes[0];
      if (axis < 0) axis += static_cast<int64_t>(dims->size());
      if (axis >= 0 && axis < static_cast<int64_t>(dims->size()))
        return static_cast<double>(std::max<int64_t>(1, (*dims)[static_cast<size_t>(axis)]));
    }
    return 1;
  }

  Result<Row> row_of(const plan::Region& region, const plan::Instruction& i) {
    Row row;
    row.origin = i.origin;
    row.op = i.op->name;
    row.reason = i.reason;
    for (const plan::Step& step : i.steps) row.steps.emplace_back(step.op->name);
    row.name = i.origin.empty() ? name_behind(region, i) : i.origin.front();
    const auto problem = plan::problem_of(plan_, region, i, plan_.planned_for);
    if (problem) {
      row.problem = problem->str();
      describe(*problem, row);
    }
    const bool relayout = i.op->name == "relayout";
    if (i.kind == Kind::kCopy) return copy(i, problem ? &*problem : nullptr, std::move(row));
    if (i.kind == Kind::kHost) {
      row.kind = RowKind::kHost;
      row.place = host_.chip().id;
      take(problem ? on_host(host_, *problem) : unknown_on_host(host_), host_, row);
      return row;
    }
    if (!problem) return error(std::move(problem).error());
    const bool late = relayout && !i.origin.empty();
    row.kind = relayout && !late ? RowKind::kConversion : RowKind::kKernel;
    row.place = device_.chip().id;
    TRY_ASSIGN(const cost::Estimate e, device_.estimate(*problem));
    take(e, device_, row);
    if (row.kernel.empty()) row.kernel = i.kernel;
    if (late) {
      row.op = row.kernel = "transpose";
    } else if (relayout) {
      TRY_ASSIGN(const Bytes from, kernels::chip::stored_bytes(problem->in[0]));
      TRY_ASSIGN(const Bytes to, kernels::chip::stored_bytes(problem->out[0]));
      row.conversion_bytes = static_cast<double>(from.value + to.value);
      row.at_port =
          region.slots[static_cast<size_t>(i.in[0])].storage == plan::Storage::kInput ||
          std::find(region.outputs.begin(), region.outputs.end(), i.out[0]) != region.outputs.end();
    } else {
      absorb(*problem, row);
    }
    return row;
  }

  // A conversion is called after what yields its operand.
  static std::string name_behind(const plan::Region& region, const plan::Instruction& i) {
    const int id = i.in.empty() || i.in[0] == plan::kNone ? plan::kNone : i.in[0];
    if (id == plan::kNone) return std::string(i.op->name);
    const plan::Slot& slot = region.slots[static_cast<size_t>(id)];
    const int root = slot.alias == plan::kNone ? id : slot.alias;
    for (const plan::Instruction& other : region.body)
      if (std::find(other.out.begin(), other.out.end(), root) != other.out.end() &&
          !other.origin.empty())
        return other.origin.front();
    return slot.name.empty() ? std::string(i.op->name) : slot.name;
  }

  Row copy(const plan::Instruction& i, const op::Problem* problem, Row row) const {
    row.kind = RowKind::kCopy;
    const bool away = !i.place.empty();
    const Bytes bytes(problem ? packed_bytes(problem->in[0].dtype, problem->in[0].count()) : 0);
    const auto& from = away ? device_.chip() : host_.chip();
    const auto& to = away ? host_.chip() : device_.chip();
    row.place = fmt::format("{} -> {}", from.id, to.id);
    row.kernel = "copy";
    row.bound_by = "link";
    row.time = cost::transfer(from, to, bytes);
    row.conversion_bytes = static_cast<double>(2 * bytes.value);
    return row;
  }

  static void take(const cost::Estimate& e, const Source& source, Row& row) {
    row.time = e.time;
    row.launch = e.launch;
    row.bound_by = e.bound_by;
    row.flops = e.flops;
    row.padded_flops = e.padded_flops;
    row.kernel = e.kernel;
    row.tile = e.tile;
    row.occupancy = e.occupancy;
    for (const auto& [name, memory] : source.chip().memory)
      if (memory.kind == chip::MemoryKind::kDevice)
        if (const auto found = e.bytes.find(name); found != e.bytes.end())
          row.bytes = found->second;
  }

  static void describe(const op::Problem& p, Row& row) {
    const int64_t groups = p.op->name == "conv" ? p.attrs.i("groups", 1) : 1;
    for (size_t k = 0; k < p.in.size() + p.out.size(); ++k) {
      const bool in = k < p.in.size();
      const op::Operand& o = in ? p.in[k] : p.out[k - p.in.size()];
      if (!o.present) continue;
      std::string layout =
          kernels::chip::name_of_layout(o.layout, o.dtype, o.dims, in && k == 1 ? groups : 1);
      if (!o.strides.empty()) layout += ", strided";
      (in ? row.in : row.out).push_back(std::move(layout));
      (in ? row.in_types : row.out_types)
          .push_back(fmt::format("{}[{}]", tessera::name_of(o.dtype), fmt::join(o.dims, ",")));
      const auto plain = static_cast<double>(packed_bytes(o.dtype, o.count()));
      const auto stored = kernels::chip::stored_bytes(o);
      const double there = stored ? static_cast<double>(stored->value) : plain;
      row.operand_bytes += there;
      row.padding_bytes += there - plain;
    }
  }

  // What it takes that a product's operands are not in the layouts of the matrix unit's memory:
  // beside the cheapest kernel for which none is row-major.
  void absorb(const op::Problem& p, Row& row) const {
    if (!multiplies(*p.op)) return;
    std::optional<Seconds> least;
    std::vector<std::string> native;
    for (const kernels::chip::Wish& wish : device_.wishes(p)) {
      const bool all = !wish.out[0].empty() && !wish.in[0].empty() &&
                       (p.anchor_inputs() < 2 || !wish.in[1].empty());
      if (!all) continue;
      op::Problem other = p;
      for (size_t k = 0; k < p.in.size(); ++k) {
        other.in[k].layout = wish.in[k];
        other.in[k].strides.clear();
      }
      for (size_t k = 0; k < p.out.size(); ++k) {
        other.out[k].layout = wish.out[k];
        other.out[k].strides.clear();
      }
      const auto e = device_.estimate(other);
      if (!e || (least && *least <= e->time.expected)) continue;
      least = e->time.expected;
      native = wish.in;
      native.push_back(wish.out[0]);
    }
    if (!least) return;
    for (size_t k = 0; k < p.anchor_inputs(); ++k)
      if (p.in[k].present && p.in[k].layout.empty() && !native[k].empty())
        row.absorbed_bytes += static_cast<double>(packed_bytes(p.in[k].dtype, p.in[k].count()));
    if (p.out[0].layout.empty())
      row.absorbed_bytes += static_cast<double>(packed_bytes(p.out[0].dtype, p.out[0].count()));
    if (row.absorbed_bytes > 0)
      row.absorbed = Seconds(std::max(0.0, row.time.expected.value - least->value));
  }

  const plan::Plan& plan_;
  const Source& device_;
  const Source& host_;
  int number_ = 0;
};

}  // namespace

Result<std::vector<Row>> rows_of(const plan::Plan& plan, const Source& device, const Source& host) {
  return Teller(plan, device, host).region(plan.main, 1);
}

}  // namespace tessera::forecast
