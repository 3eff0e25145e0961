// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <string>

#include "functional/softmax.h"
#include "oneflow_lite/core/tensor.h"

namespace flow = oneflow_lite;

namespace {

// softmax over the last dim of [[0, log 2, log 5], [1, 1, 1]], which is [[1, 2, 5] / 8, 1 / 3].
flow::StatusOr<float> LargestError() {
  const flow::Shape shape{2, 3};
  OFL_ASSIGN_OR_RETURN(flow::Tensor x,
                       flow::Tensor::Empty(shape, flow::DType::kFloat32, flow::Device{}));
  const float input[] = {0.0f, std::log(2.0f), std::log(5.0f), 1.0f, 1.0f, 1.0f};
  const float expected[] = {0.125f, 0.25f, 0.625f, 1 / 3.0f, 1 / 3.0f, 1 / 3.0f};
  for (int i = 0; i < 6; ++i) x.data<float>()[i] = input[i];
  OFL_ASSIGN_OR_RETURN(flow::Tensor y, flow::functional::Softmax(x, -1));
  float largest = 0;
  for (int i = 0; i < 6; ++i) {
    largest = std::fmax(largest, std::fabs(y.data<float>()[i] - expected[i]));
  }
  return largest;
}

}  // namespace

int main() {
  const flow::StatusOr<float> error = LargestError();
  if (!error.ok()) {
    std::fprintf(stderr, "%s\n", std::string(error.status().message()).c_str());
    return 1;
  }
  std::printf("largest error of softmax: %g\n", *error);
  if (!(*error <= 1e-7f)) return 1;

  // An error arrives as a Status, not as the end of the program.
  auto x = flow::Tensor::Empty(flow::Shape{2, 3}, flow::DType::kFloat32, flow::Device{});
  if (!x.ok()) return 1;
  const auto refused = flow::functional::Softmax(*x, 7);
  if (refused.ok() || flow::KindOf(refused.status()) != flow::ErrorKind::kIndex) return 1;
  std::printf("refused as it should be: %s\n", std::string(refused.status().message()).c_str());
  return 0;
}
