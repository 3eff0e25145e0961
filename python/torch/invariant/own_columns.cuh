// SPDX-License-Identifier: Apache-2.0
//
// The launch of a row algorithm (primitive/cuda/rows/row.cuh) whose results for a row depend on
// neither the number of rows nor where the row lies in memory: the kernel follows from the width
// and the dtype alone, and packs are counted from the row's own first column on. Aligned words of
// 16 bytes move, which begin anywhere in a pack: when a row is read, lanes take what they lack from
// the next lane (primitive/cuda/rows/shifted.cuh); what is written is first put in shared memory as
// packs, and leaves it as words, warp by warp.
#pragma once

#include <utility>

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/shifted.cuh"
#include "python/torch/invariant/column_rows.cuh"

namespace oneflow_lite {
namespace cuda {

// A Store functor (primitive/cuda/rows/io.cuh) of packs that begin at multiples of their size in
// the row. `image`: where the row's first column would be in the window of shared memory.
template <class T>
struct ImageStore {
  using Element = T;
  T* y;
  int64_t row_stride;
  uint32_t image = 0;

  __device__ __forceinline__ ImageStore At(int64_t row) const {
    return {y + row * row_stride, 0, image};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col,
                                        const Pack<ComputeType<T>, N>& v) const {
    const Pack<T, N> pack = ConvertPack<T>(v);
    if constexpr (N == 1) {
      y[row * row_stride + col] = pack.v[0];
    } else {
      static_assert(N == kPackSize<T>, "a pack is a word");
      uint4 word;
      memcpy(&word, &pack, sizeof(word));
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                   :
                   : "r"(image + static_cast<uint32_t>(col) * static_cast<uint32_t>(sizeof(T))),
                     "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
                   : "memory");
    }
  }
};

namespace internal {

// Whether an algorithm writes rows, by an ImageStore that is its member `store`.
template <class A, class = void>
struct HasImage : std::false_type {};
template <class A>
struct HasImage<A, std::void_t<decltype(std::declval<A&>().store.image)>> : std::true_type {};

// The pack that begins `past` < 16 bytes behind the word at `at` in shared memory; kSkip is past /
// 4, or -1 where past is 0. The next word is read as well: two accesses without a bank conflict,
// where ShiftedPackOnChip, which knows no kSkip, has three with conflicts.
template <int kSkip, class T>
__device__ __forceinline__ StowedPack<T, kPackSize<T>> LoadSkipped(const char* at, unsigned past) {
  constexpr int kFirst = kSkip < 0 ? 0 : kSkip;
  uint4 words[2];
  words[0] = reinterpret_cast<const uint4*>(at)[0];
  if (kSkip >= 0) words[1] = reinterpret_cast<const uint4*>(at)[1];
  uint32_t w[8];
  memcpy(w, words, sizeof(w));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = kSkip >= 0 && sizeof(T) < 4
               ? __funnelshift_r(w[kFirst + i], w[kFirst + i + 1], past % 4 * 8)
               : w[kFirst + i];
  }
  Pack<T, kPackSize<T>> pack;
  memcpy(&pack, w, sizeof(pack));
  return StowedPack<T, kPackSize<T>>::Of(pack);
}

// Moves `elements`, at most kWords * `size` words' worth, from `image` to y, which is aligned to
// its element, by `size` threads, at least 14. Shared memory is read up to a pack behind the image.
template <int kWords, class T>
__device__ __forceinline__ void CopyImage(const char* image, int elements, T* y, int rank,
                                          int size) {
  constexpr int N = kPackSize<T>;
  const int boundary = ElementsToBoundary(y);
  const int head = boundary < elements ? boundary : elements;  // before the first whole word
  const int words = (elements - head) / N, tail = elements - head - words * N;
  const auto past = static_cast<unsigned>(head * sizeof(T));
  const auto copy = [&](auto skip) {
    constexpr int kAtOnce = kWords < 3 ? kWords : 3;  // no load passes a store
#pragma unroll
    for (int begin = 0; begin < kWords; begin += kAtOnce) {
      StowedPack<T, N> packs[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int w = rank + (begin + k) * size;
        if (w >= words) continue;
        packs[k] = LoadSkipped<decltype(skip)::value, T>(image + w * kPackBytes, past);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int w = rank + (begin + k) * size;
        if (w < words) StoreAlignedPack(y + head + w * N, packs[k].Get());
      }
    }
  };
  if (past == 0) copy(std::integral_constant<int, -1>());
  VisitWordShift<T>(past, copy);
  if (rank < head + tail) {
    const int at = rank < head ? rank : words * N + rank;
    y[at] = reinterpret_cast<const T*>(image)[at];
  }
}

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

// Threads of a block, as the compiler is told: single rows of one input have 64 registers a thread
// so, which is more threads on a multiprocessor.
template <class A, bool kCluster>
inline constexpr int kOwnThreads = !kCluster && A::kInputs == 1 && sizeof(typename A::C) == 4
                                       ? 512
                                       : ShiftedShape<A, kCluster>::kThreads;
template <class A, bool kCluster>
using OwnShapeOf = OwnShape<ShiftedShape<A, kCluster>::kPacks, kOwnThreads<A, kCluster>,
                            ShiftedShape<A, kCluster>::kBlocks>;

// How often OwnTopShape's block of a row of one input is to be on a multiprocessor.
template <class A>
inline constexpr int kOwnTopBlocks = 3;
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
  using Shape = std::conditional_t<kPair, OwnShape<4, 512, 2>, OwnShape<8, 256, kOwnTopBlocks<A>>>;
  static constexpr int64_t kAbove = kPair ? 1536 : 1920, kMost = Shape::kPacks * Shape::kThreads;
};

// A row per block, or per cluster of blocks. Dynamic shared memory: OwnBytes.
template <bool kCluster, class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    OwnColumnsBlockKernel(A a, int cols, int each) {
  using Team = internal::Warps<kCluster>;
  extern __shared__ __align__(16) char memory[];
  Team team(memory);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  char* const image = memory + Team::kScratchBytes + warp * internal::ImageBytes(each);
  const int64_t row = kCluster ? internal::ClusterIndex() : blockIdx.x;
  internal::RowThroughImage<Shape::kPacks>(a, row, cols, each, team, image);
}

namespace internal {

inline constexpr int kMostOwnBlocks = 8;  // of a cluster

// Of a block: what its team exchanges, then its warps' images.
template <bool kCluster, class A>
size_t OwnBytes(int threads, int each) {
  constexpr size_t kScratch = Warps<kCluster>::kScratchBytes;
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
template <class A, class Shape = OwnShapeOf<A, false>>
cudaError_t LaunchOwnBlocks(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t warps = CeilDiv(cols / A::kPack, kWarp * Shape::kPacks);
  const int threads = static_cast<int>(warps) * kWarp;
  const int each = static_cast<int>(CeilDiv(cols / A::kPack, threads));
  return Launch(OwnColumnsBlockKernel<false, A, Shape>, rows, threads,
                OwnBytes<false, A>(threads, each), stream, a, static_cast<int>(cols), each);
}
template <class A>
cudaError_t LaunchOwnClusters(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                              cudaStream_t stream) {
  using Shape = OwnShapeOf<A, true>;
  constexpr auto kKernel = &OwnColumnsBlockKernel<true, A, Shape>;
  constexpr int kThreads = Shape::kThreads;
  constexpr int64_t kMost = int64_t{kThreads} * Shape::kPacks;
  const int64_t packs = cols / A::kPack, small = CeilDiv(packs, kMost / 2);
  const int blocks = static_cast<int>(small <= kMostOwnBlocks ? small : CeilDiv(packs, kMost));
  if (rows > kMaxBlocks / blocks) return cudaErrorInvalidConfiguration;
  const int each = static_cast<int>(CeilDiv(packs, int64_t{blocks} * kThreads));
  const size_t bytes = OwnBytes<true, A>(kThreads, each);
  const cudaError_t error = AllowAllShared<OwnColumnsBlockKernel<true, A, Shape>>(limits);
  if (error != cudaSuccess) return error;
  return LaunchAs({blocks}, kKernel, rows * blocks, kThreads, bytes, stream, a,
                  static_cast<int>(cols), each);
}

// The widest rows of A's blocks, and of its clusters.
template <class A, bool kCluster>
constexpr int64_t MostOwnPacks() {
  using Shape = ShiftedShape<A, kCluster>;
  return int64_t{Shape::kThreads} * Shape::kPacks * (kCluster ? kMostOwnBlocks : 1);
}

}  // namespace internal

// Rows of any width and alignment, of an algorithm that offers Frame, and Store functors of which
// pick an ImageStore; `narrow`: the same that stores as it likes, for rows that go column by column
// because they are narrow, or wider than the blocks of a cluster hold. Neither allocates nor
// synchronises.
template <class A, class Columns>
cudaError_t LaunchOwnColumns(const A& a, const Columns& by_columns, int64_t rows, int64_t cols,
                             const DeviceLimits& limits, cudaStream_t stream) {
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
  if constexpr (OwnTopShape<Wide>::kServes) {
    using Top = OwnTopShape<Wide>;
    if (packs > Top::kAbove && packs <= Top::kMost) {
      const auto wide = internal::RegistersOf<true>(a);
      return internal::LaunchOwnBlocks<Wide, typename Top::Shape>(wide, rows, cols, stream);
    }
  }
  if (packs <= internal::MostOwnPacks<Wide, false>()) {
    return internal::LaunchOwnBlocks(internal::RegistersOf<true>(a), rows, cols, stream);
  }
  if (limits.clusters && packs <= internal::MostOwnPacks<Wide, true>()) {
    return internal::LaunchOwnClusters(internal::RegistersOf<true>(a), rows, cols, limits, stream);
  }
  return LaunchByColumns(by_columns, rows, cols, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
