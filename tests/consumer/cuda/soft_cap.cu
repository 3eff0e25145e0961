// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <vector>

#include "soft_cap.cuh"

namespace ofl = oneflow_lite::cuda;

namespace {

constexpr int64_t kRows = 3, kCols = 1001;
constexpr float kCap = 5;

cudaError_t Run(const std::vector<__half>& x, std::vector<__half>* y) {
  __half *device_x = nullptr, *device_y = nullptr;
  const size_t bytes = x.size() * sizeof(__half);
  if (cudaError_t e = cudaMalloc(&device_x, bytes)) return e;
  if (cudaError_t e = cudaMalloc(&device_y, bytes)) return e;
  if (cudaError_t e = cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyDefault)) return e;

  ofl::DeviceLimits limits;
  if (cudaError_t e = ofl::QueryDeviceLimits(0, &limits)) return e;
  const SoftCapLoad load{{device_x, kCols}, kCap};
  const ofl::DirectStore<__half> store{device_y, kCols};
  if (cudaError_t e = ofl::LaunchSoftmax<false>(load, store, kRows, kCols, limits, nullptr)) {
    return e;
  }
  if (cudaError_t e = cudaMemcpy(y->data(), device_y, bytes, cudaMemcpyDefault)) return e;
  cudaFree(device_x);
  return cudaFree(device_y);
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU here\n");
    return 77;
  }
  std::vector<__half> x(kRows * kCols), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = __float2half(20 * std::sin(static_cast<float>(i)));
  const cudaError_t error = Run(x, &y);
  if (error != cudaSuccess) {
    std::printf("failed: %s\n", cudaGetErrorString(error));
    return 1;
  }
  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    std::vector<double> e(kCols);
    for (int64_t i = 0; i < kCols; ++i) {
      e[i] = std::exp(kCap * std::tanh(__half2float(x[row * kCols + i]) / kCap));
      sum += e[i];
    }
    for (int64_t i = 0; i < kCols; ++i) {
      const double error = std::abs(__half2float(y[row * kCols + i]) - e[i] / sum);
      largest = std::fmax(largest, error / (e[i] / sum));
    }
  }
  std::printf("largest relative error: %g\n", largest);
  return largest <= 1.1e-3 ? 0 : 1;  // one step of float16
}
