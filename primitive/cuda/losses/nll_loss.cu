// SPDX-License-Identifier: Apache-2.0
//
// One thread per row: a gather forward, a scatter into zeroed memory backward.
#include "primitive/cuda/losses/nll_loss_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Where the row's target element lies; -1 where the target is no class.
__device__ __forceinline__ int64_t TargetOffset(const NllProblem& p, int64_t row, int64_t target) {
  if (target < 0 || target >= p.classes) return -1;
  const int64_t outer = row / p.inner;
  return (outer * p.classes + target) * p.inner + (row - outer * p.inner);
}

template <class T>
struct NllForward {
  NllProblem p;
  const T* logp;
  const int64_t* target;
  const T* class_weight;  // may be null
  T* loss;
  T* row_weight;

  template <int N>
  __device__ void Run(int64_t row) const {
    using C = ComputeType<T>;
    const int64_t t = target[row];
    C weight = 0, value = 0;
    if (t != p.ignore_index) {
      const int64_t at = TargetOffset(p, row, t);
      weight = at < 0 ? C(NAN) : class_weight ? ConvertTo<C>(class_weight[t]) : C(1);
      value = at < 0 ? C(NAN) : -weight * ConvertTo<C>(logp[at]);
    }
    loss[row] = ConvertTo<T>(value);
    row_weight[row] = ConvertTo<T>(weight);
  }
};

template <class T>
struct NllBackward {
  NllProblem p;
  const T* dloss;
  const int64_t* target;
  const T* row_weight;
  T* dlogp;  // zeroed

  template <int N>
  __device__ void Run(int64_t row) const {
    using C = ComputeType<T>;
    const int64_t t = target[row];
    const int64_t at = t == p.ignore_index ? -1 : TargetOffset(p, row, t);
    if (at < 0) return;
    dlogp[at] = ConvertTo<T>(-ConvertTo<C>(row_weight[row]) * ConvertTo<C>(dloss[row]));
  }
};

template <class T>
cudaError_t LaunchNll(const NllProblem& p, const void* logp, const int64_t* target,
                      const void* class_weight, void* loss, void* row_weight, cudaStream_t stream) {
  const NllForward<T> run{p,
                          static_cast<const T*>(logp),
                          target,
                          static_cast<const T*>(class_weight),
                          static_cast<T*>(loss),
                          static_cast<T*>(row_weight)};
  return ForPacks<1>(p.outer * p.inner, run, stream);
}

template <class T>
cudaError_t LaunchNllBackward(const NllProblem& p, const void* dloss, const int64_t* target,
                              const void* row_weight, void* dlogp, cudaStream_t stream) {
  const int64_t n = p.outer * p.classes * p.inner;
  if (n <= 0) return cudaSuccess;
  const cudaError_t error = cudaMemsetAsync(dlogp, 0, n * sizeof(T), stream);
  if (error != cudaSuccess) return error;
  const NllBackward<T> run{p, static_cast<const T*>(dloss), target,
                           static_cast<const T*>(row_weight), static_cast<T*>(dlogp)};
  return ForPacks<1>(p.outer * p.inner, run, stream);
}

}  // namespace

NllLaunchers FindNll(DType dtype) {
  return VisitDeviceFloating<NllLaunchers>(dtype, [](auto tag) {
    using T = typename decltype(tag)::type;
    return NllLaunchers{&LaunchNll<T>, &LaunchNllBackward<T>};
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
