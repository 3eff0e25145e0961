// SPDX-License-Identifier: Apache-2.0
//
// The losses of cross entropy, and what their gradient needs, of rows that depend on no other row:
// as primitive/cuda/cross_entropy/cross_entropy.cuh has them, by packs that are counted from the
// row's own first column on. Wide rows of up to 4 bytes an element are staged (own_staged.cuh).
#pragma once

#include "primitive/cuda/cross_entropy/cross_entropy.cuh"
#include "primitive/cuda/rows/shifted.cuh"
#include "python/torch/invariant/own_staged.cuh"

namespace oneflow_lite {
namespace cuda {

// A row in the hands of a group of threads.
template <class T>
struct OwnLossRow : LossRow<T> {
  using Base = LossRow<T>;
  using Base::Base, Base::N, Base::p, Base::active, Base::row, Base::target, Base::x, Base::anchor,
      Base::target_logit, Base::part, typename Base::C;

  // Narrow rows column by column.
  template <int kColumns, class Group>
  __device__ __forceinline__ void FoldColumns(Group& group) {
    const bool smooth = p.smoothing != 0;
    const int cols = active ? static_cast<int>(p.classes) : 0;
    StowedPack<T, 1> turn[kColumns];
    LoadTurn(x, RowSpan<1, int>(0, cols), group.rank(), cols, group.size(), turn);
    target_logit = TargetLogitOf(p, row, target);
    FoldTurn<kColumns>(turn, group.rank(), cols, group.size(), smooth, anchor, part);
    part = ReducePartial(part, smooth, group);
  }

  // A part of the row's `packs` by kLanes lanes, of a row each, or of a block's warps: from pack
  // `begin` on, `share` packs. The first pack of the row and the last ones are left out, so that
  // all words that are loaded lie inside the row: `size` threads have these columns one by one. The
  // rows of a warp begin alike. kHeld: words of a lane, which holds them all; 0 where it reads them
  // in turns. kTurn: packs that share an exponential's maximum; 0 where all of the lanes' do.
  template <int kLanes, int kHeld, int kTurn, class Index>
  __device__ __forceinline__ void FoldPart(Index packs, Index begin, Index share, int rank,
                                           int size) {
    constexpr int kWords = kHeld > 0 ? kHeld : CrossEntropyPolicy::kUnroll;
    constexpr int kExtras = (3 * N - 1 + kLanes - 1) / kLanes;
    const bool smooth = p.smoothing != 0;
    if (!active) packs = 0;
    const int extras = active ? static_cast<int>(p.classes - packs * N) : 0;
    const Index end = begin + share < packs ? begin + share : packs;
    const int lane = threadIdx.x % kLanes;
    const WordFrame frame = WordFrame::Of(x + N);
    const uint4* const words = frame.words;
    unsigned past = frame.past;
    if (kLanes < kWarp) past = __shfl_sync(0xffffffffu, past, 0);
    uint32_t turn[kWords + 1][4];
    LoadWords<kLanes, kWords>(words, begin + lane, end, turn);
    Pack<C, kExtras> extra;
#pragma unroll
    for (int i = 0; i < kExtras; ++i) {
      const int e = rank + i * size;
      extra.v[i] = MinusInfinity<C>();
      if (e < extras) extra.v[i] = ConvertTo<C>(x[e < N ? e : e + packs * N]);
    }
    if (kHeld == 0 && !p.Counts(target)) return;
    target_logit = TargetLogitOf(p, row, target);
#pragma unroll
    for (int i = 0; i < kExtras; ++i) {
      if (smooth && rank + i * size < extras) part.deviation += extra.v[i] - anchor;
    }
    if constexpr (kTurn == 0) {
      FoldHeld<kLanes, kWords>(turn, past, begin + lane, end, extra, rank, size, extras);
    } else {
      if (rank < extras) part.sum.Add(extra);
      constexpr int kStep = kWords * kLanes;
      const auto fold = [&](auto& words_of_turn, Index from) {
        const auto held = OwnPacks<kLanes, kWords>(words_of_turn, past);
#pragma unroll
        for (int k = 0; k < kWords; k += kTurn) {
          FoldTurn<kTurn>(held.v + k, from + lane + k * kLanes, end, kLanes, smooth, anchor, part);
        }
      };
      if constexpr (kHeld > 0) {
        fold(turn, begin);
      } else {
        uint32_t next[kWords + 1][4];
        const auto pass = [&](auto& now, auto& then, Index from) {
          LoadWords<kLanes, kWords>(words, from + kStep + lane, end, then);
          memcpy(now[kWords], then[0], kPackBytes);
          fold(now, from);
          return from + kStep < end;
        };
        for (Index from = begin; from < end; from += 2 * kStep) {
          if (!pass(turn, next, from)) break;
          pass(next, turn, from + kStep);
        }
      }
      part.sum = ReduceLanes<kLanes>(part.sum, MergeOnline{});
    }
    if (smooth) part.deviation = ReduceLanes<kLanes>(part.deviation, Plus{});
  }

 private:
  // The words that a lane holds, every kLanes-th pack from `first` to `end`, and its extras, by the
  // maximum of all lanes: each exponential once.
  template <int kLanes, int kWords, int kExtras, class Index>
  __device__ __forceinline__ void FoldHeld(uint32_t (&words)[kWords + 1][4], unsigned past,
                                           Index first, Index end, const Pack<C, kExtras>& extra,
                                           int rank, int size, int extras) {
    const auto held = OwnPacks<kLanes, kWords>(words, past);
    C max = MaxOf<C>(extra), sum = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (first + k * kLanes < end) max = Larger{}(max, MaxOf<C>(held.v[k].Get()));
    }
    const RowExponential<C> exp(max = ReduceLanes<kLanes>(max, Larger{}));
#pragma unroll
    for (int i = 0; i < kExtras; ++i) {
      if (rank + i * size < extras) sum += exp(extra.v[i]);
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (first + k * kLanes >= end) continue;
      const Pack<C, N> v = GetAs<C>(held.v[k]);
      C some = exp(v.v[0]);
#pragma unroll
      for (int i = 1; i < N; ++i) some += exp(v.v[i]);
      sum += some;
      if (p.smoothing != 0) part.deviation += DeviationOf(v, anchor);
    }
    part.sum = {max, ReduceLanes<kLanes>(sum, Plus{}) * exp.Weight()};
  }
  // A lane's words: every kLanes-th from `first` to `last`.
  template <int kLanes, int kWords, class Index>
  static __device__ __forceinline__ void LoadWords(const uint4* words, Index first, Index last,
                                                   uint32_t (&to)[kWords + 1][4]) {
    words += first;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (first + k * kLanes > last) continue;
      const uint4 word = words[k * kLanes];
      memcpy(to[k], &word, sizeof(word));
    }
  }
  // The own packs that begin `past` bytes into these words.
  template <int kLanes, int kWords>
  static __device__ __forceinline__ Pack<StowedPack<T, N>, kWords> OwnPacks(
      uint32_t (&words)[kWords + 1][4], unsigned past) {
    VisitWordShift<T>(past, [&](auto skip) {
      internal::ShiftWords<decltype(skip)::value, (sizeof(T) < 4), kWords, kLanes>(words,
                                                                                   past % 4 * 8);
    });
    Pack<StowedPack<T, N>, kWords> packs;
    memcpy(&packs, words, sizeof(packs));
    return packs;
  }
};

// Narrow rows, by groups of lanes.
template <int kLanes, int kColumns, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads)
    OwnLossColumnsKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats) {
  constexpr int kRows = CrossEntropyPolicy::kFoldThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t at = int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  OwnLossRow<T> row(p, at, at < p.rows);
  row.template FoldColumns<kColumns>(group);
  if (group.rank() == 0) row.Write(loss, stats);
}

// Threads of a block whose warps have a row each, or two as far apart as rows that begin alike.
template <class T, int kLanes>
inline constexpr int kOwnLossThreads = kWarp*(kLanes<kWarp && kPackSize<T>> 4 ? kPackSize<T> : 4);

// A row per group of lanes, which hold it.
template <int kLanes, int kWords, class T>
__global__ void __launch_bounds__(kOwnLossThreads<T, kLanes>, kWords == 8 ? 7 : 1)
    OwnLossGroupKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                       int packs) {
  constexpr int kThreads = kOwnLossThreads<T, kLanes>;
  const int rank = threadIdx.x % kLanes;
  const int64_t at = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kWarp +
                     threadIdx.x % kWarp / kLanes * (kThreads / kWarp);
  OwnLossRow<T> row(p, at, at < p.rows);
  row.template FoldPart<kLanes, kWords, 0>(packs, 0, kWords * kLanes, rank, kLanes);
  if (rank == 0) row.Write(loss, stats);
}

// Threads of a block with a row, at most, and for how many blocks per multiprocessor the compiler
// leaves registers. kHeld: words of a thread; 0 where it reads them in turns.
template <class T, int kHeld>
struct OwnLossBlock {
  static constexpr bool kShort = sizeof(T) == 2, kDouble = sizeof(T) == 8;
  static constexpr int kThreads = kHeld == 0   ? CrossEntropyPolicy::kFoldThreads
                                  : kHeld == 8 ? 320
                                  : kShort     ? 160
                                               : 512;
  static constexpr int kBlocks = kHeld == 0   ? (kDouble ? 4 : 6)
                                 : kHeld == 8 ? (kDouble ? 2 : 3)
                                 : kShort     ? 8
                                              : 2;
};

// A row per block, `share` packs a warp.
template <int kHeld, class T, class Index = std::conditional_t<(kHeld > 0), int, int64_t>>
__global__ void __launch_bounds__(OwnLossBlock<T, kHeld>::kThreads, OwnLossBlock<T, kHeld>::kBlocks)
    OwnLossBlockKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                       Index packs, Index share) {
  constexpr int kTurn = kHeld == 0       ? CrossEntropyPolicy::kUnroll
                        : sizeof(T) == 8 ? 2
                        : sizeof(T) == 4 ? kHeld
                                         : 0;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  OwnLossRow<T> row(p, blockIdx.x);
  const Index begin = static_cast<Index>(threadIdx.x / kWarp) * share;
  row.template FoldPart<kWarp, kHeld, kTurn>(packs, begin, share, threadIdx.x, blockDim.x);
  row.part.sum = block.ReduceWarps(row.part.sum, MergeOnline{}, OnlineSum<ComputeType<T>>{});
  if (p.smoothing != 0) {
    row.part.deviation = block.ReduceWarps(row.part.deviation, Plus{}, ComputeType<T>(0));
  }
  if (threadIdx.x == 0) row.Write(loss, stats);
}

// The same for own_staged.cuh.
template <class T, bool kSmooth>
struct StagedLossRow {
  using Element = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 1;
  static constexpr unsigned kOffers = RowOffers::kShifts;
  static constexpr bool kWrites = false;
  using Statistics = CrossEntropyPartial<C>;
  using Merge = MergePartials;
  struct Total {
    Statistics row;
    C anchor = 0;
    int64_t target = 0;
  };

  CrossEntropyRows<T> p;
  C* loss;
  C* stats;

  template <int N>
  using Raw = RawPacks<T, kInputs, N>;
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(DirectLoad<T>{p.x, p.row_stride}, row, col)}};
  }
  __device__ __forceinline__ WordFrame Frame(int, int64_t row, int64_t col) const {
    return DirectLoad<T>{p.x, p.row_stride}.Frame(row, col);
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    if (kSmooth) total.anchor = AnchorOf(p, p.x + row * p.row_stride);
    return total;
  }
  __device__ __forceinline__ void Look(int64_t row, Total& total) const {
    total.target = p.target[row];
  }
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t, const Total& start,
                                      Statistics& s) const {
    const Pack<C, N> x = ConvertPack<C>(raw.input[0]);
    s.sum.Add(x);
    if (kSmooth) s.deviation += DeviationOf(x, start.anchor);
  }
  static __device__ __forceinline__ void Conclude(const Statistics& s, Total& total) {
    total.row = s;
  }
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    WriteLoss(p, loss, stats, row, total.target, TargetLogitOf(p, row, total.target), total.anchor,
              total.row);
  }
};
// Losses of bfloat16 at 8191 columns take 76 us so, by 256 threads 102 us.
template <class T, bool kSmooth>
struct SmallStaged<StagedLossRow<T, kSmooth>> {
  static constexpr bool kServes = true;
  using Shape = StagedShape<128, 8>;
};

// Which kernel serves which rows, in packs that are not left out.
template <class T>
struct OwnLossPolicy {
  static constexpr int kColumns = sizeof(T) == 8 ? 32 : 136;  // column by column
  static constexpr int kWarp = sizeof(T) == 4 ? 4 : 8;        // words of a lane that has a row
  static constexpr int kWords = sizeof(T) == 4 ? 4 : 8;
  static constexpr int kMost = sizeof(T) == 2 ? 2300 : sizeof(T) == 4 ? 960 : 2048;
};

template <class T>
cudaError_t LaunchOwnLosses(const CrossEntropyRows<T>& p, ComputeType<T>* loss,
                            ComputeType<T>* stats, const DeviceLimits& limits,
                            cudaStream_t stream) {
  using P = OwnLossPolicy<T>;
  constexpr int N = kPackSize<T>, kThreads = CrossEntropyPolicy::kFoldThreads;
  if (p.rows <= 0 || p.classes <= 0) return cudaSuccess;
  const auto launch = [&](auto kernel, int64_t rows_of_block, int threads, auto... more) {
    return Launch(kernel, CeilDiv(p.rows, rows_of_block), threads, 0, stream, p, loss, stats,
                  more...);
  };
  if (p.classes <= P::kColumns) {
    return VisitShapes<GroupShape<8, 4>, GroupShape<8, 8>, GroupShape<8, 16>, GroupShape<8, 17>>(
        p.classes, [&](auto shape) {
          constexpr int kLanes = decltype(shape)::lanes;
          return launch(OwnLossColumnsKernel<kLanes, decltype(shape)::packs, T>, kThreads / kLanes,
                        kThreads);
        });
  }
  const int64_t packs = p.classes / N - 2;
  if (packs < kWarp * P::kWarp) {
    return VisitShapes<GroupShape<16, 2>, GroupShape<16, 4>, GroupShape<32, 3>, GroupShape<32, 4>,
                       GroupShape<32, P::kWarp == 8 ? 6 : 4>, GroupShape<32, P::kWarp>>(
        packs + 1, [&](auto shape) {
          constexpr int kLanes = decltype(shape)::lanes, kThreads = kOwnLossThreads<T, kLanes>;
          return launch(OwnLossGroupKernel<kLanes, decltype(shape)::packs, T>, kThreads / kLanes,
                        kThreads, static_cast<int>(packs));
        });
  }
  if (packs <= P::kMost) {
    // A warp has a pack less than words. Some packs more are left out where that saves a warp.
    const auto launch_held = [&](auto words) {
      constexpr int kHeld = decltype(words)::value, kEach = kHeld * kWarp - 1;
      int64_t warps = packs / kEach, rest = packs - warps * kEach;
      if (3 * N - 1 + rest * N > warps * kWarp) ++warps, rest = 0;
      const int64_t left = packs - rest, share = CeilDiv(CeilDiv(left, warps) + 1, kWarp) * kWarp;
      return launch(OwnLossBlockKernel<kHeld, T>, 1, static_cast<int>(warps) * kWarp,
                    static_cast<int>(left), static_cast<int>(share - 1));
    };
    const bool few = P::kWords == 4 || packs <= CrossEntropyPolicy::kFewHeldPacks;
    return VisitNumber<4, P::kWords>(few ? 4 : P::kWords, launch_held);
  }
  if constexpr (sizeof(T) < 8) {
    const auto staged = [&](auto smooth) {
      const StagedLossRow<T, decltype(smooth)::value> row{p, loss, stats};
      return LaunchStaged(row, p.rows, p.classes, limits, stream);
    };
    const cudaError_t error =
        p.smoothing != 0 ? staged(std::true_type()) : staged(std::false_type());
    if (error != kNotServed) return error;
  }
  return launch(OwnLossBlockKernel<0, T>, 1, kThreads, packs, CeilDiv(packs, kThreads / kWarp));
}

}  // namespace cuda
}  // namespace oneflow_lite
