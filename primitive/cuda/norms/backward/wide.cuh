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
// (norms/backward/wide_block.cuh).
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/norms/backward/sums.cuh"
#include "primitive/cuda/norms/backward/wide_block.cuh"

namespace oneflow_lite::cuda {

// Own: void, or a class derived from this one that adds up a row's sums by packs of its own (kOwn,
// see NormWideBlock): FindOwn() for rows that start alike, Sums SumsOfOwn(row, mean).
template <class T, bool kCentre, bool kFromOutput, class Own = void>
class NormWide : protected NormWideBlock<T, kCentre, kFromOutput, !std::is_void_v<Own>> {
 protected:
  static constexpr bool kOwn = !std::is_void_v<Own>;
  static_assert(!(kOwn && kFromOutput));
  using Base = NormWideBlock<T, kCentre, kFromOutput, kOwn>;
  using Base::a_, Base::biases_, Base::column_, Base::grid_, Base::kPacks, Base::N, Base::packs_,
      Base::rows_, Base::scratch_, Base::weights_, Base::workers_, typename Base::C,
      typename Base::Scratch, typename Base::Sums, typename Base::Values;
  using Factors = NormRowFactors<C>;
  static constexpr int kKinds = kCentre ? 2 : 1;

 public:
  OFL_DEVICE NormWide(const NormBackward<T>& a, const NormWideGrid<T>& grid, char* shared)
      : Base(a, grid, shared) {}

  OFL_DEVICE void Run() {
    AllowNextKernel();
    const int rank = static_cast<int>(threadIdx.x) - workers_;
    if (grid_.words) Base::OfSlices().Start();
    if (rank == 0) Base::StartBarriers();
    __syncthreads();
    if (Base::Clustered()) internal::ClusterArriveRelaxed();
    if (rank >= kWarp) {
      // Another block's shared memory is there only once that block runs.
      if (Base::Clustered()) internal::ClusterWait();
      Base::SumRows();
      return;
    }
    if (rank < 0) {
      Work();
    } else {
      Base::CopyRows();
    }
    __syncwarp();
    if (Base::Clustered()) internal::ClusterWait();
  }

 protected:
  // Pack k of a worker: its place in the slice, and its first column. The first warps have kPacks
  // packs a lane, all of them whole. What is left, with the packs at the ends of the row, goes to
  // light warps, of fewer packs: questions take time, and the slowest warp holds up all others.
  OFL_DEVICE int Place(int k) const {
    const int place = place_ + k * kWarp;
    return light_ && place >= packs_ ? 0 : place;
  }
  OFL_DEVICE int Column(int k) const { return column_ + Place(k) * N; }
  OFL_DEVICE void FindPlaces() {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const bool front = column_<0, back = column_ + packs_ * N> Base::Cols();
    const int full = (packs_ - front - back) / (kPacks * kWarp);
    light_ = warp >= full;
    const int before = light_ ? full * kPacks + (warp - full) * kLightPacks : warp * kPacks;
    // A first pack that is not whole comes last.
    place_ = before * kWarp + static_cast<int>(threadIdx.x) % kWarp + front;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const bool there = place_ + k * kWarp < packs_ + front && !(light_ && k >= kLightPacks);
      const int first = FirstOf(Column(k)), last = LastOf(Column(k));
      mask_[k] = there ? (1u << last) - (1u << first) : 0;
    }
  }
  // The elements [FirstOf, LastOf) of a pack are the row's.
  static constexpr unsigned kWholeMask = (1u << N) - 1;
  static constexpr int kLightPacks = kPacks / 2;
  OFL_DEVICE int FirstOf(int col) const { return col < 0 ? -col : 0; }
  OFL_DEVICE int LastOf(int col) const { return Base::Cols() - col < N ? Base::Cols() - col : N; }

  // Where a row is: its turn and stage, and the low bits of the address of its slice.
  struct Row {
    int turn, stage;
    unsigned x, dy;
  };
  OFL_DEVICE unsigned Low(const T* row) const {
    return static_cast<unsigned>(reinterpret_cast<uintptr_t>(row)) +
           static_cast<unsigned>(column_) * static_cast<unsigned>(sizeof(T));
  }

  OFL_DEVICE void Work() {
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
      T* out = a_.dx + some.row * a_.cols + column_;
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
  OFL_DEVICE void Start(const NormWideRows::Some& some) {
    Base::Slice(some.row);
    FindPlaces();
    if constexpr (kOwn) static_cast<Own*>(this)->FindOwn();
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      KeepWeights(k);
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }

  // Makes the compiler work out anew in each row what follows from these. It would keep all that.
  OFL_DEVICE void Forget() { asm volatile("" : "+r"(packs_), "+r"(column_)); }

  OFL_DEVICE void KeepWeights(int k) const {
    const int col = Column(k), first = FirstOf(col), last = mask_[k] != 0 ? LastOf(col) : 0;
    Write(weights_, k, LoadWeights<C, N, T>(a_.weight, a_.float_weight, col, first, last, C(1)));
    if (kFromOutput) {
      Write(biases_, k, LoadWeights<C, N, T>(a_.bias, a_.float_weight, col, first, last, C(0)));
    }
  }
  // A pack of weights, in words that lie a warp's words apart. Only its worker touches it.
  static constexpr int kWords = sizeof(Values) / kPackBytes;
  OFL_DEVICE int WordOf(int k) const {
    const int thread = static_cast<int>(threadIdx.x);
    return (thread / kWarp * kPacks + k) * kWords * kWarp + thread % kWarp;
  }
  OFL_DEVICE void Write(char* memory, int k, const Values& pack) const {
    StoreApart(reinterpret_cast<uint4*>(memory) + WordOf(k), kWarp, pack);
  }
  OFL_DEVICE Values Read(const char* memory, int k) const {
    return LoadApart<Values>(reinterpret_cast<const uint4*>(memory) + WordOf(k), kWarp);
  }

  // Calls use(k, shifted, masked) for the warp's packs, with constants that say whether rows of x
  // or dy lie otherwise than those of dx, and whether packs may be missing or not whole.
  template <class Use>
  OFL_DEVICE void EachPack(const Row& row, const Use& use) const {
    using Yes = std::true_type;
    using No = std::false_type;
    const bool shifted = ((row.x | row.dy) & (kPackBytes - 1)) != 0;
    if (!light_ && !shifted) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) use(k, No(), No());
    } else if (!light_) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) use(k, Yes(), No());
    } else if (!shifted) {
#pragma unroll
      for (int k = 0; k < kLightPacks; ++k) use(k, No(), Yes());
    } else {
#pragma unroll
      for (int k = 0; k < kLightPacks; ++k) use(k, Yes(), Yes());
    }
  }
  // v and dy (norms/math.cuh) of pack k; 0 where there is nothing of the row.
  template <bool kShifted, bool kMasked>
  OFL_DEVICE void Read(const Row& row, int k, C mean, const Values& w, Values& v,
                       Values& dy) const {
    int place = place_ + k * kWarp;
    if (kMasked && place >= packs_) place = 0;
    const char* const part = this->ring_ + row.stage * 2 * grid_.tensor_bytes + place * kPackBytes;
    v = ConvertPack<C>(OnChip<kShifted>(part, row.x));
    dy = ConvertPack<C>(OnChip<kShifted>(part + grid_.tensor_bytes, row.dy));
    Values bias;
    if (kFromOutput) bias = Read(biases_, k);
    ToValues<kCentre, kFromOutput>(v, w, bias, mean);
    if (!kMasked) return;
    uint32_t mask = mask_[k];
    PinRegister(mask);  // the compiler would keep its bits in registers of their own
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v.v[i] = mask >> i & 1 ? v.v[i] : C(0);
      dy.v[i] = mask >> i & 1 ? dy.v[i] : C(0);
    }
  }
  template <bool kShifted>
  OFL_DEVICE Pack<T, N> OnChip(const char* part, unsigned low) const {
    const char* const at = part + (low & NormWidePolicy::kLineMask);
    if (!kShifted) return LoadApart<Pack<T, N>>(at, 1);
    return ShiftedPackOnChip<T, N>(at, low & (kPackBytes - 1));
  }

  // What the worker's columns give to a row's sums.
  OFL_DEVICE void AddUp(const Row& row, int parity) const {
    ClusterBarrier(scratch_.full, row.stage).AwaitBlock(parity);
    const C mean = scratch_.mean[row.stage];
    Sums sums;
    if constexpr (kOwn) {
      if (grid_.needs_sums) sums = static_cast<const Own*>(this)->SumsOfOwn(row, mean);
    } else if (grid_.needs_sums) {
      EachPack(row, [&](int k, auto shifted, auto masked) {
        const Values w = Read(weights_, k);
        Values v, dy;
        Read<decltype(shifted)::value, decltype(masked)::value>(row, k, mean, w, v, dy);
#pragma unroll
        for (int i = 0; i < N; ++i) sums.Add(dy.v[i] * w.v[i], v.v[i]);
      });
    }
    // The warp that sums has time for the rest.
    constexpr int kPosts = NormWidePolicy::kPosts;
#pragma unroll
    for (int mask = kWarp / 2; mask >= kPosts; mask /= 2) sums = sums + ShuffleXor(sums, mask);
    const int place = Scratch::Place(row.turn), lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane < kPosts) {
      const int warp = static_cast<int>(threadIdx.x) / kWarp;
      StoreApart(&scratch_.workers[place][warp * kPosts + lane], 1, sums);
    }
    __syncwarp();
    if (lane == 0) ClusterBarrier(scratch_.posted, place).Arrive();
  }
  OFL_DEVICE void Apply(const Row& row, T* out) {
    const int place = Scratch::Place(row.turn);
    const C mean = scratch_.mean[row.stage];
    ClusterBarrier(scratch_.known, place).AwaitBlock(Scratch::Parity(row.turn));
    const Factors factors = scratch_.row[place];
    StowedPack<T, N> packed[kPacks];  // stored last, because no load passes a store
    EachPack(row, [&](int k, auto shifted, auto masked) {
      const Values w = Read(weights_, k);
      Values v, dy, dx;
      Read<decltype(shifted)::value, decltype(masked)::value>(row, k, mean, w, v, dy);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if constexpr (kOwn) {
          dx.v[i] = Own::RoundedAlike(factors, w.v[i], v.v[i], dy.v[i], dweight_[k].v[i]);
        } else {
          const C scaled = dy.v[i] * factors.rstd;
          dx.v[i] = scaled * w.v[i] +
                    (kCentre ? v.v[i] * factors.by_v + factors.constant : v.v[i] * factors.by_v);
          dweight_[k].v[i] += kFromOutput ? dy.v[i] * v.v[i] : scaled * v.v[i];
          if (kRecentre<T, kCentre> && !kFromOutput) dweight_[k].v[i] += dy.v[i] * factors.offset;
        }
        if (kCentre) dbias_[k].v[i] += dy.v[i];
      }
      if (a_.dsum) AddDsum<decltype(masked)::value>(dx, out - a_.dx, k);
      packed[k] = StowedPack<T, N>::Of(ConvertPack<T>(dx));
    });
    __syncwarp();
    if (threadIdx.x % kWarp == 0) ClusterBarrier(scratch_.free, row.stage).Arrive();
    if (a_.dx) Store(out, packed);
  }
  template <bool kMasked>
  OFL_DEVICE void AddDsum(Values& dx, int64_t slice, int k) const {
    const T* const dsum = a_.dsum + slice + Place(k) * N;
    const bool whole = !kMasked || mask_[k] == kWholeMask;
    const int col = Column(k), last = mask_[k] != 0 ? LastOf(col) : 0;
    const Values more = whole && BytesPastBoundary(dsum) == 0
                            ? ConvertPack<C>(LoadAlignedPack<N>(dsum))
                            : LoadPart<C, N>(dsum, FirstOf(col), last, C(0));
    dx += more;
  }
  OFL_DEVICE void Store(T* slice, const StowedPack<T, N> (&packed)[kPacks]) const {
    if (!light_) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        StoreAlignedPack(slice + place_ * N + k * kWarp * N, packed[k].Get());
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kLightPacks; ++k) {
      T* const to = slice + Place(k) * N;
      if (mask_[k] == kWholeMask) {
        StoreAlignedPack(to, packed[k].Get());
      } else if (mask_[k] != 0) {
        const Pack<T, N> dx = packed[k].Get();
#pragma unroll
        for (int i = 0; i < N; ++i) {
          if (mask_[k] >> i & 1) to[i] = dx.v[i];
        }
      }
    }
  }

  OFL_DEVICE void StoreParts(int64_t part, const Values (&sums)[kPacks]) const {
    C* const parts = grid_.parts + part * PartPitch<C>(a_.cols);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (mask_[k] >> i & 1) parts[Column(k) + i] = sums[k].v[i];
      }
    }
  }

  bool light_;
  int place_;              // see Place
  uint32_t mask_[kPacks];  // which elements of a pack are the row's
  Values dweight_[kPacks], dbias_[kPacks];
};

template <class T, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, 1)
    NormWideKernel(const __grid_constant__ NormBackward<T> a,
                   const __grid_constant__ NormWideGrid<T> grid) {
  extern __shared__ __align__(128) char wide_memory[];
  NormWide<T, kCentre, kFromOutput>(a, grid, wide_memory).Run();
}

namespace internal {

template <class T, bool kCentre>
bool PlanWideFor(int64_t rows, int64_t cols, NormTraits traits, const DeviceLimits& limits,
                 NormWidePlan* plan) {
  traits.scratch_bytes = sizeof(NormWideScratch<ComputeType<T>, NormSums<T, kCentre>>);
  const auto clusters = [&](int blocks) {
    return MaxClusters<NormWideKernel<T, kCentre, false>>(  // the same for all
        blocks, NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, limits);
  };
  return PlanWide(rows, cols, traits, limits, clusters, plan);
}

// Where in the workspace the parts of the gradients of weight and bias are, in bytes: behind what
// slices exchange.
template <class T, bool kCentre>
int64_t WidePartsAt(const NormWidePlan& plan) {
  using Exchange =
      NormSliceExchange<NormSums<T, kCentre>, ComputeType<T>, kNormSumCount<T, kCentre>>;
  return plan.grid ? 8 * Exchange::Words(plan.units, plan.slices) : 0;  // turns are even
}

template <bool kCentre, auto kernel, class T>
cudaError_t LaunchNormWideAs(const NormWidePlan& plan, const NormBackward<T>& a,
                             const LaunchSite& site) {
  NormWideGrid<T> grid;
  static_cast<NormWideShape&>(grid) = plan;
  grid.needs_sums = a.template needs_sums<kCentre>();
  grid.share = static_cast<ComputeType<T>>(1.0 / static_cast<double>(a.cols));
  char* const memory = static_cast<char*>(site.workspace);
  grid.words = plan.grid ? reinterpret_cast<uint64_t*>(memory) : nullptr;
  grid.parts = reinterpret_cast<ComputeType<T>*>(memory + WidePartsAt<T, kCentre>(plan));
  return LaunchLarge<kernel>({plan.grid ? 1 : plan.slices, plan.grid}, plan.units * plan.slices,
                             plan.workers + NormWidePolicy::kOtherThreads,
                             static_cast<size_t>(plan.shared), site, a, grid);
}
template <bool kCentre, class T>
cudaError_t LaunchNormWide(const NormWidePlan& plan, const NormBackward<T>& a,
                           const LaunchSite& site) {
  const cudaError_t error = VisitBool(a.from_output, [&](auto from_output) {
    constexpr auto kernel = NormWideKernel<T, kCentre, decltype(from_output)::value>;
    return LaunchNormWideAs<kCentre, kernel>(plan, a, site);
  });
  if (error != cudaSuccess) return error;
  const void* parts = static_cast<char*>(site.workspace) + WidePartsAt<T, kCentre>(plan);
  return ReduceParts<kCentre>(a, parts, plan.parts(), 1, site);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
