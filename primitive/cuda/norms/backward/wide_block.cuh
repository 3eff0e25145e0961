// SPDX-License-Identifier: Apache-2.0
//
// What the blocks of the wide norms' backward (norms/backward/wide.cuh) visit, what they have in
// shared memory, and the two of their warps that compute nothing: one that copies rows, and one
// that sums what the workers posted.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/norms/backward/policy.h"
#include "primitive/cuda/norms/backward/wide_exchange.cuh"
#include "primitive/cuda/norms/math.cuh"

namespace oneflow_lite::cuda {

// How a launch's blocks share out the work.
template <class T>
struct NormWideGrid : NormWideShape {
  using C = ComputeType<T>;
  bool needs_sums;  // else workers have nothing to add up
  C share;          // 1 / cols
  C* parts;         // of the weights' gradients, at PartPitch(cols)
  uint64_t* words;  // of NormSliceExchange, where slices are no cluster; else null
};

// Rows `period` apart start alike between multiples of 16 bytes. Where that divides the number of
// units (period 1 here), unit u visits every units-th row from row u on. Otherwise rows are put in
// an order in which those that start alike follow one another, and each unit takes an equal share
// of that: some rows that start alike, then some that start otherwise.
class NormWideRows {
 public:
  // Rows that start alike, and which of the launch's parts takes what they add to the gradients of
  // weight and bias.
  struct Some {
    int64_t row;
    int step, count, part;
    int kind;  // row % period
    OFL_DEVICE bool There() const { return count >= 0; }
  };

  OFL_DEVICE NormWideRows(int64_t rows, int unit, int units, int period)
      : rows_(static_cast<int>(rows)),
        begin_(static_cast<int>(rows * unit / units)),
        end_(static_cast<int>(rows * (unit + 1) / units)),
        unit_(unit),
        units_(units),
        period_(period) {}

  OFL_DEVICE Some First() const {
    if (period_ == 1) {
      return {unit_, units_, (rows_ - unit_ + units_ - 1) / units_, unit_, 0};
    }
    int kind = 0;
    while (kind + 1 < period_ && Before(kind + 1) <= begin_) ++kind;
    return Of(kind);
  }
  OFL_DEVICE void Next(Some& some) const {
    // The parts of all units follow one another: where the next unit begins with other rows, this
    // one has a part for these, too, if an empty one.
    if (some.kind + 1 < period_ && Before(some.kind + 1) <= end_) {
      some = Of(some.kind + 1);
    } else {
      some.count = -1;
    }
  }

 private:
  // Rows of the kinds before.
  OFL_DEVICE int Before(int kind) const {
    const int each = rows_ / period_, more = rows_ % period_;
    return kind * each + (kind < more ? kind : more);
  }
  OFL_DEVICE Some Of(int kind) const {
    const int first = Before(kind), last = Before(kind + 1);
    const int from = begin_ > first ? begin_ : first, to = end_ < last ? end_ : last;
    return {kind + int64_t{period_} * (from - first), period_, to > from ? to - from : 0,
            unit_ + kind, kind};
  }
  const int rows_, begin_, end_;  // of this unit, in that order
  const int unit_, units_, period_;
};

// dx = dy * w * rstd + v * by_v + constant; x_hat = v * rstd + offset (norms/math.cuh).
template <class C>
struct alignas(16) NormRowFactors {
  C rstd, by_v, constant, offset;
};

// What a block has in shared memory in front of weights, biases and the ring. Sums are moved there
// in words (LoadApart): the compiler would move them in pieces.
template <class C, class Sums>
struct alignas(128) NormWideScratch {
  using P = NormWidePolicy;
  static constexpr int kTurns = 4;  // rows whose sums are under way, at most, and one more
  Sums workers[kTurns][P::kMaxWorkers / kWarp * P::kPosts];
  Sums slices[kTurns][kMaxClusterBlocks];
  NormRowFactors<C> row[kTurns];
  C mean[P::kMaxStages];
  uint64_t full[P::kMaxStages], free[P::kMaxStages];
  uint64_t posted[kTurns], sent[kTurns], known[kTurns];

  // A turn's place, and the parity of its barriers.
  OFL_DEVICE static int Place(int turn) { return turn & (kTurns - 1); }
  OFL_DEVICE static int Parity(int turn) { return turn / kTurns & 1; }
};

// A number of each row (mean, rstd), which a warp asks for long before it is used: alone it would
// take as long to come as a row takes.
template <class C>
class NormRowNumbers {
 public:
  // from: null gives zeros.
  OFL_DEVICE NormRowNumbers(const C* from, const NormWideRows::Some& some)
      : from_(from), some_(some), next_(Load(0)) {}
  // By all lanes, for i = 0, 1 and so on.
  OFL_DEVICE C At(int i) {
    if (i % kWarp == 0) now_ = next_, next_ = Load(i + kWarp);
    return __shfl_sync(0xffffffffu, now_, i % kWarp);
  }

 private:
  OFL_DEVICE C Load(int i) const {
    i += static_cast<int>(threadIdx.x) % kWarp;
    return from_ && i < some_.count ? from_[some_.row + int64_t{i} * some_.step] : C(0);
  }
  const C* const from_;
  const NormWideRows::Some& some_;
  C now_ = 0, next_;
};

// kOwn: nothing depends on where rows begin. A row's sums are added up by packs counted from its
// first column on; a column's by rows in their order, by code that rounds alike for every pack.
template <class T, bool kCentre, bool kFromOutput, bool kOwn>
class NormWideBlock {
 protected:
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  using Scratch = NormWideScratch<C, Sums>;
  static constexpr int N = kPackSize<T>, kPacks = kWidePacks<T>;
  using Values = Pack<C, N>;
  using Exchange = NormSliceExchange<Sums, C, kNormSumCount<T, kCentre>>;

  OFL_DEVICE NormWideBlock(const NormBackward<T>& a, const NormWideGrid<T>& grid, char* shared)
      : a_(a),
        grid_(grid),
        scratch_(*reinterpret_cast<Scratch*>(shared)),
        rows_(a.rows, static_cast<int>(blockIdx.x) / grid.slices,
              static_cast<int>(gridDim.x) / grid.slices, grid.period),
        workers_(static_cast<int>(blockDim.x) - NormWidePolicy::kOtherThreads),
        weights_(shared + sizeof(Scratch)),
        biases_(weights_ + workers_ * kPacks * static_cast<int>(sizeof(Values))),
        ring_(kFromOutput || kOwn ? biases_ + (biases_ - weights_) : biases_) {}

  OFL_DEVICE void StartBarriers() const {
    const int warps = workers_ / kWarp;
#pragma unroll 1
    for (int s = 0; s < grid_.stages; ++s) {
      ClusterBarrier(scratch_.full, s).Init();
      ClusterBarrier(scratch_.free, s).Init(warps);
    }
#pragma unroll 1
    for (int i = 0; i < Scratch::kTurns; ++i) {
      ClusterBarrier(scratch_.posted, i).Init(warps);
      ClusterBarrier(scratch_.sent, i).Init();
      ClusterBarrier(scratch_.known, i).Init();
    }
    PublishToCopies();
  }

  // The columns of this block's slice in rows that start like `row`. Packs are the words of 16
  // bytes of a row of dx, or dy where there is none; the first and the last may reach over its
  // ends.
  OFL_DEVICE void Slice(int64_t row) {
    const auto lead = BytesPastBoundary(a_.anchor() + row * a_.cols) / sizeof(T);
    const int slice = static_cast<int>(blockIdx.x) % grid_.slices;
    column_ = slice * grid_.packs * N - static_cast<int>(lead);
    const int left = (Cols() - column_ + N - 1) / N;
    packs_ = left < 0 ? 0 : left < grid_.packs ? left : grid_.packs;
  }
  OFL_DEVICE int Cols() const { return static_cast<int>(a_.cols); }

  // By the warp that copies.
  OFL_DEVICE void CopyRows() {
    int stage = 0, parity = 1;  // in a new barrier, the turn before the first has passed
#pragma unroll 1
    for (auto some = rows_.First(); some.There(); rows_.Next(some)) {
      Slice(some.row);
      NormRowNumbers<C> means(kCentre && !kFromOutput ? a_.mean : nullptr, some);
#pragma unroll 1
      for (int i = 0; i < some.count; ++i) {
        const C mean = means.At(i);
        ClusterBarrier(scratch_.free, stage).AwaitBlock(parity);
        if (threadIdx.x % kWarp == 0) {
          scratch_.mean[stage] = mean;
          CopyRow(some.row + int64_t{i} * some.step, stage);
        }
        __syncwarp();
        if (++stage == grid_.stages) stage = 0, parity ^= 1;
      }
    }
  }

  // By the warp that sums. What goes through memory is taken a turn later, when it has come.
  OFL_DEVICE void SumRows() const {
    const Exchange exchange = OfSlices();
    const bool late = grid_.words != nullptr;
    int turn = 0;
#pragma unroll 1
    for (auto some = rows_.First(); some.There(); rows_.Next(some)) {
      NormRowNumbers<C> rstds(a_.rstd, some);
      C before = 0;
#pragma unroll 1
      for (int i = 0; i < some.count; ++i, ++turn) {
        const C rstd = rstds.At(i);
        Sums sums = SumOfWorkers(turn);
        if (late) {
          exchange.Send(turn, sums);
          if (i > 0) Publish(turn - 1, exchange.Take(turn - 1), before);
          before = rstd;
        } else {
          if (grid_.slices > 1) sums = SumOfSlices(sums, turn);
          Publish(turn, sums, rstd);
        }
      }
      if (late && some.count > 0) Publish(turn - 1, exchange.Take(turn - 1), before);
    }
  }
  // Whether a row's slices are a cluster's blocks.
  OFL_DEVICE bool Clustered() const { return grid_.slices > 1 && !grid_.words; }
  OFL_DEVICE Exchange OfSlices() const {
    const int block = static_cast<int>(blockIdx.x);
    return Exchange(grid_.words, block / grid_.slices, block % grid_.slices, grid_.slices);
  }

  const NormBackward<T>& a_;
  const NormWideGrid<T>& grid_;
  Scratch& scratch_;
  const NormWideRows rows_;
  int workers_;
  char *const weights_, *const biases_, *const ring_;
  int packs_, column_;  // of the slice, and where its first pack starts

 private:
  OFL_DEVICE void CopyRow(int64_t row, int stage) const {
    char* const to = ring_ + stage * 2 * grid_.tensor_bytes;
    const bool last = row + 1 == a_.rows;
    const Span x = SpanOf(a_.x + row * a_.x_stride, to, last);
    const Span dy = SpanOf(a_.dy + row * a_.cols, to + grid_.tensor_bytes, last);
    const ClusterBarrier full(scratch_.full, stage);
    full.Expect(x.bytes + dy.bytes);
    if (x.bytes > 0) CopyBulk(full, x.to, x.from, x.bytes);
    if (dy.bytes > 0) CopyBulk(full, dy.to, dy.from, dy.bytes);
    if (a_.dsum) {
      const Span dsum = SpanOf(a_.dsum + row * a_.cols, to, false);
      if (dsum.bytes > 0) PrefetchBulk(dsum.from, dsum.bytes);
    }
  }
  struct Span {
    char* to;
    const char* from;
    int bytes;
  };
  // The words of 16 bytes in which a row has elements of this slice, and where they go: words lie
  // in shared memory as in memory between lines of 128 bytes, which bulk copies like. The word in
  // which a tensor ends (`last`) may not be touched: what is of it is copied here.
  OFL_DEVICE Span SpanOf(const T* row, char* part, bool last) const {
    constexpr uintptr_t kWord = kPackBytes - 1;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(row), end = begin + a_.cols * sizeof(T);
    const uintptr_t at = begin + int64_t{column_} * static_cast<int>(sizeof(T));
    constexpr int kMore = kOwn ? kPackBytes : 0;  // in which the slice's own last pack ends
    uintptr_t from = column_ < 0 ? begin : at, to = at + packs_ * kPackBytes + kMore;
    if (to > end) to = end;
    from &= ~kWord;
    Span span{part + (at & NormWidePolicy::kLineMask) + (from - (at & ~kWord)),
              reinterpret_cast<const char*>(from), 0};
    if (to <= from) return span;
    const uintptr_t words = (to + kWord) & ~kWord;
    span.bytes = static_cast<int>(words - from);
    if (last && words > end) {
      span.bytes -= kPackBytes;
      const T* const tail = reinterpret_cast<const T*>(words - kPackBytes);
      T* const place = reinterpret_cast<T*>(span.to + span.bytes);
      const int count = static_cast<int>((end - (words - kPackBytes)) / sizeof(T));
#pragma unroll 1
      for (int i = 0; i < count; ++i) place[i] = tail[i];
      PublishToCopies();  // a later copy may write there
    }
    return span;
  }

  OFL_DEVICE Sums SumOfWorkers(int turn) const {
    const int place = Scratch::Place(turn), lane = static_cast<int>(threadIdx.x) % kWarp,
              posts = workers_ / kWarp * NormWidePolicy::kPosts;
    ClusterBarrier(scratch_.posted, place).AwaitBlock(Scratch::Parity(turn));
    Sums sums;
#pragma unroll 1
    for (int post = lane; post < posts; post += kWarp) {
      sums = sums + LoadApart<Sums>(&scratch_.workers[place][post], 1);
    }
    return ReduceLanes<kWarp>(sums, Plus{});
  }
  OFL_DEVICE void Publish(int turn, const Sums& sums, C rstd) const {
    __syncwarp();  // once this is known, what all lanes have read may be written again
    if (threadIdx.x % kWarp != 0) return;
    const int place = Scratch::Place(turn);
    const NormGradient<T, kCentre, kFromOutput> g(sums, rstd, grid_.share);
    scratch_.row[place] = {g.rstd, g.scale * g.by_x_hat, g.offset * g.by_x_hat + g.constant,
                           g.offset};
    ClusterBarrier(scratch_.known, place).Arrive();
  }

  // A place is written again four turns later: by then, all blocks have read it, because they sent
  // their sums of the turns in between after that.
  OFL_DEVICE Sums SumOfSlices(const Sums& mine, int turn) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, place = Scratch::Place(turn);
    const ClusterBarrier sent(scratch_.sent, place);
    if (lane == 0) sent.Expect(grid_.slices * static_cast<int>(sizeof(Sums)));
    Sums* const slots = scratch_.slices[place];
    if (lane < grid_.slices) sent.Send(slots + internal::ClusterRank(), lane, mine);
    sent.Await(Scratch::Parity(turn));
    Sums sums;
    if (lane < grid_.slices) sums = LoadApart<Sums>(slots + lane, 1);
    return ReduceLanes<kWarp>(sums, Plus{});
  }
};

}  // namespace oneflow_lite::cuda
