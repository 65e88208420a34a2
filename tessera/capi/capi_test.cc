#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/tessera.h"

namespace {

// Just enough of protobuf's wire format to write a model; field numbers as in onnx.proto.
std::string number(int field, int64_t value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}
std::string data(int field, const std::string& value) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(value.size())} + value;
}

std::string port(const std::string& name, const std::string& dims) {
  return data(1, name) + data(2, data(1, number(1, 1) + data(2, dims)));
}
std::string node(const std::string& op, const std::string& a, const std::string& b,
                 const std::string& out) {
  return data(1, a) + (b.empty() ? "" : data(1, b)) + data(2, out) + data(4, op);
}

// y = x + x and z = identity of x, both f32[batch,2]
std::string model_bytes() {
  const std::string dims = data(1, data(2, "batch")) + data(1, number(1, 2));
  const std::string graph =
      data(1, node("Add", "x", "x", "y")) + data(1, node("Identity", "x", "", "z")) + data(2, "g") +
      data(11, port("x", dims)) + data(12, port("y", dims)) + data(12, port("z", dims));
  return number(1, 8) + data(7, graph) + data(8, number(2, 17));
}

struct Buffer {
  std::vector<float> values;
  std::vector<int64_t> shape;
  DLTensor tensor{};
  Buffer(std::vector<float> v, std::vector<int64_t> s) : values(std::move(v)), shape(std::move(s)) {
    tensor.data = values.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
  }
};

class CapiTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tessera_load_bytes(bytes_.data(), bytes_.size(), nullptr, &model_, &error_),
              TESSERA_OK)
        << error_.message;
  }
  void TearDown() override { tessera_close(model_); }

  std::string bytes_ = model_bytes();
  tessera_error error_{sizeof(tessera_error), 0, ""};
  tessera_model* model_ = nullptr;
};

TEST_F(CapiTest, DescribesPorts) {
  ASSERT_EQ(tessera_input_count(model_), 1u);
  ASSERT_EQ(tessera_output_count(model_), 2u);
  tessera_port port{};
  port.struct_size = sizeof port;
  ASSERT_EQ(tessera_input(model_, 0, &port, &error_), TESSERA_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_STREQ(port.type, "f32[batch,2]");
  EXPECT_EQ(port.is_tensor, 1);
  EXPECT_EQ(port.dtype.bits, 32);
  ASSERT_EQ(port.ndim, 2);
  EXPECT_EQ(port.shape[0], -1);
  EXPECT_EQ(port.shape[1], 2);
  EXPECT_EQ(tessera_output(model_, 2, &port, &error_), TESSERA_OUT_OF_RANGE);
  EXPECT_STREQ(error_.message, "output 2 of 2");
}

TEST_F(CapiTest, AnOlderCallersStructIsNotOverrun) {
  tessera_port port{};
  port.struct_size = offsetof(tessera_port, type);
  port.type = "untouched";
  ASSERT_EQ(tessera_input(model_, 0, &port, nullptr), TESSERA_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_STREQ(port.type, "untouched");
  tessera_error small{static_cast<uint32_t>(offsetof(tessera_error, message) + 8), 0,
                      "untouched text"};
  EXPECT_EQ(tessera_input(model_, 9, &port, &small), TESSERA_OUT_OF_RANGE);
  EXPECT_STREQ(small.message, "input 9");
  EXPECT_STREQ(small.message + 8, "d text");
}

TEST_F(CapiTest, RunsOnBuffersOfTheCaller) {
  Buffer x({1, 2, 3, 4}, {2, 2}), y({0, 0, 0, 0}, {2, 2});
  const DLTensor* inputs[] = {&x.tensor};
  const DLTensor* outputs[] = {&y.tensor, nullptr};
  ASSERT_EQ(tessera_run(model_, inputs, 1, outputs, 2, nullptr, &error_), TESSERA_OK)
      << error_.message;
  EXPECT_EQ(y.values, (std::vector<float>{2, 4, 6, 8}));
  int64_t transposed[] = {1, 2};
  x.tensor.strides = transposed;
  ASSERT_EQ(tessera_run(model_, inputs, 1, outputs, 2, nullptr, &error_), TESSERA_OK)
      << error_.message;
  EXPECT_EQ(y.values, (std::vector<float>{2, 6, 4, 8}));
}

TEST_F(CapiTest, GivesTensorsOfItsOwn) {
  Buffer x({1, 2}, {1, 2});
  const DLTensor* inputs[] = {&x.tensor};
  DLManagedTensor* outputs[2] = {};
  ASSERT_EQ(tessera_run_managed(model_, inputs, 1, outputs, 2, nullptr, &error_), TESSERA_OK)
      << error_.message;
  tessera_close(model_);
  model_ = nullptr;
  x.values = {9, 9};
  for (int i = 0; i < 2; ++i) {
    const DLTensor& t = outputs[i]->dl_tensor;
    ASSERT_EQ(t.ndim, 2);
    EXPECT_EQ(t.shape[0], 1);
    EXPECT_EQ(static_cast<const float*>(t.data)[1], i == 0 ? 4 : 2);
    outputs[i]->deleter(outputs[i]);
  }
}

TEST_F(CapiTest, NamesBothSidesOfAMistake) {
  Buffer x({1, 2, 3}, {1, 3}), good({1, 2}, {1, 2});
  const DLTensor* inputs[] = {&x.tensor};
  const DLTensor* outputs[] = {&x.tensor, nullptr};
  EXPECT_EQ(tessera_run(model_, inputs, 1, nullptr, 2, nullptr, &error_), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "'x': dim 1 is 3, need 2");
  inputs[0] = &good.tensor;
  EXPECT_EQ(tessera_run(model_, inputs, 1, outputs, 2, nullptr, &error_), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "the buffer is f32[1,3], need f32[1,2]; output 'y'");
  EXPECT_EQ(tessera_run(model_, inputs, 0, outputs, 2, nullptr, &error_), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "0 inputs for a model with 1");
  EXPECT_EQ(tessera_run(model_, inputs, 1, outputs, 1, nullptr, &error_), TESSERA_INVALID_ARGUMENT);
  inputs[0] = nullptr;
  EXPECT_EQ(tessera_run(model_, inputs, 1, outputs, 2, nullptr, &error_), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "input 'x' (f32[batch,2]) is missing");
  EXPECT_EQ(tessera_run(model_, inputs, 1, outputs, 2, nullptr, nullptr), TESSERA_INVALID_ARGUMENT);
}

TEST_F(CapiTest, LoadOptionsAndErrors) {
  const tessera_dim dims[] = {{"batch", 3}};
  tessera_load_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  options.dims = dims;
  options.dim_count = 1;
  tessera_model* fixed = nullptr;
  ASSERT_EQ(tessera_load_bytes(bytes_.data(), bytes_.size(), &options, &fixed, &error_), TESSERA_OK)
      << error_.message;
  tessera_port port{};
  port.struct_size = sizeof port;
  ASSERT_EQ(tessera_input(fixed, 0, &port, nullptr), TESSERA_OK);
  EXPECT_EQ(port.shape[0], 3);
  tessera_close(fixed);
  options.device = "abacus";
  fixed = nullptr;
  EXPECT_EQ(tessera_load_bytes(bytes_.data(), bytes_.size(), &options, &fixed, &error_),
            TESSERA_NOT_FOUND);
  EXPECT_EQ(fixed, nullptr);
  EXPECT_EQ(tessera_load("absent.onnx", nullptr, &fixed, &error_), TESSERA_NOT_FOUND);
  EXPECT_NE(std::strstr(error_.message, "absent.onnx"), nullptr);
  EXPECT_EQ(tessera_load(nullptr, nullptr, &fixed, &error_), TESSERA_INVALID_ARGUMENT);
  EXPECT_NE(tessera_load_bytes("nonsense", 8, nullptr, &fixed, &error_), TESSERA_OK);
  tessera_close(nullptr);
}

TEST_F(CapiTest, ManyThreadsOnOneModel) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&, n] {
      for (int i = 0; i < 50; ++i) {
        const auto v = static_cast<float>(n * 100 + i);
        Buffer x({v, v}, {1, 2}), y({0, 0}, {1, 2});
        const DLTensor* inputs[] = {&x.tensor};
        const DLTensor* outputs[] = {&y.tensor, nullptr};
        if (tessera_run(model_, inputs, 1, outputs, 2, nullptr, nullptr) != TESSERA_OK ||
            y.values[1] != 2 * v)
          ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
