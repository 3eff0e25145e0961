// SPDX-License-Identifier: Apache-2.0
//
// Threads that work on one row together: a group of lanes of a warp, or a whole block. Both offer
// rank(), size() and reductions whose result every member gets, with the same bits.
//
//   LaneGroup<8> group;
//   float sum = group.Reduce(partial, Plus{}, 0.0f);
#pragma once

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "primitive/cuda/chip/inline.cuh"

namespace oneflow_lite::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kMaxWarps = 32;         // of a block
inline constexpr int kReduceSlotBytes = 32;  // the largest value that a block reduces

struct Plus {
  template <class T>
  OFL_DEVICE T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
// The larger one; a NaN loses, so that it must be found by other means (a sum of exponentials).
struct Larger {
  template <class T>
  OFL_DEVICE T operator()(const T& a, const T& b) const {
    return a > b || b != b ? a : b;
  }
  OFL_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
  OFL_DEVICE double operator()(double a, double b) const { return fmax(a, b); }
};

// Another lane's value; a struct overloads it for itself.
template <class T>
OFL_DEVICE T ShuffleXor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}

// A sum with its rounding error beside it (Knuth's TwoSum, as in Neumaier's summation), so that
// large terms of both signs may cancel and leave a small sum right. Integers need no such care.
template <class C>
struct CompensatedSum {
  C high = 0;
  C low = 0;

  OFL_DEVICE void Add(C value) {
    const C sum = high + value;
    if constexpr (std::is_floating_point_v<C>) {
      const C part = sum - high;
      low += (high - (sum - part)) + (value - part);
    }
    high = sum;
  }
  // An infinite sum has a NaN for its error.
  OFL_DEVICE C Get() const {
    const C sum = high + low;
    return sum == sum ? sum : high;
  }
};

template <class C>
OFL_DEVICE CompensatedSum<C> ShuffleXor(CompensatedSum<C> v, int mask) {
  v.high = ShuffleXor(v.high, mask);
  v.low = ShuffleXor(v.low, mask);
  return v;
}

// Symmetric to the last bit.
struct MergeCompensated {
  template <class C>
  OFL_DEVICE CompensatedSum<C> operator()(const CompensatedSum<C>& a,
                                          const CompensatedSum<C>& b) const {
    CompensatedSum<C> merged{a.high, a.low + b.low};
    merged.Add(b.high);
    return merged;
  }
};

template <int kLanes, class T, class Op>
OFL_DEVICE T ReduceLanes(T v, Op op) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) v = op(v, ShuffleXor(v, mask));
  return v;
}

// kLanes neighbouring lanes; kLanes is a power of two. The whole warp must call Reduce.
template <int kLanes_>
class LaneGroup {
 public:
  static constexpr int kLanes = kLanes_;
  OFL_DEVICE int rank() const { return threadIdx.x % kLanes; }
  OFL_DEVICE static constexpr int size() { return kLanes; }
  template <class T, class Op>
  OFL_DEVICE T Reduce(T v, Op op, T /*identity*/) {
    return ReduceLanes<kLanes>(v, op);
  }
};

// All threads of a one-dimensional block of whole warps.
class Block {
 public:
  // `scratch` is shared memory; see kScratchBytes.
  OFL_DEVICE explicit Block(void* scratch) : scratch_(static_cast<char*>(scratch)) {}
  static constexpr int kScratchBytes = 2 * kMaxWarps * kReduceSlotBytes;
  static constexpr int kLanes = kWarp * kMaxWarps;  // at most

  OFL_DEVICE int rank() const { return threadIdx.x; }
  OFL_DEVICE int size() const { return blockDim.x; }
  // Every thread must call it. `identity` stands for the warps that are not there.
  template <class T, class Op>
  OFL_DEVICE T Reduce(T v, Op op, T identity) {
    return ReduceWarps(ReduceLanes<kWarp>(v, op), op, identity);
  }
  // The same of values that each warp's lanes already agree on.
  template <class T, class Op>
  OFL_DEVICE T ReduceWarps(T v, Op op, T identity) {
    static_assert(sizeof(T) <= kReduceSlotBytes, "a value must fit in a slot");
    // The two halves alternate, so that one barrier per reduction is enough: a half is written
    // again only after the barrier of the reduction in between.
    T* slots = reinterpret_cast<T*>(scratch_ + phase_ * kMaxWarps * kReduceSlotBytes);
    phase_ ^= 1;
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = v;
    __syncthreads();
    const int lane = threadIdx.x % kWarp;
    // Not `a ? b : c`: the compiler would choose between two addresses, and so put `identity` into
    // memory.
    T found = identity;
    if (lane < static_cast<int>(blockDim.x) / kWarp) found = slots[lane];
    return ReduceLanes<kWarp>(found, op);
  }

 private:
  char* scratch_;
  int phase_ = 0;
};

}  // namespace oneflow_lite::cuda
