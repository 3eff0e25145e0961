// SPDX-License-Identifier: Apache-2.0
//
// Dropout, forward and backward. Where each element has its own draw and those of a counter lie
// side by side, a thread has the elements of kCounters of them, which share their keys, in accesses
// of 16 bytes; else a pack of 16 bytes whose draws are wherever they are. The gradient reads seed
// and offset where forward wrote them.
#include "primitive/cuda/random/launch.h"
#include "primitive/cuda/random/philox.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T, bool kBackward>
struct DropoutRun {
  using C = ComputeType<T>;
  RandomArguments state;
  uint64_t* drawn;
  uint32_t threshold;
  C scale, kept, dropped;
  int64_t inner;
  int64_t run, middle, middle_step, outer_step, start;
  const T* x;
  T* y;

  // DropoutNumbers::PlaceOf
  __device__ int64_t PlaceOf(int64_t i) const {
    if (run == 0) return start + i;
    const int64_t r = i / run;
    return start + r / middle * outer_step + r % middle * middle_step + i % run;
  }
  // Whether elements [i, i + count) are neighbours there too.
  __device__ bool AreNeighbours(int64_t i, int count) const {
    return run == 0 || i % run + count <= run;
  }

  __device__ void Begin(bool first, uint64_t* seed, uint64_t* offset) const {
    if constexpr (kBackward) {
      *seed = drawn[0], *offset = drawn[1];
    } else {
      *seed = state.seed, *offset = state.offset;
      if (state.shift) *seed += state.shift[0], *offset += state.shift[1];
      if (first) drawn[0] = *seed, drawn[1] = *offset;
    }
  }

  __device__ T Element(T v, uint32_t bits) const {
    const C stretched = Stretched(ConvertTo<C>(v), scale, kept);
    return ConvertTo<T>(bits >> 8 >= threshold ? stretched : dropped);
  }

  template <int N>
  __device__ void Run(int64_t i) const {
    uint64_t seed, offset;
    Begin(i == 0, &seed, &offset);
    Pack<T, N> pack = LoadPack<N>(x + i);
    const int64_t place = PlaceOf(i);
    const bool neighbours = AreNeighbours(i, N);
    if (N % 4 == 0 && inner == 1 && neighbours && place % 4 == 0) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        const PhiloxResult r = Philox(seed, offset + static_cast<uint64_t>(place + k) / 4);
#pragma unroll
        for (int w = 0; w < 4 && k + w < N; ++w) pack.v[k + w] = Element(pack.v[k + w], r.v[w]);
      }
    } else if (const int64_t first = DrawOf(place); neighbours && first == DrawOf(place + N - 1)) {
      const uint32_t bits = BitsOf(seed, offset, first);
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = Element(pack.v[k], bits);
    } else {
#pragma unroll 1
      for (int k = 0; k < N; ++k) {
        const int64_t draw = DrawOf(neighbours ? place + k : PlaceOf(i + k));
        y[i + k] = Element(x[i + k], BitsOf(seed, offset, draw));
      }
      return;
    }
    StoreHalves(y + i, pack);
  }
  // Of more than 16 bytes the halves one after the other.
  template <int N>
  static __device__ void StoreHalves(T* p, const Pack<T, N>& pack) {
    if constexpr (sizeof(pack) > kPackBytes) {
      Pack<T, N / 2> half;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        memcpy(&half, &pack.v[h * (N / 2)], sizeof(half));
        StorePack<N / 2>(p + h * (N / 2), half);
      }
    } else {
      StorePack<N>(p, pack);
    }
  }
  __device__ int64_t DrawOf(int64_t i) const {
    if (((i | inner) >> 32) == 0) return static_cast<uint32_t>(i) / static_cast<uint32_t>(inner);
    return i / inner;
  }
  static __device__ uint32_t BitsOf(uint64_t seed, uint64_t offset, int64_t draw) {
    const PhiloxResult r = Philox(seed, offset + static_cast<uint64_t>(draw) / 4);
    const int w = static_cast<int>(draw & 3);
    return w < 2 ? (w == 0 ? r.v[0] : r.v[1]) : (w == 2 ? r.v[2] : r.v[3]);
  }
};

constexpr int kCounters = 4;

// The draws of element i are those of start + i, a multiple of 4 where i is one; x and y begin at
// 16 bytes. A thread's elements are kTurns groups of kPack; all are read before any is written, and
// before the seed is asked for, which waits for memory in the gradient.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kElementwiseThreads)
    DenseKernel(int64_t n, const __grid_constant__ DropoutRun<T, kBackward> run) {
  constexpr int kPack = kPackSize<T> < 4 ? 4 : kPackSize<T>, kTurns = 4 * kCounters / kPack;
  const int64_t first = int64_t{blockIdx.x} * kTurns * kElementwiseThreads + threadIdx.x;
  Pack<T, kPack> packs[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t i = (first + turn * kElementwiseThreads) * kPack;
    if (i + kPack <= n) packs[turn] = LoadAlignedPack<kPack>(run.x + i);
  }
  uint64_t seed, offset;
  run.Begin(first == 0, &seed, &offset);
  const PhiloxKeys keys(seed);
  const uint64_t begin = offset + static_cast<uint64_t>(run.start / 4 + first * (kPack / 4));
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t i = (first + turn * kElementwiseThreads) * kPack;
    if (i + kPack > n) {
#pragma unroll 1
      for (int64_t j = i; j < n; ++j) {
        run.y[j] = run.Element(run.x[j], run.BitsOf(seed, offset, run.start + j));
      }
      continue;
    }
    Pack<T, kPack>& pack = packs[turn];
#pragma unroll
    for (int k = 0; k < kPack; k += 4) {
      const PhiloxResult r = keys.Draw(begin + (turn * kElementwiseThreads * kPack + k) / 4);
#pragma unroll
      for (int w = 0; w < 4; ++w) pack.v[k + w] = run.Element(pack.v[k + w], r.v[w]);
    }
    if constexpr (sizeof(pack) > kPackBytes) {
      run.StoreHalves(run.y + i, pack);
    } else {
      StoreAlignedPack(run.y + i, pack);
    }
  }
}
// Whether 16 bytes begin at p.
bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kPackBytes == 0; }

template <class T, bool kBackward>
cudaError_t LaunchDropout(int64_t n, const DropoutArguments& a, const void* x, uint64_t* drawn,
                          void* y, cudaStream_t stream) {
  using Run = DropoutRun<T, kBackward>;
  using C = typename Run::C;
  const Run run{a.state,
                drawn,
                a.threshold,
                static_cast<C>(a.scale),
                static_cast<C>(kBackward ? 0 : a.kept),
                static_cast<C>(kBackward ? 0 : a.dropped),
                a.inner,
                a.run,
                a.middle,
                a.middle_step,
                a.outer_step,
                a.start,
                static_cast<const T*>(x),
                static_cast<T*>(y)};
  if (a.inner == 1 && a.run == 0 && a.start % 4 == 0 && IsAligned(x) && IsAligned(y)) {
    if (n <= 0) return cudaSuccess;
    const int64_t blocks = CeilDiv(n, int64_t{4 * kCounters} * kElementwiseThreads);
    return Launch(DenseKernel<T, kBackward>, blocks, kElementwiseThreads, 0, stream, n, run);
  }
  // float64 takes 4 elements too, which share a counter.
  return ForPacks<(kPackSize<T> < 4 ? 4 : kPackSize<T>)>(n, run, stream);
}

template <class T>
cudaError_t LaunchBackward(int64_t n, const DropoutArguments& a, const void* dy,
                           const uint64_t* drawn, void* dx, cudaStream_t stream) {
  return LaunchDropout<T, true>(n, a, dy, const_cast<uint64_t*>(drawn), dx, stream);
}

}  // namespace

DropoutLaunchers FindDropout(DType dtype) {
  return VisitDeviceFloating<DropoutLaunchers>(dtype, [](auto tag) -> DropoutLaunchers {
    using T = typename decltype(tag)::type;
    return {&LaunchDropout<T, false>, &LaunchBackward<T>};
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
