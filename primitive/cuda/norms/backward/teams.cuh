// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the norms' backward: teams (norms/backward/team.cuh) that keep in registers what
// their rows add to the gradients of weight and bias, and leave it in memory at the end
// (norms/backward/parts.cuh).
#pragma once

#include "primitive/cuda/norms/backward/parts.cuh"

namespace oneflow_lite::cuda {

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
class NormBackwardTeam : NormPartsTeam<T, kPacks, kCentre, kAligned> {
  using Base = NormPartsTeam<T, kPacks, kCentre, kAligned>;
  using Sums = NormSums<T, kCentre>;
  using Base::a_, Base::column_, Base::dbias_, Base::dweight_, Base::extra_, Base::extra_dbias_,
      Base::extra_dweight_, Base::Has, Base::more_, Base::N, Base::Offset, Base::row_, Base::step_,
      typename Base::C, typename Base::Values;
  // What stays in registers, besides the gradients of weight and bias: a row's values, or what is
  // in memory of it, where there is room; the weight.
  static constexpr bool kHold = N * kPacks * static_cast<int>(sizeof(C)) <= (kAligned ? 64 : 32);
  static constexpr bool kStow = !kHold && sizeof(T) == 2 && kPacks == 2;
  static constexpr bool kHoldWeight = kPacks == 1;
  // Stages that are still read once a row's sums are known.
  static constexpr int kInUse = kHold || kStow ? 0 : 1;
  static constexpr int kWeightBytes =
      kPacks * static_cast<int>(sizeof(Values)) / kPackBytes * Base::kWordBytes;  // of a warp

 public:
  OFL_DEVICE NormBackwardTeam(const NormBackward<T>& a, const NormBackwardGrid<T, kCentre>& grid,
                              char* shared)
      : Base(a, grid, shared) {
    const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    char* memory = shared + kNormScratchBytes + lane * kPackBytes;
    weights_ = memory + warp * (IsPacked() ? kWeightBytes / 2 : kWeightBytes);
    if (!kHoldWeight) memory += warps * (IsPacked() ? kWeightBytes / 2 : kWeightBytes);
    biases_ = memory + warp * kWeightBytes;
    if (kFromOutput) memory += warps * kWeightBytes;
    memory -= lane * kPackBytes;
    words_ = static_cast<int>(memory - shared) + this->team_ * more_.stages * Base::StageBytes();
    out_ = row_ * a.cols + column_;
    past_x_ = BytesPastBoundary(a.x + row_ * a.x_stride + column_);
    past_dy_ = BytesPastBoundary(a.dy + out_);
  }

  OFL_DEVICE void Run() {
    AllowNextKernel();
    const int ahead = more_.stages - kInUse;  // rows on their way or at work
    if (Base::IsBulk()) {
      if (this->rank_ == 0) {
#pragma unroll 1
        for (int s = 0; s < more_.stages; ++s) Base::Barrier(s).Init(2);
        PublishToCopies();
      }
      Base::Meet();
    }
#pragma unroll 1
    for (int s = 0; s < ahead; ++s) Issue(s, s, s);
    const int64_t step = int64_t{step_} * a_.cols;
    KeepWeights();
    if (more_.cluster) this->cluster_.Start(this->shared_);
    __syncthreads();
    if (!kAligned && extra_ >= 0) LoadExtra(row_, this->turns_ > 0);
    int stage = 0, parity = 0;
    C mean = MeanOf(row_, this->turns_ > 0), rstd = RstdOf(row_, this->turns_ > 0);
    for (int turn = 0; turn < this->block_turns_; ++turn, row_ += step_, out_ += step) {
      Forget();
      if (!kAligned && extra_ >= 0) {
        v_ = next_v_, dy_ = next_dy_;
        LoadExtra(row_ + step_, turn + 1 < this->turns_);
      }
      const bool more = turn + 1 < this->turns_;
      const C next_mean = MeanOf(row_ + step_, more), next_rstd = RstdOf(row_ + step_, more);
      if (Base::IsBulk()) {
        if (turn < this->turns_) Base::Barrier(stage).AwaitBlock(parity);
      } else {
        static_assert(NormPolicy::kMaxStages - 1 <= kMaxPendingCopies);
        WaitForCopies(ahead - 1);
        Base::Meet();
      }
      Visit(turn, stage, mean, rstd);
      mean = next_mean;
      rstd = next_rstd;
      if (++stage == more_.stages) stage = 0, parity ^= 1;
    }
    WaitForCopies(0);
    if (more_.cluster) this->cluster_.Finish();
    __syncthreads();
    if (a_.dweight || a_.dbias) Base::StoreParts();
  }

 private:
  OFL_DEVICE void KeepWeights() {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const Values w = Base::WeightsInMemory(a_.weight, a_.float_weight, k, C(1));
      if (kHoldWeight) {
        held_weight_ = w;
      } else if (IsPacked()) {
        Base::Write(weights_, k, ConvertPack<T>(w));
      } else {
        Base::Write(weights_, k, w);
      }
      if (kFromOutput) {
        Base::Write(biases_, k, Base::WeightsInMemory(a_.bias, a_.float_weight, k, C(0)));
      }
    }
    if (!kAligned && extra_ >= 0) {
      extra_weight_ = ExtraWeight(a_.weight, C(1));
      extra_bias_ = ExtraWeight(a_.bias, C(0));
    }
  }
  // Whether the weight is kept as it is in memory, where a stage more fits then.
  OFL_DEVICE bool IsPacked() const { return kPacks == 4 && sizeof(T) == 2 && more_.packed_weight; }
  OFL_DEVICE Values Weight(int k) const {
    if constexpr (kHoldWeight) return held_weight_;
    if (IsPacked()) return ConvertPack<C>(Base::template Read<Pack<T, N>>(weights_, k));
    return Base::template Read<Values>(weights_, k);
  }

  OFL_DEVICE C ExtraWeight(const void* weights, C missing) const {
    return LoadWeights<C, 1, T>(weights, a_.float_weight, extra_, 0, 1, missing).v[0];
  }

  OFL_DEVICE C MeanOf(int64_t row, bool there) const {
    return kCentre && !kFromOutput && there && a_.mean ? a_.mean[row] : C(0);
  }
  OFL_DEVICE C RstdOf(int64_t row, bool there) const {
    return there && a_.rstd ? a_.rstd[row] : C(0);
  }

  // Makes the compiler compute anew in each row what follows from these. It would keep all that,
  // and spill.
  OFL_DEVICE void Forget() {
    asm volatile("" : "+r"(this->packs_), "+r"(past_x_), "+r"(past_dy_), "+r"(words_));
  }

  // Starts copying the row of a turn, where there is one, into a stage. Of a team of several warps,
  // one thread of the first copies x, one of the second dy.
  OFL_DEVICE void Issue(int turn, int turns_ahead, int stage) {
    const bool bulk = Base::IsBulk(), is_dy = bulk && this->rank_ == kWarp;
    if (turn < this->turns_ && (!bulk || is_dy || this->rank_ == 0)) {
      const int64_t row = row_ + int64_t{turns_ahead} * step_;
      const T* const x = a_.x + row * a_.x_stride;
      const T* const dy = a_.dy + row * a_.cols;
      char* const part = this->shared_ + words_ + stage * Base::StageBytes();
      char* const words = part + Base::Shift(x + column_);
      char* const dy_words = part + Base::TensorBytes() + Base::Shift(dy + column_);
      if (bulk) {
        const T* const from = is_dy ? dy : x;
        char* const to = is_dy ? dy_words : words;
        const auto span = SpanOf(to, from, row);
        const ClusterBarrier barrier = Base::Barrier(stage);
        barrier.Expect(span.bytes);
        if (span.bytes > 0) CopyBulk(barrier, to, span.from, span.bytes);
        if (a_.dsum && is_dy && this->packs_ > 0) {
          const auto ahead = Base::SpanOf(a_.dsum + row * a_.cols);
          PrefetchBulk(ahead.from, this->packs_ * kPackBytes);
        }
      } else {
        Base::CopyTogether(words, SpanOf(words, x, row));
        Base::CopyTogether(dy_words, SpanOf(dy_words, dy, row));
        if (a_.dsum) Base::PrefetchTogether(Base::SpanOf(a_.dsum + row * a_.cols));
      }
    }
    if (!bulk) CommitCopies();
  }
  OFL_DEVICE typename Base::Span SpanOf(char* words, const T* row, int64_t index) const {
    auto span = Base::SpanOf(row);
    if (!kAligned && index + 1 == a_.rows) Base::CopyEnd(words, span, row + a_.cols);
    return span;
  }

  // This thread's column outside of packs, in a row.
  OFL_DEVICE void LoadExtra(int64_t row, bool there) {
    if (!there) return;
    next_v_ = a_.x[row * a_.x_stride + extra_];
    next_dy_ = a_.dy[row * a_.cols + extra_];
  }

  // This thread's first words in the stages.
  struct Words {
    const char *x, *dy;
  };
  OFL_DEVICE Words WordsOf(int stage) const {
    const char* const part =
        this->shared_ + words_ + stage * Base::StageBytes() + this->rank_ * kPackBytes;
    return {part + Base::Shift(a_.x + row_ * a_.x_stride + column_),
            part + Base::TensorBytes() + Base::Shift(a_.dy + out_)};
  }
  OFL_DEVICE Pack<T, N> PackOfX(const Words& words, int k) const {
    return Base::PackOf(words.x, k, more_.like_x, past_x_);
  }
  OFL_DEVICE Pack<T, N> PackOfDy(const Words& words, int k) const {
    return Base::PackOf(words.dy, k, more_.like_dy, past_dy_);
  }
  OFL_DEVICE Values ToV(const Pack<T, N>& x, int k, C mean, const Values& weight) const {
    Values v = ConvertPack<C>(x);
    Values bias;
    if (kFromOutput) bias = Base::template Read<Values>(biases_, k);
    ToValues<kCentre, kFromOutput>(v, weight, bias, mean);
    return v;
  }

  // One row.
  OFL_DEVICE void Visit(int turn, int stage, C mean, C rstd) {
    const bool active = turn < this->turns_;
    const Words words = WordsOf(stage);
    Values v[kHold ? kPacks : 1], dy[kHold ? kPacks : 1];
    StowedPack<T, N> stowed_x[kStow ? kPacks : 1], stowed_dy[kStow ? kPacks : 1];
    Sums sums;
    if (kHold || kStow || !more_.sums) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!active || !Has(k)) continue;
        const int at = kHold ? k : 0;
        const Values w = Weight(k);
        const auto x = PackOfX(words, k), packed_dy = PackOfDy(words, k);
        if (kStow) {
          stowed_x[kStow ? k : 0] = StowedPack<T, N>::Of(x);
          stowed_dy[kStow ? k : 0] = StowedPack<T, N>::Of(packed_dy);
        }
        v[at] = ToV(x, k, mean, w);
        dy[at] = ConvertPack<C>(packed_dy);
#pragma unroll
        for (int i = 0; i < N; ++i) sums.Add(dy[at].v[i] * w.v[i], v[at].v[i]);
      }
    }
    Pack<C, 1> extra_v, extra_dy;
    if (!kAligned && extra_ >= 0) {
      extra_v.v[0] = ConvertTo<C>(v_), extra_dy.v[0] = ConvertTo<C>(dy_);
      ToValues<kCentre, kFromOutput>(extra_v, Pack<C, 1>{extra_weight_}, Pack<C, 1>{extra_bias_},
                                     mean);
      if (active) sums.Add(extra_dy.v[0] * extra_weight_, extra_v.v[0]);
    }
    const bool exchange = more_.needs_sums && !more_.sums;
    if (exchange) sums = Base::Post(sums);
    Base::Meet();
    // What the team has read before may be written over.
    const int next = stage - kInUse;
    const int ahead = more_.stages - kInUse;
    Issue(turn + ahead, ahead, next < 0 ? more_.stages - 1 : next);
    if (exchange) {
      sums = Base::Total(sums);
      if (more_.cluster) sums = this->cluster_.Sum(sums);
    } else if (more_.needs_sums) {
      sums = KnownSums();
    }
    if (!active) return;
    const NormGradient<T, kCentre, kFromOutput> gradient(sums, rstd, more_.share);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      const int at = kHold ? k : 0;
      const Values w = Weight(k);
      if (!kHold) {
        v[at] = ToV(kStow ? stowed_x[kStow ? k : 0].Get() : PackOfX(words, k), k, mean, w);
        dy[at] = ConvertPack<C>(kStow ? stowed_dy[kStow ? k : 0].Get() : PackOfDy(words, k));
      }
      ApplyTo(gradient, k, w, v[at], dy[at]);
    }
    if (!kAligned && extra_ >= 0) ApplyToExtra(gradient, extra_v.v[0], extra_dy.v[0]);
  }

  OFL_DEVICE void ApplyTo(const NormGradient<T, kCentre, kFromOutput>& gradient, int k,
                          const Values& w, const Values& v, const Values& dy) {
    Values dx;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C x_hat = gradient.XHat(v.v[i]);
      dx.v[i] = gradient.Dx(dy.v[i] * w.v[i], x_hat);
      dweight_[k].v[i] += dy.v[i] * x_hat;
      if (kCentre) dbias_[k].v[i] += dy.v[i];
    }
    if (!a_.dx) return;
    if (a_.dsum) {
      const T* const from = a_.dsum + out_ + Offset(k);
      dx += ConvertPack<C>(kAligned || more_.like_dsum ? LoadAlignedPack<N>(from)
                                                       : LoadShiftedPack<N>(from));
    }
    StoreAlignedPack(a_.dx + out_ + Offset(k), ConvertPack<T>(dx));
  }
  OFL_DEVICE void ApplyToExtra(const NormGradient<T, kCentre, kFromOutput>& gradient, C v, C dy) {
    const C x_hat = gradient.XHat(v);
    C dx = gradient.Dx(dy * extra_weight_, x_hat);
    extra_dweight_ += dy * x_hat;
    extra_dbias_ += dy;
    if (!a_.dx) return;
    const int64_t at = out_ - column_ + extra_;
    if (a_.dsum) dx += ConvertTo<C>(a_.dsum[at]);
    a_.dx[at] = ConvertTo<T>(dx);
  }

  OFL_DEVICE Sums KnownSums() const {
    Sums all;
    for (int i = threadIdx.x % kWarp; i < more_.chunks; i += kWarp) {
      all = all + more_.sums[row_ * more_.chunks + i];
    }
    return ReduceLanes<kWarp>(all, Plus{});
  }

  char *weights_, *biases_;  // this thread's first word of each
  int words_;                // where in shared memory the team's words in the first stage are
  int64_t out_;
  unsigned past_x_, past_dy_;  // see PackOf
  Values held_weight_;
  // Of the column outside of packs: in this row and the next one, and its weights.
  T v_, dy_, next_v_ = T(0), next_dy_ = T(0);
  C extra_weight_, extra_bias_;
};

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
__global__ void __launch_bounds__(MostNormThreads(kPacks, kAligned), 1)
    NormBackwardKernel(const __grid_constant__ NormBackward<T> a,
                       const __grid_constant__ NormBackwardGrid<T, kCentre> grid) {
  extern __shared__ __align__(128) char team_memory[];
  NormBackwardTeam<T, kPacks, kCentre, kFromOutput, kAligned>(a, grid, team_memory).Run();
}

}  // namespace oneflow_lite::cuda
