// SPDX-License-Identifier: Apache-2.0
//
// Products and extremes of rows by their places.
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/moves/index_sorted.cuh"
#include "primitive/cuda/strided/divisor.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// The 16-bit floats are joined in float32 by the caller.
template <class Join>
IndexSumLauncher FindJoin(DType dtype) {
  return VisitDeviceNumeric<IndexSumLauncher>(dtype, [](auto tag) -> IndexSumLauncher {
    using T = typename decltype(tag)::type;
    constexpr bool kExchanged = !std::is_same_v<Join, MultiplyBy> && sizeof(T) >= 4;
    if constexpr (!std::is_same_v<ComputeType<T>, T> || kExchanged)
      return nullptr;
    else
      return &LaunchSorted<T, Join, 1>;
  });
}

// Places come one after the other in the order of threads; `value` stays where it is beyond what is
// there. The order of values is total, so that their order in time does not matter: a NaN is beyond
// all, and a zero beyond one of the other sign.
template <bool kLarger, class T>
__device__ __forceinline__ bool IsBeyond(T value, T there) {
  if (kLarger ? value > there : value < there) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (there != there) return false;
    if (value != value) return true;
    return value == there && signbit(kLarger ? there : value) > signbit(kLarger ? value : there);
  }
  return false;
}
template <bool kLarger, class T>
__device__ __forceinline__ void Exchange(T* to, T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, unsigned int, unsigned long long>;
  const auto as_value = [](Bits bits) {
    T v;
    memcpy(&v, &bits, sizeof(T));
    return v;
  };
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) value = static_cast<T>(NAN);  // one of many
  }
  Bits bits, there = *reinterpret_cast<volatile Bits*>(to);
  memcpy(&bits, &value, sizeof(T));
  while (IsBeyond<kLarger>(value, as_value(there))) {
    const Bits before = atomicCAS(reinterpret_cast<Bits*>(to), there, bits);
    if (before == there) return;
    there = before;
  }
}

constexpr int kExchanges = 4;  // of a thread

template <bool kLarger, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    ExtremesKernel(RowsProblem p, Divisor inner, const int64_t* index, const T* x, T* y) {
  const int64_t first = int64_t{blockIdx.x} * (kExchanges * kElementwiseThreads) + threadIdx.x;
  const int64_t total = p.count * p.inner;
  int64_t to[kExchanges];
  T value[kExchanges];
#pragma unroll
  for (int k = 0; k < kExchanges; ++k) {
    const int64_t i = first + k * kElementwiseThreads;
    to[k] = -1;
    if (i >= total) continue;
    const int64_t row = inner.QuotientOfAny(i), column = i - row * p.inner;
    const int64_t place = FindPlace(index[row], p.size, p.from_end);
    if (place >= 0) to[k] = place * p.inner + column;
    value[k] = x[row * p.row_stride + column];
  }
#pragma unroll
  for (int k = 0; k < kExchanges; ++k) {
    if (to[k] >= 0) Exchange<kLarger>(y + to[k], value[k]);
  }
}
template <bool kLarger, class T>
cudaError_t LaunchExtremes(const RowsProblem& p, const int64_t* index, const void* x, void* y,
                           cudaStream_t stream) {
  if (p.count <= 0 || p.inner <= 0 || p.size <= 0) return cudaSuccess;
  return Launch(ExtremesKernel<kLarger, T>,
                CeilDiv(p.count * p.inner, int64_t{kExchanges} * kElementwiseThreads),
                kElementwiseThreads, 0, stream, p, Divisor(p.inner), index,
                static_cast<const T*>(x), static_cast<T*>(y));
}

}  // namespace

IndexSumLauncher FindRowJoin(DType dtype, ScatterStore store) {
  switch (store) {
    case ScatterStore::kPut:
      return nullptr;
    case ScatterStore::kAdd:
      return FindIndexSum(dtype);
    case ScatterStore::kMul:
      return FindJoin<MultiplyBy>(dtype);
    case ScatterStore::kMax:
      return FindJoin<Keep<true>>(dtype);
    case ScatterStore::kMin:
      return FindJoin<Keep<false>>(dtype);
  }
  return nullptr;
}

RowExtremesLauncher FindRowExtremes(DType dtype, ScatterStore store) {
  if (store != ScatterStore::kMax && store != ScatterStore::kMin) return nullptr;
  const bool larger = store == ScatterStore::kMax;
  return VisitDeviceNumeric<RowExtremesLauncher>(dtype, [&](auto tag) -> RowExtremesLauncher {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) >= 4)
      return larger ? &LaunchExtremes<true, T> : &LaunchExtremes<false, T>;
    return nullptr;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
