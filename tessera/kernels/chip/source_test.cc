#include "tessera/kernels/chip/source.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/chip/catalog.h"

namespace tessera::kernels::chip {
namespace {

std::shared_ptr<const tessera::chip::Chip> load(const std::string& id) {
  auto chip = tessera::chip::Catalog().load(id);
  EXPECT_TRUE(chip) << chip.error().message;
  return std::make_shared<const tessera::chip::Chip>(*std::move(chip));
}

op::Operand operand(op::Dims dims, DType type = DType::kF16) {
  op::Operand o;
  o.dtype = type;
  o.dims = std::move(dims);
  return o;
}

op::Problem conv(int64_t n, int64_t c, int64_t size, int64_t m, int64_t k, int64_t groups = 1) {
  op::Problem p{op::find("conv"), {}, {}, {}};
  p.attrs.set("groups", groups);
  p.attrs.set("pads_begin", op::Ints{k / 2, k / 2});
  p.attrs.set("pads_end", op::Ints{k / 2, k / 2});
  p.in = {operand({n, c, size, size}), operand({m, c / groups, k, k})};
  p.in[1].constant = true;
  p.out = {operand({n, m, size, size})};
  return p;
}

op::Problem dot(int64_t m, int64_t n, int64_t k, DType type = DType::kF16) {
  op::Problem p{op::find("dot"), {}, {}, {}};
  p.in = {operand({m, k}, type), operand({k, n}, type)};
  p.out = {operand({m, n}, type)};
  return p;
}

TEST(Formats, AreThoseOfTheRoutesOfDeviceMemory) {
  const Names b2 = formats_of(*load("ascend910b2"));
  EXPECT_TRUE(b2.contains("FRACTAL_NZ"));
  EXPECT_TRUE(b2.contains("NC1HWC0"));
  EXPECT_TRUE(b2.contains("FRACTAL_Z"));
  // L0A's, which no route from memory reads.
  EXPECT_FALSE(b2.contains("FRACTAL_ZZ"));
  EXPECT_TRUE(vendor_formats_of(*load("ascend910b2")).contains("C1HWNCOC0"));
  EXPECT_TRUE(formats_of(*load("h100_sxm")).empty());
}

TEST(Formats, HaveNamesAndBytes) {
  const std::string nz = *layout_in("NZ", DType::kF16, {20, 28});
  EXPECT_EQ(name_of_layout(nz, DType::kF16, {20, 28}), "NZ");
  EXPECT_EQ(name_of_layout("", DType::kF16, {20, 28}), "ND");
  EXPECT_EQ(name_of_layout("nchw: n h w c", DType::kF16, {1, 3, 5, 7}), "NHWC");
  EXPECT_EQ(name_of_layout("mn: n m", DType::kF16, {20, 28}), "mn: n m");
  op::Operand o = operand({20, 28});
  EXPECT_EQ(stored_bytes(o)->value, 1120);
  o.layout = nz;
  EXPECT_EQ(stored_bytes(o)->value, 2048);
  EXPECT_FALSE(layout_in("NC1HWC0", DType::kF16, {20, 28}));
}

std::set<std::string> names_of(const std::vector<Wish>& wishes, const op::Problem& p) {
  std::set<std::string> names;
  for (const Wish& w : wishes)
    names.insert(fmt::format("{} {} {}", name_of_layout(w.in[0], p.in[0].dtype, p.in[0].dims),
                             p.in.size() > 1 ? name_of_layout(w.in[1], p.in[1].dtype, p.in[1].dims,
                                                              p.attrs.i("groups", 1))
                                             : "-",
                             name_of_layout(w.out[0], p.out[0].dtype, p.out[0].dims)));
  return names;
}

TEST(Wishes, OfConvolutionsAreTheEngines) {
  const Source own(load("ascend910b2"), Set::kOwn);
  const op::Problem p = conv(1, 64, 56, 64, 3);
  EXPECT_TRUE(names_of(own.wishes(p), p).contains("NC1HWC0 FRACTAL_Z NC1HWC0"));
  const Source vendor(load("ascend910b2"), Set::kVendor);
  EXPECT_EQ(names_of(vendor.wishes(p), p), (std::set<std::string>{"NC1HWC0 FRACTAL_Z NC1HWC0"}));
  const op::Problem depthwise = conv(1, 64, 56, 64, 3, 64);
  EXPECT_EQ(names_of(vendor.wishes(depthwise), depthwise),
            (std::set<std::string>{"NC1HWC0 C1HWNCOC0 NC1HWC0"}));
  const Source gpu(load("h100_sxm"), Set::kOwn);
  EXPECT_TRUE(names_of(gpu.wishes(p), p).contains("ND ND ND"));
  EXPECT_TRUE(names_of(gpu.wishes(p), p).contains("NHWC NHWC NHWC"));
}

TEST(Wishes, OfProductsMixFractalsAndRows) {
  const Source own(load("ascend910b2"), Set::kOwn);
  const op::Problem p = dot(128, 768, 768);
  const auto names = names_of(own.wishes(p), p);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_TRUE(names.contains("ND NZ ND"));
  EXPECT_TRUE(names.contains("NZ NZ NZ"));
}

TEST(Wishes, KeepTheLayoutOfElementwise) {
  const Source own(load("ascend910b2"), Set::kOwn);
  op::Problem p{op::find("add"), {}, {}, {}};
  p.in = {operand({1, 64, 56, 56}), operand({64, 1, 1})};
  p.out = {operand({1, 64, 56, 56})};
  const auto names = names_of(own.wishes(p), p);
  EXPECT_TRUE(names.contains("ND ND ND"));
  EXPECT_TRUE(names.contains("NC1HWC0 ND NC1HWC0"));
  // Blocks of channels stay whole, or there is no such wish.
  op::Problem concat{op::find("concat"), {}, {}, {}};
  concat.attrs.set("axis", int64_t{1});
  concat.in = {operand({1, 32, 8, 8}), operand({1, 16, 8, 8})};
  concat.out = {operand({1, 48, 8, 8})};
  EXPECT_TRUE(names_of(own.wishes(concat), concat).contains("NC1HWC0 NC1HWC0 NC1HWC0"));
  concat.in[1].dims[1] = 8;
  concat.out[0].dims[1] = 40;
  EXPECT_FALSE(names_of(own.wishes(concat), concat).contains("NC1HWC0 NC1HWC0 NC1HWC0"));
}

TEST(Vendor, TakesWhatItsFileLists) {
  const Source vendor(load("ascend310p3"), Set::kVendor);
  op::Problem p = dot(128, 768, 768);
  EXPECT_EQ(vendor_row(p), "matmul");
  EXPECT_TRUE(vendor.refusal(p).empty()) << vendor.refusal(p);
  EXPECT_NE(vendor.refusal(dot(128, 768, 768, DType::kF32)).find("'matmul' of the vendor takes"),
            std::string::npos);
  // A bias goes along, what is element-wise otherwise does not.
  p.steps.push_back({op::find("relu"), {}, {2}, p.out[0]});
  if (p.steps[0].op == nullptr) p.steps[0].op = op::find("neg");
  p.arity = 2;
  p.result = p.out[0];
  p.results = {3};
  EXPECT_NE(vendor.refusal(p).find("takes no"), std::string::npos) << vendor.refusal(p);
}

TEST(Source, TakesNoProductBehindElementwiseWork) {
  const Source own(load("ascend910b2"), Set::kOwn);
  op::Problem p{op::find("neg"), {}, {}, {}};
  p.in = {operand({128, 128}), operand({128, 128})};
  p.arity = 1;
  p.result = operand({128, 128});
  p.out = {operand({128, 128})};
  p.results = {3};
  p.steps.push_back({op::find("dot"), {}, {2, 1}, operand({128, 128})});
  EXPECT_NE(own.refusal(p).find("a kernel of its own"), std::string::npos) << own.refusal(p);
  p.steps[0].op = op::find("add");
  EXPECT_EQ(own.refusal(p), "");
}

TEST(Source, ClaimsWhatTheCostModelSays) {
  const Source own(load("ascend910b2"), Set::kOwn);
  const op::Problem p = dot(3072, 3072, 3072);
  const op::Claim claim = own.probe(p).front();
  ASSERT_TRUE(claim.supported()) << claim.refusal;
  const auto e = own.estimate(p);
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_NEAR(static_cast<double>(claim.cost.value) * 1e-12, e->time.expected.value, 1e-12);
  EXPECT_LE(*own.least_cost(p), claim.cost);
  EXPECT_EQ(own.prepare(p, claim).error().code, Code::kUnimplemented);
}

}  // namespace
}  // namespace tessera::kernels::chip
