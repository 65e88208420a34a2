#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

using op::Attrs;
using op::Floats;
using op::Ints;

Tensor first(const Result<std::vector<Value>>& r) {
  EXPECT_TRUE(r) << (r ? "" : r.error().message);
  return r ? (*r)[0].tensor() : Tensor();
}
void expect_near(const Tensor& actual, const std::vector<double>& expected,
                 double tolerance = 1e-6) {
  ASSERT_EQ(actual.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < actual.count(); ++i)
    EXPECT_NEAR(actual.f64(i), expected[static_cast<size_t>(i)], tolerance) << i;
}
Attrs resize(const char* mode, const char* coordinates, Ints sizes) {
  return {{"mode", std::string(mode)},
          {"coordinates", std::string(coordinates)},
          {"sizes", std::move(sizes)}};
}

TEST(Resize, PlacesCoordinatesAsNamed) {
  const Tensor x = f32({2}, {0, 4});
  expect_near(first(run_op("resize", {x}, resize("linear", "half_pixel", {4}))), {0, 1, 3, 4});
  expect_near(first(run_op("resize", {x}, resize("linear", "align_corners", {5}))),
              {0, 1, 2, 3, 4});
  expect_near(first(run_op("resize", {x}, resize("linear", "asymmetric", {4}))), {0, 2, 4, 4});
  expect_near(
      first(run_op("resize", {f32({3}, {1, 5, 9})}, resize("linear", "pytorch_half_pixel", {1}))),
      {1});
}

TEST(Resize, RoundsAsNamed) {
  // Asymmetric from 2 to 4: 0, 0.5, 1, 1.5.
  const Tensor x = f32({3}, {10, 20, 30});
  auto with = [&](const char* rounding) {
    Attrs attrs{{"scales", Floats{2}},
                {"coordinates", std::string("asymmetric")},
                {"nearest", std::string(rounding)}};
    return values_of(first(run_op("resize", {x}, attrs)));
  };
  EXPECT_EQ(with("floor"), (std::vector<double>{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(with("ceil"), (std::vector<double>{10, 20, 20, 30, 30, 30}));
  EXPECT_EQ(with("round_prefer_floor"), (std::vector<double>{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(with("round_prefer_ceil"), (std::vector<double>{10, 20, 20, 30, 30, 30}));
}

TEST(Resize, KeepsAConstantWhateverTheMode) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (int64_t antialias : {0, 1})
      for (int64_t size : {1, 2, 7, 13}) {
        Attrs attrs = resize(mode, "half_pixel", {size});
        attrs.set("antialias", antialias);
        attrs.set("exclude_outside", antialias);
        for (double v :
             values_of(first(run_op("resize", {f32({7}, {3, 3, 3, 3, 3, 3, 3})}, attrs))))
          EXPECT_NEAR(v, 3, 1e-6) << mode << size;
      }
}

TEST(Resize, TakesScalesAndSizesAsData) {
  const Tensor x = f32({1, 2}, {1, 2});
  EXPECT_EQ(first(run_op("resize", {x, std::nullopt, f32({2}, {2, 1})})).dims(), (Dims{2, 2}));
  EXPECT_EQ(first(run_op("resize", {x, std::nullopt, std::nullopt, i64({2}, {3, 1})})).dims(),
            (Dims{3, 1}));
  EXPECT_EQ(first(run_op("resize", {f32({10, 4}, {})},
                         {{"sizes", Ints{5, 5}}, {"policy", std::string("not_larger")}}))
                .dims(),
            (Dims{5, 2}));
  EXPECT_EQ(first(run_op("resize", {f32({10, 4}, {})},
                         {{"sizes", Ints{5, 5}}, {"policy", std::string("not_smaller")}}))
                .dims(),
            (Dims{13, 5}));
  EXPECT_EQ(
      values_of(first(run_op("resize", {tensor(DType::kI64, {2}, {1, 2})}, {{"sizes", Ints{4}}}))),
      (std::vector<double>{1, 1, 2, 2}));
}

TEST(Resize, RefusesBadSizesAndScales) {
  const Tensor x = f32({1, 2}, {1, 2});
  EXPECT_FALSE(run_op("resize", {x}));
  EXPECT_FALSE(run_op("resize", {x, std::nullopt, f32({1}, {2})}));
  EXPECT_FALSE(run_op("resize", {x, std::nullopt, f32({2}, {0, 1})}));
  EXPECT_FALSE(run_op("resize", {x, std::nullopt, f32({2}, {NAN, 1})}));
  EXPECT_FALSE(run_op("resize", {x, std::nullopt, f32({2}, {1e30, 1})}));
  EXPECT_FALSE(run_op("resize", {x, std::nullopt, std::nullopt, i64({2}, {-1, 1})}));
  EXPECT_FALSE(run_op("resize", {x}, {{"sizes", Ints{1, 2}}, {"scales", Floats{1, 1}}}));
  EXPECT_FALSE(run_op("resize", {f32({0}, {})}, {{"sizes", Ints{1}}}));
  EXPECT_EQ(first(run_op("resize", {f32({2}, {1, 2})}, {{"sizes", Ints{0}}})).count(), 0);
}

TEST(GridSample, ReadsPointsAndPadding) {
  const Tensor x = f32({1, 1, 1, 2}, {10, 20});
  // (x, y) with the corners aligned: -1 and 1 are the elements' centres.
  const Tensor grid = f32({1, 1, 4, 2}, {-1, -1, 0, -1, 1, -1, 2, -1});
  auto with = [&](const char* padding) {
    return values_of(
        first(run_op("grid_sample", {x, grid},
                     {{"align_corners", int64_t{1}}, {"padding", std::string(padding)}})));
  };
  EXPECT_EQ(with("zeros"), (std::vector<double>{10, 15, 20, 10}));
  EXPECT_EQ(with("border"), (std::vector<double>{10, 15, 20, 20}));
  EXPECT_EQ(with("reflection"), (std::vector<double>{10, 15, 20, 15}));
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      EXPECT_TRUE(run_op("grid_sample",
                         {x, f32({1, 1, 3, 2}, {NAN, 0, INFINITY, 1e30, -INFINITY, -1e30})},
                         {{"mode", std::string(mode)}, {"padding", std::string(padding)}}));
}

// The grid of the identity, sampled, is the image.
TEST(AffineGrid, OfTheIdentityGivesTheImage) {
  for (int64_t align : {0, 1}) {
    const Tensor grid =
        first(run_op("affine_grid", {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), i64({4}, {1, 1, 3, 4})},
                     {{"align_corners", align}}));
    ASSERT_EQ(grid.dims(), (Dims{1, 3, 4, 2}));
    const Tensor x = random(DType::kF32, {1, 2, 3, 4}, 5);
    expect_near(first(run_op("grid_sample", {x, grid}, {{"align_corners", align}})), values_of(x),
                1e-5);
  }
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  const Tensor x = random(DType::kF32, {2, 4, 5, 6}, 1), w = random(DType::kF32, {6, 2, 3, 2}, 2),
               bias = random(DType::kF32, {6}, 3);
  const Attrs attrs{{"groups", int64_t{2}},
                    {"strides", Ints{1, 2}},
                    {"pads_begin", Ints{1, 0}},
                    {"pads_end", Ints{0, 1}}};
  const Tensor y = first(run_op("conv", {x, w, bias}, attrs));
  Attrs moved = attrs;
  moved.set("offset_groups", int64_t{2});
  const Dims out(y.dims().begin() + 2, y.dims().end());
  const Tensor offset = *Tensor::make(DType::kF32, {2, 2 * 6 * 2, out[0], out[1]});
  expect_near(first(run_op("deform_conv", {x, w, offset, bias}, moved)), values_of(y), 1e-5);
  EXPECT_FALSE(run_op("deform_conv",
                      {x, w, *Tensor::make(DType::kF32, {2, 12, out[0], out[1]}), bias}, moved));
}

TEST(RoiAlign, AveragesSamplesOfABin) {
  // A ramp along x: a region's average is the middle of it.
  const Tensor x = f32({1, 1, 1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor roi = f32({1, 4}, {1, 0, 5, 1});
  expect_near(first(run_op("roi_align", {x, roi, i64({1}, {0})}, {{"width", int64_t{2}}})), {2, 4});
  expect_near(first(run_op("roi_align", {x, roi, i64({1}, {0})},
                           {{"width", int64_t{2}}, {"half_pixel", int64_t{1}}})),
              {1.5, 3.5});
  EXPECT_FALSE(run_op("roi_align", {x, roi, i64({1}, {1})}));
  EXPECT_FALSE(run_op("roi_align", {x, f32({1, 4}, {0, 0, 1e30, 1}), i64({1}, {0})}));
  EXPECT_FALSE(run_op("roi_align", {x, f32({1, 4}, {0, 0, NAN, 1}), i64({1}, {0})}));
}

TEST(MaxRoiPool, TakesTheLargestOfABin) {
  const Tensor x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_near(
      first(run_op("max_roi_pool", {x, f32({1, 5}, {0, 0, 0, 3, 1})}, {{"width", int64_t{2}}})),
      {6, 8});
  expect_near(first(run_op("max_roi_pool", {x, f32({1, 5}, {0, 9, 9, 12, 12})})), {0});
  EXPECT_FALSE(run_op("max_roi_pool", {x, f32({1, 5}, {-1, 0, 0, 3, 1})}));
}

TEST(NonMaxSuppression, KeepsTheBestOfWhatOverlaps) {
  const Tensor boxes = f32({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 2, 2, 3, 3});
  const Tensor scores = f32({1, 1, 3}, {0.5, 0.9, 0.1});
  auto select = [&](double most, double iou, std::optional<Tensor> lowest = std::nullopt) {
    return first(run_op("non_max_suppression",
                        {boxes, scores, i64({}, {most}), f32({}, {iou}), lowest}))
        .to_i64s();
  };
  EXPECT_EQ(select(9, 0.5), (std::vector<int64_t>{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(select(9, 0.95), (std::vector<int64_t>{0, 0, 1, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(select(1, 0.5), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(select(9, 0.5, f32({}, {0.4})), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_TRUE(select(0, 0.5).empty());
}

TEST(Dropout, DropsAsNumpysGeneratorSays) {
  // np.random.RandomState(0).random_sample(3): 0.5488135, 0.71518937, 0.60276338
  const Tensor x = f32({3}, {1, 2, 3}), training = tensor(DType::kBool, {}, {1});
  auto y = run_op("dropout", {x, f32({}, {0.6}), training}, {}, 2);
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[0].tensor(), {0, 5, 7.5});
  EXPECT_EQ(values_of((*y)[1].tensor()), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values_of(first(run_op("dropout", {x, f32({}, {0.6})}))), values_of(x));
  EXPECT_FALSE(run_op("dropout", {x, f32({}, {1}), training}));
}

TEST(BatchNorm, HasTheValueWorkedOutByHand) {
  const Tensor one = f32({1}, {1});
  expect_near(
      first(run_op("batch_norm",
                   {f32({1, 1, 2}, {3, 5}), f32({1}, {10}), one, f32({1}, {3}), f32({1}, {3})},
                   {{"epsilon", 1.0}})),
      {1, 11});
  EXPECT_FALSE(run_op("batch_norm", {f32({1, 2, 2}, {}), one, one, one, one}));
  expect_near(first(run_op("instance_norm", {f32({1, 1, 2}, {1, 3}), f32({1}, {2}), one},
                           {{"epsilon", 0.0}})),
              {-1, 3});
  // Three channels 1, 2, 3; windows of 2: the channel and the one after. 1 / (1 + 4/2 (1 + 4)) ...
  expect_near(first(run_op("lrn", {f32({1, 3, 1}, {1, 2, 3})},
                           {{"size", int64_t{2}}, {"alpha", 4.0}, {"beta", 1.0}, {"bias", 1.0}})),
              {1.0 / 11, 2.0 / 27, 3.0 / 19});
}

}  // namespace
}  // namespace tessera::ir::reference
