// SPDX-License-Identifier: Apache-2.0
//
// The launch of a row algorithm (primitive/cuda/rows/row.cuh) whose results for a row depend on
// neither the number of rows nor where the row lies in memory: the kernel follows from the width
// and the dtype alone, and packs are counted from the row's own first column on. Aligned words of
// 16 bytes move, which begin anywhere in a pack: when a row is read, lanes take what they lack from
// the next lane (primitive/cuda/rows/shifted.cuh); what is written is first put in shared memory as
// packs, and leaves it as words, warp by warp.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/shifted.cuh"
#include "python/torch/invariant/column_rows.cuh"
#include "python/torch/invariant/own_image.cuh"
#include "python/torch/invariant/own_staged.cuh"

namespace oneflow_lite {
namespace cuda {

namespace internal {

// Bytes of the image of a warp whose lanes have so many packs, and of a pack behind it, which may
// be read.
__host__ __device__ constexpr int ImageBytes(int each) { return (each * kWarp + 1) * kPackBytes; }

// The row by `team`. This warp has `each` packs a lane of it, and room for them at `image`.
template <int kPacks, class A, class Team>
__device__ __forceinline__ void RowThroughImage(const A& every, int64_t row, int cols, int each,
                                                Team& team, char* image) {
  if constexpr (HasImage<A>::value) {
    using T = typename A::Output;
    constexpr int N = A::kPack;
    const InnerSpan<N> span(0, cols);
    const int first = team.rank() / kWarp * kWarp * each, most = each * kWarp;
    const int left = span.packs - first, count = left < 0 ? 0 : left < most ? left : most;
    const int64_t col = span.head + int64_t{first} * N;
    A a = every;
    a.store.image = static_cast<uint32_t>(__cvta_generic_to_shared(image)) -
                    static_cast<uint32_t>(col * static_cast<int64_t>(sizeof(T)));
    RowShifted<kPacks>(a, row, cols, each, team);
    __syncwarp();
    CopyImage<kPacks>(image, count * N, every.store.y + row * every.store.row_stride + col,
                      static_cast<int>(threadIdx.x) % kWarp, kWarp);
  } else {
    RowShifted<kPacks>(every, row, cols, each, team);
  }
}

}  // namespace internal

// A row per warp.
template <int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    OwnColumnsWarpKernel(A a, int64_t rows, int cols, int each) {
  constexpr int kWarps = RowPolicy::kGroupThreads / kWarp;
  constexpr int kImage = internal::ImageBytes(internal::HasImage<A>::value ? kPacks : 0);
  __shared__ __align__(16) char images[kWarps][kImage];
  const int at = threadIdx.x / kWarp;
  const int64_t row = int64_t{blockIdx.x} * kWarps + at;
  if (row >= rows) return;
  internal::Alone<LaneGroup<kWarp>> warp;
  internal::RowThroughImage<kPacks>(a, row, cols, each, warp, images[at]);
}

// A block: packs of a thread, at most, and for how many threads and blocks per multiprocessor the
// compiler leaves registers.
template <int kPacks_, int kThreads_, int kBlocks_>
struct OwnShape {
  static constexpr int kPacks = kPacks_, kThreads = kThreads_, kBlocks = kBlocks_;
};

// Threads of a block, as the compiler is told: rows of one input have 64 registers a thread so,
// which is more threads on a multiprocessor.
template <class A>
inline constexpr int kOwnThreads = A::kInputs == 1 && sizeof(typename A::C) == 4
                                       ? 512
                                       : ShiftedShape<A, false>::kThreads;
template <class A>
using OwnShapeOf =
    OwnShape<ShiftedShape<A, false>::kPacks, kOwnThreads<A>, ShiftedShape<A, false>::kBlocks>;

// The shape of a block with a row of up to kMost packs, more than kAbove. OwnShapeOf has 11 warps
// of 6 packs with 64 registers for these, which are twice on a multiprocessor; 8 warps of 8 packs
// with 80 registers are three times, with as many packs again on their way. Two inputs would need a
// cluster. Values that take more registers than memory keep OwnShapeOf.
template <class A>
struct OwnTopShape {
  static constexpr bool kPair = A::kInputs == 2;
  static constexpr bool kServes =
      sizeof(typename A::C) == 4 &&
      sizeof(typename A::template Value<A::kPack>) <= A::kInputs * kPackBytes;
  using Shape = std::conditional_t<kPair, OwnShape<4, 512, 2>, OwnShape<8, 256, 3>>;
  static constexpr int64_t kAbove = kPair ? 1536 : 1920, kMost = Shape::kPacks * Shape::kThreads;
};

// A row per block. Dynamic shared memory: OwnBytes.
template <class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    OwnColumnsBlockKernel(A a, int cols, int each) {
  using Team = internal::Warps<false>;
  extern __shared__ __align__(16) char memory[];
  Team team(memory);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  char* const image = memory + Team::kScratchBytes + warp * internal::ImageBytes(each);
  internal::RowThroughImage<Shape::kPacks>(a, blockIdx.x, cols, each, team, image);
}

namespace internal {

// Of a block: what its team exchanges, then its warps' images.
template <class A>
size_t OwnBytes(int threads, int each) {
  constexpr size_t kScratch = Warps<false>::kScratchBytes;
  static_assert(kScratch % kPackBytes == 0, "the image is aligned");
  return kScratch + (HasImage<A>::value ? threads / kWarp * ImageBytes(each) : 0);
}

template <int kPacks, class A>
cudaError_t LaunchOwnWarps(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  const int64_t blocks = CeilDiv(rows, kThreads / kWarp);
  if (blocks > kMaxBlocks) return cudaErrorInvalidConfiguration;
  return Launch(OwnColumnsWarpKernel<kPacks, A>, blocks, kThreads, 0, stream, a, rows,
                static_cast<int>(cols), static_cast<int>(CeilDiv(cols / A::kPack, kWarp)));
}
template <class A, class Shape = OwnShapeOf<A>>
cudaError_t LaunchOwnBlocks(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t warps = CeilDiv(cols / A::kPack, kWarp * Shape::kPacks);
  const int threads = static_cast<int>(warps) * kWarp;
  const int each = static_cast<int>(CeilDiv(cols / A::kPack, threads));
  return Launch(OwnColumnsBlockKernel<A, Shape>, rows, threads, OwnBytes<A>(threads, each), stream,
                a, static_cast<int>(cols), each);
}

// The widest rows of A's blocks.
template <class A>
constexpr int64_t MostOwnPacks() {
  using Shape = ShiftedShape<A, false>;
  return int64_t{Shape::kThreads} * Shape::kPacks;
}

}  // namespace internal

// Rows of any width and alignment, of an algorithm that offers Frame, and Store functors of which
// pick an ImageStore; `staged`: the same for own_staged.cuh, for rows wider than a block holds;
// `by_columns`: the same that stores as it likes, for narrow rows, for those wider than a cluster
// holds, and for all that wide where there are no clusters. Neither allocates nor synchronises.
template <class A, class Staged, class Columns>
cudaError_t LaunchOwnColumns(const A& a, const Staged& staged, const Columns& by_columns,
                             int64_t rows, int64_t cols, const DeviceLimits& limits,
                             cudaStream_t stream) {
  using Wide = internal::InRegistersOf<true, A>;
  using Narrow = internal::InRegistersOf<false, A>;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const int64_t packs = cols / A::kPack;
  if (cols <= kMostGroupColumns) return LaunchByColumns(by_columns, rows, cols, stream);
  if (packs <= 4 * kWarp) {
    const auto narrow = internal::NarrowOf(internal::RegistersOf<false>(a));
    if (packs <= 2 * kWarp) return internal::LaunchOwnWarps<2>(narrow, rows, cols, stream);
    if (packs <= 3 * kWarp) return internal::LaunchOwnWarps<3>(narrow, rows, cols, stream);
    return internal::LaunchOwnWarps<4>(narrow, rows, cols, stream);
  }
  if (packs <= internal::kShiftedNarrowPacks) {
    return internal::LaunchOwnBlocks(internal::RegistersOf<false>(a), rows, cols, stream);
  }
  if (packs > kStagedAbove<Staged>) {
    const cudaError_t error = LaunchStaged(staged, rows, cols, limits, stream);
    if (error != kNotServed) return error;
  }
  if constexpr (OwnTopShape<Wide>::kServes) {
    using Top = OwnTopShape<Wide>;
    if (packs > Top::kAbove && packs <= Top::kMost) {
      const auto wide = internal::RegistersOf<true>(a);
      return internal::LaunchOwnBlocks<Wide, typename Top::Shape>(wide, rows, cols, stream);
    }
  }
  if (packs <= internal::MostOwnPacks<Wide>()) {
    return internal::LaunchOwnBlocks(internal::RegistersOf<true>(a), rows, cols, stream);
  }
  const cudaError_t error = LaunchStaged(staged, rows, cols, limits, stream);
  if (error != kNotServed) return error;
  return LaunchByColumns(by_columns, rows, cols, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
