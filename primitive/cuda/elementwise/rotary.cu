// SPDX-License-Identifier: Apache-2.0
//
// A thread has a pack of a head's first half and the same one of the second.
#include "primitive/cuda/elementwise/rotary_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostUnits = int64_t{1} << 30;  // of a launch, so that 32 bits count them

template <class T>
struct RotaryRows {
  using C = ComputeType<T>;
  const T* x;
  T* y;
  const C *cos, *sin;
  int64_t features, cos_stride, sin_stride, first_row;
  int half, rotated_heads;
  Divisor units_of_row, units_of_head, length;
  C sign;
};

// N numbers in accesses of up to 16 bytes.
template <int N, class C>
__device__ __forceinline__ void LoadNumbers(const C* p, C (&v)[N]) {
  constexpr int kEach = N < kPackSize<C> ? N : kPackSize<C>;
#pragma unroll
  for (int i = 0; i < N; i += kEach) {
    const Pack<C, kEach> part = LoadPack<kEach>(p + i);
#pragma unroll
    for (int j = 0; j < kEach; ++j) v[i + j] = part.v[j];
  }
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads)
    RotaryKernel(const __grid_constant__ RotaryRows<T> p, uint32_t units) {
  using C = ComputeType<T>;
  const uint32_t unit = blockIdx.x * kThreads + threadIdx.x;
  if (unit >= units) return;
  const uint32_t row = p.units_of_row.Quotient(unit);
  const uint32_t in_row = unit - row * static_cast<uint32_t>(p.units_of_row.value);
  const uint32_t head = p.units_of_head.Quotient(in_row);
  const uint32_t i = (in_row - head * static_cast<uint32_t>(p.units_of_head.value)) * N;
  const int64_t at = (p.first_row + row) * p.features + int64_t{head} * (2 * p.half) + i;
  Pack<T, N> first = LoadPack<N>(p.x + at), second = LoadPack<N>(p.x + at + p.half);
  if (static_cast<int>(head) < p.rotated_heads) {
    const int64_t place = (p.first_row + row) % p.length.value;
    C cos[N], sin[N];
    LoadNumbers<N>(p.cos + place * p.cos_stride + i, cos);
    LoadNumbers<N>(p.sin + place * p.sin_stride + i, sin);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C a = ConvertTo<C>(first.v[k]), b = ConvertTo<C>(second.v[k]), s = p.sign * sin[k];
      first.v[k] = ConvertTo<T>(a * cos[k] - b * s);
      second.v[k] = ConvertTo<T>(b * cos[k] + a * s);
    }
  }
  StorePack(p.y + at, first);
  StorePack(p.y + at + p.half, second);
}

template <int N, class T>
cudaError_t LaunchPacks(const RotaryShape& s, RotaryRows<T> p, cudaStream_t stream) {
  p.units_of_head = Divisor(s.half / N);
  p.units_of_row = Divisor(s.features / 2 / N);
  const int64_t rows_at_once = kMostUnits / p.units_of_row.value;
  if (rows_at_once < 1) return cudaErrorInvalidValue;  // the heads of a token have 2^31 features
  for (p.first_row = 0; p.first_row < s.rows; p.first_row += rows_at_once) {
    const int64_t rows = s.rows - p.first_row < rows_at_once ? s.rows - p.first_row : rows_at_once;
    const int64_t units = rows * p.units_of_row.value;
    const cudaError_t error = Launch(RotaryKernel<N, T>, CeilDiv(units, int64_t{kThreads}),
                                     kThreads, 0, stream, p, static_cast<uint32_t>(units));
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class T>
cudaError_t LaunchRotary(const RotaryShape& s, const void* x, const void* cos, const void* sin,
                         void* y, cudaStream_t stream) {
  using C = ComputeType<T>;
  if (s.rows <= 0 || s.features <= 0) return cudaSuccess;
  RotaryRows<T> p;
  p.x = static_cast<const T*>(x);
  p.y = static_cast<T*>(y);
  p.cos = static_cast<const C*>(cos);
  p.sin = static_cast<const C*>(sin);
  p.features = s.features;
  p.cos_stride = s.cos_stride;
  p.sin_stride = s.sin_stride;
  p.half = static_cast<int>(s.half);
  p.rotated_heads = static_cast<int>(s.rotated / (2 * s.half));
  p.length = Divisor(s.length);
  p.sign = s.inverse ? C(-1) : C(1);
  constexpr int N = kPackSize<T>;
  const auto address = [](const void* q) { return reinterpret_cast<uintptr_t>(q); };
  const bool aligned = (address(x) | address(y) | address(cos) | address(sin)) % kPackBytes == 0;
  return aligned && s.half % N == 0 && (s.cos_stride | s.sin_stride) % kPackSize<C> == 0
             ? LaunchPacks<N>(s, p, stream)
             : LaunchPacks<1>(s, p, stream);
}

}  // namespace

RotaryLauncher FindRotary(DType dtype) {
  return VisitDeviceFloating<RotaryLauncher>(dtype, [](auto tag) -> RotaryLauncher {
    return &LaunchRotary<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
