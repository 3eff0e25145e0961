// SPDX-License-Identifier: Apache-2.0
// The row kernels from one header: nvcc -std=c++17 -arch=native -I<where it lies> header.cu
#include <stdio.h>

#include "oneflow_lite_rows.cuh"

using namespace oneflow_lite::cuda;

int main() {
  constexpr int64_t kRows = 4, kCols = 50257;
  float *x, *y, last = 0;
  DeviceLimits limits;  // ask once per device and keep them
  cudaError_t error = QueryDeviceLimits(0, &limits);
  if (error == cudaSuccess) error = cudaMalloc(&x, 2 * kRows * kCols * sizeof(float));
  if (error != cudaSuccess) {
    printf("no GPU: %s\n", cudaGetErrorString(error));
    return 77;
  }
  y = x + kRows * kCols;
  cudaMemset(x, 0, kRows * kCols * sizeof(float));  // every logit is 0
  const DirectLoad<float> load{x, kCols};  // the distance of rows; or a functor of your own
  const DirectStore<float> store{y, kCols};
  error = LaunchSoftmax</*kLog=*/false>(load, store, kRows, kCols, limits, /*stream=*/nullptr);
  cudaMemcpy(&last, y + kRows * kCols - 1, sizeof(last), cudaMemcpyDeviceToHost);
  printf("%s: 1 / %g columns\n", cudaGetErrorString(error), 1 / last);
  return error != cudaSuccess || last < 0.99f / kCols || last > 1.01f / kCols;
}
