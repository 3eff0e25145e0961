// SPDX-License-Identifier: Apache-2.0
//
// What the host side of the CUDA primitives shares: from Stream and Elementwise to plain values,
// and from cudaError_t to Status.
//
//   return RunOn(stream, "unary", [&](cudaStream_t s) { return launcher(n, x, y, s); });
#pragma once

#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/strided/strided.h"
#include "primitive/primitive.h"

namespace oneflow_lite::cuda {

// Whether this library's code has clusters where the device runs it; asked once per device.
bool HasClusterCode(int device);

// What the stream's device and this library's code can do.
inline DeviceLimits LimitsOf(const Stream& stream) {
  const DeviceProperties& p = stream.properties();
  return {.device = stream.device().index,
          .multiprocessors = p.multiprocessors,
          .shared_per_block = static_cast<int>(p.shared_memory_per_block),
          .shared_per_multiprocessor = static_cast<int>(p.shared_memory_per_sm),
          .clusters = p.supports_clusters && HasClusterCode(stream.device().index),
          .cooperative = p.supports_cooperative_launch};
}

// Calls launch(cudaStream_t) with the stream's device current.
template <class F>
Status RunOn(const Stream& stream, const char* primitive, F&& launch) {
  DeviceGuard guard(stream.device().index);
  return CudaStatus(launch(NativeStream(stream)), primitive);
}

// The launchers of the four floats, each compiled in a file of its own.
template <class Launchers>
struct FloatingLaunchers {
  const Launchers *float16, *bfloat16, *float32, *float64;

  // Null where there is no code for the dtype.
  const Launchers* Find(DType dtype) const {
    switch (dtype) {
      case DType::kFloat16:
        return float16;
      case DType::kBFloat16:
        return bfloat16;
      case DType::kFloat32:
        return float32;
      case DType::kFloat64:
        return float64;
      default:
        return nullptr;
    }
  }
};

template <int N>
Strided<N> ToStrided(const Elementwise<N>& g) {
  static_assert(kMaxDims <= kMaxStridedDims);
  Strided<N> s;
  s.ndim = g.ndim;
  s.contiguous = g.contiguous;
  s.numel = g.numel;
  for (int d = 0; d < g.ndim; ++d) {
    const int from = g.ndim - 1 - d;
    s.dims[d] = g.dims[from];
    for (int i = 0; i < N; ++i) s.strides[i][d] = g.strides[i][from];
    if (g.dims[from] < 1 || g.dims[from] >= (int64_t{1} << 31)) continue;
    const auto divisor = static_cast<uint64_t>(g.dims[from]);
    while ((uint64_t{1} << s.shift[d]) < divisor) ++s.shift[d];
    s.multiplier[d] = static_cast<uint32_t>(
        (uint64_t{1} << 32) * ((uint64_t{1} << s.shift[d]) - divisor) / divisor + 1);
  }
  return s;
}

// The caller's number as an element of the dtype.
ScalarBits BitsOf(const Scalar& scalar, DType dtype);

}  // namespace oneflow_lite::cuda
