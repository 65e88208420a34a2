// Attention in one pass over the keys: a running maximum of the scores, the sum of their
// exponentials and the weighted sum of the values, both scaled down whenever the maximum grows.
//
// Letters: b batch; g heads of keys and values; r query heads of one of them; q queries; p past
// keys, t new ones; e head size; f head size of values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Attention {
 public:
  explicit Attention(const op::Problem& p) : p_(p) {}

  Result<Instance> build() {
    TRY(check());
    TRY(declare());
    const int q = load(q_, {batch_, head_, group_, query_, size_});
    const int none = b_.constant(type_, 0), lowest = b_.constant(type_, -kInfinity);
    std::vector<int> state{lowest, none, none};
    if (has(4)) state = keys(past_, q, past_k_, past_v_, true, state);
    state = keys(fresh_, q, k_, v_, false, state);
    const int y = b_.convert(b_.div(state[2], state[1]), p_.out[0].dtype);
    b_.store(y_, at({batch_, head_, group_, query_, value_}), y);
    instance_.numeric = op::NumericClass::kApproximate;
    TRY_ASSIGN(instance_.program, b_.finish());
    return std::move(instance_);
  }

 private:
  bool has(size_t i) const { return i < p_.anchor_inputs() && p_.in[i].present; }
  const op::Dims& dims(size_t i) const { return p_.in[i].dims; }

  Status check() const {
    if (p_.fused()) return refuse("takes no steps behind attention");
    for (size_t o = 1; o < p_.out.size(); ++o)
      if (p_.out[o].present) return refuse("output {} of attention is read", o);
    if (dims(1)[1] == 0) return refuse("there are no heads of keys");
    if (has(4) != has(5)) return refuse("past keys and values go together");
    return {};
  }

  Expr symbol(const std::string& name, int64_t value) {
    instance_.symbols[name] = value;
    return Expr::symbol(name);
  }
  int axis(const std::string& name, int64_t extent) {
    std::string upper = name;
    upper[0] = static_cast<char>(upper[0] - 'a' + 'A');
    return b_.axis(name, symbol(upper, extent));
  }

  // A tensor along these axes, by the operand's strides; heads of queries are two axes.
  Result<int> tensor(const std::string& name, Role role, const op::Operand& o,
                     const std::vector<int>& axes, op::Argument argument) {
    if (bits_of(o.dtype) < 8) return refuse("{} is {}", name, name_of(o.dtype));
    TRY_ASSIGN(op::Dims strides, operand_strides(o));
    if (axes.size() == o.dims.size() + 1)
      strides.insert(strides.begin() + 1, strides[1] * dims(0)[1] / dims(1)[1]);
    Tensor t{.name = name, .role = role, .dtype = o.dtype, .dims = {}};
    for (size_t d = 0; d < axes.size(); ++d) {
      t.dims.push_back(b_.program().axis(axes[d]).extent);
      const bool unit = strides[d] == 1 && d + 1 == axes.size();
      t.strides.push_back(unit ? Expr(1)
                               : symbol(name + "_" + b_.program().axis(axes[d]).name, strides[d]));
    }
    instance_.arguments.push_back(argument);
    return b_.tensor(std::move(t));
  }

  Status declare() {
    const DType own = p_.in[0].dtype, asked = p_.attrs.dtype("softmax", own);
    type_ = is_narrow(own) ? DType::kF32 : own;
    if (bits_of(asked) > bits_of(type_)) type_ = asked;
    batch_ = axis("b", dims(0)[0]);
    head_ = axis("g", dims(1)[1]);
    group_ = axis("r", dims(0)[1] / dims(1)[1]);
    query_ = axis("q", dims(0)[2]);
    if (has(4)) past_ = axis("p", dims(4)[2]);
    fresh_ = axis("t", dims(1)[2]);
    size_ = axis("e", dims(0)[3]);
    value_ = axis("f", dims(2)[3]);
    for (int a : {batch_, head_, group_, query_}) b_.grid(a);
    for (int a : {size_, value_}) b_.whole(a);
    const auto in = [](int i) { return op::Argument{op::Argument::kInput, i, 0}; };
    TRY_ASSIGN(q_,
               tensor("query", Role::kIn, p_.in[0], {batch_, head_, group_, query_, size_}, in(0)));
    TRY_ASSIGN(k_, tensor("key", Role::kIn, p_.in[1], {batch_, head_, fresh_, size_}, in(1)));
    TRY_ASSIGN(v_, tensor("value", Role::kIn, p_.in[2], {batch_, head_, fresh_, value_}, in(2)));
    if (has(3)) TRY(mask());
    if (has(4)) {
      TRY_ASSIGN(past_k_,
                 tensor("past_key", Role::kIn, p_.in[4], {batch_, head_, past_, size_}, in(4)));
      TRY_ASSIGN(past_v_,
                 tensor("past_value", Role::kIn, p_.in[5], {batch_, head_, past_, value_}, in(5)));
    }
    if (has(6)) {
      TRY_ASSIGN(lengths_, tensor("lengths", Role::kIn, p_.in[6], {batch_}, in(6)));
    }
    TRY_ASSIGN(y_, tensor("y", Role::kOut, p_.out[0], {batch_, head_, group_, query_, value_},
                          {op::Argument::kOutput, 0, 0}));
    return {};
  }

  // The mask by (batch, head, group, query, key), less what it is spread along; its columns have a
  // number of their own, since it may be shorter than the keys.
  Status mask() {
    const op::Operand& o = p_.in[3];
    if (o.dtype != DType::kBool && !is_float(o.dtype))
      return refuse("the mask is {}", name_of(o.dtype));
    TRY_ASSIGN(const op::Dims own, operand_strides(o));
    Tensor t{.name = "mask", .role = Role::kIn, .dtype = o.dtype, .dims = {}};
    const int lead = 4 - o.rank();
    const auto walk = [&](int a, Expr extent, int64_t stride) {
      mask_axes_.push_back(a);
      t.dims.push_back(std::move(extent));
      t.strides.push_back(symbol("mask_" + std::to_string(t.dims.size()), stride));
    };
    for (int d = 0; d < o.rank(); ++d) {
      const size_t at = static_cast<size_t>(d);
      const int dimension = lead + d;
      if (dimension == 3) {
        columns_ = symbol("columns", o.dims[at]);
        walk(kNone, columns_, own[at]);
      } else if (o.dims[at] != 1 && dimension == 1) {
        walk(head_, b_.program().axis(head_).extent, own[at] * (dims(0)[1] / dims(1)[1]));
        walk(group_, b_.program().axis(group_).extent, own[at]);
      } else if (o.dims[at] != 1) {
        const int a = dimension == 0 ? batch_ : query_;
        walk(a, b_.program().axis(a).extent, own[at]);
      }
    }
    mask_ = b_.tensor(std::move(t));
    instance_.arguments.push_back({op::Argument::kInput, 3, 0});
    return {};
  }

  std::vector<Subscript> at(const std::vector<int>& axes) const {
    std::vector<Subscript> list;
    for (int a : axes) list.push_back({b_.at(a)});
    return list;
  }
  int load(int tensor, const std::vector<int>& axes) { return b_.load(tensor, at(axes)); }

  // Of past keys the place among all keys is the index; of new ones, so many more.
  Expr place(int keys, bool past) const {
    return past || !has(4) ? b_.at(keys) : b_.at(keys) + Expr::symbol("P");
  }
  int place_value(int keys, bool past) {
    const int index = b_.index(keys);
    return past || !has(4) ? index : b_.add(index, b_.size(Expr::symbol("P")));
  }

  int hide_unless(int scores, int visible) {
    return b_.select(visible, scores, b_.constant(type_, -kInfinity));
  }

  int scores(int keys, int q, int k, bool past) {
    const int key = load(k, {batch_, head_, keys, size_});
    int s = b_.dot(q, key, kNone, {size_}, type_);
    const double head = static_cast<double>(dims(0)[3]);
    const double scale = p_.attrs.has("scale") ? p_.attrs.f("scale") : 1 / std::sqrt(head);
    s = b_.mul(s, b_.constant(type_, scale));
    if (const double cap = p_.attrs.f("softcap"); cap > 0) {
      const int c = b_.constant(type_, cap);
      s = b_.mul(b_.map(Function::kTanh, {b_.div(s, c)}), c);
    }
    if (has(3)) {
      std::vector<Subscript> where;
      for (int a : mask_axes_) where.push_back({a == kNone ? place(keys, past) : b_.at(a)});
      const bool boolean = p_.in[3].dtype == DType::kBool;
      const int m = b_.load(mask_, where, boolean ? 0 : -kInfinity);
      s = boolean ? hide_unless(s, m) : b_.add(s, b_.convert(m, type_));
    }
    if (p_.attrs.i("causal") != 0 && !past)
      s = hide_unless(s, b_.map(Function::kLe, {b_.index(keys), b_.index(query_)}));
    if (has(6)) {
      const int length = b_.convert(load(lengths_, {batch_}), DType::kI64);
      s = hide_unless(s, b_.map(Function::kLt, {place_value(keys, past), length}));
    }
    return s;
  }

  // Goes on with (maximum, sum, weighted sum) over an axis of keys.
  std::vector<int> keys(int axis, int q, int k, int v, bool past, const std::vector<int>& state) {
    const std::vector<int> rows{batch_, head_, group_, query_};
    std::vector<int> tiles = rows;
    tiles.push_back(value_);
    return b_.loop(axis, state, {rows, rows, tiles}, [&](const std::vector<int>& before) {
      const int s = scores(axis, q, k, past);
      const int highest = b_.max(before[0], b_.reduce(Function::kMax, s, {axis}));
      // While all keys are hidden there is nothing to subtract.
      const int hidden = b_.map(Function::kEq, {highest, b_.constant(type_, -kInfinity)});
      const int shift = b_.select(hidden, b_.constant(type_, 0), highest);
      const int weight = b_.map(Function::kExp, {b_.sub(s, shift)});
      const int scale = b_.map(Function::kExp, {b_.sub(before[0], shift)});
      const int sum = b_.add(b_.mul(before[1], scale), b_.reduce(Function::kAdd, weight, {axis}));
      const int value = b_.convert(load(v, {batch_, head_, axis, value_}), type_);
      const int scaled = b_.mul(before[2], scale);
      return std::vector<int>{highest, sum, b_.dot(weight, value, scaled, {axis}, type_)};
    });
  }

  const op::Problem& p_;
  Builder b_{"attention"};
  Instance instance_;
  DType type_ = DType::kF32;
  int batch_ = kNone, head_ = kNone, group_ = kNone, query_ = kNone, past_ = kNone, fresh_ = kNone,
      size_ = kNone, value_ = kNone;
  int q_ = kNone, k_ = kNone, v_ = kNone, mask_ = kNone, past_k_ = kNone, past_v_ = kNone,
      lengths_ = kNone, y_ = kNone;
  std::vector<int> mask_axes_;  // kNone: the keys
  Expr columns_;
};

}  // namespace

Result<Instance> attention(const op::Problem& p) { return Attention(p).build(); }

}  // namespace tessera::tile
