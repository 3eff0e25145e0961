// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward over wide rows that are read otherwise than they are written: at another place
// within 16 bytes. The blocks of a cluster have a row in shared memory as it lies in memory; it is
// shifted into place only as it is written.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/norms/forward_whole.cuh"
#include "primitive/cuda/norms/whole_policy.h"
#include "primitive/cuda/rows/shifted.cuh"

namespace oneflow_lite::cuda {

// kPacks packs of a lane and the word behind them, of words of 16 bytes that lie a warp's words
// apart, as rows/shifted.cuh has them.
template <class T, int kPacks>
struct NormOddWords {
  uint32_t word[kPacks + 1][4];
  unsigned past = 0;

  __device__ __forceinline__ void Put(int k, uint4 value) {
    memcpy(word[k], &value, sizeof(value));
  }
  // What was behind is the first of the next.
  __device__ __forceinline__ void Advance() { memcpy(word[0], word[kPacks], sizeof(word[0])); }
  __device__ __forceinline__ void Shift() {
    VisitWordShift<T>(past, [&](auto skip) {
      internal::ShiftWords<decltype(skip)::value, (sizeof(T) < 4), kPacks>(word, past % 4 * 8);
    });
  }
  __device__ __forceinline__ Pack<ComputeType<T>, kPackSize<T>> Get(int k) const {
    Pack<T, kPackSize<T>> pack;
    memcpy(&pack, word[k], sizeof(pack));
    return ConvertPack<ComputeType<T>>(pack);
  }
};

// What a thread has of a row. Load, Gather, AskForWeights and Store follow each other. kPlain:
// weight and, for layer_norm, bias are there, of T.
template <class T, bool kCentre, bool kPlain>
class NormOddRow {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>, kAtOnce = NormOddPolicy::kAtOnce;
  static constexpr int kBatches = kMaxPendingCopies + 1;  // of copies, gathered as they arrive
  using Values = Pack<C, N>;
  using Words = NormOddWords<T, kAtOnce>;

 public:
  // rank: of the thread among all that share the row; each: packs of a lane. held: the block's
  // shared memory, aligned to 16.
  __device__ __forceinline__ NormOddRow(const NormWhole<T>& p, int64_t row, int rank, int each,
                                        char* held)
      : p_(p),
        row_(row),
        x_(p.a.x + row * p.a.x_stride),
        y_(p.a.y + row * p.a.cols),
        span_(ElementsToBoundary(y_), static_cast<int>(p.a.cols)),
        rank_(rank),
        batch_((each + kBatches - 1) / kBatches * kWarp) {
    const int warp = threadIdx.x / kWarp;
    const int begin = rank / kWarp * kWarp * each, stop = begin + kWarp * each;
    first_ = begin + Lane();
    end_ = stop < span_.packs ? stop : span_.packs;
    held_ = static_cast<uint32_t>(__cvta_generic_to_shared(held)) +
            (warp * (kWarp * each + 1) + Lane()) * kPackBytes;
    frame_ = WordFrame::Of(x_ + span_.head);
  }

  __device__ __forceinline__ void Load() {
    const uint4* word = frame_.words + first_;
    int i = first_;
    uint32_t place = held_;
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      const int stop = batch + 1 < kBatches ? first_ + (batch + 1) * batch_ : end_ + 1;
#pragma unroll 2
      for (; i < stop && i <= end_; i += kWarp, place += kWarp * kPackBytes, word += kWarp) {
        CopyAsync(place, word, kPackBytes);
      }
      CommitCopies();
    }
    // The words that are held begin `past` bytes before the packs that are written.
    if (!HasExtra()) return;
    const int past = frame_.past / static_cast<int>(sizeof(T)), head = span_.head - past;
    gathered_ = x_[rank_ < head ? rank_ : rank_ + span_.packs * N];
    written_ = past == 0 ? gathered_ : x_[span_.Column(rank_)];
  }
  // What this warp's columns come to, as they arrive.
  __device__ __forceinline__ NormPart<C> Gather() {
    SumOf<C, 2> sums;  // of the distances from the pivot, and of their squares
    const auto add = [&](C value) {
      const C d = kCentre ? value - pivot_ : value;
      if (kCentre) sums.v[0] += d;
      sums.v[1] += d * d;
    };
    int i = first_;
    uint32_t place = held_;
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      WaitForCopies(kBatches - 1 - batch);
      if (kCentre && batch == 0) pivot_ = Pivot();
      const int stop = batch + 1 < kBatches ? first_ + (batch + 1) * batch_ : end_;
#pragma unroll 4
      for (; i < stop && i < end_; i += kWarp, place += kWarp * kPackBytes) {
        const Values v = Held(place);
#pragma unroll
        for (const C& value : v.v) add(value);
      }
    }
    if (HasExtra()) add(ConvertTo<C>(gathered_));
    NormPart<C> part;
    if constexpr (kCentre) {
      sums = ReduceLanes<kWarp>(sums, Plus{});
      part.count = Count();
      part.mean = pivot_;
      part.low = Quotient(sums.v[0], Larger{}(part.count, C(1)));
      part.squares = sums.v[1] - sums.v[0] * part.low;
    } else {
      part.squares = ReduceLanes<kWarp>(sums.v[1], Plus{});
    }
    return part;
  }
  // For the first packs: nothing waits for them yet.
  __device__ __forceinline__ void AskForWeights() {
    if constexpr (kPlain) {
      const int col = span_.head + first_ * N;
      weight_ = FrameOf(p_.a.weight, col, w_);
      if (kCentre) bias_ = FrameOf(p_.a.bias, col, b_);
#pragma unroll
      for (int k = 0; k <= kAtOnce; ++k) AskForWeight(first_ + k * kWarp, k);
    }
  }
  // row: what the whole row comes to.
  __device__ __forceinline__ void Store(const NormPart<C>& row) {
    rstd_ = RstdOf<true>(row, p_.share, p_.eps);
    if (kCentre) offset_ = ((pivot_ - row.mean) - row.low) * rstd_;
    if (rank_ == 0) {
      if (kCentre && p_.a.mean) p_.a.mean[row_] = row.mean + row.low;
      if (p_.a.rstd) p_.a.rstd[row_] = rstd_;
    }
    if (HasExtra()) {
      const int col = span_.Column(rank_);
      Pack<C, 1> v = Normalised(Pack<C, 1>{ConvertTo<C>(written_)});
      Weigh(v, col);
      y_[col] = ConvertTo<T>(v.v[0]);
    }
    StorePacks();
  }

 private:
  static __device__ __forceinline__ int Lane() { return threadIdx.x % kWarp; }
  __device__ __forceinline__ bool HasExtra() const { return rank_ < span_.extras(); }
  __device__ __forceinline__ static Values Held(uint32_t place) {
    const uint4 word = LoadShared(place);
    Pack<T, N> pack;
    memcpy(&pack, &word, sizeof(word));
    return ConvertPack<C>(pack);
  }
  // The mean of the lanes' first elements; near the warp's mean, so that squares lose nothing.
  __device__ __forceinline__ C Pivot() const {
    const bool has = first_ < end_;
    const C sum = ReduceLanes<kWarp>(has ? Held(held_).v[0] : C(0), Plus{});
    const int count = __popc(__ballot_sync(0xffffffffu, has));
    return count > 0 ? Quotient(sum, static_cast<C>(count)) : C(0);
  }
  // Columns of this warp.
  __device__ __forceinline__ C Count() const {
    const int packs = end_ - (first_ - Lane());
    return static_cast<C>((packs < 0 ? 0 : packs) * N + (rank_ < kWarp ? span_.extras() : 0));
  }
  template <int M>
  __device__ __forceinline__ Pack<C, M> Normalised(Pack<C, M> v) const {
#pragma unroll
    for (C& value : v.v) value = kCentre ? (value - pivot_) * rstd_ + offset_ : value * rstd_;
    return v;
  }
  // Whatever weights there are, from column col on.
  template <int M>
  __device__ __forceinline__ void Weigh(Pack<C, M>& v, int col) const {
    const auto load = [&](const void* weights, C missing) {
      return LoadWeights<C, M, T>(weights, p_.a.float_weight, col, 0, M, missing);
    };
    if (p_.a.weight) v *= load(p_.a.weight, C(1));
    if (kCentre && p_.a.bias) v += load(p_.a.bias, C(0));
  }
  // Words of weights beside this lane's packs.
  static __device__ __forceinline__ const uint4* FrameOf(const void* weights, int col,
                                                         Words& words) {
    const WordFrame frame = WordFrame::Of(static_cast<const T*>(weights) + col);
    words.past = frame.past;
    return frame.words;
  }
  // For pack i, as number k of a round.
  __device__ __forceinline__ void AskForWeight(int i, int k) {
    if (!kPlain || i > end_) return;
    w_.Put(k, weight_[i - first_]);
    if (kCentre) b_.Put(k, bias_[i - first_]);
  }
  __device__ __forceinline__ void StorePacks() {
    Words x;
    x.past = frame_.past;
    const auto read = [&](int i, int k) {
      if (i <= end_) x.Put(k, LoadShared(held_ + (i - first_) * kPackBytes));
    };
    read(first_, 0);
    T* y = y_ + span_.head + int64_t{first_} * N;
#pragma unroll 1
    for (int i = first_; i - Lane() < end_; i += kAtOnce * kWarp, y += kAtOnce * kWarp * N) {
#pragma unroll
      for (int k = 1; k <= kAtOnce; ++k) {
        read(i + k * kWarp, k);
        if (i != first_) AskForWeight(i + k * kWarp, k);
      }
      x.Shift();
      if constexpr (kPlain) w_.Shift();
      if constexpr (kPlain && kCentre) b_.Shift();
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (i + k * kWarp >= end_) continue;
        Values v = Normalised(x.Get(k));
        if constexpr (kPlain) {
          v *= w_.Get(k);
          if constexpr (kCentre) v += b_.Get(k);
        } else {
          Weigh(v, span_.head + (i + k * kWarp) * N);
        }
        StoreAlignedPack<N>(y + k * kWarp * N, ConvertPack<T>(v));
      }
      x.Advance();
      if constexpr (kPlain) w_.Advance(), b_.Advance();
    }
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const T* const x_;
  T* const y_;
  const internal::InnerSpan<N> span_;
  const int rank_, batch_;  // batch_: packs of a warp that are copied together
  int first_, end_;         // the thread's first pack; where those of its warp end
  uint32_t held_;           // the thread's first place, in shared memory
  WordFrame frame_;         // of the row's first pack
  T gathered_, written_;
  C pivot_ = 0, rstd_, offset_ = 0;
  const uint4 *weight_ = nullptr, *bias_ = nullptr;
  Words w_, b_;
};

// A row per cluster of blocks, of which each lane has `each` packs. bytes: see NormOddPlan.
template <class T, bool kCentre>
__global__ void __launch_bounds__(NormOddPolicy::kThreads, NormOddPolicy::kBlocks)
    NormOddKernel(const __grid_constant__ NormWhole<T> p, int each, int bytes) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared + bytes);
  const int rank = Exchange::block() * static_cast<int>(blockDim.x) + threadIdx.x;
  const auto run = [&](auto plain) {
    NormOddRow<T, kCentre, decltype(plain)::value> part(p, internal::ClusterIndex(), rank, each,
                                                        shared);
    part.Load();
    exchange.Send(part.Gather());
    part.AskForWeights();
    part.Store(MergeParts<kCentre>(exchange.Receive(), Exchange::values(), p.share));
  };
  if (p.plain) {
    run(std::true_type{});
  } else {
    run(std::false_type{});
  }
}

}  // namespace oneflow_lite::cuda
