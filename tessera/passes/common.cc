#include "tessera/passes/common.h"

#include <cstring>
#include <map>
#include <unordered_map>

namespace tessera::passes {
namespace {

constexpr int64_t kSmall = 256;  // bytes of a constant that are compared

bool same(const op::Tensor& a, const op::Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.dtype() == DType::kString) return a.text() == b.text();
  return a.data() == b.data() ||
         (a.bytes().value <= kSmall &&
          std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes().value)) == 0);
}

bool same(const op::Attr& a, const op::Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<op::Tensor>(&a)) return same(*t, std::get<op::Tensor>(b));
  if (const auto* f = std::get_if<double>(&a))
    return std::memcmp(f, &std::get<double>(b), sizeof(double)) == 0;
  if (const auto* t = std::get_if<op::Type>(&a)) return *t == std::get<op::Type>(b);
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, op::Tensor> || std::is_same_v<T, op::Type>)
          return false;
        else
          return value == std::get<T>(b);
      },
      a);
}

class Seen {
 public:
  // The results of an equal node before; null if there was none, which is this one then.
  const std::vector<ir::ValueId>* earlier(const Site& at) {
    std::vector<ir::ValueId> inputs;
    for (ir::ValueId id : at.node.inputs) inputs.push_back(representative(at, id));
    std::vector<Entry>& list = entries_[{at.node.op, std::move(inputs)}];
    for (const Entry& entry : list)
      if (same_attrs(entry.attrs, at.node.attrs) && fits(entry.outputs, at.node.outputs))
        return &entry.outputs;
    list.push_back({at.node.attrs, at.node.outputs});
    return nullptr;
  }

 private:
  struct Entry {
    op::Attrs attrs;
    std::vector<ir::ValueId> outputs;
  };

  static bool fits(const std::vector<ir::ValueId>& earlier, const std::vector<ir::ValueId>& now) {
    if (earlier.size() != now.size()) return false;
    for (size_t i = 0; i < now.size(); ++i)
      if (earlier[i] == ir::kAbsent && now[i] != ir::kAbsent) return false;
    return true;
  }

  // One value for all constants that are equal.
  ir::ValueId representative(const Site& at, ir::ValueId id) {
    const op::Tensor* t = at.constant(id);
    if (!t || t->dtype() == DType::kString) return id;
    const bool small = t->bytes().value <= kSmall;
    std::string key = t->type().str();
    if (small)
      key.append(reinterpret_cast<const char*>(t->data()), static_cast<size_t>(t->bytes().value));
    else
      key += fmt::format("@{}", static_cast<const void*>(t->data()));
    return constants_.emplace(std::move(key), id).first->second;
  }

  std::map<std::pair<const op::OpDef*, std::vector<ir::ValueId>>, std::vector<Entry>> entries_;
  std::unordered_map<std::string, ir::ValueId> constants_;
};

}  // namespace

bool same_attrs(const op::Attrs& a, const op::Attrs& b) {
  if (a.all().size() != b.all().size()) return false;
  for (size_t i = 0; i < a.all().size(); ++i)
    if (a.all()[i].first != b.all()[i].first || !same(a.all()[i].second, b.all()[i].second))
      return false;
  return true;
}

void common(Rewriter& rewriter) {
  Seen seen;
  rewriter.walk([&seen](Site& at) {
    if (!at.node.bodies.empty()) return false;
    const std::vector<ir::ValueId>* earlier = seen.earlier(at);
    return earlier && at.rename(*earlier, std::string(at.node.op->name));
  });
}

}  // namespace tessera::passes
