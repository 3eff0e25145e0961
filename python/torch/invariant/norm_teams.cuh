// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward of which dx of a row depends on that row alone, wherever it lies, and dweight
// and dbias on the batch, but not on the device. A number of teams, blocks or clusters of blocks,
// that follows from the width visits rows in turn. Rows come to shared memory as they lie; packs
// are counted from the row's own first column on, so a thread has the same columns in all rows and
// adds up their dweight and dbias in registers. dx leaves through shared memory (own_image.cuh).
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/norms/math.cuh"
#include "python/torch/invariant/own_image.cuh"

namespace oneflow_lite {
namespace cuda {

// How rows of so many columns are dealt out: a matter of the width and the dtype alone. Threads
// take up to 128 registers, so a multiprocessor has room for two blocks of 256 threads. Of so many
// teams all are resident at once on an H200, 16 multiprocessors of which share their clusters, or
// twice as many are.
template <class T>
struct NormTeams {
  static constexpr int N = kPackSize<T>;
  static constexpr int kPacks = sizeof(T) == 2 ? 3 : 4;                            // of a thread
  static constexpr int kThreads = 512, kWantedThreads = 288, kSmallThreads = 128;  // of a block
  static constexpr int kMostBlocks = 8;                                            // of a team
  static constexpr int kTinyTeams = 1024, kSmallTeams = 512;
  static constexpr int kClusterParts = 8, kPartBlocks = 32;  // of the device; resident in one
  static constexpr int64_t kSmallBytes = 48 << 10, kBytes = 100 << 10;  // of a block's stages
  static constexpr int kScratchBytes = 4 << 10;  // of a block, for what its team exchanges

  int blocks, share;  // of a team; packs of a block
  int threads, teams;

  explicit NormTeams(int64_t cols) {
    const int64_t packs = CeilDiv(cols, N), wanted = CeilDiv(packs, kPacks * kWantedThreads);
    blocks = static_cast<int>(wanted < kMostBlocks ? wanted : kMostBlocks);
    const int64_t each = CeilDiv(packs, blocks);
    share = each > kPacks * kThreads ? 0 : static_cast<int>(each);  // 0: no block holds it
    threads = static_cast<int>(CeilDiv(share, kPacks * kWarp)) * kWarp;
    teams = threads <= kWarp           ? kTinyTeams
            : threads <= kSmallThreads ? kSmallTeams
                                       : kClusterParts * (kPartBlocks / blocks);
  }
  // Bytes of a block's part of a row, which begins anywhere in a word.
  int64_t SlotBytes() const { return (int64_t{share} + 1) * kPackBytes; }
  // Rows in shared memory or on their way there: 2 to kMaxPendingCopies + 1.
  int Stages(int tensors, const DeviceLimits& limits) const {
    const int64_t room = limits.shared_per_block - kScratchBytes;
    const int64_t wanted = threads <= kSmallThreads ? kSmallBytes : kBytes;
    const int64_t stages = (wanted < room ? wanted : room) / (tensors * SlotBytes());
    return stages < 2 ? 2 : stages > kMaxPendingCopies ? kMaxPendingCopies + 1 : int(stages);
  }
  size_t SharedBytes(int tensors, const DeviceLimits& limits) const {
    return static_cast<size_t>(kScratchBytes + Stages(tensors, limits) * tensors * SlotBytes());
  }
  bool Serves(int tensors, const DeviceLimits& limits) const {
    return share > 0 && (blocks == 1 || limits.clusters) &&
           SharedBytes(tensors, limits) <= static_cast<size_t>(limits.shared_per_block);
  }
};

// What the kernel knows of the launch.
struct NormTeamsGrid {
  int blocks, share;  // as in NormTeams
  int stages, tensors;
};

namespace internal {

// A tensor's part of a row on its way to shared memory.
template <class T>
struct RowSlot {
  // The columns [begin, end) of the row at `row`. What else the first word holds comes as well.
  static __device__ __forceinline__ void Copy(char* slot, const T* row, int64_t begin,
                                              int64_t end) {
    const auto* from = reinterpret_cast<const char*>(row + begin);
    from -= BytesPastBoundary(from);
    const int bytes = static_cast<int>(reinterpret_cast<const char*>(row + end) - from);
    for (int at = threadIdx.x * kPackBytes; at < bytes; at += blockDim.x * kPackBytes) {
      const int left = bytes - at;
      CopyAsync(slot + at, from + at, left < kPackBytes ? left : kPackBytes);
    }
  }
  static __device__ __forceinline__ Pack<T, kPackSize<T>> Get(const char* slot, int pack,
                                                              const T* begin) {
    return ShiftedPackOnChip<T, kPackSize<T>>(slot + pack * kPackBytes, BytesPastBoundary(begin));
  }
};

// A pack of a row: x less the mean, dy, and the weights.
template <class T, bool kCentre>
struct NormTeamPack {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  Pack<C, N> v, dy, weight;

  // The first `count` columns are the row's, from column col on.
  __device__ __forceinline__ NormTeamPack(const NormBackward<T>& a, const StowedPack<T, N>& x_raw,
                                          const StowedPack<T, N>& dy_raw, int64_t col, int count,
                                          C mean)
      : v(ConvertPack<C>(x_raw.Get())), dy(ConvertPack<C>(dy_raw.Get())) {
    weight = LoadWeights<C, N, T>(a.weight, a.float_weight, col, 0, count, C(1));
    ToValues<kCentre, false>(v, weight, weight, mean);
    if (count < N) {
      ClearOutside(v, 0, count);
      ClearOutside(dy, 0, count);
    }
  }
};

// What a thread of a team does. Its columns are the same in all rows.
template <class T, bool kCentre>
struct NormTeamThread {
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  using Slot = RowSlot<T>;
  static constexpr int N = kPackSize<T>, kPacks = NormTeams<T>::kPacks;
  static constexpr int kKinds = kCentre ? 2 : 1;

  const NormBackward<T>& a;
  const NormTeamsGrid grid;
  char* const memory;
  const int slot_bytes;
  const int64_t begin, end;  // the block's columns
  const int columns;
  StowedPack<T, N> x[kPacks], dy[kPacks];  // of the row at hand
  C dweight[kPacks][N] = {}, dbias[kPacks][N] = {};

  __device__ __forceinline__ NormTeamThread(const NormBackward<T>& a, const NormTeamsGrid& grid,
                                            char* memory, int64_t part)
      : a(a),
        grid(grid),
        memory(memory),
        slot_bytes((grid.share + 1) * kPackBytes),
        begin(part * grid.share * N),
        end(begin + grid.share * N < a.cols ? begin + grid.share * N : a.cols),
        columns(begin < end ? static_cast<int>(end - begin) : 0) {}

  // Of x, behind which are those of dy and dsum.
  __device__ __forceinline__ char* SlotOf(int stage) const {
    return memory + stage * grid.tensors * slot_bytes;
  }
  __device__ __forceinline__ static int PackOf(int k) {
    return static_cast<int>(threadIdx.x + k * blockDim.x);
  }
  // Columns of pack k of this thread.
  __device__ __forceinline__ int CountOf(int k) const {
    const int left = columns - PackOf(k) * N;
    return left < 0 ? 0 : left < N ? left : N;
  }
  __device__ __forceinline__ NormTeamPack<T, kCentre> Get(int k, int count, C mean) const {
    return {a, x[k], dy[k], begin + PackOf(k) * N, count, mean};
  }
  // A batch of copies, empty behind the last row.
  __device__ __forceinline__ void Fetch(int64_t row, int stage) const {
    if (row < a.rows && columns > 0) {
      char* const slot = SlotOf(stage);
      Slot::Copy(slot, a.x + row * a.x_stride, begin, end);
      Slot::Copy(slot + slot_bytes, a.dy + row * a.cols, begin, end);
      if (grid.tensors > 2) {
        Slot::Copy(slot + 2 * slot_bytes, a.dsum + row * a.cols, begin, end);
      }
    }
    CommitCopies();
  }
  __device__ __forceinline__ Sums Read(const char* slot, int64_t row, C mean) {
    const T* const x_row = a.x + row * a.x_stride + begin;
    const T* const dy_row = a.dy + row * a.cols + begin;
    Sums sums;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int count = CountOf(k);
      if (count == 0) continue;
      x[k] = StowedPack<T, N>::Of(Slot::Get(slot, PackOf(k), x_row));
      dy[k] = StowedPack<T, N>::Of(Slot::Get(slot + slot_bytes, PackOf(k), dy_row));
      const auto pack = Get(k, count, mean);
#pragma unroll
      for (int i = 0; i < N; ++i) sums.Add(pack.dy.v[i] * pack.weight.v[i], pack.v.v[i]);
    }
    return sums;
  }
  // Puts dx in the place of dy, which all have in registers.
  __device__ __forceinline__ void Work(char* slot, int64_t row, C mean,
                                       const NormGradient<T, kCentre, false>& gradient) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int count = CountOf(k);
      if (count == 0) continue;
      const auto pack = Get(k, count, mean);
      Pack<C, N> dx;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C x_hat = gradient.XHat(pack.v.v[i]);
        dx.v[i] = gradient.Dx(pack.dy.v[i] * pack.weight.v[i], x_hat);
        dweight[k][i] += pack.dy.v[i] * x_hat;
        if (kCentre) dbias[k][i] += pack.dy.v[i];
      }
      if (!a.dx) continue;
      if (grid.tensors > 2) {
        const T* const dsum_row = a.dsum + row * a.cols + begin;
        const auto more = ConvertPack<C>(Slot::Get(slot + 2 * slot_bytes, PackOf(k), dsum_row));
#pragma unroll
        for (int i = 0; i < N; ++i) dx.v[i] += more.v[i];
      }
      reinterpret_cast<OnChipPack<T, N>*>(slot + slot_bytes)[PackOf(k)].Put(ConvertPack<T>(dx));
    }
  }
  __device__ __forceinline__ void Write(const char* slot, int64_t row) const {
    if (!a.dx) return;
    CopyImage<kPacks>(slot + slot_bytes, columns, a.dx + row * a.cols + begin,
                      static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  }
  __device__ __forceinline__ void Leave(C* parts, int64_t team) const {
    const int64_t pitch = PartPitch<C>(a.cols);
    C* const to = parts + team * kKinds * pitch + begin;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int count = CountOf(k);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i >= count) continue;
        to[PackOf(k) * N + i] = dweight[k][i];
        if (kCentre) to[pitch + PackOf(k) * N + i] = dbias[k][i];
      }
    }
  }
};

}  // namespace internal

// parts[teams][kinds] at PartPitch(cols): dweight, and dbias where kCentre; may be null. Dynamic
// shared memory: what the team exchanges, then grid.stages times grid.tensors (x, dy and maybe
// dsum) slots.
template <bool kCluster, class T, bool kCentre>
__global__ void __launch_bounds__(NormTeams<T>::kThreads)
    NormTeamsKernel(const __grid_constant__ NormBackward<T> a, ComputeType<T> row_share,
                    NormTeamsGrid grid, ComputeType<T>* parts) {
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  using Team = internal::Warps<kCluster>;
  extern __shared__ __align__(16) char memory[];
  constexpr int kScratchBytes = NormTeams<T>::kScratchBytes;
  static_assert(Team::kScratchBytes <= kScratchBytes);
  Team team(memory);
  int part = 0;
  if constexpr (kCluster) part = team.cluster.rank();
  internal::NormTeamThread<T, kCentre> thread(a, grid, memory + kScratchBytes, part);
  const int64_t first = kCluster ? internal::ClusterIndex() : blockIdx.x;
  const int64_t step = gridDim.x / grid.blocks;
  for (int s = 0; s + 1 < grid.stages; ++s) thread.Fetch(first + s * step, s);
  C next_mean = kCentre ? a.mean[first] : C(0), next_rstd = a.rstd[first];
  int stage = 0;
#pragma unroll 1
  for (int64_t row = first; row < a.rows; row += step) {
    const C mean = next_mean, rstd = next_rstd;
    if (row + step < a.rows) {
      if (kCentre) next_mean = a.mean[row + step];
      next_rstd = a.rstd[row + step];
    }
    WaitForCopies(grid.stages - 2);
    __syncthreads();
    // All have read what was in the stage before this one.
    thread.Fetch(row + (grid.stages - 1) * step, stage == 0 ? grid.stages - 1 : stage - 1);
    char* const slot = thread.SlotOf(stage);
    stage = stage + 1 == grid.stages ? 0 : stage + 1;

    Sums sums = thread.Read(slot, row, mean);
    sums = team.Merge(team.Reduce(sums, Plus{}, Sums{}), Plus{});
    thread.Work(slot, row, mean, NormGradient<T, kCentre, false>(sums, rstd, row_share));
    __syncthreads();
    thread.Write(slot, row);
  }
  WaitForCopies(0);
  if (parts) thread.Leave(parts, first);
}

// Bytes of parts.
template <class T, bool kCentre>
int64_t NormTeamsBytes(int64_t cols) {
  using C = ComputeType<T>;
  return NormTeams<T>(cols).teams * (kCentre ? 2 : 1) * PartPitch<C>(cols) *
         static_cast<int64_t>(sizeof(C));
}

namespace internal {

// Leaves the parts of so many teams.
template <bool kCluster, bool kCentre, class T>
cudaError_t LaunchTeamsOf(const NormBackward<T>& a, const NormTeams<T>& teams, int tensors,
                          int64_t count, const DeviceLimits& limits, cudaStream_t stream,
                          ComputeType<T>* parts) {
  using C = ComputeType<T>;
  constexpr auto kKernel = &NormTeamsKernel<kCluster, T, kCentre>;
  const cudaError_t error = AllowAllShared<NormTeamsKernel<kCluster, T, kCentre>>(limits);
  if (error != cudaSuccess) return error;
  const NormTeamsGrid grid{teams.blocks, teams.share, teams.Stages(tensors, limits), tensors};
  return LaunchAs({teams.blocks}, kKernel, count * teams.blocks, teams.threads,
                  teams.SharedBytes(tensors, limits), stream, a,
                  static_cast<C>(1.0 / static_cast<double>(a.cols)), grid, parts);
}

}  // namespace internal

}  // namespace cuda
}  // namespace oneflow_lite
