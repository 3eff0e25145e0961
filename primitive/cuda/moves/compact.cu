// SPDX-License-Identifier: Apache-2.0
//
// Elements where a mask holds, in three launches: each block counts those of its tile, one block
// adds the counts up, each block numbers its own again and hands them on with their numbers.
#include "primitive/cuda/moves/compact_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/word.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kWarps = kElementwiseThreads / 32;
constexpr int kRounds = 16;  // elements of a thread
constexpr int kTile = kRounds * kElementwiseThreads;
constexpr int kScanThreads = 1024;

int64_t TilesOf(int64_t n) { return n > 0 ? CeilDiv(n, int64_t{kTile}) : 1; }

template <class M>
__device__ __forceinline__ bool Holds(M m) {
  return ConvertTo<bool>(m);
}
// Which elements of a tile hold: bit `lane` of held[round] of a warp, for the elements
// (round * kWarps + warp) * 32 + lane.
template <class M>
__device__ __forceinline__ void Vote(int64_t n, int64_t tile, const M* mask,
                                     unsigned (&held)[kRounds]) {
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = tile * kTile + round * kElementwiseThreads + threadIdx.x;
    held[round] = __ballot_sync(0xffffffffu, i < n && Holds(mask[i < n ? i : 0]));
  }
}

template <class M>
__global__ void __launch_bounds__(kElementwiseThreads)
    CountKernel(int64_t n, int64_t tiles, const M* mask, int64_t* counts) {
  __shared__ int of_warps[kWarps];
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    unsigned held[kRounds];
    Vote(n, tile, mask, held);
    int count = 0;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) count += __popc(held[round]);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
      int64_t sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += of_warps[w];
      counts[tile] = sum;
    }
    __syncthreads();
  }
}

// counts[t] = the sum of those before it, counts[tiles] that of all. One block.
__global__ void __launch_bounds__(kScanThreads) OffsetsKernel(int64_t tiles, int64_t* counts) {
  __shared__ int64_t of_warps[kScanThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t before = 0;
  for (int64_t begin = 0; begin < tiles; begin += kScanThreads) {
    const int64_t t = begin + threadIdx.x;
    const int64_t own = t < tiles ? counts[t] : 0;
    int64_t sum = own;
    for (int step = 1; step < 32; step *= 2) {
      const int64_t left = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += left;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    int64_t offset = before;
    for (int w = 0; w < kScanThreads / 32; ++w) {
      if (w < warp) offset += of_warps[w];
      before += of_warps[w];
    }
    if (t < tiles) counts[t] = offset + sum - own;
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[tiles] = before;
}

// Of element i, whether it holds, and how many before it do: f.Put(i, held, k, f.Get(i, held, k)).
// F::kGot elements are loaded before the first of them is stored. f.Rest(k): there is no k-th that
// holds.
template <class M, class F>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    HandOnKernel(int64_t n, int64_t tiles, const M* mask, const int64_t* offsets,
                 const __grid_constant__ F f) {
  __shared__ int first[kRounds * kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    unsigned held[kRounds];
    Vote(n, tile, mask, held);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      if (lane == 0) first[round * kWarps + warp] = __popc(held[round]);
    }
    __syncthreads();
    if (warp == 0) {
      constexpr int kEach = kRounds * kWarps / 32;
      int sums[kEach], total = 0;
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        sums[k] = total;
        total += first[lane * kEach + k];
      }
      int before = total;
      for (int step = 1; step < 32; step *= 2) {
        const int left = __shfl_up_sync(0xffffffffu, before, step);
        if (lane >= step) before += left;
      }
      before -= total;
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kEach; ++k) first[lane * kEach + k] = before + sums[k];
    }
    __syncthreads();
    const int64_t offset = offsets[tile];
    const auto number = [&](int round) {
      return offset + first[round * kWarps + warp] + __popc(held[round] & ((1u << lane) - 1));
    };
#pragma unroll
    for (int begin = 0; begin < kRounds; begin += F::kGot) {
      typename F::Value got[F::kGot];
#pragma unroll
      for (int k = 0; k < F::kGot; ++k) {
        const int round = begin + k;
        const int64_t i = tile * kTile + round * kElementwiseThreads + threadIdx.x;
        if (i < n) got[k] = f.Get(i, (held[round] >> lane & 1) != 0, number(round));
      }
#pragma unroll
      for (int k = 0; k < F::kGot; ++k) {
        const int round = begin + k;
        const int64_t i = tile * kTile + round * kElementwiseThreads + threadIdx.x;
        if (i < n) f.Put(i, (held[round] >> lane & 1) != 0, number(round), got[k]);
      }
    }
    __syncthreads();
  }
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = offsets[tiles] + int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < f.count;
       k += step) {
    f.Rest(k);
  }
}

template <class M, class F>
cudaError_t ForHeld(int64_t n, const M* mask, const F& f, void* workspace, cudaStream_t stream) {
  if (n <= 0 && f.count <= 0) return cudaSuccess;
  const int64_t tiles = TilesOf(n);
  auto* counts = static_cast<int64_t*>(workspace);
  cudaError_t error =
      Launch(CountKernel<M>, tiles, kElementwiseThreads, 0, stream, n, tiles, mask, counts);
  if (error == cudaSuccess) {
    error = Launch(OffsetsKernel, 1, kScanThreads, 0, stream, tiles, counts);
  }
  if (error != cudaSuccess) return error;
  const int64_t* offsets = counts;
  return Launch(HandOnKernel<M, F>, tiles, kElementwiseThreads, 0, stream, n, tiles, mask, offsets,
                f);
}

struct WritePlace {
  int ndim;
  int64_t count;
  int64_t* y;
  Divisor dims[kMaxStridedDims];

  template <class Index>
  __device__ void Write(Index i, int64_t* to) const {
#pragma unroll 1
    for (int d = ndim - 1; d > 0; --d) {
      const Index rest = dims[d].Quotient(i);
      to[d] = static_cast<int64_t>(i - rest * static_cast<Index>(dims[d].value));
      i = rest;
    }
    if (ndim > 0) to[0] = static_cast<int64_t>(i);
  }
  static constexpr int kGot = 1;
  static_assert(kRounds % kGot == 0);
  struct Value {};
  __device__ Value Get(int64_t, bool, int64_t) const { return {}; }
  __device__ void Put(int64_t i, bool held, int64_t k, Value) const {
    if (!held || k >= count) return;
    if (i < (int64_t{1} << 31)) {
      Write(static_cast<uint32_t>(i), y + k * ndim);
    } else {
      Write(i, y + k * ndim);
    }
  }
  __device__ void Rest(int64_t k) const {
    for (int d = 0; d < ndim; ++d) y[k * ndim + d] = 0;
  }
};

template <class T>
struct TakeElement {
  const T* x;
  int64_t count;
  T* y;
  static constexpr int kGot = 8;
  static_assert(kRounds % kGot == 0);
  using Value = T;
  __device__ T Get(int64_t i, bool held, int64_t) const { return held ? x[i] : T(0); }
  __device__ void Put(int64_t, bool held, int64_t k, T value) const {
    if (held && k < count) y[k] = value;
  }
  __device__ void Rest(int64_t k) const { y[k] = T(0); }
};

template <class T>
struct PutElement {
  const T* x;
  const T* src;
  int64_t count;
  T* y;
  static constexpr int kGot = 4;  // with 8, registers would be spilled
  static_assert(kRounds % kGot == 0);
  using Value = T;
  __device__ T Get(int64_t i, bool held, int64_t k) const {
    return held && k < count ? src[k] : x[i];
  }
  __device__ void Put(int64_t i, bool, int64_t, T value) const { y[i] = value; }
  __device__ void Rest(int64_t) const {}
};

}  // namespace

size_t CompactWorkspaceBytes(int64_t n) {
  return static_cast<size_t>(TilesOf(n) + 1) * sizeof(int64_t);
}

cudaError_t LaunchPlaces(DType dtype, const PlacesProblem& p, const void* mask, int64_t* y,
                         void* workspace, cudaStream_t stream) {
  WritePlace write{p.ndim, p.count, y, {}};
  int64_t n = 1;
  for (int d = 0; d < p.ndim; ++d) {
    write.dims[d] = Divisor(p.dims[d]);
    n *= p.dims[d];
  }
  return VisitDeviceAll<cudaError_t>(dtype, [&](auto tag) {
    using M = typename decltype(tag)::type;
    return ForHeld(n, static_cast<const M*>(mask), write, workspace, stream);
  });
}

cudaError_t LaunchMaskedTake(int item, int64_t n, const void* mask, const void* x, int64_t count,
                             void* y, void* workspace, cudaStream_t stream) {
  return VisitWord(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const TakeElement<T> take{static_cast<const T*>(x), count, static_cast<T*>(y)};
    return ForHeld(n, static_cast<const uint8_t*>(mask), take, workspace, stream);
  });
}

cudaError_t LaunchMaskedPut(int item, int64_t n, const void* mask, const void* x, const void* src,
                            int64_t count, void* y, void* workspace, cudaStream_t stream) {
  return VisitWord(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const PutElement<T> put{static_cast<const T*>(x), static_cast<const T*>(src), count,
                            static_cast<T*>(y)};
    return ForHeld(n, static_cast<const uint8_t*>(mask), put, workspace, stream);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
