// SPDX-License-Identifier: Apache-2.0
//
// Losses of one element: packs of 16 bytes, computed in float (double). A sum goes in two launches:
// each block adds up its packs in a fixed order and leaves a partial sum, one block adds those.
#include <utility>

#include "primitive/cuda/losses/loss_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kSumThreads = 256;
constexpr int kSumBlocksPerMultiprocessor = 8;

// The operands of N neighbours; i % period in 32 bits where it fits.
template <LossKind kKind, class T>
struct LossReader {
  using C = ComputeType<T>;
  const T *x, *t, *p;
  int64_t period;
  bool whole_p, short_period;
  C a, b;

  template <int N>
  __device__ __forceinline__ void Read(int64_t i, LossOperands<C> (&o)[N]) const {
    const Pack<T, N> at_x = LoadPack<N>(x + i), at_t = LoadPack<N>(t + i);
    Pack<T, N> at_p;
    if (p && whole_p) at_p = LoadPack<N>(p + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      C third = 1;
      if (p) third = ConvertTo<C>(whole_p ? at_p.v[k] : p[Place(i + k)]);
      o[k] = {ConvertTo<C>(at_x.v[k]), ConvertTo<C>(at_t.v[k]), third, a, b};
    }
  }

 private:
  __device__ __forceinline__ int64_t Place(int64_t i) const {
    return short_period ? static_cast<uint32_t>(i) % static_cast<uint32_t>(period) : i % period;
  }
};

template <LossKind kKind, class T>
LossReader<kKind, T> ReaderOf(const LossArguments& g) {
  using C = ComputeType<T>;
  return {static_cast<const T*>(g.x),
          static_cast<const T*>(g.t),
          static_cast<const T*>(g.p),
          g.period > 0 ? g.period : 1,
          g.period == g.n,
          g.n < (int64_t{1} << 32),
          static_cast<C>(g.a),
          static_cast<C>(g.b)};
}

template <LossKind kKind, class T>
struct LossElements {
  using C = ComputeType<T>;
  LossReader<kKind, T> reader;
  LossOrder order;
  C scale;
  const T* dy;
  bool one_dy;
  T* y;

  template <int N>
  __device__ __forceinline__ void Run(int64_t i) const {
    LossOperands<C> o[N];
    reader.template Read<N>(i, o);
    Pack<T, N> flow, result;
    if (dy && !one_dy) flow = LoadPack<N>(dy + i);
    const C factor = dy && one_dy ? scale * ConvertTo<C>(*dy) : scale;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      C v = LossTerm<kKind, C>(order, o[k]) * factor;
      if (dy && !one_dy) v *= ConvertTo<C>(flow.v[k]);
      result.v[k] = ConvertTo<T>(v);
    }
    StorePack(y + i, result);
  }
};

__device__ __forceinline__ double BlockSum(double v) {
  __shared__ double warps[kSumThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (int w = 0; w < kSumThreads / 32; ++w) sum += warps[w];
  }
  return sum;  // of thread 0
}

template <LossKind kKind, class T>
__global__ void __launch_bounds__(kSumThreads)
    LossSumKernel(int64_t n, LossReader<kKind, T> reader, double* partial) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  const int64_t step = int64_t{gridDim.x} * kSumThreads * N;
  double sum = 0;
  for (int64_t i = (int64_t{blockIdx.x} * kSumThreads + threadIdx.x) * N; i < n; i += step) {
    C part = 0;  // of a pack
    if (i + N <= n) {
      LossOperands<C> o[N];
      reader.template Read<N>(i, o);
#pragma unroll
      for (int k = 0; k < N; ++k) part += LossTerm<kKind, C>(LossOrder::kValue, o[k]);
    } else {
      for (int64_t j = i; j < n; ++j) {
        LossOperands<C> o[1];
        reader.template Read<1>(j, o);
        part += LossTerm<kKind, C>(LossOrder::kValue, o[0]);
      }
    }
    sum += part;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kSumThreads)
    FinishLossKernel(int64_t blocks, const double* partial, double scale, T* y) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += kSumThreads) sum += partial[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *y = ConvertTo<T>(static_cast<ComputeType<T>>(sum * scale));
}

template <LossKind kKind, class T>
cudaError_t LaunchElements(const LossArguments& g, cudaStream_t stream) {
  const LossElements<kKind, T> run{
      ReaderOf<kKind, T>(g),       g.order,  static_cast<ComputeType<T>>(g.scale),
      static_cast<const T*>(g.dy), g.one_dy, static_cast<T*>(g.y)};
  return ForPacks<kPackSize<T>>(g.n, run, stream);
}

template <LossKind kKind, class T>
cudaError_t LaunchSum(const LossArguments& g, int64_t blocks, double* partial,
                      cudaStream_t stream) {
  if (blocks > 0) {
    const cudaError_t error = Launch(LossSumKernel<kKind, T>, blocks, kSumThreads, 0, stream, g.n,
                                     ReaderOf<kKind, T>(g), partial);
    if (error != cudaSuccess) return error;
  }
  return Launch(FinishLossKernel<T>, 1, kSumThreads, 0, stream, blocks, partial, g.scale,
                static_cast<T*>(g.y));
}

template <class T, int... kKinds>
LossLaunchers FindIn(LossKind kind, std::integer_sequence<int, kKinds...>) {
  LossLaunchers found;
  const bool matched[] = {(kind == static_cast<LossKind>(kKinds)
                               ? (found = {&LaunchElements<static_cast<LossKind>(kKinds), T>,
                                           &LaunchSum<static_cast<LossKind>(kKinds), T>},
                                  true)
                               : false)...};
  static_cast<void>(matched);
  return found;
}

}  // namespace

int64_t LossBlocks(int64_t n, DType dtype, int multiprocessors) {
  const int64_t pack = kPackBytes / static_cast<int64_t>(SizeOf(dtype));
  const int64_t needed = CeilDiv(n, pack * kSumThreads);
  const int64_t most = int64_t{multiprocessors} * kSumBlocksPerMultiprocessor;
  return needed < most ? needed : most;
}

LossLaunchers FindLoss(LossKind kind, DType dtype) {
  return VisitDeviceFloating<LossLaunchers>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return FindIn<T>(kind, std::make_integer_sequence<int, kLossKinds>{});
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
