#include "tessera/forecast/forecast.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/chip/catalog.h"
#include "tessera/forecast/explain.h"
#include "tessera/forecast/html.h"
#include "tessera/ir/builder.h"

namespace tessera::forecast {
namespace {

std::shared_ptr<const chip::Chip> load(const std::string& id) {
  auto chip = chip::Catalog().load(id);
  EXPECT_TRUE(chip) << chip.error().message;
  return std::make_shared<const chip::Chip>(*std::move(chip));
}

op::Type type(op::Dims dims, DType dtype = DType::kF32) {
  return op::Type::tensor(dtype, op::Shape(dims.begin(), dims.end()));
}

op::Tensor weights(op::Dims dims) {
  op::Tensor t = *op::Tensor::make(DType::kF32, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) t.set_f64(i, 0.01 * static_cast<double>(i % 17));
  return t;
}

ir::ValueId conv(ir::Builder& b, ir::ValueId x, int64_t in, int64_t out, int64_t k) {
  op::Attrs attrs;
  attrs.set("pads_begin", op::Ints{k / 2, k / 2});
  attrs.set("pads_end", op::Ints{k / 2, k / 2});
  return b.op("conv", {x, b.constant(weights({out, in, k, k}))}, std::move(attrs));
}

ir::Graph finished(ir::Graph graph, ir::Builder& b, std::vector<ir::ValueId> outputs) {
  EXPECT_TRUE(b.status()) << b.status().error().message;
  graph.outputs = std::move(outputs);
  for (size_t k = 0; k < graph.outputs.size(); ++k)
    graph.output_names.push_back("y" + std::to_string(k));
  return graph;
}

// conv, max with 0, conv, added to what came before, ...
ir::Graph conv_chain(int length) {
  ir::Graph graph("chain");
  ir::Builder b(graph, {"node"});
  ir::ValueId x = graph.add_input("x", type({1, 32, 28, 28}));
  for (int k = 0; k < length; ++k) {
    const ir::ValueId y = conv(b, x, 32, 32, 3);
    const ir::ValueId r = b.max(y, b.scalar(DType::kF32, 0));
    x = k % 2 ? b.add(r, x) : r;
  }
  return finished(std::move(graph), b, {x});
}

Options options_for(const std::string& chip, DType precision = DType::kF16) {
  Options o;
  o.device = load(chip);
  o.host = load("cpu_avx512");
  o.precision = precision;
  o.version = "test";
  return o;
}

Forecast planned(const Subject& subject, const Options& options) {
  auto f = forecast(subject, options);
  EXPECT_TRUE(f) << f.error().message;
  return f ? *std::move(f) : Forecast();
}

TEST(Forecast, AChainOfConvolutionsIsConvertedAtItsEnds) {
  const Subject subject = *subject_of(conv_chain(6));
  for (const char* chip : {"ascend910b2", "ascend310p3"}) {
    const Forecast f = planned(subject, options_for(chip));
    EXPECT_TRUE(f.assign.optimal());
    EXPECT_EQ(f.totals.conversions, 2) << chip;
    EXPECT_EQ(f.totals.fallback_nodes, 0) << chip;
    ASSERT_GE(f.rows.size(), 8u);
    EXPECT_EQ(f.rows.front().kind, RowKind::kConversion);
    EXPECT_EQ(f.rows.back().kind, RowKind::kConversion);
    // 1 x 32 x 28 x 28 of f16 fills whole blocks: as many bytes on both sides, twice.
    EXPECT_EQ(f.totals.conversion_bytes, 4 * 32 * 28 * 28 * 2);
    for (size_t r = 1; r + 1 < f.rows.size(); ++r) {
      EXPECT_EQ(f.rows[r].in[0], "NC1HWC0");
      EXPECT_EQ(f.rows[r].out[0], "NC1HWC0");
    }
    // Called one by one, each is converted to and fro.
    Options vendor = options_for(chip);
    vendor.kernels = kernels::chip::Set::kVendor;
    const Forecast worse = planned(subject, vendor);
    EXPECT_EQ(worse.layout, passes::LayoutMode::kNone);
    EXPECT_EQ(worse.totals.conversions, 12) << chip;
    EXPECT_GT(worse.totals.conversion_seconds, f.totals.conversion_seconds);
    vendor.layout = passes::LayoutMode::kOptimal;
    const Forecast best = planned(subject, vendor);
    EXPECT_LE(best.assign.cost, worse.assign.cost);
    EXPECT_EQ(best.totals.conversions, 2) << chip;
  }
}

TEST(Forecast, TotalsAreTheSumsOfRows) {
  const Subject subject = *subject_of(conv_chain(4));
  const Forecast f = planned(subject, options_for("ascend910b2"));
  cost::Interval sum;
  double flops = 0;
  Seconds conversions;
  for (const Row& row : f.rows) {
    sum += row.time;
    flops += row.flops;
    if (row.kind == RowKind::kConversion) conversions += row.time.expected;
    EXPECT_LE(row.time.low, row.time.expected);
    EXPECT_LE(row.time.expected, row.time.high);
  }
  EXPECT_EQ(f.totals.seconds.expected, sum.expected);
  EXPECT_GE(f.totals.flops, 4 * 2.0 * 32 * 32 * 9 * 28 * 28);
  EXPECT_EQ(f.totals.flops, flops);
  EXPECT_NEAR(f.totals.conversion_share() * f.totals.seconds.expected.value,
              f.totals.conversion_seconds.value, 1e-12);
  EXPECT_GE(f.totals.conversion_seconds, conversions);
  EXPECT_TRUE(f.totals.fits);
  EXPECT_GE(f.totals.weight_bytes.value, 4 * 32 * 32 * 9 * 2);
  EXPECT_EQ(f.totals.peak_bytes, f.totals.weight_bytes + f.totals.activation_bytes);
  // What the plan costs is what was minimised.
  EXPECT_NEAR(f.totals.seconds.expected.value, static_cast<double>(f.assign.cost.value) * 1e-12,
              1e-9);
}

// det runs on a host by nature: its operand goes there, its result comes back.
TEST(Forecast, AFallbackIsCopiedAndPriced) {
  ir::Graph graph("g");
  ir::Builder b(graph, {"node"});
  const ir::ValueId x = graph.add_input("x", type({8, 64, 64}));
  const ir::ValueId y = b.mul(x, x);
  const ir::ValueId d = b.op("det", {y});
  const ir::ValueId z = b.add(d, d);
  const Subject subject = *subject_of(finished(std::move(graph), b, {z}));
  Options options = options_for("ascend910b2");
  options.precision.reset();
  const Forecast f = planned(subject, options);
  // What follows may stay there: that costs a launch less.
  EXPECT_GE(f.totals.fallback_nodes, 1);
  EXPECT_GE(f.totals.copies, 2);
  EXPECT_GE(f.totals.copy_bytes, 2.0 * 8 * 64 * 64 * 4);
  EXPECT_GT(f.totals.fallback_seconds.value, 0);
  EXPECT_LT(f.own.flops, 1);
  const Seconds least =
      cost::transfer(*options.device, *options.host, Bytes(8 * 64 * 64 * 4)).expected;
  EXPECT_GE(f.totals.copy_seconds, least);
  const auto host =
      std::find_if(f.rows.begin(), f.rows.end(), [](const Row& r) { return r.op == "det"; });
  ASSERT_NE(host, f.rows.end());
  EXPECT_EQ(host->kind, RowKind::kHost);
  EXPECT_EQ(host->place, "cpu_avx512");
  EXPECT_NE(host->reason.find("host"), std::string::npos) << host->reason;
  auto explanation = explain(f);
  ASSERT_TRUE(explanation);
  ASSERT_GE(explanation->fallbacks.size(), 1u);
  EXPECT_EQ(explanation->fallbacks[0].op, "det");
  EXPECT_GT(explanation->fallbacks[0].copies.value, 0);
}

// Heads apart and together again: in fractals of 16 x 16 that moves no byte.
TEST(Forecast, HeadsOfWholeFractalsAreViews) {
  op::Attrs perm;
  perm.set("perm", op::Ints{0, 2, 1, 3});
  ir::Graph graph("g");
  ir::Builder b(graph, {"node"});
  const ir::ValueId in = graph.add_input("x", type({1, 64, 128}));
  const ir::ValueId p = b.op("dot", {in, b.constant(weights({128, 128}))});
  const ir::ValueId apart = b.op("transpose", {b.reshape(p, {1, 64, 4, 32})}, perm);
  const ir::ValueId scores = b.op("dot", {apart, b.constant(weights({1, 4, 32, 32}))});
  const ir::ValueId back = b.reshape(b.op("transpose", {scores}, perm), {1, 64, 128});
  const ir::ValueId out = b.op("dot", {back, b.constant(weights({128, 128}))});
  const Subject subject = *subject_of(finished(std::move(graph), b, {out}));
  const Forecast f = planned(subject, options_for("ascend310p3"));
  EXPECT_EQ(f.totals.conversions, 2);
  for (const Row& row : f.rows) EXPECT_NE(row.op, "transpose");
}

TEST(Forecast, IsTheSameEachTime) {
  const Subject subject = *subject_of(conv_chain(3));
  const Options options = options_for("ascend910b2");
  const std::string once = to_json(planned(subject, options));
  EXPECT_EQ(once, to_json(planned(*subject_of(conv_chain(3)), options)));
}

TEST(Forecast, SaysWhatItWasMadeFrom) {
  const Subject subject = *subject_of(conv_chain(2));
  const Options options = options_for("ascend910b2");
  const Forecast f = planned(subject, options);
  ASSERT_TRUE(f.plan.basis);
  EXPECT_EQ(f.plan.basis->model, subject.hash);
  EXPECT_EQ(f.plan.basis->chips[0], (plan::ChipUse{"", "ascend910b2", options.device->hash}));
  // The JSON of a forecast is a plan that can be read.
  auto plan = plan::from_json(to_json(f));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan::check_basis(*plan, *f.plan.basis, {}));
  plan::Basis other = *f.plan.basis;
  other.chips[0].hash ^= 1;
  EXPECT_FALSE(plan::check_basis(*plan, other, {}));
  EXPECT_NE(subject_of(conv_chain(3))->hash, subject.hash);
}

TEST(Forecast, HasTheKeysThatOthersRead) {
  const Forecast f = planned(*subject_of(conv_chain(2)), options_for("ascend910b2"));
  const auto j = nlohmann::json::parse(to_json(f));
  EXPECT_EQ(j["schema"], "tessera.plan/1");
  EXPECT_EQ(j["device"], "ascend910b2");
  std::set<std::string> keys;
  for (const auto& [key, value] : j["totals"].items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"activation_bytes",
                                         "bytes",
                                         "capacity",
                                         "conversion_bytes",
                                         "conversion_seconds",
                                         "conversion_share",
                                         "conversions",
                                         "copies",
                                         "copy_bytes",
                                         "copy_seconds",
                                         "copy_share",
                                         "coverage_bytes",
                                         "coverage_flops",
                                         "fallback_nodes",
                                         "fallback_seconds",
                                         "fits",
                                         "flops",
                                         "launch_seconds",
                                         "launch_share",
                                         "launches",
                                         "mfu",
                                         "padded_flops",
                                         "padding_bytes",
                                         "peak_bytes",
                                         "peak_type",
                                         "relayout_bytes",
                                         "seconds",
                                         "weight_bytes"}));
  EXPECT_TRUE(j["totals"]["seconds"].contains("expected"));
  for (const char* key :
       {"number", "kind", "name", "op", "device", "kernel", "steps", "tile", "in", "out", "seconds",
        "bound_by", "flops", "padded_flops", "bytes", "padding_bytes", "origin"})
    EXPECT_TRUE(j["operators"][1].contains(key)) << key;
  EXPECT_TRUE(j["coverage"].contains("own") && j["coverage"].contains("vendor"));
  EXPECT_EQ(j["layout"]["mode"], "optimal");
}

TEST(Forecast, RefusesVendorsWithoutKernels) {
  Options options = options_for("h100_sxm");
  options.kernels = kernels::chip::Set::kVendor;
  auto f = forecast(*subject_of(conv_chain(1)), options);
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, Code::kInvalidArgument);
  EXPECT_NE(f.error().message.find("h100_sxm"), std::string::npos);
}

TEST(Explain, TellsAlternativesAndWhatAConversionIsFor) {
  const Forecast f = planned(*subject_of(conv_chain(2)), options_for("ascend910b2"));
  auto e = explain(f);
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_EQ(e->conversions.size(), 2u);
  EXPECT_EQ(e->conversions[0].producer, "input 'x'");
  EXPECT_EQ(e->conversions[0].to, "NC1HWC0");
  auto nodes = explain_node(f, "node");
  ASSERT_TRUE(nodes);
  const auto product = std::find_if(nodes->begin(), nodes->end(),
                                    [](const NodeExplanation& n) { return n.row.op == "conv"; });
  ASSERT_NE(product, nodes->end());
  EXPECT_GE(product->alternatives.size(), 2u);
  EXPECT_TRUE(product->alternatives[0].chosen);
  EXPECT_EQ(product->alternatives.back().place, "cpu_avx512");
  EXPECT_EQ(explain_node(f, "nowhere").error().code, Code::kNotFound);
}

TEST(Advice, IsPlannedAndRanked) {
  const Subject subject = *subject_of(conv_chain(4));
  const Forecast f = planned(subject, options_for("ascend910b2"));
  auto list = advice(subject, f);
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_FALSE(list->empty());
  for (size_t k = 0; k < list->size(); ++k) {
    EXPECT_GT((*list)[k].saved.value, 0);
    EXPECT_NEAR(((*list)[k].before - (*list)[k].saved).value, (*list)[k].after.value, 1e-12);
    EXPECT_LE((*list)[k].saved, (*list)[k == 0 ? 0 : k - 1].saved);
  }
  EXPECT_LE(list->size(), 10u);
}

TEST(Html, IsOneFileThatNeedsNothingElse) {
  const Subject subject = *subject_of(conv_chain(2));
  const Forecast f = planned(subject, options_for("ascend910b2"));
  const std::string page = to_html(f, *advice(subject, f), "</script><b>model");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  // The only address is a name of a language.
  for (size_t at = page.find("http"); at != page.npos; at = page.find("http", at + 1))
    EXPECT_EQ(page.substr(at, 26), "http://www.w3.org/2000/svg");
  EXPECT_EQ(page.find("src="), page.npos);
  // What the model is called ends no element.
  EXPECT_EQ(page.find("</script><b>"), page.npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cb>model"), page.npos);
  const size_t begin = page.find("id=\"data\">") + 10;
  const auto data =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["operators"].size(), f.rows.size());
  EXPECT_EQ(data["title"], "</script><b>model");
}

}  // namespace
}  // namespace tessera::forecast
