// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "treadle/runtime.h"

namespace {

using testing::HasSubstr;

treadle_tensor tensor_of(float* data, int64_t* shape) {
  treadle_tensor tensor{};
  tensor.data = data;
  tensor.device_type = 1;
  tensor.ndim = 1;
  tensor.dtype = {TREADLE_FLOAT, 32, 1};
  tensor.shape = shape;
  return tensor;
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(treadle_model_load(TREADLE_TEST_MODEL, &model_), TREADLE_OK) << treadle_last_error();
  }
  void TearDown() override { treadle_model_release(model_); }

  treadle_model* model_ = nullptr;
  float x_[3] = {1, 2, 3};
  int64_t shape_[1] = {3};
  treadle_tensor input_ = tensor_of(x_, shape_);
};

TEST_F(CApi, Describes) {
  EXPECT_EQ(treadle_model_num_inputs(model_), 1u);
  EXPECT_EQ(treadle_model_num_outputs(model_), 1u);
  treadle_tensor_info info;
  ASSERT_EQ(treadle_model_input(model_, 0, &info), TREADLE_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype.bits, 32);
  EXPECT_EQ(info.ndim, 1);
  EXPECT_EQ(info.shape[0], -1);
  EXPECT_STREQ(info.shape_text[0], "N");
  EXPECT_EQ(treadle_model_output(model_, 1, &info), TREADLE_INVALID_ARGUMENT);
  EXPECT_STREQ(treadle_last_error_code(), "TRD-ARG-001");
}

TEST_F(CApi, AllocatesOutputs) {
  treadle_tensor output{};
  ASSERT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_OK) << treadle_last_error();
  EXPECT_EQ(output.ndim, 1);
  EXPECT_EQ(output.shape[0], 3);
  EXPECT_EQ(static_cast<float*>(output.data)[2], 33);
  treadle_tensor_release(&output);
  EXPECT_EQ(output.data, nullptr);
  treadle_tensor_release(&output);
}

// An output whose size nobody knows before the run comes from the library; memory for it cannot be given.
TEST_F(CApi, GivesOutputsWithoutBound) {
  treadle_model* model = nullptr;
  ASSERT_EQ(treadle_model_load(TREADLE_TEST_MODEL_UNBOUNDED, &model), TREADLE_OK) << treadle_last_error();
  int64_t bound = 0;
  ASSERT_EQ(treadle_output_shape(model, &input_, 1, 0, &bound), TREADLE_OK);
  EXPECT_EQ(bound, -1);
  for (const int64_t count : {3, 0, 1000, 2}) {
    x_[0] = static_cast<float>(count);
    treadle_tensor output{};
    ASSERT_EQ(treadle_run(model, &input_, 1, &output, 1), TREADLE_OK) << treadle_last_error();
    ASSERT_EQ(output.ndim, 1);
    ASSERT_EQ(output.shape[0], count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(static_cast<float*>(output.data)[i], x_[0]);
    treadle_tensor_release(&output);
  }
  float y[3];
  int64_t shape[1] = {3};
  treadle_tensor output = tensor_of(y, shape);
  EXPECT_EQ(treadle_run(model, &input_, 1, &output, 1), TREADLE_INVALID_ARGUMENT);
  EXPECT_THAT(treadle_last_error(), HasSubstr("known only when the model has run"));
  treadle_model_release(model);
}

TEST_F(CApi, WritesIntoMemoryOfTheCaller) {
  int64_t shape[1];
  ASSERT_EQ(treadle_output_shape(model_, &input_, 1, 0, shape), TREADLE_OK);
  EXPECT_EQ(shape[0], 3);
  float y[3];
  treadle_tensor output = tensor_of(y, shape);
  ASSERT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_OK) << treadle_last_error();
  EXPECT_EQ(y[1], 22);
  shape[0] = 2;
  EXPECT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_INVALID_ARGUMENT);
}

TEST_F(CApi, TakesDenseStridesAndOffsets) {
  int64_t strides[1] = {1};
  input_.strides = strides;
  input_.byte_offset = 4;
  shape_[0] = 2;
  treadle_tensor output{};
  ASSERT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_OK) << treadle_last_error();
  EXPECT_EQ(static_cast<float*>(output.data)[0], 12);
  treadle_tensor_release(&output);
  strides[0] = 2;
  EXPECT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(output.data, nullptr);
}

TEST_F(CApi, Errors) {
  treadle_tensor output{};
  input_.dtype.bits = 64;
  EXPECT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_INVALID_INPUT);
  EXPECT_STREQ(treadle_last_error(), "error TRD-RUN-001: input \"x\": expected (N) float32, got (3) float64");
  input_.dtype.bits = 32;
  x_[1] = -1;
  EXPECT_EQ(treadle_run(model_, &input_, 1, &output, 1), TREADLE_RUN_FAILED);
  EXPECT_THAT(treadle_last_error(), HasSubstr("x holds a negative number"));
  EXPECT_EQ(treadle_run(model_, &input_, 0, &output, 1), TREADLE_INVALID_INPUT);
  EXPECT_EQ(treadle_run(model_, nullptr, 1, &output, 1), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(treadle_run(model_, &input_, 1, nullptr, 0), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(treadle_run(nullptr, &input_, 1, &output, 1), TREADLE_INVALID_ARGUMENT);
  treadle_model* other = model_;
  EXPECT_EQ(treadle_model_load("/no/such.so", &other), TREADLE_NOT_FOUND);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(treadle_model_load(nullptr, &other), TREADLE_INVALID_ARGUMENT);
  treadle_model_release(nullptr);
}

TEST_F(CApi, AnErrorBelongsToItsThread) {
  treadle_model* other = nullptr;
  treadle_model_load("/no/such.so", &other);
  std::thread([] { EXPECT_STREQ(treadle_last_error(), ""); }).join();
  EXPECT_THAT(treadle_last_error(), HasSubstr("/no/such.so"));
}

TEST_F(CApi, Threads) {
  treadle_set_num_threads(3);
  EXPECT_EQ(treadle_get_num_threads(), 3);
  treadle_set_num_threads(0);
  EXPECT_GE(treadle_get_num_threads(), 1);
  treadle_model_set_max_threads(model_, 1);
  EXPECT_STRNE(treadle_version(), "");
}

}  // namespace
