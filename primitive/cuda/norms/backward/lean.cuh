// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward over rows of whole packs that a block's registers hold, in as few
// instructions as may be, because on rows of 16-bit elements those are what time goes into
// (docs/lab/13-norm-backward-whole-rows.md). Bulk copies bring the next rows to a ring of stages in
// shared memory while the team works on one; x_hat and dy * weight are computed once where they fit
// in registers, and everything but dx as soon as a row has arrived.
//
// Weight and bias wait as they are in memory, of T or float32; the bias only where rows are those
// of the forward's output.
#pragma once

#include "primitive/cuda/norms/backward/team.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

template <class T, class W, int kPacks, bool kCentre, bool kFromOutput>
class NormLeanTeam : NormTeam<T, kPacks, kCentre> {
  using Base = NormTeam<T, kPacks, kCentre>;
  using Base::a_, Base::dbias_, Base::dweight_, Base::Has, Base::grid_, Base::N, Base::rank_,
      Base::row_, Base::turns_, typename Base::C, typename Base::Values;
  // x_hat is known with the row's sums.
  static constexpr bool kLate = kRecentre<T, kCentre> && !kFromOutput;
  static constexpr int kSums = kLate ? 3 : kCentre ? 2 : 1;
  // A row in registers; else it is read from its stage twice.
  static constexpr bool kHold = N * kPacks <= 16;
  // Packs of weight and bias, in registers or in shared memory.
  static constexpr int kKept = kFromOutput && kCentre ? 2 : 1;
  static constexpr int kKeptBytes = LeanKeptBytes(N, kPacks, Base::kKinds, sizeof(W), kFromOutput);
  static constexpr bool kHoldWeight = kKeptBytes == 0;
  static constexpr bool kCopiesSum = LeanCopiesSum(kPacks, sizeof(T), sizeof(W), kFromOutput);
  using Exchange = TeamSums<C, kSums>;
  static constexpr int kSumBytes = NormPolicy::LeanSumBytes(sizeof(C));

 public:
  OFL_DEVICE NormLeanTeam(const NormBackward<T>& a, const NormBackwardGrid<T, kCentre>& grid,
                          char* shared)
      : Base(a, grid, shared),
        barriers_(shared + this->team_ * NormPolicy::kLeanBarrierBytes),
        sums_(shared + Teams() * NormPolicy::kLeanBarrierBytes + this->team_ * kSumBytes, rank_,
              grid.team / kWarp) {
    constexpr int kScratch = NormPolicy::kLeanBarrierBytes + kSumBytes;
    char* memory = shared + (Teams() * kScratch + 127) / 128 * 128;  // as LeanScratchBytes
    weights_ = memory + threadIdx.x * kPackBytes;
    memory += blockDim.x * kPacks * kKeptBytes;
    stages_ = memory + this->team_ * grid.stages * StageBytes();
  }

  OFL_DEVICE void Run() {
    AllowNextKernel();
    const int ahead = grid_.stages - (IsTight() ? 0 : InUse());
    if (Copies()) {
#pragma unroll 1
      for (int s = 0; s < grid_.stages; ++s) barriers_.Next(s).Init();
      PublishToCopies();
#pragma unroll 1
      for (int s = 0; s < ahead; ++s) Issue(s, s);
    }
    KeepWeights();
    __syncthreads();
    T* out = a_.dx + row_ * a_.cols + this->column_;
    const int64_t step = int64_t{grid_.step} * a_.cols;
    x_low_ = Low(a_.x + row_ * a_.x_stride), dy_low_ = Low(a_.dy + row_ * a_.cols);
    const auto x_step = static_cast<unsigned>(grid_.step * a_.x_stride * sizeof(T));
    const auto dy_step = static_cast<unsigned>(step * sizeof(T));
    int row = static_cast<int>(row_), stage = 0, parity = 0;
    C mean = MeanOf(row), rstd = RstdOf(row);
#pragma unroll 1
    for (int turn = 0; turn < turns_; ++turn) {
      row += grid_.step;
      const C next_mean = MeanOf(row), next_rstd = RstdOf(row);
      Await(stage, parity, ahead);
      Visit(turn, stage, mean, rstd, out);
      out += step;
      x_low_ += x_step, dy_low_ += dy_step;
      mean = next_mean, rstd = next_rstd;
      if (++stage == grid_.stages) stage = 0, parity ^= 1;
    }
    if (StoresEarly()) return;
    __syncthreads();
    if (a_.dweight || a_.dbias) Base::StoreParts(this->shared_);
  }

 private:
  // rms_norm's parts, where each thread has its own, do not wait for the last row's dx. (With
  // layer_norm's two it makes no difference.)
  OFL_DEVICE bool StoresEarly() const { return !kCentre && a_.dweight && Base::IsStraight(); }
  OFL_DEVICE C MeanOf(int row) const {
    return kCentre && !kFromOutput && a_.mean && row < a_.rows ? a_.mean[row] : C(0);
  }
  OFL_DEVICE C RstdOf(int row) const { return a_.rstd && row < a_.rows ? a_.rstd[row] : C(0); }
  OFL_DEVICE void KeepWeights() {
    Unroll<kPacks>([&](int k) {
      Keep(a_.weight, 0, k, 1.0f);
      if constexpr (kKept > 1) Keep(a_.bias, 1, k, 0.0f);
    });
    Unroll(kept_, [&](auto& w) { w.Pin(); });
  }
  // i: 0 for the weight, 1 for the bias.
  OFL_DEVICE void Keep(const void* from, int i, int k, float missing) {
    Pack<W, N> pack;
    Unroll(pack.v, [&](W& one) { one = ConvertTo<W>(missing); });
    if (from && Has(k)) {
      pack = LoadWholePack<N>(static_cast<const W*>(from) + this->column_ + Base::Offset(k));
    }
    if constexpr (kHoldWeight) {
      kept_[i * kPacks + k] = StowedPack<W, N>::Of(pack);
    } else {
      Words16 words;
      memcpy(&words, &pack, sizeof(words));
      Unroll<kWords>([&](int w) { *Place(i, k, w) = words.v[w]; });
    }
  }

  // Where there are bulk copies, a team's first thread copies for all.
  OFL_DEVICE bool Copies() const { return rank_ == 0 || !HasBulkCopies(); }
  OFL_DEVICE void Copy(const ClusterBarrier& barrier, char* to, const T* row, int bytes) const {
    if (HasBulkCopies()) return CopyBulk(barrier, to, row, bytes);
    const char* const from = reinterpret_cast<const char*>(row);
#pragma unroll 1
    for (int at = rank_ * kPackBytes; at < bytes; at += grid_.team * kPackBytes) {
      CopyAsync(to + at, from + at, kPackBytes);
    }
  }
  // ahead: rows on their way or at work.
  OFL_DEVICE void Await(int stage, int parity, int ahead) const {
    if (HasBulkCopies()) return barriers_.Next(stage).AwaitBlock(parity);
    static_assert(NormPolicy::kLeanStages - 1 <= kMaxPendingCopies);
    WaitForCopies(ahead - 1);
    Base::Meet();
  }
  // Starts copying a turn's row, where there is one.
  OFL_DEVICE void Issue(int turn, int stage) const {
    if (turn < turns_) CopyRow(turn, stage);
    if (!HasBulkCopies()) CommitCopies();  // a batch of nothing is one, too
  }
  OFL_DEVICE void CopyRow(int turn, int stage) const {
    const int64_t row = row_ + int64_t{turn} * grid_.step;
    const int bytes = this->packs_ * kPackBytes;
    const ClusterBarrier barrier = barriers_.Next(stage);
    char* to = stages_ + stage * StageBytes();
    barrier.Expect(Tensors() * bytes);
    const T* const x = a_.x + row * a_.x_stride;
    Copy(barrier, to + PastLine(Low(x)), x, bytes);
    const T* const dy = a_.dy + row * a_.cols;
    to += Base::TensorBytes() + PastLine(Low(dy));
    Copy(barrier, to, dy, bytes);
    if (CopiesSum()) {  // behind the row of dy, and like it
      Copy(barrier, to + Base::TensorBytes(), a_.dsum + row * a_.cols, bytes);
    } else if (a_.dsum) {
      PrefetchBulk(a_.dsum + row * a_.cols, bytes);
    }
  }
  // A row lies in its stage as it does in memory between multiples of a line's bytes, because bulk
  // copies like that.
  OFL_DEVICE static unsigned Low(const T* row) {
    return static_cast<unsigned>(reinterpret_cast<uintptr_t>(row));
  }
  OFL_DEVICE static unsigned PastLine(unsigned low) { return low % kNormLineBytes; }

  OFL_DEVICE int Teams() const { return blockDim.x / grid_.team; }
  OFL_DEVICE bool CopiesSum() const { return kCopiesSum && a_.dsum; }
  OFL_DEVICE int Tensors() const { return CopiesSum() ? 3 : 2; }
  OFL_DEVICE int StageBytes() const { return Tensors() * Base::TensorBytes(); }
  // Stages that are still read once a row's sums are known.
  OFL_DEVICE int InUse() const { return kHold && !CopiesSum() ? 0 : 1; }
  // Without dx a row is done with once it has been read, unless x_hat waits for the row's sums, or
  // the stages are two, which the launch counts among these. The rarer kernels have no registers
  // left to ask.
  static constexpr bool kAsks = !kFromOutput && !(kCentre && kPacks == 4 && sizeof(W) > sizeof(T));
  OFL_DEVICE bool NeedsSums() const { return !kAsks || grid_.needs_sums; }
  // Whether there are so few that the team meets once more to give back the one it has read: the
  // next row would be asked for when half of this one's time is over. Rows of 16-bit elements in
  // registers always have three; x and dy alone are ahead without.
  OFL_DEVICE bool IsTight() const {
    return kCopiesSum && (!kHold || sizeof(T) > 2) && grid_.stages == 2 && InUse() == 1;
  }

  struct Row {
    Values v, g;  // x_hat and dy * weight; kLate: x - mean and dy
  };
  // This thread's first packs in a stage.
  struct Words {
    const char *x, *dy;
  };
  OFL_DEVICE Row Read(const Words& words, int k, const Values& w, C mean, C rstd) const {
    const int at = k * grid_.team * kPackBytes;
    Row row;
    row.v = ConvertPack<C>(LoadApart<Pack<T, N>>(words.x + at, 1));
    row.g = ConvertPack<C>(LoadApart<Pack<T, N>>(words.dy + at, 1));
    if constexpr (kFromOutput) {
      Values bias = {};
      if constexpr (kKept > 1) bias = Kept(1, k);
      Unroll<N>([&](int i) {
        row.v.v[i] = (row.v.v[i] - bias.v[i]) * ReciprocalOf(ClampWeight(w.v[i]));
      });
    } else {
      Unroll(row.v.v, [&](C& v) {
        if (kCentre) v -= mean;
        if (!kLate) v *= rstd;
      });
    }
    return row;
  }
  OFL_DEVICE Values Kept(int i, int k) const {
    if constexpr (kHoldWeight) {
      return ConvertPack<C>(kept_[i * kPacks + k].Get());
    } else {
      Words16 words;
      Unroll<kWords>([&](int w) { words.v[w] = *Place(i, k, w); });
      Pack<W, N> pack;
      memcpy(&pack, &words, sizeof(pack));
      return ConvertPack<C>(pack);
    }
  }
  // Neighbouring threads' words lie side by side.
  static constexpr int kWords = N * static_cast<int>(sizeof(W)) / kPackBytes;  // of a pack
  using Words16 = Pack<uint4, kWords>;
  OFL_DEVICE uint4* Place(int i, int k, int w) const {
    return reinterpret_cast<uint4*>(weights_) + ((k * kKept + i) * kWords + w) * blockDim.x;
  }

  // One row.
  OFL_DEVICE void Visit(int turn, int stage, C mean, C rstd, T* out) {
    const char* const first = stages_ + stage * StageBytes() + rank_ * kPackBytes;
    const Words words = {first + PastLine(x_low_), first + Base::TensorBytes() + PastLine(dy_low_)};
    Row rows[kHold ? kPacks : 1];
    C sums[kSums] = {};
    Unroll<kPacks>([&](int k) {
      if (!Has(k)) return;
      Row& row = rows[kHold ? k : 0];
      const Values w = Kept(0, k);
      row = Read(words, k, w, mean, rstd);
      Unroll<N>([&](int i) {
        const C dy = row.g.v[i], v = row.v.v[i], g = dy * w.v[i];
        sums[0] += g * v;
        if constexpr (kCentre) {
          sums[1] += g;
          dbias_[k].v[i] += dy;
        }
        if constexpr (kLate) {
          sums[2] += v;
        } else {
          dweight_[k].v[i] += dy * v;
          row.g.v[i] = g;
        }
      });
    });
    if (NeedsSums()) sums_.Post(sums);
    if (StoresEarly() && turn + 1 == turns_) Base::StoreStraight();
    Base::Meet();
    if (Copies() && !IsTight()) {  // what the team has read before may be written over
      const int next = stage - InUse();
      Issue(turn + grid_.stages - InUse(), next < 0 ? grid_.stages - 1 : next);
    }
    if (!NeedsSums()) return;  // the row has given all that it has
    sums_.Total(sums);
    NormSums<T, kCentre> all;
    memcpy(&all, sums, sizeof(sums));  // in that order
    // What is not late is x_hat itself already.
    const NormGradient<T, kCentre, !kLate> gradient(all, rstd, grid_.share);
    Unroll<kPacks>([&](int k) {
      if (!Has(k)) return;
      Row& row = rows[kHold ? k : 0];
      Values w, dx;
      if (kLate || !kHold) w = Kept(0, k);
      if (!kHold) row = Read(words, k, w, mean, rstd);
      Unroll<N>([&](int i) {
        const C x_hat = gradient.XHat(row.v.v[i]);
        const C g = kLate || !kHold ? row.g.v[i] * w.v[i] : row.g.v[i];
        if (kLate) dweight_[k].v[i] += row.g.v[i] * x_hat;
        dx.v[i] = gradient.Dx(g, x_hat);
      });
      if (!a_.dx) return;
      if (a_.dsum) {
        Pack<T, N> raw;
        if constexpr (kCopiesSum) {
          const char* const at = words.dy + Base::TensorBytes() + k * grid_.team * kPackBytes;
          raw = LoadApart<Pack<T, N>>(at, 1);
        } else {
          raw = LoadAlignedPack<N>(a_.dsum + (out - a_.dx) + Base::Offset(k));
        }
        dx += ConvertPack<C>(raw);
      }
      StoreAlignedPack(out + Base::Offset(k), ConvertPack<T>(dx));
    });
    if (IsTight()) {
      Base::Meet();
      if (Copies()) Issue(turn + grid_.stages, stage);
    }
  }

  const ClusterBarrier barriers_;  // the first of those of the team's stages
  Exchange sums_;
  char *stages_, *weights_;
  unsigned x_low_ = 0, dy_low_ = 0;  // of the addresses of the row at work
  StowedPack<W, N> kept_[kHoldWeight ? kKept * kPacks : 1] = {};
};

template <class T, class W, int kPacks, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(NormPolicy::kThreads, 1)
    NormLeanKernel(const __grid_constant__ NormBackward<T> a,
                   const __grid_constant__ NormBackwardGrid<T, kCentre> grid) {
  extern __shared__ __align__(128) char team_memory[];
  NormLeanTeam<T, W, kPacks, kCentre, kFromOutput>(a, grid, team_memory).Run();
}

}  // namespace oneflow_lite::cuda
