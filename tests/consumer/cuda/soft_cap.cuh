// SPDX-License-Identifier: Apache-2.0
//
// A Load functor of a user's own: softmax of logits that are capped smoothly, cap * tanh(x / cap).
#pragma once

#include "primitive/cuda/softmax.cuh"

struct SoftCapLoad {
  using Element = float;  // what an element is kept in on chip
  oneflow_lite::cuda::DirectLoad<__half> logits;
  float cap;

  template <int N>
  __device__ oneflow_lite::cuda::Pack<float, N> Load(int64_t row, int64_t col) const {
    auto v = oneflow_lite::cuda::ConvertPack<float>(logits.Load<N>(row, col));
    for (float& x : v.v) x = cap * tanhf(x / cap);
    return v;
  }
};
