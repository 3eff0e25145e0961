// SPDX-License-Identifier: Apache-2.0
//
// layer_norm over wide rows of whole packs: a block, or the blocks of a cluster, each with a slice
// of the row, of which a thread holds some packs in registers and the others in shared memory.
// Registers alone leave no room for weights and biases on their way, see docs/lab/11-wide-norms.md.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/norms/forward_whole.cuh"

namespace oneflow_lite::cuda {

// Shared memory for the packs of a block's slice.
constexpr __host__ __device__ int SlicedBytes(int threads) {
  return (NormSlicedPolicy::kPacks - NormSlicedPolicy::kRegisterPacks) * threads * kPackBytes;
}

// What a thread holds of a row. Load, Gather and Store follow each other. Only the last few packs
// may be missing: code that asks for each of them is a tenth slower.
template <class T>
class NormSlicedRow {
  using P = NormSlicedPolicy;
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>, kRegisters = P::kRegisterPacks, kPacks = P::kPacks;
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;

 public:
  // The block has `packs` packs of the row, from `first` on. held: shared memory of
  // SlicedBytes, aligned to 16.
  OFL_DEVICE NormSlicedRow(const NormWhole<T>& p, int64_t row, int first, int packs, char* held)
      : p_(p),
        row_(row),
        col_((first + static_cast<int>(threadIdx.x)) * N),
        packs_(packs),
        held_(static_cast<uint32_t>(__cvta_generic_to_shared(held)) + threadIdx.x * kPackBytes) {}

  // Asks for the row and for the first weights; nothing waits for them yet.
  OFL_DEVICE void Load() {
    const T* x = p_.a.x + row_ * p_.a.x_stride + col_;
    uint32_t place = held_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k, x += Step() * N) {
      if (k < kRegisters) {
        x_[k % kRegisters] = Stowed::Of(LoadAlignedPack<N>(x));
        continue;
      }
      if (Has(k)) CopyAsync(place, x, kPackBytes);
      place += Step() * kPackBytes;
    }
    CommitCopies();
    next_ = col_;
#pragma unroll
    for (int k = 0; k < P::kAhead; ++k) AskForWeight(k);
  }
  // What this warp's columns come to.
  OFL_DEVICE NormPart<C> Gather() {
    C sum = 0;
    Visit([&](int, const Values& v) {
#pragma unroll
      for (const C& value : v.v) sum += value;
    });
    sum = ReduceLanes<kWarp>(sum, Plus{});
    NormPart<C> part;
    part.count = Count();
    const C share = Quotient(C(1), part.count);
    part.mean = mean_ = sum * share;
    SumOf<C, 2> sums;  // of the distances, and of their squares
    Visit([&](int, const Values& v) {
#pragma unroll
      for (const C& value : v.v) {
        const C d = Centred(value, mean_);
        if (sizeof(T) > 2) sums.v[0] += d;
        sums.v[1] += d * d;
      }
    });
    SetCentred<T, kWarp>(sum, sums, share, part);
    return part;
  }
  // row: what the whole row comes to.
  OFL_DEVICE void Store(const NormPart<C>& row) {
    const C rstd = RstdOf<true>(row, p_.share, p_.eps);
    if (col_ == 0 && p_.a.mean) p_.a.mean[row_] = row.mean + row.low;
    if (col_ == 0 && p_.a.rstd) p_.a.rstd[row_] = rstd;
    const C offset = ((mean_ - row.mean) - row.low) * rstd;
    T* y = p_.a.y + row_ * p_.a.cols + col_;
    Visit([&](int k, Values v) {
      const Values w = ConvertPack<C>(weight_[k % P::kAhead].Get());
      const Values b = ConvertPack<C>(bias_[k % P::kAhead].Get());
      if (k + P::kAhead < kPacks) AskForWeight(k + P::kAhead);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v.v[i] = (Centred(v.v[i], mean_) * rstd + offset) * w.v[i] + b.v[i];
      }
      StoreAlignedPack<N>(y, ConvertPack<T>(v));
      y += Step() * N;
    });
  }

 private:
  OFL_DEVICE bool Has(int k) const {
    return k < P::kSurePacks || static_cast<int>(threadIdx.x) + k * Step() < packs_;
  }
  // Packs from one of the thread's to its next.
  OFL_DEVICE static int Step() { return static_cast<int>(blockDim.x); }
  // visit(k, values) for all packs. Those in shared memory are read anew each time: the compiler
  // would keep them in registers.
  template <class F>
  OFL_DEVICE void Visit(F&& visit) const {
#pragma unroll
    for (int k = 0; k < kRegisters; ++k) visit(k, ConvertPack<C>(x_[k].Get()));
    WaitForCopiesOf<0>();
    uint32_t place = held_;
#pragma unroll
    for (int k = kRegisters; k < kPacks; ++k, place += Step() * kPackBytes) {
      if (!Has(k)) break;
      const uint4 word = LoadShared(place);
      Stowed pack;
      memcpy(&pack, &word, sizeof(word));
      visit(k, ConvertPack<C>(pack.Get()));
    }
  }
  // Columns of this warp.
  OFL_DEVICE C Count() const {
    const int warp = static_cast<int>(threadIdx.x / kWarp * kWarp);
    int count = P::kSurePacks * kWarp;
#pragma unroll
    for (int k = P::kSurePacks; k < kPacks; ++k) {
      const int left = packs_ - k * Step() - warp;
      count += left < 0 ? 0 : left < kWarp ? left : kWarp;
    }
    return static_cast<C>(count * N);
  }
  // In the order of the packs.
  OFL_DEVICE void AskForWeight(int k) {
    if (Has(k)) {
      const T *w = static_cast<const T*>(p_.a.weight), *b = static_cast<const T*>(p_.a.bias);
      weight_[k % P::kAhead] = Stowed::Of(LoadAlignedPack<N>(w + next_));
      bias_[k % P::kAhead] = Stowed::Of(LoadAlignedPack<N>(b + next_));
    }
    next_ += Step() * N;
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int col_;        // of the thread's first pack
  const int packs_;      // of the block
  const uint32_t held_;  // the thread's places, in shared memory
  uint32_t next_ = 0;    // column of the weights that are asked for next
  C mean_ = 0;           // of the warp's columns
  Stowed x_[kRegisters], weight_[P::kAhead], bias_[P::kAhead];
};

// A row per cluster of blocks, each of which has `slice` packs of it, the last one the rest. Weight
// and bias are plain; see NormWhole.
template <class T>
__global__ void __launch_bounds__(NormSlicedPolicy::kThreads, NormSlicedPolicy::kBlocks)
    NormSlicedKernel(const __grid_constant__ NormWhole<T> p, int slice) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared + SlicedBytes(blockDim.x));
  const int first = Exchange::block() * slice;
  const int packs = p.packs - first < slice ? p.packs - first : slice;
  NormSlicedRow<T> part(p, internal::ClusterIndex(), first, packs, shared);
  part.Load();
  exchange.Send(part.Gather());
  part.Store(MergeParts<true>(exchange.Receive(), Exchange::values(), p.share));
}

}  // namespace oneflow_lite::cuda
