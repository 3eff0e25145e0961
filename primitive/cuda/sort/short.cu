// SPDX-License-Identifier: Apache-2.0
//
// Short rows, sorted on chip: up to 128 elements by a warp (merges), up to 4096 by a block (radix).
// Keys travel with 16-bit places; the elements themselves are read again where they go.
#include <cub/block/block_radix_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <type_traits>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

struct Less {
  template <class T>
  __device__ bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

// A team of threads sorts the keys of a row, thread t having those from kItems * t on.
template <class Key, int kThreads, int kItems>
struct Team {
  static constexpr bool kWarp = kThreads == 32;
  static constexpr int kTeams = kWarp ? 4 : 1;  // of a block
  using WarpSort = cub::WarpMergeSort<Key, kItems, 32, uint16_t>;
  using BlockSort = cub::BlockRadixSort<Key, kWarp ? 64 : kThreads, kItems, uint16_t>;
  union Memory {
    typename std::conditional_t<kWarp, WarpSort, BlockSort>::TempStorage sort;
    uint16_t order[kThreads * kItems];
  };

  __device__ static void Sync() {
    if constexpr (kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  __device__ static void Sort(Memory& memory, Key (&keys)[kItems], uint16_t (&places)[kItems],
                              int bits) {
    if constexpr (kWarp) {
      WarpSort(memory.sort).StableSort(keys, places, Less());
    } else {
      BlockSort(memory.sort).Sort(keys, places, 0, bits);
    }
  }
};

template <class Key, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads* Team<Key, kThreads, kItems>::kTeams)
    ShortSortKernel(ShortSortRun run) {
  using T = Team<Key, kThreads, kItems>;
  __shared__ typename T::Memory memories[T::kTeams];
  __shared__ int numbers_of[T::kTeams];
  const int team = threadIdx.x / kThreads, thread = threadIdx.x % kThreads;
  typename T::Memory& memory = memories[team];
  const KeyRows& in = run.keys;
  const int cols = static_cast<int>(in.cols);
  const int64_t step = int64_t{gridDim.x} * T::kTeams;
  for (int64_t row = int64_t{blockIdx.x} * T::kTeams + team; row < in.rows; row += step) {
    Key keys[kItems];
    uint16_t places[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int i = thread * kItems + j;
      places[j] = static_cast<uint16_t>(i);
      // What lies behind the row stays behind: the sort is stable.
      keys[j] =
          i < cols ? KeyAt<Key>(in.code, in.x, in.ElementOf(row, i)) : in.code.template Most<Key>();
    }
    if (thread == 0) numbers_of[team] = cols;
    T::Sort(memory, keys, places, in.code.bits);
    T::Sync();
    if (run.by_rank) {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int i = thread * kItems + j;
        if (i < cols && in.code.IsNan(keys[j])) atomicMin(&numbers_of[team], i);
      }
    }
#pragma unroll
    for (int j = 0; j < kItems; ++j) memory.order[thread * kItems + j] = places[j];
    T::Sync();
    const int64_t numbers = numbers_of[team];
    const int64_t wanted = run.by_rank ? run.ranks.per_row() : run.take;
    for (int64_t i = thread; i < wanted; i += kThreads) {
      const int64_t at = run.by_rank ? run.ranks.At(i, cols, numbers) : i;
      const int64_t local = memory.order[at], to = row * wanted + i;
      if (run.places) run.places[to] = in.PlaceOf(row, local);
      if (run.values) CopyElement(in.code.bits, in.x, in.ElementOf(row, local), run.values, to);
    }
    if (run.numbers && thread == 0) run.numbers[row] = numbers;
    T::Sync();  // before the memory is used again
  }
}

template <class Key, int kThreads, int kItems>
cudaError_t LaunchTeam(const ShortSortRun& run, cudaStream_t stream) {
  constexpr int kTeams = Team<Key, kThreads, kItems>::kTeams;
  return Launch(ShortSortKernel<Key, kThreads, kItems>, (run.keys.rows + kTeams - 1) / kTeams,
                kThreads * kTeams, 0, stream, run);
}

template <class Key>
cudaError_t LaunchByCols(const ShortSortRun& run, cudaStream_t stream) {
  const int64_t cols = run.keys.cols;
  if (cols <= 32) return LaunchTeam<Key, 32, 1>(run, stream);
  if (cols <= 128) return LaunchTeam<Key, 32, 4>(run, stream);
  if (cols <= 1024) return LaunchTeam<Key, 128, 8>(run, stream);
  return LaunchTeam<Key, 512, 8>(run, stream);
}

}  // namespace

cudaError_t LaunchShortSort(const ShortSortRun& run, cudaStream_t stream) {
  if (run.keys.rows <= 0 || run.keys.cols <= 0) return cudaSuccess;
  if (run.keys.cols > kShortRow) return cudaErrorInvalidValue;
  return run.keys.code.bits == 64 ? LaunchByCols<uint64_t>(run, stream)
                                  : LaunchByCols<uint32_t>(run, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
