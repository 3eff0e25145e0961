// SPDX-License-Identifier: Apache-2.0
//
// rms_norm of int8 activations, with a weight, in float16.
#include <cmath>
#include <cstdio>
#include <vector>

#include "dequantized.cuh"

namespace ofl = oneflow_lite::cuda;

namespace {

constexpr int64_t kRows = 3, kCols = 1001;
constexpr float kEps = 1e-5f;

template <class T>
cudaError_t ToDevice(const std::vector<T>& host, T** device) {
  const size_t bytes = host.size() * sizeof(T);
  if (cudaError_t e = cudaMalloc(device, bytes)) return e;
  return cudaMemcpy(*device, host.data(), bytes, cudaMemcpyDefault);
}

cudaError_t Run(const std::vector<int8_t>& q, const std::vector<float>& scale,
                const std::vector<__half>& weight, std::vector<__half>* y) {
  int8_t* device_q;
  float* device_scale;
  __half *device_weight, *device_y;
  if (cudaError_t e = ToDevice(q, &device_q)) return e;
  if (cudaError_t e = ToDevice(scale, &device_scale)) return e;
  if (cudaError_t e = ToDevice(weight, &device_weight)) return e;
  if (cudaError_t e = ToDevice(*y, &device_y)) return e;

  ofl::DeviceLimits limits;
  if (cudaError_t e = ofl::QueryDeviceLimits(0, &limits)) return e;
  const DequantizedLoad load{{device_q, kCols}, device_scale};
  const ofl::DirectStore<__half> store{device_y, kCols};
  ofl::NormExtras<float> extras;
  extras.weight = device_weight;
  extras.eps = kEps;
  if (cudaError_t e =
          ofl::LaunchNormOf<false>(load, store, extras, kRows, kCols, limits, nullptr)) {
    return e;
  }
  if (cudaError_t e = cudaMemcpy(y->data(), device_y, y->size() * 2, cudaMemcpyDefault)) return e;
  for (void* p : {static_cast<void*>(device_q), static_cast<void*>(device_scale),
                  static_cast<void*>(device_weight), static_cast<void*>(device_y)}) {
    if (cudaError_t e = cudaFree(p)) return e;
  }
  return cudaSuccess;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU here\n");
    return 77;
  }
  std::vector<int8_t> q(kRows * kCols);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(i * 37 % 255 - 127);
  const std::vector<float> scale = {0.01f, 0.5f, 3.0f};
  std::vector<__half> weight(kCols), y(q.size());
  for (int64_t i = 0; i < kCols; ++i) weight[i] = __float2half(1 + std::sin(0.1f * i));
  if (cudaError_t e = Run(q, scale, weight, &y)) {
    std::printf("failed: %s\n", cudaGetErrorString(e));
    return 1;
  }
  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < kCols; ++i) {
      squares += std::pow(static_cast<double>(scale[row]) * q[row * kCols + i], 2);
    }
    const double rstd = 1 / std::sqrt(squares / kCols + kEps);
    for (int64_t i = 0; i < kCols; ++i) {
      const double want = scale[row] * q[row * kCols + i] * rstd * __half2float(weight[i]);
      const double error = std::abs(__half2float(y[row * kCols + i]) - want);
      largest = std::fmax(largest, error / std::fmax(std::abs(want), 1e-3));
    }
  }
  std::printf("largest relative error: %g\n", largest);
  return largest <= 1.1e-3 ? 0 : 1;  // one step of float16
}
