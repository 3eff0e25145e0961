// SPDX-License-Identifier: Apache-2.0
//
// A block's share of the tensors (axis/span.cuh) on its way to shared memory and back.
#pragma once

#include "primitive/cuda/axis/segments.cuh"
#include "primitive/cuda/axis/span_policy.h"

namespace oneflow_lite {
namespace cuda {

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
  __device__ __forceinline__ SpanCopies(const SpanPointers<T, kInputs>& p, const AxisSpan& s,
                                        char* shared, int64_t first,
                                        const internal::SpanSegments& segments)
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
  __device__ __forceinline__ T* At(int i) const { return at_[i]; }
  // All threads; everything is there then.
  __device__ __forceinline__ void In() const {
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
  __device__ __forceinline__ void Out() const {
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
  __device__ __forceinline__ char* Base(int i) const {
    return reinterpret_cast<char*>(at_[i] - internal::ElementsPast(from_[i]));
  }
  ClusterBarrier barrier_;
  const T* from_[kInputs];
  T* at_[kInputs];
  T* to_;
  internal::SpanSegments segments_;
  bool one_, bulk_;
};

}  // namespace cuda
}  // namespace oneflow_lite
