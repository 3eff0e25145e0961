// SPDX-License-Identifier: Apache-2.0
//
// A Load functor of a user's: int8 activations with a scale per row, widened as a norm reads them.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norm.cuh"

struct DequantizedLoad {
  using Element = float;
  oneflow_lite::cuda::DirectLoad<int8_t> q;
  const float* scale;  // [rows]

  template <int N>
  __device__ oneflow_lite::cuda::Pack<float, N> Load(int64_t row, int64_t col) const {
    auto v = oneflow_lite::cuda::ConvertPack<float>(q.Load<N>(row, col));
    for (float& x : v.v) x *= scale[row];
    return v;
  }
};
