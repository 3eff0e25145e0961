// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

struct MaxFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    using A = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;
    return {&ReduceWorkspace<T, A>, &LaunchReduce<T, T, A, MaxOp, false>};
  }
};

// A value and where it stands. The first maximum, or the first NaN, wins.
template <class A>
struct Candidate {
  A value;
  int64_t index;
};
struct Better {
  template <class A>
  __device__ __forceinline__ Candidate<A> operator()(const Candidate<A>& a,
                                                     const Candidate<A>& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool equal = a.value == b.value || (a_nan && b_nan);
    if (equal) return a.index < b.index ? a : b;
    return a_nan || (!b_nan && a.value > b.value) ? a : b;
  }
};
template <class A>
__device__ __forceinline__ Candidate<A> ShuffleXor(Candidate<A> c, int mask) {
  return {__shfl_xor_sync(0xffffffffu, c.value, mask), __shfl_xor_sync(0xffffffffu, c.index, mask)};
}
// Loses against every element.
template <class A>
__device__ __forceinline__ Candidate<A> NoCandidate() {
  return {LowestOf<A>(), INT64_MAX};
}

template <class T, class A>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ArgMaxRowsKernel(const T* x, int64_t* index, int64_t rows, int64_t axis) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Candidate<A> best = NoCandidate<A>();
    for (int64_t i = threadIdx.x; i < axis; i += blockDim.x) {
      best = Better{}(best, Candidate<A>{ConvertTo<A>(x[row * axis + i]), i});
    }
    best = block.Reduce(best, Better{}, NoCandidate<A>());
    if (threadIdx.x == 0) index[row] = best.index;
  }
}

// A thread per column.
template <class T, class A>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ArgMaxColumnsKernel(const T* x, int64_t* index, ReduceProblem p) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.outer * p.inner;
       i += step) {
    const int64_t outer = i / p.inner;
    const T* column = x + outer * p.axis * p.inner + (i - outer * p.inner);
    Candidate<A> best = NoCandidate<A>();
    for (int64_t a = 0; a < p.axis; ++a) {
      best = Better{}(best, Candidate<A>{ConvertTo<A>(column[a * p.inner]), a});
    }
    index[i] = best.index;
  }
}

template <class T, class A>
cudaError_t LaunchArgMax(const ReduceProblem& p, const void* x, int64_t* index,
                         cudaStream_t stream) {
  if (p.outer <= 0 || p.axis <= 0 || p.inner <= 0) return cudaSuccess;
  constexpr int kThreads = ReducePolicy::kThreads;
  const T* in = static_cast<const T*>(x);
  if (p.inner == 1) {
    // Narrow rows take a warp's worth of threads.
    const int threads = p.axis <= ReducePolicy::kWarpAxis ? kWarp : kThreads;
    return Launch(ArgMaxRowsKernel<T, A>, p.outer, threads, 0, stream, in, index, p.outer, p.axis);
  }
  return Launch(ArgMaxColumnsKernel<T, A>, CeilDiv(p.outer * p.inner, kThreads), kThreads, 0,
                stream, in, index, p);
}

}  // namespace

ReduceLaunchers FindMax(DType in) { return VisitDeviceAll<ReduceLaunchers>(in, MaxFinder{}); }

ArgMaxLauncher FindArgMax(DType dtype) {
  return VisitDeviceAll<ArgMaxLauncher>(dtype, [](auto tag) -> ArgMaxLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchArgMax<T, std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
