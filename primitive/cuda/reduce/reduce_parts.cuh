// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of rows and of columns share (reduce.cuh): loads, and the chunks of a result.
#pragma once

#include "primitive/cuda/reduce/states.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

// N elements at a boundary, narrow ones in words.
template <int N, class In>
__device__ __forceinline__ Pack<In, N> LoadWhole(const In* p) {
  if constexpr (N == 1) {
    return {{*p}};
  } else {
    Pack<In, N> pack = LoadAlignedPack<N>(p);
    KeepPacked(pack);
    return pack;
  }
}

// Calls f(i, elements) for each column i of K places, with its elements as A.
template <class A, class In, int N, int K, class F>
__device__ __forceinline__ void ForEachColumn(const Pack<In, N> (&x)[K], const F& f) {
  if constexpr (kIsShortFloat<In> && N % 2 == 0) {  // a word has two
    Pack<uint32_t, N / 2> words[K];
#pragma unroll
    for (int k = 0; k < K; ++k) memcpy(&words[k], &x[k], sizeof(x[k]));
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      A low[K], high[K];
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const float2 pair = WidenPair<In>(words[k].v[i / 2]);
        low[k] = pair.x, high[k] = pair.y;
      }
      f(i, low);
      f(i + 1, high);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      A v[K];
#pragma unroll
      for (int k = 0; k < K; ++k) v[k] = ConvertTo<A>(x[k].v[i]);
      f(i, v);
    }
  }
}

// Where the blocks that take chunks of a result leave their states, for the last of them to merge.
// Null where each result is one block's.
template <class State>
struct ReduceChunks {
  State* states;   // [chunk][result]; of a group, in the end, in its first chunk's place
  unsigned* done;  // the plan's counters, of chunks that are done; left at 0
};

// Whether this block's chunk is the last one of `chunks` that is done. Its state has been written,
// and after the call those of the others can be read. All threads call it.
__device__ __forceinline__ bool IsLastChunk(unsigned* done, int64_t chunks) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned last = static_cast<unsigned>(chunks - 1);
    unsigned before;
    asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(done), "r"(last)
                 : "memory");
    is_last = before == last;
  }
  __syncthreads();
  return is_last;
}

// The same of states that are one bit, which the counter itself gathers: blocks that are done in
// its lower half, those whose bit is set in the upper one. One thread calls it, and the last one's
// `bit` becomes whether any is set.
__device__ __forceinline__ bool IsLastOfBits(unsigned* done, int chunks, uint32_t* bit) {
  const unsigned before = atomicAdd(done, 1u + (*bit << 16));
  if ((before & 0xffffu) + 1 != static_cast<unsigned>(chunks)) return false;
  if (before >> 16 != 0) *bit = 1;
  *done = 0;
  return true;
}

}  // namespace cuda
}  // namespace oneflow_lite
