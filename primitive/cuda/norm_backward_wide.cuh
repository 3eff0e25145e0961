// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward over wide rows: x and dy are read once. A block, or a cluster of blocks with
// a slice of the columns each, stays for the whole launch and visits row after row. Its threads
// take parts:
//
//   a warp copies rows into a ring of stages in shared memory;
//   the workers add up what their columns give to a row's sums, and warp by warp post that;
//   a warp adds up what was posted, over the cluster, and publishes what the row's gradient needs;
//   the workers compute dx, and what the row adds to the gradients of their columns' weights.
//
// A worker adds up a row or two ahead of that whose dx it computes, so that nobody waits while sums
// travel. Its columns are the same in every row, and what they gather stays in registers: for that,
// a unit visits rows that start at the same distance from a multiple of 16 bytes
// (norm_wide_rows.cuh).
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/norm_wide_block.cuh"
#include "primitive/cuda/packs_on_chip.cuh"

namespace oneflow_lite {
namespace cuda {

// How the packs of a warp lie in its rows: all there and whole, in x and dy as in dx; maybe some
// not there, or beyond an end of the row; maybe otherwise in x and dy than in dx, too.
enum class NormPacksLie { kWhole, kMasked, kShifted };

template <class T, bool kCentre, bool kFromOutput>
class NormWide : NormWideBlock<T, kCentre, kFromOutput> {
  using Base = NormWideBlock<T, kCentre, kFromOutput>;
  using Base::a_;
  using Base::biases_;
  using Base::column_;
  using Base::grid_;
  using Base::kPacks;
  using Base::N;
  using Base::packs_;
  using Base::rows_;
  using Base::scratch_;
  using Base::weights_;
  using Base::workers_;
  using typename Base::C;
  using typename Base::Scratch;
  using typename Base::Sums;
  using typename Base::Values;
  using Factors = NormRowFactors<C>;
  static constexpr int kKinds = kCentre ? 2 : 1;

 public:
  __device__ __forceinline__ NormWide(const NormBackward<T>& a, const NormWideGrid<T>& grid,
                                      char* shared)
      : Base(a, grid, shared) {}

  __device__ __forceinline__ void Run() {
    AllowNextKernel();
    const int rank = static_cast<int>(threadIdx.x) - workers_;
    if (rank == 0) Base::StartBarriers();
    __syncthreads();
    if (grid_.slices > 1) internal::ClusterArriveRelaxed();
    if (rank >= kWarp) {
      // Another block's shared memory is there only once that block runs.
      if (grid_.slices > 1) internal::ClusterWait();
      Base::SumRows();
      return;
    }
    if (rank < 0) {
      Work();
    } else {
      Base::CopyRows();
    }
    __syncwarp();
    if (grid_.slices > 1) internal::ClusterWait();
  }

 private:
  // Pack k of a worker: its place in the slice, and its first column.
  __device__ __forceinline__ int Index(int k) const {
    return static_cast<int>(threadIdx.x) + k * workers_;
  }
  __device__ __forceinline__ bool Has(int k) const { return Index(k) < packs_; }
  __device__ __forceinline__ int Column(int k) const { return column_ + Index(k) * N; }
  // Which elements of it are the row's.
  static constexpr unsigned kWholeMask = (1u << N) - 1;
  __device__ __forceinline__ unsigned MaskOf(int k) const {
    const int col = Column(k), first = FirstOf(col), last = LastOf(k);
    return last > first ? (1u << last) - (1u << first) : 0;
  }
  __device__ __forceinline__ int FirstOf(int col) const { return col < 0 ? -col : 0; }
  __device__ __forceinline__ int LastOf(int k) const {
    const int left = Base::Cols() - Column(k);
    return Has(k) ? left < N ? left : N : 0;
  }

  // Where a row is: its turn and stage, and the low bits of the address of its slice.
  struct Row {
    int turn, stage;
    unsigned x, dy;
  };
  __device__ __forceinline__ unsigned Low(const T* row) const {
    return static_cast<unsigned>(reinterpret_cast<uintptr_t>(row)) +
           static_cast<unsigned>(column_) * static_cast<unsigned>(sizeof(T));
  }

  __device__ __forceinline__ void Work() {
    Row next{0, 0, 0, 0};
    int parity = 0;
#pragma unroll 1
    for (auto some = rows_.First(); some.There(); rows_.Next(some)) {
      Start(some);
      next.x = Low(a_.x + some.row * a_.x_stride), next.dy = Low(a_.dy + some.row * a_.cols);
      Row now = next;
      const auto step_x = static_cast<unsigned>(some.step * a_.x_stride * sizeof(T));
      const auto step_dy = static_cast<unsigned>(some.step * a_.cols * sizeof(T));
      const auto advance = [&](Row& row) {
        ++row.turn;
        if (++row.stage == grid_.stages) row.stage = 0;
        row.x += step_x, row.dy += step_dy;
      };
      T* out = a_.dx + some.row * a_.cols + Column(0);
#pragma unroll 1
      for (int i = -grid_.ahead; i < some.count; ++i) {
        Forget();
        if (i + grid_.ahead < some.count) {
          AddUp(next, parity);
          advance(next);
          if (next.stage == 0) parity ^= 1;
        }
        if (i < 0) continue;
        Apply(now, out);
        advance(now);
        out += some.step * a_.cols;
      }
      const int64_t parts = int64_t{some.part} * kKinds;
      if (a_.dweight) StoreParts(parts, dweight_);
      if (kCentre && a_.dbias) StoreParts(parts + 1, dbias_);
    }
  }
  __device__ __forceinline__ void Start(const NormWideRows::Some& some) {
    Base::Slice(some.row);
    bool whole = true;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      mask_[k] = MaskOf(k);
      whole = whole && mask_[k] == kWholeMask;
      KeepWeights(k);
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
    whole_ = __all_sync(0xffffffffu, whole);
  }

  // Makes the compiler work out anew in each row what follows from these. It would keep all that.
  __device__ __forceinline__ void Forget() {
    asm volatile("" : "+r"(packs_), "+r"(workers_), "+r"(column_));
  }

  __device__ __forceinline__ void KeepWeights(int k) const {
    const int col = Column(k), first = FirstOf(col), last = LastOf(k);
    Write(weights_, k, LoadWeights<C, N, T>(a_.weight, a_.float_weight, col, first, last, C(1)));
    if (kFromOutput) {
      Write(biases_, k, LoadWeights<C, N, T>(a_.bias, a_.float_weight, col, first, last, C(0)));
    }
  }
  // A pack of weights, in words that lie the workers' words apart. Only its worker touches it.
  static constexpr int kWords = sizeof(Values) / kPackBytes;
  __device__ __forceinline__ void Write(char* memory, int k, const Values& pack) const {
    uint4 words[kWords];
    memcpy(words, &pack, sizeof(Values));
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      reinterpret_cast<uint4*>(memory)[(k * kWords + i) * workers_ + threadIdx.x] = words[i];
    }
  }
  __device__ __forceinline__ Values Read(const char* memory, int k) const {
    uint4 words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      words[i] = reinterpret_cast<const uint4*>(memory)[(k * kWords + i) * workers_ + threadIdx.x];
    }
    Values pack;
    memcpy(&pack, words, sizeof(Values));
    return pack;
  }

  __device__ __forceinline__ NormPacksLie HowLie(const Row& row) const {
    if (((row.x | row.dy) & (kPackBytes - 1)) != 0) return NormPacksLie::kShifted;
    return whole_ ? NormPacksLie::kWhole : NormPacksLie::kMasked;
  }
  // v and dy (norm_math.cuh) of pack k; 0 where there is nothing of the row.
  template <NormPacksLie kLie>
  __device__ __forceinline__ void Read(const Row& row, int k, C mean, const Values& w, Values& v,
                                       Values& dy) const {
    int index = Index(k);
    if (kLie != NormPacksLie::kWhole && index >= packs_) index = 0;
    const char* const part = this->ring_ + row.stage * 2 * grid_.tensor_bytes + index * kPackBytes;
    v = ConvertPack<C>(OnChip<kLie>(part, row.x));
    dy = ConvertPack<C>(OnChip<kLie>(part + grid_.tensor_bytes, row.dy));
    Values bias;
    if (kFromOutput) bias = Read(biases_, k);
    ToValues<kCentre, kFromOutput>(v, w, bias, mean);
    if (kLie == NormPacksLie::kWhole) return;
    uint32_t mask = mask_[k];
    PinRegister(mask);  // the compiler would keep its bits in registers of their own
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v.v[i] = mask >> i & 1 ? v.v[i] : C(0);
      dy.v[i] = mask >> i & 1 ? dy.v[i] : C(0);
    }
  }
  template <NormPacksLie kLie>
  __device__ __forceinline__ Pack<T, N> OnChip(const char* part, unsigned low) const {
    const char* const at = part + (low & NormWidePolicy::kLineMask);
    if (kLie != NormPacksLie::kShifted) return PackOnChip<T, N>(at);
    return ShiftedPackOnChip<T, N>(at, low & (kPackBytes - 1));
  }

  // What the worker's columns give to a row's sums.
  __device__ __forceinline__ void AddUp(const Row& row, int parity) const {
    ClusterBarrier(scratch_.full, row.stage).AwaitBlock(parity);
    const C mean = scratch_.mean[row.stage];
    const NormPacksLie lie = HowLie(row);
    Sums sums = lie == NormPacksLie::kWhole    ? SumsOf<NormPacksLie::kWhole>(row, mean)
                : lie == NormPacksLie::kMasked ? SumsOf<NormPacksLie::kMasked>(row, mean)
                                               : SumsOf<NormPacksLie::kShifted>(row, mean);
    // The warp that sums has time for the rest.
    constexpr int kPosts = NormWidePolicy::kPosts;
#pragma unroll
    for (int mask = kWarp / 2; mask >= kPosts; mask /= 2) sums = sums + ShuffleXor(sums, mask);
    const int place = Scratch::Place(row.turn), lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane < kPosts) {
      const int warp = static_cast<int>(threadIdx.x) / kWarp;
      StoreWords(scratch_.workers[place][warp * kPosts + lane], sums);
    }
    __syncwarp();
    if (lane == 0) ClusterBarrier(scratch_.posted, place).Arrive();
  }
  template <NormPacksLie kLie>
  __device__ __forceinline__ Sums SumsOf(const Row& row, C mean) const {
    Sums sums;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const Values w = Read(weights_, k);
      Values v, dy;
      Read<kLie>(row, k, mean, w, v, dy);
#pragma unroll
      for (int i = 0; i < N; ++i) sums.Add(dy.v[i] * w.v[i], v.v[i]);
    }
    return sums;
  }

  __device__ __forceinline__ void Apply(const Row& row, T* out) {
    const int place = Scratch::Place(row.turn);
    const C mean = scratch_.mean[row.stage];
    ClusterBarrier(scratch_.known, place).AwaitBlock(Scratch::Parity(row.turn));
    const Factors factors = scratch_.row[place];
    const NormPacksLie lie = HowLie(row);
    if (lie == NormPacksLie::kWhole) {
      ApplyTo<NormPacksLie::kWhole>(factors, row, mean, out);
    } else if (lie == NormPacksLie::kMasked) {
      ApplyTo<NormPacksLie::kMasked>(factors, row, mean, out);
    } else {
      ApplyTo<NormPacksLie::kShifted>(factors, row, mean, out);
    }
    __syncwarp();
    if (threadIdx.x % kWarp == 0) ClusterBarrier(scratch_.free, row.stage).Arrive();
  }
  template <NormPacksLie kLie>
  __device__ __forceinline__ void ApplyTo(const Factors& factors, const Row& row, C mean, T* out) {
    StowedPack<T, N> packed[kPacks];  // stored last, because no load passes a store
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const Values w = Read(weights_, k);
      Values v, dy, dx;
      Read<kLie>(row, k, mean, w, v, dy);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C scaled = dy.v[i] * factors.rstd;
        dx.v[i] = scaled * w.v[i] +
                  (kCentre ? v.v[i] * factors.by_v + factors.constant : v.v[i] * factors.by_v);
        dweight_[k].v[i] += kFromOutput ? dy.v[i] * v.v[i] : scaled * v.v[i];
        if (kRecentre<T, kCentre> && !kFromOutput) dweight_[k].v[i] += dy.v[i] * factors.offset;
        if (kCentre) dbias_[k].v[i] += dy.v[i];
      }
      if (a_.dsum) AddDsum<kLie>(dx, out - a_.dx + k * workers_ * N, k);
      packed[k] = StowedPack<T, N>::Of(ConvertPack<T>(dx));
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) Store<kLie>(out + k * workers_ * N, k, packed[k].Get());
  }
  template <NormPacksLie kLie>
  __device__ __forceinline__ void AddDsum(Values& dx, int64_t at, int k) const {
    const T* const dsum = a_.dsum + at;
    const bool whole = kLie == NormPacksLie::kWhole || mask_[k] == kWholeMask;
    const Values more = whole && BytesPastBoundary(dsum) == 0
                            ? ConvertPack<C>(LoadAlignedPack<N>(dsum))
                            : LoadPart<C, N>(dsum, FirstOf(Column(k)), LastOf(k), C(0));
#pragma unroll
    for (int i = 0; i < N; ++i) dx.v[i] += more.v[i];
  }
  template <NormPacksLie kLie>
  __device__ __forceinline__ void Store(T* to, int k, const Pack<T, N>& dx) const {
    if (kLie == NormPacksLie::kWhole || mask_[k] == kWholeMask) {
      StoreAlignedPack(to, dx);
    } else if (mask_[k] != 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (mask_[k] >> i & 1) to[i] = dx.v[i];
      }
    }
  }

  __device__ __forceinline__ void StoreParts(int64_t part, const Values (&sums)[kPacks]) const {
    C* const parts = grid_.parts + part * PartPitch<C>(a_.cols);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (mask_[k] >> i & 1) parts[Column(k) + i] = sums[k].v[i];
      }
    }
  }

  uint32_t mask_[kPacks];
  bool whole_;  // whether all packs of this warp are there, and within the row
  Values dweight_[kPacks], dbias_[kPacks];
};

template <class T, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, 1)
    NormWideKernel(const __grid_constant__ NormBackward<T> a,
                   const __grid_constant__ NormWideGrid<T> grid) {
  extern __shared__ __align__(128) char wide_memory[];
  NormWide<T, kCentre, kFromOutput>(a, grid, wide_memory).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
