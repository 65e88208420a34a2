#include <gtest/gtest.h>

#include <random>

#include "tessera/cost/cost.h"

namespace tessera::cost {
namespace {

op::Problem parsed(std::string_view text) {
  auto p = parse_problem(text);
  EXPECT_TRUE(p) << text << ": " << p.error().message;
  return p ? *std::move(p) : op::Problem();
}

std::string printed(std::string_view text) {
  const auto c = canonical(text);
  EXPECT_TRUE(c) << text << ": " << c.error().message;
  return c ? *c : "";
}

TEST(ProblemText, Products) {
  const op::Problem p = parsed("matmul_f16_m64n32k128");
  EXPECT_EQ(p.op->name, "dot");
  EXPECT_EQ(p.in[0].dims, (op::Dims{64, 128}));
  EXPECT_EQ(p.in[1].dims, (op::Dims{128, 32}));
  EXPECT_EQ(p.out[0].dims, (op::Dims{64, 32}));
  EXPECT_EQ(p.out[0].dtype, DType::kF16);
  const op::Problem q = parsed("matmul_f8_b2m64n7168k2048_tb_outbf16");
  EXPECT_EQ(q.in[0].dtype, DType::kF8E4M3FN);
  EXPECT_EQ(q.in[1].dims, (op::Dims{2, 7168, 2048}));
  EXPECT_EQ(q.attrs.i("transpose_b"), 1);
  EXPECT_EQ(q.out[0].dtype, DType::kBF16);
  EXPECT_EQ(q.attrs.dtype("accumulate"), DType::kBF16);
}

TEST(ProblemText, Windows) {
  const op::Problem p = parsed("conv_f16_n1c64h56w56_k64r3s3p1");
  EXPECT_EQ(p.in[1].dims, (op::Dims{64, 64, 3, 3}));
  EXPECT_EQ(p.out[0].dims, (op::Dims{1, 64, 56, 56}));
  const op::Problem strided = parsed("conv_f32_c3h224_k64r7p3t2");
  EXPECT_EQ(strided.out[0].dims, (op::Dims{1, 64, 112, 112}));
  const op::Problem grouped = parsed("conv_f16_n1c32h8w8_k32r3p1g32");
  EXPECT_EQ(grouped.in[1].dims, (op::Dims{32, 1, 3, 3}));
  const op::Problem dilated = parsed("conv_f16_n1c8h9w9_k8r3l2");
  EXPECT_EQ(dilated.out[0].dims, (op::Dims{1, 8, 5, 5}));
  EXPECT_EQ(parsed("maxpool_f16_n1c64h112w112_r3p1t2").out[0].dims, (op::Dims{1, 64, 56, 56}));
}

TEST(ProblemText, Attention) {
  const op::Problem p = parsed("attention_f16_b1h8g2q1s4096d128v64_causal");
  EXPECT_EQ(p.in[0].dims, (op::Dims{1, 8, 1, 128}));
  EXPECT_EQ(p.in[1].dims, (op::Dims{1, 2, 4096, 128}));
  EXPECT_EQ(p.in[2].dims, (op::Dims{1, 2, 4096, 64}));
  EXPECT_EQ(p.out[0].dims, (op::Dims{1, 8, 1, 64}));
  EXPECT_EQ(p.attrs.i("causal"), 1);
}

TEST(ProblemText, Conversions) {
  const op::Problem p = parsed("convert_f16_b4m4096n8192_nd_nz");
  EXPECT_EQ(p.op->name, "relayout");
  EXPECT_EQ(p.in[0].dims, (op::Dims{4, 4096, 8192}));
  EXPECT_EQ(p.in[0].layout, "");
  EXPECT_NE(p.out[0].layout.find("n/16 m/16 m%16 n%16"), std::string::npos) << p.out[0].layout;
  EXPECT_EQ(parsed("convert_f16_m64n64_fractal_nz_nd").in[0].layout,
            parsed("convert_f16_m64n64_nz_nd").in[0].layout);
  EXPECT_EQ(parsed("convert_f32_n64_outf16").op->name, "convert");
  EXPECT_EQ(parsed("convert_f16_n1c8h4w4_nhwc_nc1hwc0").in[0].layout, "nchw: n h w c");
}

TEST(ProblemText, OrderOfLettersAndNamesOfTypesDoNotMatter) {
  EXPECT_EQ(printed("matmul_float16_k3n2m1"), "matmul_f16_m1n2k3");
  EXPECT_EQ(printed("matmul_FLOAT16_m1_n2_k3"), "matmul_f16_m1n2k3");
  EXPECT_EQ(printed("gemm_f8_outbfloat16_k3n2m1"), "matmul_f8e4m3fn_m1n2k3_outbf16");
  EXPECT_EQ(printed("matmul_float8_e4m3fn_m1n2k3"), "matmul_f8e4m3fn_m1n2k3");
  EXPECT_EQ(printed("conv_f32_k64s3r3p1_w56n1c64h56"), "conv_f32_n1c64h56w56_k64r3s3p1");
  EXPECT_EQ(printed("conv_f32_n1c64h56w56_k64r3p0t1l1g1"), "conv_f32_n1c64h56w56_k64r3");
  EXPECT_EQ(printed("layer_norm_f16_n8m4"), "layernorm_f16_m4n8");
  EXPECT_EQ(printed("add_f16_n8"), "elementwise_add_f16_n8");
  EXPECT_EQ(printed("elementwise_gelu_f16_n8"), "gelu_f16_n8");
  EXPECT_EQ(printed("reduce_f32_m4n8"), "reduce_sum_f32_m4n8");
  EXPECT_EQ(printed("attention_f16_causal_d128s64"), "attention_f16_s64d128_causal");
  EXPECT_EQ(printed("matmul_f16_m1n2k3_outf16"), "matmul_f16_m1n2k3");
}

TEST(ProblemText, PrintsWhatItReads) {
  for (const char* text : {"matmul_f16_m3072n3072k3072",
                           "matmul_f16_b2m4n5k6_ta_tb_outf32",
                           "softmax_f16_m4096n4096",
                           "logsoftmax_f32_n5",
                           "layernorm_f16_m1n2",
                           "rmsnorm_bf16_b2m3n4",
                           "gelu_f16_n1048576",
                           "attention_f16_b1h1s4096d128_causal",
                           "attention_bf16_b2h8g2q1s77d64v32",
                           "conv_f16_n1c64h56w56_k64r3s3p1t2l2g4",
                           "convert_f16_m4096n4096_nd_nz",
                           "convert_f32_m4n5_outf16",
                           "elementwise_add_f16_n7",
                           "elementwise_select_f32_m2n3",
                           "reduce_max_f32_m2n3",
                           "transpose_i8_b2m3n4",
                           "gather_f16_m9n8k7",
                           "concat_f16_m3n4",
                           "lstm_f16_s5b1i8h8",
                           "gru_f32_s5i8h8",
                           "maxpool_f16_n1c64h112w112_r3s3p1t2",
                           "avgpool_f32_c8h8w8_r2",
                           "batchnorm_f32_n1c8h4w4",
                           "tanh_f32_n4"}) {
    EXPECT_EQ(printed(text), text);
    const op::Problem a = parsed(text), b = parsed(printed(text));
    EXPECT_EQ(a.str(), b.str());
  }
}

TEST(ProblemText, WrongOnesSayWhat) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "1 to 512"},
      {"foo_f16_n3", "no operator"},
      {"matmul", "needs a type"},
      {"matmul_f17_m1n1k1", "needs a type"},
      {"matmul_f16_m1n1", "needs a size 'k'"},
      {"matmul_f16_m1n1k1m2", "twice"},
      {"matmul_f16_m1n1k1z2", "no size 'z'"},
      {"matmul_f16_m1n1k1_causal", "takes no 'causal'"},
      {"matmul_f16_m1n1k1_outfoo", "no type of results"},
      {"matmul_f16_m-1n1k1", "takes no"},
      {"matmul_f16_m99999999999999999999n1k1", "size from 0 to"},
      {"matmul_f16_m1099511627776n1099511627776k1", "larger than any memory"},
      {"softmax_i8_m4n4", "needs floats"},
      {"attention_f16_h3g2s4d4", "no multiple"},
      {"conv_f16_n1c4h2w2_k4r3", "does not fit"},
      {"conv_f16_n1c4h8w8_k4r3t0", "need 1 or more"},
      {"conv_f16_n1c5h8w8_k4r3g2", "do not divide"},
      {"convert_f16_m4n4", "two layouts"},
      {"convert_f16_m4n4_nd_foo", "no two layouts"},
      {"convert_f16_n4_nd_nc1hwc0", "NC1HWC0"},
      {std::string(600, 'a'), "1 to 512"},
  };
  for (const auto& [text, expected] : cases) {
    const auto p = parse_problem(text);
    ASSERT_FALSE(p) << text;
    EXPECT_EQ(p.error().code, Code::kInvalidArgument) << text;
    EXPECT_NE(p.error().message.find(expected), std::string::npos)
        << text << ": " << p.error().message;
  }
}

// Whatever the bytes: an answer or a reason.
TEST(ProblemText, HostileOnes) {
  std::mt19937 random(7);
  const std::string seeds[] = {"matmul_f16_m64n32k128_outf32",
                               "conv_f16_n1c64h56w56_k64r3s3p1t1l1g1",
                               "attention_f16_b1h8g2q4s64d16_causal", "convert_f16_m40n40_nd_nz",
                               "elementwise_add_f16_n4096"};
  int fine = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % std::size(seeds)];
    for (int edits = static_cast<int>(random() % 4); edits >= 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1, "0123456789_abcnmk"[random() % 17]);
          break;
        case 2:
          if (text.size() > 1) text.erase(at, 1);
          break;
        default:
          text.insert(at, seeds[random() % std::size(seeds)].substr(random() % 8, random() % 8));
      }
    }
    const auto p = parse_problem(text);
    if (!p) {
      ASSERT_FALSE(p.error().message.empty());
      continue;
    }
    ++fine;
    const auto again = canonical(text);
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(printed(*again), *again) << text;
    ASSERT_EQ(parsed(*again).str(), p->str()) << text;
  }
  EXPECT_GT(fine, 500);
}

}  // namespace
}  // namespace tessera::cost
