// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

__global__ void Softplus(const float* x, float* y, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.f) + log1pf(expf(-fabsf(x[i])));
}

void LaunchSoftplus(const float* x, float* y, int64_t n, void* stream) {
  Softplus<<<(n + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, n);
}
