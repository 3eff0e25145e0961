// SPDX-License-Identifier: Apache-2.0
//
// Mantissas and exponents in one launch. A thread of dense operands has 16 bytes of exponents: four
// elements, so that a warp's accesses are dense.
#include "primitive/cuda/elementwise/frexp_launch.h"
#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

__device__ __forceinline__ float Split(float x, int32_t* exponent) {
  *exponent = fast::ExponentOf(x);
  return fast::MantissaOf(x);
}
__device__ __forceinline__ double Split(double x, int32_t* exponent) {
  int power = 0;
  const double mantissa = frexp(x, &power);
  *exponent = isfinite(x) ? power : 0;
  return mantissa;
}

template <class T>
struct SplitElements {
  using C = ComputeType<T>;
  const T* x;
  T* mantissa;
  int32_t* exponent;

  template <int N>
  __device__ __forceinline__ void Run(int64_t i) const {
    const Pack<T, N> given = LoadPack<N>(x + i);
    Pack<T, N> parts;
    Pack<int32_t, N> powers;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      parts.v[k] = ConvertTo<T>(Split(ConvertTo<C>(given.v[k]), &powers.v[k]));
    }
    StorePack<N>(mantissa + i, parts);
    StorePack<N>(exponent + i, powers);
  }
  __device__ __forceinline__ void At(const int64_t (&offsets)[3]) const {
    const C part = Split(ConvertTo<C>(x[offsets[0]]), exponent + offsets[2]);
    mantissa[offsets[1]] = ConvertTo<T>(part);
  }
};

template <class T>
cudaError_t LaunchFrexp(const Strided<3>& g, const void* x, void* mantissa, int32_t* exponent,
                        cudaStream_t stream) {
  const SplitElements<T> split{static_cast<const T*>(x), static_cast<T*>(mantissa), exponent};
  if (!g.contiguous) return ForElements<3>(g, split, stream);
  return ForPacks < sizeof(T) == 8 ? 2 : 4 > (g.numel, split, stream);
}

}  // namespace

FrexpLauncher FindFrexp(DType dtype) {
  return VisitDeviceFloating<FrexpLauncher>(
      dtype, [](auto tag) -> FrexpLauncher { return &LaunchFrexp<typename decltype(tag)::type>; });
}

}  // namespace cuda
}  // namespace oneflow_lite
