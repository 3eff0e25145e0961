// SPDX-License-Identifier: Apache-2.0
//
// Loss and gradient of cross entropy in place: for own_columns.cuh, and for own_staged.cuh.
#pragma once

#include "primitive/cuda/cross_entropy/in_place.cuh"
#include "python/torch/invariant/own_columns.cuh"

namespace oneflow_lite {
namespace cuda {

// The algorithm of all rows, whose words can be asked for.
template <class T, bool kSmooth>
struct StagedInPlaceRow : CrossEntropyInPlaceRow<T, kSmooth> {
  using Base = CrossEntropyInPlaceRow<T, kSmooth>;
  DirectLoad<T> from;

  __host__ __device__ StagedInPlaceRow(const Base& row, const CrossEntropyRows<T>& p)
      : Base(row), from{p.x, p.row_stride} {}
  __host__ __device__ StagedInPlaceRow(const Base& row, const DirectLoad<T>& from)
      : Base(row), from(from) {}
  __device__ __forceinline__ StagedInPlaceRow At(int64_t row) const {
    return {Base::At(row), from.At(row)};
  }
  __device__ __forceinline__ WordFrame Frame(int, int64_t row, int64_t col) const {
    return from.Frame(row, col);
  }
};
template <class T, bool kSmooth>
struct OwnInPlaceRow : StagedInPlaceRow<T, kSmooth> {
  using Base = StagedInPlaceRow<T, kSmooth>;
  using Base::Base;
  __host__ __device__ OwnInPlaceRow(const Base& row) : Base(row) {}
  __device__ __forceinline__ OwnInPlaceRow At(int64_t row) const { return Base::At(row); }
};
namespace internal {
template <class T, bool kSmooth>
inline constexpr bool kIsInPlace<OwnInPlaceRow<T, kSmooth>> = true;
}  // namespace internal

// Registers of blocks and shared memory, 16384 rows, in us (the default's in parentheses):
//               4 packs a thread  6 with 80 registers  staged by 96 threads
//   bfloat16  4097    70  (70)           89                    -
//             6001   106 (100)          121                  104
//             8191   140 (136)          169                  140
//   float32   4097   134 (135)          135                  140
//             6001   222 (197)          194                  204
//             8191   268 (277)          268                    -
template <class T, bool kSmooth, bool kCluster>
struct ShiftedShape<OwnInPlaceRow<T, kSmooth>, kCluster, void> {
  static constexpr int kPacks = 4, kThreads = sizeof(T) == 8 ? 384 : 512, kBlocks = 2;
};
template <class T, bool kSmooth>
struct OwnTopShape<OwnInPlaceRow<T, kSmooth>> {
  static constexpr bool kServes = sizeof(T) == 4;
  using Shape = OwnShape<6, 384, 2>;
  static constexpr int64_t kAbove = 512, kMost = Shape::kPacks * Shape::kThreads;
};
template <class T, bool kSmooth>
inline constexpr int kMostOfWarp<OwnInPlaceRow<T, kSmooth>> = sizeof(T) == 2 ? 192 : 128;
template <class T, bool kSmooth>
inline constexpr int64_t kStagedAbove<StagedInPlaceRow<T, kSmooth>> = sizeof(T) == 2 ? 640
                                                                                     : INT64_MAX;
template <class T, bool kSmooth>
struct SmallStaged<StagedInPlaceRow<T, kSmooth>> {
  static constexpr bool kServes = sizeof(T) == 2;
  using Shape = StagedShape<96, 10>;
};

}  // namespace cuda
}  // namespace oneflow_lite
