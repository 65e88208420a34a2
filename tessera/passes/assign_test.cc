#include "tessera/passes/assign.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tessera/ir/text.h"
#include "tessera/passes/layouts.h"

namespace tessera::passes {
namespace {

// Claims element-wise operators and concats in any layouts, at prices drawn by operator and
// layouts; conversions at 100 to 400.
class Source final : public op::ClaimSource {
 public:
  explicit Source(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "test"; }
  std::vector<op::Claim> probe(const op::Problem& p) const override {
    std::string key(p.op->name);
    for (const auto* side : {&p.in, &p.out})
      for (const op::Operand& o : *side) key += "|" + o.layout;
    uint64_t hash = seed_;
    for (char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    std::mt19937_64 random(hash);
    if (random() % 4 == 0 && p.op->name != "relayout")
      return {op::Claim::refuse("priced", "drawn so")};
    op::Claim claim;
    claim.kernel = "priced";
    claim.cost =
        Picoseconds(static_cast<int64_t>(100 + random() % (p.op->name == "relayout" ? 300 : 1000)));
    return {claim};
  }
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem&, const op::Claim&) const override {
    return std::vector<op::LaunchSpec>();
  }
  Status pack(const op::Problem&, const op::Claim&, int, const std::byte*,
              std::byte*) const override {
    return {};
  }

 private:
  uint64_t seed_;
};

ir::Graph random_graph(std::mt19937_64& random, int nodes) {
  ir::Graph g("g");
  op::Type type = *op::Type::parse("f32[1,4,3,5]");
  std::vector<ir::ValueId> values{g.add_input("x", type), g.add_input("y", type)};
  auto pick = [&] { return values[random() % values.size()]; };
  for (int n = 0; n < nodes; ++n) {
    const bool two = random() % 2 == 0;
    const char* name = two ? (random() % 2 ? "add" : "mul") : (random() % 2 ? "neg" : "exp");
    std::vector<ir::ValueId> in{pick()};
    if (two) in.push_back(pick());
    auto out = g.add(*op::find(name), in);
    EXPECT_TRUE(out);
    values.push_back((*out)[0]);
  }
  g.outputs = {values.back()};
  g.output_names = {"out"};
  return g;
}

// All combinations of choices; a conversion is paid once per value and layout.
int64_t brute_force(const ir::Graph& g, Sources sources) {
  std::vector<std::vector<Choice>> all;
  for (const ir::Node& n : g.nodes) all.push_back(choices(g, n, {}, sources));
  auto conversion = [&](const std::string& from, const std::string& to) {
    op::Problem p{op::find("relayout"), {}, {}, {}};
    op::Operand o;
    o.dims = {1, 4, 3, 5};
    o.layout = from;
    p.in = {o};
    o.layout = to;
    p.out = {o};
    return cheapest(p, sources)->cost.value;
  };
  std::vector<size_t> at(all.size(), 0);
  int64_t best = INT64_MAX;
  for (;;) {
    int64_t cost = 0;
    std::set<std::pair<ir::ValueId, std::string>> paid;
    auto need = [&](ir::ValueId id, const std::string& layout) {
      const int32_t p = g.value(id).producer;
      const std::string from =
          p < 0 ? "" : all[static_cast<size_t>(p)][at[static_cast<size_t>(p)]].out[0];
      if (from != layout && paid.emplace(id, layout).second) cost += conversion(from, layout);
    };
    for (size_t n = 0; n < all.size(); ++n) {
      const Choice& c = all[n][at[n]];
      cost += c.cost.value;
      for (size_t i = 0; i < g.nodes[n].inputs.size(); ++i) need(g.nodes[n].inputs[i], c.in[i]);
    }
    for (ir::ValueId id : g.outputs) need(id, "");
    best = std::min(best, cost);
    size_t n = 0;
    while (n < at.size() && ++at[n] == all[n].size()) at[n++] = 0;
    if (n == at.size()) return best;
  }
}

TEST(Assign, FindsWhatBruteForceFinds) {
  std::mt19937_64 random(7);
  int conversions = 0;
  for (int k = 0; k < 1000; ++k) {
    const Source source(random());
    const op::ClaimSource* sources[] = {&source};
    const ir::Graph graph = random_graph(random, 1 + static_cast<int>(random() % 6));
    ir::Graph g = graph;
    auto report = assign(g, sources, {});
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->cost.value, brute_force(graph, sources)) << ir::print(graph);
    ASSERT_TRUE(report->optimal());
    auto ok = ir::verify(g);
    ASSERT_TRUE(ok) << ok.error().message;
    conversions += report->conversions;
    for (LayoutMode mode :
         {LayoutMode::kNone, LayoutMode::kGreedy, LayoutMode::kAny, LayoutMode::kPropagate}) {
      ir::Graph rival = graph;
      auto other = assign(rival, sources, {.bindings = {}, .mode = mode});
      ASSERT_TRUE(other) << other.error().message;
      ASSERT_GE(other->cost, report->cost) << name_of(mode);
    }
  }
  EXPECT_GT(conversions, 100);
}

TEST(Assign, EveryNodeGetsTheLayoutsOfSomeChoice) {
  std::mt19937_64 random(8);
  for (int k = 0; k < 50; ++k) {
    const Source source(random());
    const op::ClaimSource* sources[] = {&source};
    ir::Graph g = random_graph(random, 40);
    ASSERT_TRUE(assign(g, sources, {}));
    for (const ir::Node& n : g.nodes) {
      auto problem = problem_of(g, n, {});
      ASSERT_TRUE(problem);
      const bool plain = std::all_of(problem->in.begin(), problem->in.end(),
                                     [](auto& o) { return o.layout.empty(); }) &&
                         problem->out[0].layout.empty();
      EXPECT_TRUE(plain || cheapest(*problem, sources)) << problem->str();
    }
  }
}

// Two places, three layouts; prices drawn by node, place and layouts, and for each change of form.
class PlacedOffers final : public Offers {
 public:
  explicit PlacedOffers(uint64_t seed) : seed_(seed) {}

  std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                              const Arriving&) const override {
    std::vector<Choice> list;
    const auto index = static_cast<uint64_t>(&node - graph.nodes.data());
    for (int place = 0; place < 2; ++place)
      for (const char* in : {"", "nchw: n h w c", "nchw: n c/2 h w c%2"})
        for (const char* out : {"", "nchw: n h w c"}) {
          const uint64_t draw = drawn(fmt::format("{}|{}|{}|{}", index, place, in, out));
          if (draw % 3 == 0 && !list.empty()) continue;
          if (place == 1 && (*in || *out)) continue;
          Choice c;
          c.in.assign(node.inputs.size(), in);
          c.out = {out};
          c.place = place;
          c.cost = Picoseconds(static_cast<int64_t>(100 + draw % 1000));
          list.push_back(std::move(c));
        }
    return list;
  }
  std::optional<Picoseconds> conversion(const ir::Graph&, ir::ValueId id, const Form& from,
                                        const Form& to) const override {
    const uint64_t draw =
        drawn(fmt::format("{}|{}|{}|{}|{}", id, from.place, from.layout, to.place, to.layout));
    return Picoseconds(static_cast<int64_t>((from.place == to.place ? 50 : 150) + draw % 300));
  }

 private:
  uint64_t drawn(const std::string& key) const {
    uint64_t hash = seed_;
    for (char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return std::mt19937_64(hash)();
  }
  uint64_t seed_;
};

int64_t brute_force(const ir::Graph& g, const Offers& offers) {
  std::vector<std::vector<Choice>> all;
  for (const ir::Node& n : g.nodes)
    all.push_back(offers.choices(g, n, [](ir::ValueId) { return std::vector<Form>(); }));
  std::vector<size_t> at(all.size(), 0);
  int64_t best = INT64_MAX;
  for (;;) {
    int64_t cost = 0;
    std::set<std::pair<ir::ValueId, Form>> paid;
    const auto need = [&](ir::ValueId id, const Form& form) {
      const int32_t p = g.value(id).producer;
      Form from;
      if (p >= 0) {
        const Choice& c = all[static_cast<size_t>(p)][at[static_cast<size_t>(p)]];
        from = {c.place, c.out[0]};
      }
      if (from != form && paid.emplace(id, form).second)
        cost += offers.conversion(g, id, from, form)->value;
    };
    for (size_t n = 0; n < all.size(); ++n) {
      const Choice& c = all[n][at[n]];
      cost += c.cost.value;
      for (size_t i = 0; i < g.nodes[n].inputs.size(); ++i)
        need(g.nodes[n].inputs[i], {c.place, c.in[i]});
    }
    for (ir::ValueId id : g.outputs) need(id, {});
    best = std::min(best, cost);
    size_t n = 0;
    while (n < at.size() && ++at[n] == all[n].size()) at[n++] = 0;
    if (n == at.size()) return best;
  }
}

TEST(Assign, FindsWhatBruteForceFindsOverPlaces) {
  std::mt19937_64 random(11);
  int copies = 0, conversions = 0;
  for (int k = 0; k < 200; ++k) {
    const PlacedOffers offers(random());
    const ir::Graph graph = random_graph(random, 1 + static_cast<int>(random() % 5));
    ir::Graph g = graph;
    auto report = assign(g, offers, {.places = {"host"}});
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->cost.value, brute_force(graph, offers)) << ir::print(graph);
    ASSERT_TRUE(report->optimal());
    ASSERT_TRUE(ir::verify(g));
    copies += report->copies;
    conversions += report->conversions;
    // A relayout changes the layout or the place, and all that a node reads is where the node is.
    for (const ir::Node& n : g.nodes) {
      const ir::ValueInfo& out = g.value(n.outputs[0]);
      for (ir::ValueId id : n.inputs) {
        const bool same_place = g.value(id).placement == out.placement;
        const bool same_layout = g.value(id).layout == out.layout;
        EXPECT_TRUE(n.op->name == "relayout" ? same_place != same_layout : same_place);
      }
    }
    for (ir::ValueId id : g.outputs)
      EXPECT_TRUE(g.value(id).placement.empty() && g.value(id).layout.empty());
    for (LayoutMode mode :
         {LayoutMode::kNone, LayoutMode::kGreedy, LayoutMode::kAny, LayoutMode::kPropagate}) {
      ir::Graph rival = graph;
      auto other = assign(rival, offers, {.mode = mode, .places = {"host"}});
      ASSERT_TRUE(other) << other.error().message;
      ASSERT_GE(other->cost, report->cost) << name_of(mode);
    }
  }
  EXPECT_GT(copies, 10);
  EXPECT_GT(conversions, 20);
}

op::Type f32(op::Dims dims) {
  op::Type t;
  t.shape = op::Shape(dims.begin(), dims.end());
  return t;
}

// Axes are split and merged where they lie next to each other, and only there.
TEST(Layouts, PassThroughReshapes) {
  const std::string last = "nchw: n h w c";
  EXPECT_EQ(reshaped(f32({2, 12, 5, 7}), last, f32({2, 3, 4, 5, 7})), "abcde: a d e b c");
  EXPECT_EQ(reshaped(f32({2, 3, 4, 5, 7}), "abcde: a d e b c", f32({2, 12, 5, 7})), last);
  EXPECT_EQ(reshaped(f32({2, 12, 5, 7}), last, f32({2, 12, 35})), "ncw: n w c");
  EXPECT_EQ(reshaped(f32({2, 12, 5, 7}), last, f32({24, 5, 7})), std::nullopt);
  EXPECT_EQ(reshaped(f32({2, 12, 5, 7}), last, f32({2, 420})), std::nullopt);
  EXPECT_EQ(reshaped(f32({2, 12, 5, 7}), "", f32({2, 420})), "");
  EXPECT_EQ(reshaped(f32({1, 12, 1, 1}), last, f32({1, 12})), "");
  EXPECT_EQ(reshaped(f32({2, 12, 1, 7}), last, f32({2, 12, 7})), "ncw: n w c");
  const op::Type to = f32({2, 12, 1, 7, 1});
  EXPECT_EQ(canonical(to, *reshaped(f32({2, 12, 7}), "ncw: n w c", to)), "ncdhw: n d h w c");
}

}  // namespace
}  // namespace tessera::passes
