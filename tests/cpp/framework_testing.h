// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the framework share: small tensors of float32 from numbers, and back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "functional/copy.h"
#include "oneflow_lite/framework/autograd.h"

namespace oneflow_lite {

namespace F = functional;

inline Tensor FromList(const Shape& shape, std::initializer_list<float> values,
                       bool requires_grad = false) {
  Tensor t = Tensor::Empty(shape, DType::kFloat32, Device{}).value();
  std::copy(values.begin(), values.end(), t.data<float>());
  if (requires_grad) EXPECT_TRUE(autograd::SetRequiresGrad(t, true).ok());
  return t;
}

inline std::vector<float> ToList(const Tensor& t) {
  const Tensor dense = F::Contiguous(t.Detach()).value();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

inline void ExpectList(const Tensor& t, std::vector<float> expected) {
  ASSERT_TRUE(t.defined());
  const std::vector<float> got = ToList(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f) << "at " << i;
}

}  // namespace oneflow_lite
