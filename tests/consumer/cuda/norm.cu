// SPDX-License-Identifier: Apache-2.0
//
// rms_norm of int8 activations, with a weight, in float16.
#include <cmath>
#include <cstdio>
#include <vector>

#include "dequantized.cuh"

namespace ofl = oneflow_lite::cuda;

namespace {

constexpr int64_t kRows = 3;
constexpr int64_t kWidths[] = {1001, 70001};  // a block's, a cluster's where there are clusters
constexpr float kEps = 1e-5f;

template <class T>
cudaError_t ToDevice(const std::vector<T>& host, T** device) {
  const size_t bytes = host.size() * sizeof(T);
  if (cudaError_t e = cudaMalloc(device, bytes)) return e;
  return cudaMemcpy(*device, host.data(), bytes, cudaMemcpyDefault);
}

cudaError_t Run(const std::vector<int8_t>& q, const std::vector<float>& scale,
                const std::vector<__half>& weight, int64_t cols, std::vector<__half>* y) {
  int8_t* device_q;
  float* device_scale;
  __half *device_weight, *device_y;
  if (cudaError_t e = ToDevice(q, &device_q)) return e;
  if (cudaError_t e = ToDevice(scale, &device_scale)) return e;
  if (cudaError_t e = ToDevice(weight, &device_weight)) return e;
  if (cudaError_t e = ToDevice(*y, &device_y)) return e;

  ofl::DeviceLimits limits;
  if (cudaError_t e = ofl::QueryDeviceLimits(0, &limits)) return e;
  const DequantizedLoad load{{device_q, cols}, device_scale};
  const ofl::DirectStore<__half> store{device_y, cols};
  ofl::NormExtras<float> extras;
  extras.weight = device_weight;
  extras.eps = kEps;
  if (cudaError_t e = ofl::LaunchNormOf<false>(load, store, extras, kRows, cols, limits, nullptr)) {
    return e;
  }
  if (cudaError_t e = cudaMemcpy(y->data(), device_y, y->size() * 2, cudaMemcpyDefault)) return e;
  for (void* p : {static_cast<void*>(device_q), static_cast<void*>(device_scale),
                  static_cast<void*>(device_weight), static_cast<void*>(device_y)}) {
    if (cudaError_t e = cudaFree(p)) return e;
  }
  return cudaSuccess;
}

// The largest relative error of an element; infinity where the launch failed.
double ErrorOf(int64_t cols) {
  std::vector<int8_t> q(kRows * cols);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(i * 37 % 255 - 127);
  const std::vector<float> scale = {0.01f, 0.5f, 3.0f};
  std::vector<__half> weight(cols), y(q.size());
  for (int64_t i = 0; i < cols; ++i) weight[i] = __float2half(1 + std::sin(0.1f * i));
  if (cudaError_t e = Run(q, scale, weight, cols, &y)) {
    std::printf("failed: %s\n", cudaGetErrorString(e));
    return INFINITY;
  }
  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < cols; ++i) {
      squares += std::pow(static_cast<double>(scale[row]) * q[row * cols + i], 2);
    }
    const double rstd = 1 / std::sqrt(squares / cols + kEps);
    for (int64_t i = 0; i < cols; ++i) {
      const double want = scale[row] * q[row * cols + i] * rstd * __half2float(weight[i]);
      const double distance = std::abs(__half2float(y[row * cols + i]) - want);
      const double error = distance / std::fmax(std::abs(want), 1e-3);
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
