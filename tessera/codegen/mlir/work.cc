#include "tessera/codegen/mlir/work.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/codegen/mlir/emit.h"

namespace tessera::codegen::mlir {
namespace {

using tile::Function;
using tile::Instruction;
using tile::Kind;
using tile::kNone;
using tile::Program;

// Measured by codegen_bench beside cpu.chain.
constexpr double kEfficiency = 0.4;
constexpr double kMemory = 0.85;
constexpr double kGather = 3;   // of one lane, in operations of a vector
constexpr double kLoop = 20;    // entering a loop over vectors and handling its end
constexpr double kChained = 4;  // an addition that waits for the one before

double operations(Function f) {
  switch (f) {
    case Function::kDiv:
    case Function::kSqrt:
    case Function::kSign:
    case Function::kConvert:
      return 4;
    case Function::kExp:
      return 10;
    case Function::kLog:
      return 20;
    case Function::kTanh:
      return 30;
    case Function::kErf:
      return 60;
    default:
      return 1;
  }
}

class Estimate {
 public:
  Estimate(const tile::Instance& instance, const tile::Schedule& schedule)
      : p_(instance.program), symbols_(instance.symbols) {
    for (size_t a = 0; a < p_.axes.size(); ++a)
      if (schedule.axes[a].vector > 1) {
        vector_axis_ = static_cast<int>(a);
        width_ = static_cast<double>(schedule.axes[a].vector);
      }
  }

  Result<double> run() {
    for (const tile::Axis& a : p_.axes) {
      TRY_ASSIGN(const int64_t n, a.extent.eval(symbols_));
      extents_.push_back(static_cast<double>(n));
    }
    double rows = 1;
    for (int a : p_.grid)
      if (a != vector_axis_) rows *= extents_[static_cast<size_t>(a)];
    if (std::ranges::count(p_.grid, vector_axis_) > 0) flops_ += rows * kLoop * width_;
    body(p_.body, {p_.grid.begin(), p_.grid.end()});
    return flops_;
  }

 private:
  // Lanes that an instruction keeps busy when it is run for all these axes; a scalar takes as long
  // as a vector.
  double lanes(const std::set<int>& axes) const {
    double n = 1;
    bool vector = false;
    for (int a : axes) {
      const double extent = extents_[static_cast<size_t>(a)];
      vector |= a == vector_axis_;
      n *= a == vector_axis_ ? std::max(1.0, std::ceil(extent / width_)) * width_ : extent;
    }
    return vector ? n : n * width_;
  }

  void body(const std::vector<Instruction>& list, const std::set<int>& scope) {
    for (const Instruction& i : list) {
      if (i.kind == Kind::kFor) {
        std::set<int> inner = scope;
        inner.insert(i.axis);
        if (i.axis == vector_axis_) flops_ += lanes(scope) * kLoop;
        body(i.body, inner);
        continue;
      }
      flops_ += operations_of(i, scope);
    }
  }

  double operations_of(const Instruction& i, const std::set<int>& scope) const {
    std::set<int> axes;
    const auto add = [&](int v) { axes.insert(p_.value(v).axes.begin(), p_.value(v).axes.end()); };
    for (int v : i.in) add(v);
    for (int v : i.out) add(v);
    switch (i.kind) {
      case Kind::kLoad:
      case Kind::kStore: {
        const auto access = access_of(p_, i);
        if (!access) return 0;
        for (const auto& [a, c] : access->terms) axes.insert(a);
        const tile::Expr step = access->coefficient(vector_axis_);
        const bool gathers = !(step == tile::Expr(0)) && !(step == tile::Expr(1));
        return lanes(axes) * (gathers ? kGather * width_ : 1);
      }
      case Kind::kMap: {
        // What folds over a loop waits for itself.
        const bool folds = std::ranges::any_of(scope, [&](int a) {
          return axes.count(a) == 0 && std::ranges::count(p_.grid, a) == 0;
        });
        return folds ? lanes(scope) * kChained : lanes(axes) * operations(i.function);
      }
      case Kind::kDot:
        return lanes(axes) * kChained;
      case Kind::kReduce:
        return lanes(axes);
      default:
        return 0;
    }
  }

  const Program& p_;
  const op::Bindings& symbols_;
  std::vector<double> extents_;
  int vector_axis_ = kNone;
  double width_ = 1;
  double flops_ = 0;
};

}  // namespace

Result<Work> work_of(const tile::Instance& instance, const tile::Schedule& schedule) {
  TRY_ASSIGN(const double flops, Estimate(instance, schedule).run());
  return Work{flops, kEfficiency, kMemory};
}

}  // namespace tessera::codegen::mlir
