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

#include "primitive/cuda/axis/span_policy.h"
#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"

namespace oneflow_lite::cuda {

namespace internal {

template <class T>
OFL_DEVICE int ElementsPast(const T* p) {
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
  OFL_DEVICE void EachWord(int words, F f) const {
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
OFL_DEVICE void CopySegmentsIn(char* shared, const T* p, const SpanSegments& s) {
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
OFL_DEVICE int BulkBytes(const T* p, int count) {
  return (ElementsPast(p) + count) / kPackSize<T> * kPackBytes;
}
template <class T>
OFL_DEVICE void CopySegmentInBulk(const ClusterBarrier& barrier, T* shared, const T* p, int count) {
  const int past = ElementsPast(p), bytes = BulkBytes(p, count);
  if (bytes > 0) CopyBulk(barrier, shared - past, p - past, bytes);
}
template <class T>
OFL_DEVICE void CopyRestOfSegment(T* shared, const T* p, int count) {
  const int rest = (ElementsPast(p) + count) % kPackSize<T>;
  const int e = count - rest + static_cast<int>(threadIdx.x);
  if (e >= 0 && e < count) shared[e] = p[e];
}
// And back, by all threads, after PublishToStores and a barrier: whole words by a bulk copy.
template <class T>
OFL_DEVICE void CopySegmentOutBulk(T* p, const T* shared, int count) {
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
OFL_DEVICE void CopySegmentOut(T* p, const char* shared, int past, int count) {
  constexpr int N = kPackSize<T>;
  const T* const elements = reinterpret_cast<const T*>(shared) + past;
  const int before = ElementsToBoundary(p), head = before < count ? before : count;
  const int words = (count - head) / N, tail = head + words * N;
  const int shift = (past + head) % N;
  const char* const from = shared + (past + head - shift) * static_cast<int>(sizeof(T));
  for (int w = threadIdx.x; w < words; w += blockDim.x) {
    const char* const at = from + w * kPackBytes;
    const Pack<T, N> pack =
        shift == 0 ? LoadApart<Pack<T, N>>(at, 1)
                   : ShiftedPackOnChip<T, N>(at, static_cast<unsigned>(shift * sizeof(T)));
    StoreAlignedPack<N>(p + head + w * N, pack);
  }
  const int t = static_cast<int>(threadIdx.x);
  if (t < head) p[t] = elements[t];
  if (t < count - tail) p[tail + t] = elements[tail + t];
}

// The same of all segments, where p lies as the words in shared memory do.
template <class T>
OFL_DEVICE void CopySegmentsOut(T* p, const char* shared, const SpanSegments& s) {
  constexpr int N = kPackSize<T>;
  const int past = ElementsPast(p);
  s.EachWord((s.count + 2 * N - 2) / N, [&](int segment, int w) {
    const int at = past + segment * s.pitch, end = at + s.count;
    const int word = (at & ~(N - 1)) + w * N;
    T* const to = p + segment * s.stride + (word - at);
    const char* const from = shared + word * static_cast<int>(sizeof(T));
    if (word >= at && word + N <= end) {
      StoreAlignedPack<N>(to, LoadApart<Pack<T, N>>(from, 1));
    } else {
      for (int i = word < at ? at - word : 0; i < N && word + i < end; ++i) {
        to[i] = reinterpret_cast<const T*>(from)[i];
      }
    }
  });
}

}  // namespace internal

// A block's share of the tensors (axis/span.cuh) on its way to shared memory and back.

// The tensors, of T where A computes in ComputeType<T>.
template <class T, int kInputs>
struct SpanPointers {
  const T* input[kInputs];
  T* output;
};

// A block's words of the tensors come in bulk where they are one segment, and go so where that lies
// alike in the output; else by copies of each thread. kOne: they are always one.
template <class T, int kInputs, bool kOne>
class SpanCopies {
 public:
  OFL_DEVICE SpanCopies(const SpanPointers<T, kInputs>& p, const AxisSpan& s, char* shared,
                        int64_t first, const internal::SpanSegments& segments)
      : barrier_(shared + kInputs * s.buffer_bytes, 1),
        to_(p.output + first),
        segments_(segments),
        one_(kOne || (s.tiles == 1 && !s.padded)) {
    constexpr uintptr_t kLine = kSpanLineBytes;
    bulk_ = HasBulkCopies() && one_;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      from_[i] = p.input[i] + first;
      // Bulk copies like both ends to lie alike within a line.
      const uintptr_t past = reinterpret_cast<uintptr_t>(from_[i]) % (one_ ? kLine : kPackBytes);
      at_[i] = reinterpret_cast<T*>(shared + i * s.buffer_bytes + past);
    }
  }
  OFL_DEVICE T* At(int i) const { return at_[i]; }
  // All threads; everything is there then.
  OFL_DEVICE void In() const {
    if (bulk_) {
      if (threadIdx.x == 0) {
        barrier_.Init();
        PublishToCopies();
        int bytes = 0;
#pragma unroll
        for (int i = 0; i < kInputs; ++i) bytes += internal::BulkBytes(from_[i], segments_.count);
        barrier_.Expect(bytes);
#pragma unroll
        for (int i = 0; i < kInputs; ++i) {
          internal::CopySegmentInBulk(barrier_, at_[i], from_[i], segments_.count);
        }
      }
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        internal::CopyRestOfSegment(at_[i], from_[i], segments_.count);
      }
      __syncthreads();
      barrier_.AwaitBlock(0);
      return;
    }
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      internal::CopySegmentsIn(Base(i), from_[i], segments_);
    }
    CommitCopies();
    WaitForCopiesOf<0>();
    __syncthreads();
  }
  // The results, in the place of the last input.
  OFL_DEVICE void Out() const {
    constexpr int kLast = kInputs - 1;
    const int past = internal::ElementsPast(from_[kLast]);
    const bool alike = internal::ElementsPast(to_) == past;
    if (bulk_ && alike) PublishToStores();
    __syncthreads();
    if (!kOne && !one_) {
      internal::CopySegmentsOut(to_, Base(kLast), segments_);
    } else if (bulk_ && alike) {
      internal::CopySegmentOutBulk(to_, at_[kLast], segments_.count);
    } else {
      internal::CopySegmentOut(to_, Base(kLast), past, segments_.count);
    }
  }

 private:
  // The word in which an input's elements begin.
  OFL_DEVICE char* Base(int i) const {
    return reinterpret_cast<char*>(at_[i] - internal::ElementsPast(from_[i]));
  }
  ClusterBarrier barrier_;
  const T* from_[kInputs];
  T* at_[kInputs];
  T* to_;
  internal::SpanSegments segments_;
  bool one_, bulk_;
};

}  // namespace oneflow_lite::cuda
