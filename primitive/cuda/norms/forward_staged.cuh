// SPDX-License-Identifier: Apache-2.0
//
// rms_norm over rows of whole packs that clusters of blocks share: like norms/forward_whole.cuh,
// but weights are copied into shared memory while the row is on its way, each to a place that no
// other thread looks at. Asked for once a row's sum is known, as many as registers hold, they were
// waited for again and again.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/norms/forward_whole.cuh"

namespace oneflow_lite {
namespace cuda {

struct NormStagedPolicy {
  // By measurement on an H200, half, shares of a copy: 262144 columns 0.97, 0.92 with two packs of
  // weights ahead in registers. With biases there is too little room, and layer_norm is slower.
  static constexpr int kThreads = 512, kBlocks = 2;  // at most; per multiprocessor, at least
  // Rather blocks of so many threads in clusters twice as large, from four blocks on: 196608
  // columns 0.98, 0.93 with 384 threads.
  static constexpr int kSmallThreads = 256, kManyBlocks = 4;
  // Shared memory for weights.
  static constexpr __host__ __device__ int Bytes(int packs, int threads) {
    return packs * threads * 16;
  }
};

// What a thread holds of a row. Load, Gather and Store follow each other. That every pack may be
// missing keeps them apart: the compiler would mix the work on all of them, and spill.
template <class T, int kPacks>
class NormStagedRow {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;

 public:
  // The block has `packs` packs of the row, from `first` on. staged: NormStagedPolicy::Bytes,
  // aligned to 16.
  __device__ __forceinline__ NormStagedRow(const NormWhole<T>& p, int64_t row, int first, int packs,
                                           char* staged)
      : p_(p),
        row_(row),
        packs_(packs),
        col_((first + static_cast<int>(threadIdx.x)) * N),
        staged_(staged + threadIdx.x * kPackBytes) {}

  // Asks for the row and for weights; nothing waits for them yet.
  __device__ __forceinline__ void Load() {
    const T* x = p_.a.x + row_ * p_.a.x_stride + col_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (Has(k)) x_[k] = Stowed::Of(LoadAlignedPack<N>(x + Step(k)));
    }
    const T* weights = static_cast<const T*>(p_.a.weight) + col_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (Has(k)) CopyAsync(Place(k), weights + Step(k), kPackBytes);
    }
    CommitCopies();
  }
  // What this warp's columns come to.
  __device__ __forceinline__ NormPart<C> Gather() const {
    NormPart<C> part;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      const Values v = ConvertPack<C>(x_[k].Get());
#pragma unroll
      for (int i = 0; i < N; ++i) part.squares += v.v[i] * v.v[i];
    }
    part.squares = ReduceLanes<kWarp>(part.squares, Plus{});
    return part;
  }
  // row: what the whole row comes to.
  __device__ __forceinline__ void Store(const NormPart<C>& row) const {
    const C rstd = RstdOf<false>(row, p_.share, p_.eps);
    if (col_ == 0 && p_.a.rstd) p_.a.rstd[row_] = rstd;
    WaitForCopiesOf<0>();
    T* y = p_.a.y + row_ * p_.a.cols + col_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) break;
      Values v = ConvertPack<C>(x_[k].Get());
      const uint4 word = *reinterpret_cast<const uint4*>(Place(k));
      Pack<T, N> weight;
      memcpy(&weight, &word, sizeof(word));
      const Values w = ConvertPack<C>(weight);
#pragma unroll
      for (int i = 0; i < N; ++i) v.v[i] = v.v[i] * rstd * w.v[i];
      StoreAlignedPack<N>(y + Step(k), ConvertPack<T>(v));
    }
  }

 private:
  __device__ __forceinline__ bool Has(int k) const {
    return static_cast<int>(threadIdx.x + k * blockDim.x) < packs_;
  }
  // Columns from a thread's first pack to its pack k.
  __device__ __forceinline__ static int Step(int k) { return k * static_cast<int>(blockDim.x) * N; }
  __device__ __forceinline__ char* Place(int k) const {
    return staged_ + k * blockDim.x * kPackBytes;
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int packs_, col_;  // of the block; the thread's first column
  char* const staged_;     // the thread's places, in shared memory
  Stowed x_[kPacks];
};

// A row per cluster of blocks, each of which has `slice` packs of it. The weight is plain; see
// NormWhole.
template <class T, int kPacks>
__global__ void __launch_bounds__(NormStagedPolicy::kThreads, NormStagedPolicy::kBlocks)
    NormStagedKernel(const __grid_constant__ NormWhole<T> p, int slice) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared + NormStagedPolicy::Bytes(kPacks, blockDim.x));
  const int first = Exchange::block() * slice;
  const int packs = p.packs - first < slice ? p.packs - first : slice;
  NormStagedRow<T, kPacks> part(p, internal::ClusterIndex(), first, packs, shared);
  part.Load();
  exchange.Send(part.Gather());
  part.Store(MergeParts<false>(exchange.Receive(), Exchange::values(), p.share));
}

}  // namespace cuda
}  // namespace oneflow_lite
