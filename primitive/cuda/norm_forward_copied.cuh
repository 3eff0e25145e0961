// SPDX-License-Identifier: Apache-2.0
//
// layer_norm over many wide rows of whole packs: like norm_forward_whole.cuh, but a thread keeps
// only its first packs in registers. The others are copied into shared memory, each to a place that
// no other thread looks at: a row needs half as many blocks, and twice as many bytes are on their
// way to a multiprocessor.
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/norm_forward_whole.cuh"

namespace oneflow_lite {
namespace cuda {

struct NormCopiedPolicy {
  // By measurement on an H200, half, shares of a copy: 65536 columns 0.954, 0.914 in registers;
  // 131072 0.93 and 0.85; 196608 0.90 and 0.77. Blocks whose packs are three quarters of what they
  // have room for, or less, are slower.
  static constexpr int kPacks = 16;                  // per thread
  static constexpr int kKept = 4;                    // ... of which in registers
  static constexpr int kThreads = 512, kBlocks = 2;  // per multiprocessor
  static constexpr int kSlots = kPacks * kThreads;   // packs of a block, at most
  static constexpr int kMostBlocks = 8;              // of a cluster
  static constexpr int kLeastBlocks = 8;             // of a launch, per multiprocessor
  // Rows that take so many blocks in registers: float32 at 32768 columns 0.96, 0.97 as two blocks.
  template <class T>
  static constexpr int kFromBlocks = sizeof(T) == 2 ? 2 : 4;
  // Shared memory for what a block with `slice` packs does not keep in registers.
  static constexpr __host__ __device__ int Bytes(int slice) {
    const int each = (slice + kThreads - 1) / kThreads;
    return each > kKept ? (each - kKept) * kThreads * 16 : 0;
  }
};

// What a thread holds of a row. Load, Gather and Store follow each other.
template <class T>
class NormCopiedRow {
  using P = NormCopiedPolicy;
  using C = ComputeType<T>;
  using Part = NormPart<C>;
  static constexpr int N = kPackSize<T>;
  static constexpr int kStep = P::kThreads * N;   // columns from a thread's pack to its next
  static constexpr bool kExact = sizeof(T) == 2;  // 16-bit elements add up nearly without an error
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;

 public:
  // The block has `packs` packs of the row, from `first` on. copied: P::Bytes, aligned to 16.
  __device__ __forceinline__ NormCopiedRow(const NormWhole<T>& p, int64_t row, int first, int packs,
                                           char* copied)
      : p_(p),
        row_(row),
        packs_(packs),
        col_((first + static_cast<int>(threadIdx.x)) * N),
        copied_(copied + threadIdx.x * kPackBytes) {}

  // Asks for the row; nothing waits for it yet.
  __device__ __forceinline__ void Load() {
    const T* x = p_.a.x + row_ * p_.a.x_stride + col_;
#pragma unroll
    for (int k = 0; k < P::kKept; ++k) {
      if (Has(k)) x_[k] = Stowed::Of(LoadAlignedPack<N>(x + k * kStep));
    }
#pragma unroll
    for (int k = P::kKept; k < P::kPacks; ++k) {
      if (Has(k)) CopyAsync(Place(k), x + k * kStep, kPackBytes);
    }
    CommitCopies();
  }
  // What this warp's columns come to.
  __device__ __forceinline__ Part Gather() {
    C sum = 0;
#pragma unroll
    for (int k = 0; k < P::kPacks; ++k) {
      if (k == P::kKept) WaitForCopiesOf<0>();
      if (!Has(k)) continue;
      const Values v = Value(k);
#pragma unroll
      for (int i = 0; i < N; ++i) sum += v.v[i];
    }
    sum = ReduceLanes<kWarp>(sum, Plus{});
    Part part;
    part.count = static_cast<C>(Count());
    const C share = part.count == 0 ? C(0) : Quotient(C(1), part.count);
    part.mean = mean_ = sum * share;
    SumOf<C, 2> sums;  // of the distances, and of their squares
#pragma unroll
    for (int k = 0; k < P::kPacks; ++k) {
      if (!Has(k)) continue;
      Values v = Value(k);
#pragma unroll
      for (C& d : v.v) {
        d -= mean_;
        if (!kExact) sums.v[0] += d;
        sums.v[1] += d * d;
      }
    }
    if constexpr (kExact) {
      sums.v[0] = fma(-part.count, mean_, sum);
      sums.v[1] = ReduceLanes<kWarp>(sums.v[1], Plus{});
    } else {
      sums = ReduceLanes<kWarp>(sums, Plus{});
    }
    part.low = sums.v[0] * share;
    part.squares = sums.v[1] - sums.v[0] * part.low;
    return part;
  }
  // The first pack's.
  __device__ __forceinline__ void AskForWeights() { AskForWeights(0); }
  // row: what the whole row comes to.
  __device__ __forceinline__ void Store(const Part& row) {
    const C squares = row.squares < 0 ? C(0) : row.squares;  // it may have been rounded below 0
    const C rstd = ReciprocalRoot(squares * p_.share + p_.eps);
    if (col_ == 0) {
      if (p_.a.mean) p_.a.mean[row_] = row.mean + row.low;
      if (p_.a.rstd) p_.a.rstd[row_] = rstd;
    }
    const C offset = ((mean_ - row.mean) - row.low) * rstd;
    T* y = p_.a.y + row_ * p_.a.cols + col_;
#pragma unroll
    for (int k = 0; k < P::kPacks; ++k) {
      if (!Has(k)) break;
      Values v = Value(k);
      const Values w = ConvertPack<C>(weight_.Get()), b = ConvertPack<C>(bias_.Get());
      if (k + 1 < P::kPacks) AskForWeights(k + 1);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v.v[i] = ((v.v[i] - mean_) * rstd + offset) * w.v[i] + b.v[i];
      }
      StoreAlignedPack<N>(y + k * kStep, ConvertPack<T>(v));
    }
  }

 private:
  __device__ __forceinline__ bool Has(int k) const {
    return static_cast<int>(threadIdx.x) + k * P::kThreads < packs_;
  }
  __device__ __forceinline__ char* Place(int k) const {
    return copied_ + (k - P::kKept) * P::kThreads * kPackBytes;
  }
  __device__ __forceinline__ Values Value(int k) const {
    if (k < P::kKept) return ConvertPack<C>(x_[k < P::kKept ? k : 0].Get());
    // Volatile: the compiler would keep what it has read once, and spill.
    uint4 word;
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(Place(k)))));
    Stowed pack;
    memcpy(&pack, &word, sizeof(word));
    return ConvertPack<C>(pack.Get());
  }
  __device__ __forceinline__ void AskForWeights(int k) {
    if (!Has(k)) return;
    const int col = col_ + k * kStep;
    weight_ = Stowed::Of(LoadAlignedPack<N>(static_cast<const T*>(p_.a.weight) + col));
    bias_ = Stowed::Of(LoadAlignedPack<N>(static_cast<const T*>(p_.a.bias) + col));
  }
  // Columns of this warp.
  __device__ __forceinline__ int Count() const {
    int count = 0;
#pragma unroll
    for (int k = 0; k < P::kPacks; ++k) {
      const int left = packs_ - static_cast<int>(threadIdx.x / kWarp * kWarp) - k * P::kThreads;
      count += left < 0 ? 0 : left < kWarp ? left : kWarp;
    }
    return count * N;
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int packs_, col_;  // of the block; the thread's first column
  char* const copied_;     // the thread's places, in shared memory
  C mean_ = 0;             // of the warp's columns
  Stowed x_[P::kKept], weight_, bias_;
};

// A row per block, or per cluster of blocks, each of which has `slice` packs of it. Weight and bias
// are plain; see NormWhole.
template <class T>
__global__ void __launch_bounds__(NormCopiedPolicy::kThreads, NormCopiedPolicy::kBlocks)
    NormCopiedKernel(const __grid_constant__ NormWhole<T> p, int slice) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared + NormCopiedPolicy::Bytes(slice));
  const int first = Exchange::block() * slice;
  const int packs = p.packs - first < slice ? p.packs - first : slice;
  NormCopiedRow<T> part(p, internal::ClusterIndex(), first, packs, shared);
  part.Load();
  exchange.Send(part.Gather());
  part.AskForWeights();
  part.Store(MergeParts<true>(exchange.Receive(), Exchange::values(), p.share));
}

}  // namespace cuda
}  // namespace oneflow_lite
