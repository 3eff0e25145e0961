// SPDX-License-Identifier: Apache-2.0
//
// Segments of a tensor, wherever they begin, between memory and shared memory in words of 16 bytes,
// as they lie in memory. Nothing behind a segment is read; before it, what else the 16 bytes hold
// in which it begins.
//
//   internal::CopySegmentsIn(shared, x, segments);
//   CommitCopies();
//   WaitForCopiesOf<0>();
//   __syncthreads();   // element e of segment i is at T[ElementsPast(x) + i * pitch + e]
//   ...
//   internal::CopySegmentsOut(y, shared, segments);
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/bulk_copy.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"

namespace oneflow_lite {
namespace cuda {

namespace internal {

template <class T>
__device__ __forceinline__ int ElementsPast(const T* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) & (kPackBytes - 1)) /
         static_cast<int>(sizeof(T));
}

// `segments` of `count` elements, `stride` apart in memory and `pitch` in shared memory; the two
// differ by whole packs, so that words stay words.
struct SpanSegments {
  int segments, count;
  int64_t stride;
  int pitch;

  // Calls f(segment, word) for `words` words of each segment, dealt out to the block's threads.
  template <class F>
  __device__ __forceinline__ void EachWord(int words, F f) const {
    const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
    if (segments == 1) {
      for (int w = t; w < words; w += threads) f(0, w);
      return;
    }
    const int step = threads / words, more = threads - step * words;
    int segment = t / words, w = t - segment * words;
    while (segment < segments) {
      f(segment, w);
      segment += step, w += more;
      if (w >= words) w -= words, ++segment;
    }
  }
};

// Starts copies of the words that the segments end or fill, the first of which begins at p, and
// copies what the segments have of another word.
template <class T>
__device__ __forceinline__ void CopySegmentsIn(char* shared, const T* p, const SpanSegments& s) {
  constexpr int N = kPackSize<T>;
  const int past = ElementsPast(p);
  s.EachWord((s.count + N - 1) / N, [&](int segment, int w) {
    const int at = past + segment * s.pitch;  // elements, as below
    const int word = (at & ~(N - 1)) + w * N;
    if (word + N > at + s.count) return;
    CopyAsync(shared + word * static_cast<int>(sizeof(T)), p + segment * s.stride + (word - at),
              kPackBytes);
  });
  for (int i = threadIdx.x; i < s.segments * N; i += blockDim.x) {
    const int segment = i / N, at = past + segment * s.pitch, end = at + s.count;
    const int e = (end & ~(N - 1)) + i % N;
    if (e >= at && e < end) reinterpret_cast<T*>(shared)[e] = p[segment * s.stride + (e - at)];
  }
}

// One segment by a bulk copy of the words that it ends or fills, which the first thread starts once
// `barrier` is published, and by all threads what it has of another word. `shared` is as far behind
// a multiple of 16 bytes as p is.
template <class T>
__device__ __forceinline__ int BulkBytes(const T* p, int count) {
  return (ElementsPast(p) + count) / kPackSize<T> * kPackBytes;
}
template <class T>
__device__ __forceinline__ void CopySegmentInBulk(const ClusterBarrier& barrier, T* shared,
                                                  const T* p, int count) {
  const int past = ElementsPast(p), bytes = BulkBytes(p, count);
  if (bytes > 0) CopyBulk(barrier, shared - past, p - past, bytes);
}
template <class T>
__device__ __forceinline__ void CopyRestOfSegment(T* shared, const T* p, int count) {
  const int rest = (ElementsPast(p) + count) % kPackSize<T>;
  const int e = count - rest + static_cast<int>(threadIdx.x);
  if (e >= 0 && e < count) shared[e] = p[e];
}
// And back, by all threads, after PublishToStores and a barrier: whole words by a bulk copy.
template <class T>
__device__ __forceinline__ void CopySegmentOutBulk(T* p, const T* shared, int count) {
  constexpr int N = kPackSize<T>;
  const int before = ElementsToBoundary(p), head = before < count ? before : count;
  const int words = (count - head) / N, tail = head + words * N;
  const int t = static_cast<int>(threadIdx.x);
  if (t < head) p[t] = shared[t];
  if (t < count - tail) p[tail + t] = shared[tail + t];
  if (t == 0 && words > 0) StoreBulk(p + head, shared + head, words * kPackBytes);
}

// Stores the one segment whose elements begin `past` behind `shared`: whole words, and single
// elements where a word is shared with a neighbour.
template <class T>
__device__ __forceinline__ void CopySegmentOut(T* p, const char* shared, int past, int count) {
  constexpr int N = kPackSize<T>;
  const T* const elements = reinterpret_cast<const T*>(shared) + past;
  const int before = ElementsToBoundary(p), head = before < count ? before : count;
  const int words = (count - head) / N, tail = head + words * N;
  const int shift = (past + head) % N;
  const char* const from = shared + (past + head - shift) * static_cast<int>(sizeof(T));
  for (int w = threadIdx.x; w < words; w += blockDim.x) {
    const char* const at = from + w * kPackBytes;
    const Pack<T, N> pack =
        shift == 0 ? PackOnChip<T, N>(at)
                   : ShiftedPackOnChip<T, N>(at, static_cast<unsigned>(shift * sizeof(T)));
    StoreAlignedPack<N>(p + head + w * N, pack);
  }
  const int t = static_cast<int>(threadIdx.x);
  if (t < head) p[t] = elements[t];
  if (t < count - tail) p[tail + t] = elements[tail + t];
}

// The same of all segments, where p lies as the words in shared memory do.
template <class T>
__device__ __forceinline__ void CopySegmentsOut(T* p, const char* shared, const SpanSegments& s) {
  constexpr int N = kPackSize<T>;
  const int past = ElementsPast(p);
  s.EachWord((s.count + 2 * N - 2) / N, [&](int segment, int w) {
    const int at = past + segment * s.pitch, end = at + s.count;
    const int word = (at & ~(N - 1)) + w * N;
    T* const to = p + segment * s.stride + (word - at);
    const char* const from = shared + word * static_cast<int>(sizeof(T));
    if (word >= at && word + N <= end) {
      StoreAlignedPack<N>(to, PackOnChip<T, N>(from));
    } else {
      for (int i = word < at ? at - word : 0; i < N && word + i < end; ++i) {
        to[i] = reinterpret_cast<const T*>(from)[i];
      }
    }
  });
}

}  // namespace internal

}  // namespace cuda
}  // namespace oneflow_lite
