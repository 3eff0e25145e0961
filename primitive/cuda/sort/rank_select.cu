// SPDX-License-Identifier: Apache-2.0
//
// Elements of long rows by their rank, by radix selection: counts of the highest digit of the keys
// say which digit the wanted key has, then those of the next digit among the keys that have it, and
// so on. What is wanted of a row is a task. With many tasks a block does all of one; with few, each
// row is cut into slices, and a pass is a launch, of which the last block of each task chooses the
// digit. Places and sums come in the order of the row: the result is the same each time.
#include <cub/block/block_scan.cuh>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr int kBinsPerThread = kBins / kThreads;
constexpr int kItems = 8;  // of a thread, while elements are picked
constexpr int64_t kTile = kThreads * kItems;
constexpr int64_t kSliceTiles = 4;  // of a slice at least
constexpr int kMaxSlices = 1024;

using Scan = cub::BlockScan<unsigned long long, kThreads>;

// What is known of a task's key: its digits so far, and its rank among the keys that have them.
struct Chosen {
  uint64_t key;
  int64_t rank;
  int64_t numbers;  // elements of the row that are no NaN
};

// In the workspace, of each task; zero at first.
struct Shared {
  unsigned long long* counts;  // kBins
  unsigned long long* nans;
  unsigned int* tickets;
  Chosen* chosen;
  longlong2* slices;  // of each slice: keys below the chosen one, keys equal to it
};

struct Slicing {
  int64_t tasks;
  int slices;
  int64_t length;  // of a slice
};

struct BlockMemory {
  unsigned int counts[kBins];
  union {
    typename Scan::TempStorage scan;
    int last;
  };
  unsigned long long nans;
  Chosen chosen;
};

// Counts the digits [low, low + width) of the keys from begin to end that have the chosen higher
// ones. In the first pass also the NaNs.
template <class Key>
__device__ void CountDigits(const KeyRows& in, int64_t row, int64_t begin, int64_t end, int low,
                            int width, bool first, uint64_t chosen, BlockMemory& memory) {
  for (int b = threadIdx.x; b < kBins; b += kThreads) memory.counts[b] = 0;
  if (threadIdx.x == 0) memory.nans = 0;
  __syncthreads();
  const unsigned mask = (1u << width) - 1;
  const int above = low + width;
  const Key wanted = first ? Key{0} : static_cast<Key>(chosen) >> above;
  unsigned long long nans = 0;
  const int64_t start = row * in.cols;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const Key key = KeyAt<Key>(in.code, in.x, start + i);
    nans += in.code.IsNan(key);
    if (!first && (key >> above) != wanted) continue;
    atomicAdd(&memory.counts[static_cast<unsigned>(key >> low) & mask], 1u);
  }
  if (first && nans > 0) atomicAdd(&memory.nans, nans);
  __syncthreads();
}

// The digit that has the rank, from this thread's counts of kBinsPerThread bins. All threads call
// it; the chosen are in memory afterwards.
__device__ void ChooseDigit(unsigned long long (&counts)[kBinsPerThread], int low,
                            BlockMemory& memory) {
  unsigned long long before[kBinsPerThread];
  const auto rank = static_cast<unsigned long long>(memory.chosen.rank);
  Scan(memory.scan).ExclusiveSum(counts, before);
  __syncthreads();  // every thread has read the rank
#pragma unroll
  for (int j = 0; j < kBinsPerThread; ++j) {
    if (before[j] <= rank && rank < before[j] + counts[j]) {  // one thread and bin
      const uint64_t digit = threadIdx.x * kBinsPerThread + j;
      memory.chosen.key |= digit << low;
      memory.chosen.rank = static_cast<int64_t>(rank - before[j]);
    }
  }
  __syncthreads();
}

__device__ int64_t RankOf(const RankRun& run, int64_t task, int64_t numbers) {
  if (run.first) return run.k - 1;
  return run.ranks.At(task % run.ranks.per_row(), run.keys.cols, numbers);
}

__device__ int64_t RowOf(const RankRun& run, int64_t task) {
  return run.first ? task : task / run.ranks.per_row();
}

// Writes what is wanted of the elements from begin to end: `below` and `equal` keys that are so
// come before.
template <class Key>
__device__ void Pick(const RankRun& run, int64_t task, int64_t begin, int64_t end,
                     const Chosen& chosen, int64_t below, int64_t equal, BlockMemory& memory) {
  const KeyRows& in = run.keys;
  const int64_t row = RowOf(run, task), start = row * in.cols;
  const Key wanted = static_cast<Key>(chosen.key);
  for (int64_t tile = begin; tile < end; tile += kTile) {
    if (!run.first && equal > chosen.rank) return;  // the same for all threads
    const int64_t mine = tile + threadIdx.x * kItems;
    unsigned is_below = 0, is_equal = 0;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (mine + j >= end) break;
      const Key key = KeyAt<Key>(in.code, in.x, start + mine + j);
      is_below |= (key < wanted ? 1u : 0u) << j;
      is_equal |= (key == wanted ? 1u : 0u) << j;
    }
    if (!run.first) is_below = 0;
    if (!__syncthreads_or((is_below | is_equal) != 0)) continue;
    // Both counts in one sum: a tile has fewer than 2^32.
    unsigned long long sum = static_cast<unsigned long long>(__popc(is_below)) << 32 |
                             static_cast<unsigned>(__popc(is_equal));
    unsigned long long before, all;
    Scan(memory.scan).ExclusiveSum(sum, before, all);
    int64_t my_below = below + static_cast<int64_t>(before >> 32);
    int64_t my_equal = equal + static_cast<int64_t>(before & 0xFFFFFFFFu);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int64_t at = mine + j;
      if (is_below >> j & 1) run.places[row * run.k + my_below++] = at;
      if (!(is_equal >> j & 1)) continue;
      if (run.first && my_equal <= chosen.rank) {  // behind those below, of which k - 1 - rank
        run.places[row * run.k + run.k - 1 - chosen.rank + my_equal] = at;
      } else if (!run.first && my_equal == chosen.rank) {
        run.places[task] = at;
        if (run.values) CopyElement(in.code.bits, in.x, start + at, run.values, task);
      }
      ++my_equal;
    }
    below += static_cast<int64_t>(all >> 32);
    equal += static_cast<int64_t>(all & 0xFFFFFFFFu);
    __syncthreads();  // before the memory is used again
  }
}

// A block per task: all passes, then the elements.
template <class Key>
__global__ void __launch_bounds__(kThreads, 2) SelectKernel(RankRun run, int64_t tasks) {
  __shared__ BlockMemory memory;
  const KeyRows& in = run.keys;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t row = RowOf(run, task);
    if (threadIdx.x == 0) memory.chosen = {0, 0, in.cols};
    __syncthreads();
    for (int above = in.code.bits; above > 0;) {
      const int width = above < kDigitBits ? above : kDigitBits, low = above - width;
      const bool first = above == in.code.bits;
      CountDigits<Key>(in, row, 0, in.cols, low, width, first, memory.chosen.key, memory);
      if (first && threadIdx.x == 0) {
        memory.chosen.numbers = in.cols - static_cast<int64_t>(memory.nans);
        memory.chosen.rank = RankOf(run, task, memory.chosen.numbers);
      }
      __syncthreads();
      unsigned long long counts[kBinsPerThread];
#pragma unroll
      for (int j = 0; j < kBinsPerThread; ++j) {
        counts[j] = memory.counts[threadIdx.x * kBinsPerThread + j];
      }
      ChooseDigit(counts, low, memory);
      above = low;
    }
    const Chosen chosen = memory.chosen;
    if (run.numbers && threadIdx.x == 0 && task % run.ranks.per_row() == 0) {
      run.numbers[row] = chosen.numbers;
    }
    Pick<Key>(run, task, 0, in.cols, chosen, 0, 0, memory);
    __syncthreads();
  }
}

// One pass over slices; the last block of a task chooses.
template <class Key>
__global__ void __launch_bounds__(kThreads)
    CountKernel(RankRun run, Slicing s, Shared shared, int low, int width) {
  __shared__ BlockMemory memory;
  const KeyRows& in = run.keys;
  const int64_t task = blockIdx.x / s.slices, slice = blockIdx.x % s.slices;
  const bool first = low + width == in.code.bits;
  const int64_t begin = slice * s.length;
  const int64_t end = begin + s.length < in.cols ? begin + s.length : in.cols;
  if (threadIdx.x == 0) memory.chosen = shared.chosen[task];
  __syncthreads();
  CountDigits<Key>(in, RowOf(run, task), begin, end, low, width, first, memory.chosen.key, memory);
  unsigned long long* counts = shared.counts + task * kBins;
  for (int b = threadIdx.x; b < kBins; b += kThreads) {
    if (memory.counts[b] > 0) {
      atomicAdd(counts + b, static_cast<unsigned long long>(memory.counts[b]));
    }
  }
  if (threadIdx.x == 0 && memory.nans > 0) atomicAdd(shared.nans + task, memory.nans);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    memory.last = atomicAdd(shared.tickets + task, 1u) == static_cast<unsigned>(s.slices - 1);
  }
  __syncthreads();
  if (!memory.last) return;
  __syncthreads();  // before the memory is used again
  __threadfence();
  if (first && threadIdx.x == 0) {
    memory.chosen.numbers = in.cols - static_cast<int64_t>(__ldcg(shared.nans + task));
    memory.chosen.rank = RankOf(run, task, memory.chosen.numbers);
  }
  unsigned long long mine[kBinsPerThread];
#pragma unroll
  for (int j = 0; j < kBinsPerThread; ++j) {
    unsigned long long* count = counts + threadIdx.x * kBinsPerThread + j;
    mine[j] = __ldcg(count);
    *count = 0;  // for the next pass
  }
  __syncthreads();
  ChooseDigit(mine, low, memory);
  if (threadIdx.x == 0) {
    shared.chosen[task] = memory.chosen;
    shared.tickets[task] = 0;
    if (first && run.numbers && task % run.ranks.per_row() == 0) {
      run.numbers[RowOf(run, task)] = memory.chosen.numbers;
    }
  }
}

// How many keys of each slice are below and equal to the chosen one.
template <class Key>
__global__ void __launch_bounds__(kThreads) SumKernel(RankRun run, Slicing s, Shared shared) {
  __shared__ unsigned long long sums[2];
  const KeyRows& in = run.keys;
  const int64_t task = blockIdx.x / s.slices, slice = blockIdx.x % s.slices;
  const int64_t begin = slice * s.length, start = RowOf(run, task) * in.cols;
  const int64_t end = begin + s.length < in.cols ? begin + s.length : in.cols;
  const Key wanted = static_cast<Key>(shared.chosen[task].key);
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  __syncthreads();
  unsigned below = 0, equal = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const Key key = KeyAt<Key>(in.code, in.x, start + i);
    below += key < wanted;
    equal += key == wanted;
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    below += __shfl_xor_sync(0xFFFFFFFFu, below, lanes);
    equal += __shfl_xor_sync(0xFFFFFFFFu, equal, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&sums[0], static_cast<unsigned long long>(below));
    atomicAdd(&sums[1], static_cast<unsigned long long>(equal));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.slices[task * s.slices + slice] =
        make_longlong2(static_cast<long long>(sums[0]), static_cast<long long>(sums[1]));
  }
}

template <class Key>
__global__ void __launch_bounds__(kThreads, 2) PickKernel(RankRun run, Slicing s, Shared shared) {
  __shared__ BlockMemory memory;
  __shared__ unsigned long long sums[2];
  const int64_t task = blockIdx.x / s.slices, slice = blockIdx.x % s.slices;
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < slice; i += kThreads) {
    const longlong2 found = shared.slices[task * s.slices + i];
    atomicAdd(&sums[0], static_cast<unsigned long long>(found.x));
    atomicAdd(&sums[1], static_cast<unsigned long long>(found.y));
  }
  __syncthreads();
  const Chosen chosen = shared.chosen[task];
  const longlong2 here = shared.slices[task * s.slices + slice];
  const auto below = static_cast<int64_t>(sums[0]), equal = static_cast<int64_t>(sums[1]);
  const bool has_equal = here.y > 0 && equal <= chosen.rank;
  if (run.first ? here.x == 0 && !has_equal : !has_equal || equal + here.y <= chosen.rank) return;
  const int64_t cols = run.keys.cols, begin = slice * s.length;
  Pick<Key>(run, task, begin, begin + s.length < cols ? begin + s.length : cols, chosen, below,
            equal, memory);
}

int64_t TasksOf(const RankRun& run) {
  return run.keys.rows * (run.first ? 1 : run.ranks.per_row());
}

// Slices where tasks alone do not fill the device.
Slicing SlicingOf(const RankRun& run, const DeviceLimits& limits) {
  Slicing s{TasksOf(run), 1, run.keys.cols};
  const int64_t wanted = 4 * limits.multiprocessors / (s.tasks > 0 ? s.tasks : 1);
  const int64_t most = run.keys.cols / (kSliceTiles * kTile);
  int64_t slices = wanted < most ? wanted : most;
  if (slices > kMaxSlices) slices = kMaxSlices;
  if (slices < 2) return s;
  const int64_t tiles = (run.keys.cols + kTile - 1) / kTile;
  s.length = (tiles + slices - 1) / slices * kTile;
  s.slices = static_cast<int>((run.keys.cols + s.length - 1) / s.length);
  return s;
}

// Returns the bytes; the first *zeroed of them must be 0.
size_t LayOut(const Slicing& s, void* workspace, Shared* shared, size_t* zeroed) {
  char* at = static_cast<char*>(workspace);
  const size_t tasks = static_cast<size_t>(s.tasks);
  size_t offset = 0;
  const auto take = [&](size_t bytes) {
    char* start = at + offset;
    offset += Aligned(bytes);
    return start;
  };
  shared->counts = reinterpret_cast<unsigned long long*>(take(tasks * kBins * 8));
  shared->nans = reinterpret_cast<unsigned long long*>(take(tasks * 8));
  shared->tickets = reinterpret_cast<unsigned int*>(take(tasks * 4));
  shared->chosen = reinterpret_cast<Chosen*>(take(tasks * sizeof(Chosen)));
  *zeroed = offset;
  shared->slices = reinterpret_cast<longlong2*>(take(tasks * s.slices * sizeof(longlong2)));
  return offset;
}

template <class Key>
cudaError_t SelectSlices(const RankRun& run, const Slicing& s, void* workspace,
                         cudaStream_t stream) {
  Shared shared;
  size_t zeroed = 0;
  LayOut(s, workspace, &shared, &zeroed);
  cudaError_t error = cudaMemsetAsync(workspace, 0, zeroed, stream);
  const int64_t blocks = s.tasks * s.slices;
  for (int above = run.keys.code.bits; error == cudaSuccess && above > 0;) {
    const int width = above < kDigitBits ? above : kDigitBits;
    above -= width;
    error = Launch(CountKernel<Key>, blocks, kThreads, 0, stream, run, s, shared, above, width);
  }
  if (error == cudaSuccess) {
    error = Launch(SumKernel<Key>, blocks, kThreads, 0, stream, run, s, shared);
  }
  if (error != cudaSuccess) return error;
  return Launch(PickKernel<Key>, blocks, kThreads, 0, stream, run, s, shared);
}

}  // namespace

size_t SelectBytes(const RankRun& run, const DeviceLimits& limits) {
  const Slicing s = SlicingOf(run, limits);
  Shared shared;
  size_t zeroed = 0;
  return s.slices == 1 ? 0 : LayOut(s, nullptr, &shared, &zeroed);
}

cudaError_t LaunchSelect(const RankRun& run, const DeviceLimits& limits, void* workspace,
                         cudaStream_t stream) {
  const Slicing s = SlicingOf(run, limits);
  if (s.tasks <= 0) return cudaSuccess;
  const bool wide = run.keys.code.bits == 64;
  if (s.slices > 1) {
    return wide ? SelectSlices<uint64_t>(run, s, workspace, stream)
                : SelectSlices<uint32_t>(run, s, workspace, stream);
  }
  return wide ? Launch(SelectKernel<uint64_t>, s.tasks, kThreads, 0, stream, run, s.tasks)
              : Launch(SelectKernel<uint32_t>, s.tasks, kThreads, 0, stream, run, s.tasks);
}

}  // namespace cuda
}  // namespace oneflow_lite
