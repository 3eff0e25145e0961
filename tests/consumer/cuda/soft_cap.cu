// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <vector>

#include "soft_cap.cuh"

namespace ofl = oneflow_lite::cuda;

namespace {

constexpr int64_t kRows = 3;
constexpr int64_t kWidths[] = {1001, 70001};  // a block's, a cluster's where there are clusters
constexpr float kCap = 5;

cudaError_t Run(const std::vector<__half>& x, int64_t cols, std::vector<__half>* y) {
  __half *device_x = nullptr, *device_y = nullptr;
  const size_t bytes = x.size() * sizeof(__half);
  if (cudaError_t e = cudaMalloc(&device_x, bytes)) return e;
  if (cudaError_t e = cudaMalloc(&device_y, bytes)) return e;
  if (cudaError_t e = cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyDefault)) return e;

  ofl::DeviceLimits limits;
  if (cudaError_t e = ofl::QueryDeviceLimits(0, &limits)) return e;
  const SoftCapLoad load{{device_x, cols}, kCap};
  const ofl::DirectStore<__half> store{device_y, cols};
  if (cudaError_t e = ofl::LaunchSoftmax<false>(load, store, kRows, cols, limits, nullptr)) {
    return e;
  }
  if (cudaError_t e = cudaMemcpy(y->data(), device_y, bytes, cudaMemcpyDefault)) return e;
  cudaFree(device_x);
  return cudaFree(device_y);
}

// The largest relative error of an element; infinity where the launch failed.
double ErrorOf(int64_t cols) {
  std::vector<__half> x(kRows * cols), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = __float2half(20 * std::sin(static_cast<float>(i)));
  if (cudaError_t error = Run(x, cols, &y)) {
    std::printf("failed: %s\n", cudaGetErrorString(error));
    return INFINITY;
  }
  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    std::vector<double> e(cols);
    for (int64_t i = 0; i < cols; ++i) {
      e[i] = std::exp(kCap * std::tanh(__half2float(x[row * cols + i]) / kCap));
      sum += e[i];
    }
    for (int64_t i = 0; i < cols; ++i) {
      // Small results are multiples of the smallest half.
      const double want = e[i] / sum, size = std::fmax(want, 6.2e-5);
      const double error = std::abs(__half2float(y[row * cols + i]) - want) / size;
      if (!(error <= largest)) largest = error;  // not a number either
    }
  }
  return largest;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU here\n");
    return 77;
  }
  bool right = true;
  for (const int64_t cols : kWidths) {
    const double error = ErrorOf(cols);
    std::printf("%d columns, largest relative error: %g\n", static_cast<int>(cols), error);
    right = right && error <= 1.1e-3;  // one step of float16
  }
  return right ? 0 : 1;
}
