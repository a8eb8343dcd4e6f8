// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

using testing::ElementsAre;

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

// Six boxes in three places: 0, 1, 2 overlap, 3 and 4 overlap, 5 stands alone.
const std::vector<float> kBoxes = {0, 0,    1, 1,    0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                   0, 10.f, 1, 11.f, 0, 10.1f, 1, 11.1f, 0, 100.f, 1, 101.f};
const std::vector<float> kScores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};

std::vector<int64_t> selected(const std::vector<float>& boxes, const std::vector<float>& scores,
                              std::vector<int64_t> params) {
  const auto count = static_cast<int64_t>(scores.size());
  Tensor out(dtype::int64_, {count, 3});
  const Outcome outcome = call_kernel(
      "non_max_suppression", {Tensor::from<float>(boxes, {1, count, 4}), Tensor::from<float>(scores, {1, 1, count})},
      {out}, std::move(params));
  EXPECT_EQ(outcome.code, 0) << outcome.message;
  std::vector<int64_t> result;
  for (int64_t i = 0; i < outcome.results[0]; ++i) result.push_back(out.int_at(3 * i + 2));
  return result;
}

TEST(NonMaxSuppression, KeepsTheBestOfEachPlace) {
  EXPECT_THAT(selected(kBoxes, kScores, {-1, bits(0.5), bits(0.0), 0}), ElementsAre(3, 0, 5));
  EXPECT_THAT(selected(kBoxes, kScores, {2, bits(0.5), bits(0.0), 0}), ElementsAre(3, 0));
  EXPECT_THAT(selected(kBoxes, kScores, {0, bits(0.5), bits(0.0), 0}), ElementsAre());
  EXPECT_THAT(selected(kBoxes, kScores, {-1, bits(0.5), bits(0.4), 0}), ElementsAre(3, 0));
  EXPECT_THAT(selected(kBoxes, kScores, {-1, bits(1.0), bits(0.0), 0}), ElementsAre(3, 0, 1, 2, 4, 5));
}

TEST(NonMaxSuppression, CornersInAnyOrderAndCentres) {
  std::vector<float> flipped = kBoxes;
  for (size_t i = 0; i < flipped.size(); i += 8) std::swap(flipped[i], flipped[i + 2]);
  EXPECT_THAT(selected(flipped, kScores, {-1, bits(0.5), bits(0.0), 0}), ElementsAre(3, 0, 5));
  std::vector<float> centres;
  for (size_t i = 0; i < kBoxes.size(); i += 4) {
    const float* b = &kBoxes[i];
    centres.insert(centres.end(), {(b[1] + b[3]) / 2, (b[0] + b[2]) / 2, b[3] - b[1], b[2] - b[0]});
  }
  EXPECT_THAT(selected(centres, kScores, {-1, bits(0.5), bits(0.0), 1}), ElementsAre(3, 0, 5));
}

TEST(NonMaxSuppression, TiesThresholdsAndNan) {
  const std::vector<float> same(24, 0.5f);  // boxes without area overlap nothing
  EXPECT_THAT(selected(same, {1, 1, 2, 1, 1, 1}, {3, bits(0.5), bits(0.0), 0}), ElementsAre(2, 0, 1));
  EXPECT_THAT(selected(same, {1, NAN, 2, -1, 0, 0}, {-1, bits(0.5), bits(0.0), 0}), ElementsAre(2, 0));
  EXPECT_THAT(selected(same, {1, NAN, 2, -1, 0, 0}, {-1, bits(0.5), bits(NAN), 0}), ElementsAre(2, 0, 4, 5, 3, 1));
}

TEST(NonMaxSuppression, BatchesClassesTensorsAndCount) {
  std::vector<float> boxes = kBoxes, scores;
  boxes.insert(boxes.end(), kBoxes.begin(), kBoxes.end());
  for (int i = 0; i < 4; ++i) scores.insert(scores.end(), kScores.begin(), kScores.end());
  Tensor out(dtype::int32_, {24, 3}), count(dtype::int32_, {1});
  const Outcome outcome =
      call_kernel("non_max_suppression",
                  {Tensor::from<float>(boxes, {2, 6, 4}), Tensor::from<float>(scores, {2, 2, 6}),
                   Tensor::from<int64_t>({2}), Tensor::from<float>({0.5f}), Tensor(dtype::float32_, {0})},
                  {out, count}, {-1, bits(0.9), bits(0.0), 0});
  ASSERT_EQ(outcome.code, 0) << outcome.message;
  EXPECT_EQ(count.int_at(0), 8);
  std::vector<int64_t> rows = out.to_ints();
  rows.resize(27);
  EXPECT_THAT(rows, ElementsAre(0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0, 1, 0, 3, 1, 0, 0, 1, 1, 3, 1, 1, 0, 0, 0, 0));
}

TEST(NonMaxSuppression, BadCallsFail) {
  Tensor out(dtype::int64_, {1, 3});
  const Tensor boxes = Tensor::from<float>(kBoxes, {1, 6, 4}), scores = Tensor::from<float>(kScores, {1, 1, 6});
  const std::vector<int64_t> params = {-1, bits(0.5), bits(0.0), 0};
  EXPECT_EQ(call_kernel("non_max_suppression", {boxes, scores}, {out}, params).message,
            "non_max_suppression: the output has no room for 3 rows");
  EXPECT_NE(call_kernel("non_max_suppression", {boxes, scores.reshaped({1, 2, 3})}, {out}, params).code, 0);
  EXPECT_NE(call_kernel("non_max_suppression", {boxes.reshaped({6, 4}), scores}, {out}, params).code, 0);
  Tensor none(dtype::int64_, {0, 3});
  EXPECT_EQ(call_kernel("non_max_suppression", {Tensor(dtype::float32_, {1, 0, 4}), Tensor(dtype::float32_, {1, 2, 0})},
                        {none}, params)
                .code,
            0);
}

}  // namespace
}  // namespace treadle::kernels
