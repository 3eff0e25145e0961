// SPDX-License-Identifier: Apache-2.0
//
// The states of reducers (reduce.cuh): merged over lanes, blocks and ways, and stored as results.
#pragma once

#include <utility>

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/reduce/plan.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

// What a thread gathers of N columns.
template <class R, class In, int N>
using ColumnsOf = decltype(std::declval<const R&>().template BeginColumns<In, N>());

// The results of a launch; `second` may be null. The dtype is one launch's, not the code's.
struct ReduceOutputs {
  void* y;
  void* second;
  DType dtype;  // of y; a second result has it too, or is int64
  int64_t axis;
};

template <class T>
inline constexpr DType kDTypeOf = std::is_same_v<T, bool>            ? DType::kBool
                                  : std::is_same_v<T, uint8_t>       ? DType::kUInt8
                                  : std::is_same_v<T, int8_t>        ? DType::kInt8
                                  : std::is_same_v<T, int16_t>       ? DType::kInt16
                                  : std::is_same_v<T, int32_t>       ? DType::kInt32
                                  : std::is_same_v<T, int64_t>       ? DType::kInt64
                                  : std::is_same_v<T, __half>        ? DType::kFloat16
                                  : std::is_same_v<T, __nv_bfloat16> ? DType::kBFloat16
                                  : std::is_same_v<T, float>         ? DType::kFloat32
                                                                     : DType::kFloat64;
// In: what the result most often is, which is stored without a table of jumps.
template <class In, class A>
__device__ __forceinline__ void StoreAs(void* y, DType dtype, int64_t i, A v) {
  if (dtype == kDTypeOf<In>) {
    static_cast<In*>(y)[i] = ConvertTo<In>(v);
    return;
  }
  switch (dtype) {
    case DType::kBool:
      static_cast<bool*>(y)[i] = ConvertTo<bool>(v);
      break;
    case DType::kUInt8:
      static_cast<uint8_t*>(y)[i] = ConvertTo<uint8_t>(v);
      break;
    case DType::kInt8:
      static_cast<int8_t*>(y)[i] = ConvertTo<int8_t>(v);
      break;
    case DType::kInt16:
      static_cast<int16_t*>(y)[i] = ConvertTo<int16_t>(v);
      break;
    case DType::kInt32:
      static_cast<int32_t*>(y)[i] = ConvertTo<int32_t>(v);
      break;
    case DType::kInt64:
      static_cast<int64_t*>(y)[i] = ConvertTo<int64_t>(v);
      break;
    case DType::kFloat16:
      static_cast<__half*>(y)[i] = ConvertTo<__half>(v);
      break;
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(y)[i] = ConvertTo<__nv_bfloat16>(v);
      break;
    case DType::kFloat32:
      static_cast<float*>(y)[i] = ConvertTo<float>(v);
      break;
    case DType::kFloat64:
      static_cast<double*>(y)[i] = ConvertTo<double>(v);
      break;
  }
}

// Another lane's state, word by word.
template <class S>
__device__ __forceinline__ S ShuffleDownWords(const S& v, int delta) {
  static_assert(sizeof(S) % sizeof(uint32_t) == 0, "states are whole words");
  constexpr int kWords = sizeof(S) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &v, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], delta);
  S other;
  memcpy(&other, words, sizeof(S));
  return other;
}

// The first lane of each `lanes` neighbours gets the merge of their states, in the order of the
// lanes. The whole warp must call it.
template <class R>
__device__ __forceinline__ typename R::State MergeLanes(const R& r, typename R::State state,
                                                        int lanes) {
  for (int delta = 1; delta < lanes; delta *= 2) {
    const typename R::State other = ShuffleDownWords(state, delta);
    // Lanes that would read beyond their neighbours get a state that nobody asks for.
    state = r.Merge(state, other);
  }
  return state;
}

// The merge of `count` > 0 states at distances of each other, in their order. As many as there
// mostly are, of ways or chunks, are asked for before one is merged.
template <class R, class State>
__device__ __forceinline__ State MergeAll(const R& r, const State* of, int64_t distance,
                                          int count) {
  constexpr int kAhead = sizeof(State) > 8 ? 7 : 8;
  State state = *of;
#pragma unroll 1
  for (int k = 1; k < count; k += kAhead) {
    State next[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      next[j] = k + j < count ? of[(k + j) * distance] : r.Identity();
    }
    if constexpr (R::kMergesSeveral) {
      state = r.MergeSeveral(state, next);
    } else {
#pragma unroll
      for (const State& each : next) state = r.Merge(state, each);
    }
  }
  return state;
}

// Thread 0 gets the merge of the states of all threads, in their order. All must call it; `slots`
// are one per warp.
template <int kThreads, class R>
__device__ __forceinline__ typename R::State MergeBlock(const R& r, typename R::State state,
                                                        typename R::State* slots) {
  constexpr int kWarps = kThreads / kWarp;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  state = MergeLanes(r, state, kWarp);
  __syncthreads();  // the slots are free again
  if (lane == 0) slots[warp] = state;
  __syncthreads();
  if (warp != 0) return state;
  return MergeLanes(r, lane < kWarps ? slots[lane] : r.Identity(), kWarps);
}

// The same, eight neighbours at a time: less than half as many merges wait for each other. `slots`
// are kThreads + 8; those that a thread merges lie an odd number apart.
template <int kThreads, class R>
__device__ __forceinline__ typename R::State MergeBlockByEight(const R& r, typename R::State state,
                                                               typename R::State* slots) {
  constexpr int kEach = 8, kFirst = kThreads / kEach, kSecond = kWarp / kEach;
  static_assert(kFirst == kWarp, "one warp merges what is left");
  const int rank = threadIdx.x;
  __syncthreads();  // the slots are free again
  slots[rank % kEach * (kFirst + 1) + rank / kEach] = state;
  __syncthreads();
  if (rank >= kFirst) return state;
  state = MergeAll(r, slots + rank, kFirst + 1, kEach);
  __syncwarp();
  slots[rank % kEach * (kSecond + 1) + rank / kEach] = state;
  __syncwarp();
  if (rank < kSecond) state = MergeAll(r, slots + rank, kSecond + 1, kEach);
  return MergeLanes(r, state, kSecond);
}

// The first `columns` of `used` slots get the merges of those at steps of `columns` behind them, in
// their order. Both are powers of two. All threads of the block must call it.
template <class R>
__device__ __forceinline__ void MergeSlots(const R& r, typename R::State* slots, int used,
                                           int columns) {
  __syncthreads();
#pragma unroll 1
  for (int left = used / 2; left >= columns; left /= 2) {
#pragma unroll 1
    for (int slot = threadIdx.x; slot < left; slot += ReducePolicy::kThreads) {
      slots[slot] = r.Merge(slots[slot], slots[slot + left]);
    }
    __syncthreads();
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
