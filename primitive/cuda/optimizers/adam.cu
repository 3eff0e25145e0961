// SPDX-License-Identifier: Apache-2.0
//
// Steps of Adam: every element of every list is read once and written once, by one launch for up to
// kMaxTensors parameters; a second, small one counts the steps on where the device does that.
#include "primitive/cuda/optimizers/adam_launch.h"
#include "primitive/cuda/optimizers/multi_tensor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

enum AdamList { kParam, kGrad, kExpAvg, kExpAvgSq, kMaxExpAvgSq, kMaster, kStep, kAdamLists };
using AdamTable = TensorTable<kAdamLists>;

template <class T>
struct AdamStep {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<C>;
  AdamProblem n;

  __device__ void Run(const AdamTable& table, int tensor, int64_t begin, int64_t end) const {
    if (n.found_inf && *n.found_inf != 0) return;
    __shared__ AdamFactors<C> factors;
    if (threadIdx.x == 0) {
      const auto* step = static_cast<const double*>(table.data[kStep][tensor]);
      factors = FactorsOf<C>(n.device_lr ? *n.device_lr : n.lr, n.beta1, n.beta2, n.eps,
                             n.weight_decay, n.decoupled, n.maximize,
                             n.grad_scale ? *n.grad_scale : 1.0, step ? *step + 1 : double(n.step));
    }
    __syncthreads();
    const AdamFactors<C> f = factors;
    for (int64_t i = begin + int64_t{threadIdx.x} * N; i < end; i += kTensorThreads * N) {
      if (i + N <= end) {
        StepPack<N>(table, tensor, i, f);
      } else {
        for (int64_t j = i; j < end; ++j) StepPack<1>(table, tensor, j, f);
      }
    }
  }

  template <int M>
  __device__ __forceinline__ static void StepPack(const AdamTable& table, int tensor, int64_t i,
                                                  const AdamFactors<C>& f) {
    T* param = static_cast<T*>(table.data[kParam][tensor]) + i;
    C* mean = static_cast<C*>(table.data[kExpAvg][tensor]) + i;
    C* square = static_cast<C*>(table.data[kExpAvgSq][tensor]) + i;
    C* most = static_cast<C*>(table.data[kMaxExpAvgSq][tensor]);
    C* master = static_cast<C*>(table.data[kMaster][tensor]);
    Pack<C, M> g =
        ConvertPack<C>(LoadPack<M>(static_cast<const T*>(table.data[kGrad][tensor]) + i));
    Pack<C, M> m = LoadPack<M>(mean), v = LoadPack<M>(square), before;
    Pack<C, M> p = master ? LoadPack<M>(master + i) : ConvertPack<C>(LoadPack<M>(param));
    if (most) before = LoadPack<M>(most + i);
#pragma unroll
    for (int k = 0; k < M; ++k) {
      C x = g.v[k] * f.grad;
      if (f.l2 != 0) x += f.l2 * p.v[k];
      m.v[k] = f.keep1 * m.v[k] + f.add1 * x;
      const C scaled = f.add2 * x;
      v.v[k] = f.keep2 * v.v[k] + scaled * scaled;
      C largest = v.v[k];
      if (most) {
        if (before.v[k] > largest) largest = before.v[k];  // a NaN of v stays
        before.v[k] = largest;
      }
      p.v[k] = p.v[k] * f.decay - f.rate * (m.v[k] / (f.root * sqrt(largest) + f.eps));
    }
    StorePack<M>(mean, m);
    StorePack<M>(square, v);
    if (most) StorePack<M>(most + i, before);
    if (master) StorePack<M>(master + i, p);
    StorePack<M>(param, ConvertPack<T>(p));
  }
};

__global__ void CountStepsKernel(const __grid_constant__ AdamTable table, const float* found_inf) {
  if (found_inf && *found_inf != 0) return;
  for (int i = static_cast<int>(threadIdx.x); i < table.count; i += kTensorThreads) {
    if (table.data[kStep][i]) *static_cast<double*>(table.data[kStep][i]) += 1;
  }
}

template <class T>
cudaError_t LaunchAdam(const AdamProblem& p, const AdamTensors* tensors, int64_t count,
                       cudaStream_t stream) {
  const AdamStep<T> step{p};
  AdamTable table;
  for (int64_t i = 0; i < count;) {
    bool counts = false;
    for (table.count = 0; i < count && table.count < kMaxTensors; ++i) {
      const AdamTensors& t = tensors[i];
      const int k = table.count++;
      table.numel[k] = t.numel;
      table.data[kParam][k] = t.param;
      table.data[kGrad][k] = const_cast<void*>(t.grad);
      table.data[kExpAvg][k] = t.exp_avg;
      table.data[kExpAvgSq][k] = t.exp_avg_sq;
      table.data[kMaxExpAvgSq][k] = t.max_exp_avg_sq;
      table.data[kMaster][k] = t.master;
      table.data[kStep][k] = t.step;
      counts = counts || t.step;
    }
    cudaError_t error = ForTensors(table, step, stream);
    if (error == cudaSuccess && counts) {
      error = Launch(CountStepsKernel, 1, kTensorThreads, 0, stream, table, p.found_inf);
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

AdamLauncher FindAdam(DType dtype) {
  return VisitDeviceFloating<AdamLauncher>(
      dtype, [](auto tag) -> AdamLauncher { return &LaunchAdam<typename decltype(tag)::type>; });
}

}  // namespace cuda
}  // namespace oneflow_lite
