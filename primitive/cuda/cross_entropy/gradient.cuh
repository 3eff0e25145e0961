// SPDX-License-Identifier: Apache-2.0
//
// The gradient of cross entropy along a row whose statistics are known, packs of it at a time. The
// kernels that make it issue instructions for most of their time: every one per element counts.
#pragma once

#include "primitive/cuda/cross_entropy/rows.cuh"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

// A load that is issued where it stands: the compiler would put it off until the value is used.
OFL_DEVICE int64_t LoadEarly(const int64_t* p) {
  int64_t v;
  asm volatile("ld.volatile.global.b64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}
// The same of a value that stays in registers of the lanes. What is the same for all of them the
// compiler moves to a register of the warp, for which the warp waits at once, before a row's loads:
// in place, 151936 columns of bfloat16 at 0.90 of a copy, 0.94 without. So the address has a part
// that is 0 in every lane, but that the compiler does not know.
template <class T>
OFL_DEVICE T LoadIntoLanes(const T* p) {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, uint32_t>;
  static_assert(sizeof(T) == sizeof(Word));
  unsigned none;
  asm("{ .reg .u32 below;\nmov.u32 below, %%lanemask_lt;\nshr.u32 %0, below, 31; }" : "=r"(none));
  const auto at = __cvta_generic_to_global(p + none);
  Word word;
  if constexpr (sizeof(Word) == 8) {
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(word) : "l"(at));
  } else {
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(at));
  }
  T v;
  memcpy(&v, &word, sizeof(v));
  return v;
}

// ConvertPack to the compute type, as GetAs does it.
template <class T, int N>
OFL_DEVICE Pack<ComputeType<T>, N> Widened(const Pack<T, N>& x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && N > 1) {
    return StowedPack<T, N>::Of(x).GetWide();
  } else {
    return ConvertPack<ComputeType<T>>(x);
  }
}

// The element that begins `past` bytes into a pack.
template <class T, int N>
OFL_DEVICE T ElementAt(const Pack<T, N>& x, unsigned past) {
  if constexpr (N == 1) {
    return x.v[0];
  } else {
    return ShiftPacks(x, x, past).v[0];
  }
}

// dx = (exp(x - max) / sum - smoothing / classes) factor, less (1 - smoothing) factor at the
// target; 0 in a row that does not count, whatever it holds. kSmooth: whether there may be
// smoothing.
template <class T, bool kSmooth>
struct CrossEntropyGradient {
  using C = ComputeType<T>;
  RowExponential<C> exp;
  C gain = 0;  // factor / sum
  C less = 0;  // factor smoothing / classes
  C factor = 0;
  uintptr_t at = 0;   // where the target's gradient goes
  unsigned skip = 0;  // why the row does not count; 0 where it does

  CrossEntropyGradient() = default;
  // `share` is factor / sum; dx is the row's.
  OFL_DEVICE CrossEntropyGradient(const CrossEntropyRows<T>& p, int64_t target, C max, C share,
                                  C factor, const T* dx)
      : exp(max), gain(share * exp.Weight()), factor(factor) {
    if (kSmooth) less = factor * (p.smoothing / static_cast<C>(p.classes));
    at = reinterpret_cast<uintptr_t>(dx + target);
    if (!p.Counts(target)) skip = target == p.ignore_index ? kIgnored : kNoClass;
  }
  static constexpr unsigned kIgnored = 1, kNoClass = 2;

  // Makes the pack at dx of the logits there. Who holds the target's logit calls found(logit).
  template <int N, class F>
  OFL_DEVICE void Write(T* dx, const Pack<T, N>& logits, C smoothing, const F& found) const {
    constexpr unsigned kBytes = N * sizeof(T);
    Pack<C, N> x = Widened(logits);
#pragma unroll
    for (C& v : x.v) v = kSmooth ? Gained(exp(v), less) : exp(v) * gain;
    StoreAlignedPack<N>(dx, ConvertPack<T>(x));
    // The rare cases cost one comparison, of the lower half of an address, and code elsewhere.
    const auto place = reinterpret_cast<uintptr_t>(dx);
    const unsigned past = static_cast<unsigned>(at) - static_cast<unsigned>(place);
    if (__builtin_expect(past < kBytes || skip, 0)) {
      if (skip) {
#pragma unroll
        for (C& v : x.v) v = 0;
        StoreAlignedPack<N>(dx, ConvertPack<T>(x));
      } else if (at - place < kBytes) {  // written by the same thread, after the pack
        const C logit = ConvertTo<C>(ElementAt(logits, past));
        const C whole = kSmooth ? fma(C(1) - smoothing, factor, less) : factor;
        dx[past / sizeof(T)] = ConvertTo<T>(Gained(exp(logit), whole));
        found(logit);
      }
    }
  }

 private:
  // weight * gain - less, rounded once. The compiler would round the product of a single column as
  // well, which the target's gradient needs too: another result than in a pack.
  OFL_DEVICE C Gained(C weight, C less) const { return fma(weight, gain, -less); }
};

// The gradient of cross entropy from the rows' statistics, and the multiplication of rows that were
// made ready in advance: elementwise along rows, in packs aligned to what is written.

// A thread's place: its row, and the kLanes threads that work on it, or on a chunk of it. kLanes =
// 0: a power of two that is known at run time.
template <int kLanes>
struct RowShare {
  int64_t row, chunk;
  int rank, bits;

  OFL_DEVICE RowShare(const RowTasks& tasks, int64_t task) : bits(tasks.lane_bits) {
    // A division of 64 bits takes long, and the loads wait for it.
    const int64_t group = tasks.count >> 32
                              ? task / tasks.chunks
                              : static_cast<unsigned>(task) / static_cast<unsigned>(tasks.chunks);
    chunk = task - group * tasks.chunks;
    rank = threadIdx.x & (lanes() - 1);
    row = group * (blockDim.x / lanes()) + threadIdx.x / lanes();
  }
  OFL_DEVICE int lanes() const { return kLanes > 0 ? kLanes : 1 << bits; }
};

// The packs of a row from `first` on, each `lanes` behind the one before, of which `left` says how
// far they reach.
template <bool kAligned, int kUnroll, class T, int N>
OFL_DEVICE void LoadShare(const T* x, const RowSpan<N>& span, int64_t first, int left, int lanes,
                          StowedPack<T, N> (&packs)[kUnroll]) {
  const T* from = x + span.PackColumn(first);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (u * lanes >= left) continue;
    if constexpr (kAligned) {
      packs[u] = StowedPack<T, N>::Of(LoadAlignedPack<N>(from + u * lanes * N));
    } else {
      const int64_t at = first + u * lanes;
      packs[u] = StowedPack<T, N>::Of(at > 0 && at + 1 < span.packs
                                          ? LoadShiftedPack<N>(from + u * lanes * N)
                                          : LoadPack<N>(from + u * lanes * N));
    }
  }
}

// write(y + c, logits) for the packs of this thread's share of a row, which are aligned in y, and
// for its single columns. What `write` is, make() says once the loads are under way. x may be y.
template <class T, class Share, class F>
OFL_DEVICE void MapRow(const T* x, T* y, int64_t cols, const RowTasks& tasks, const Share& share,
                       const F& make) {
  constexpr int N = kPackSize<T>, kUnroll = CrossEntropyPolicy::kUnroll;
  const RowSpan<N> span(ElementsToBoundary(y), cols);
  const int64_t begin = share.chunk * tasks.share;
  const int64_t end = begin + tasks.share < span.packs ? begin + tasks.share : span.packs;
  const int64_t first = begin + share.rank;
  const int left = static_cast<int>(end - first), lanes = share.lanes();  // may be negative
  StowedPack<T, N> packs[kUnroll];
  if (IsAlignedFor<uint4>(x + span.head)) {
    LoadShare<true>(x, span, first, left, lanes, packs);
  } else {
    LoadShare<false>(x, span, first, left, lanes, packs);
  }
  const auto write = make();
  T* to = y + span.PackColumn(first);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (u * lanes < left) write(to + u * lanes * N, packs[u].Get());
  }
  if (share.chunk != 0) return;
  for (int e = share.rank; e < span.extras(); e += lanes) {
    const int64_t col = span.Column(e);
    write(y + col, LoadPack<1>(x + col));
  }
}

template <int kLanes, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kMapBlocks<T>)
    CrossEntropyBackwardKernel(CrossEntropyRows<T> p, const ComputeType<T>* stats,
                               const ComputeType<T>* dloss, int64_t dloss_stride, T* dx,
                               RowTasks tasks) {
  using C = ComputeType<T>;
  const RowShare<kLanes> share(tasks, blockIdx.x);
  if (share.row >= p.rows) return;
  T* y = dx + share.row * p.classes;
  MapRow(p.x + share.row * p.row_stride, y, p.classes, tasks, share, [&] {
    const C max = stats[2 * share.row], log_sum = stats[2 * share.row + 1];
    const C factor = dloss ? dloss[share.row * dloss_stride] : C(1);
    const CrossEntropyGradient<T, true> gradient(p, p.target[share.row], max,
                                                 factor * ExpNonPositive(-log_sum), factor, y);
    return [=](T* at, const auto& logits) { gradient.Write(at, logits, p.smoothing, [](C) {}); };
  });
}

// stats is the forward's; dloss of row r lies at r * dloss_stride, null stands for 1. dx, rows of
// which follow each other, may be p.x where that is so there too.
template <class T>
cudaError_t LaunchCrossEntropyBackward(const CrossEntropyRows<T>& p, const ComputeType<T>* stats,
                                       const ComputeType<T>* dloss, int64_t dloss_stride, T* dx,
                                       const DeviceLimits& limits, cudaStream_t stream) {
  if (p.rows <= 0 || p.classes <= 0) return cudaSuccess;
  const RowTasks tasks = MakeRowTasks(p.rows, p.classes / kPackSize<T>);
  constexpr int kThreads = CrossEntropyPolicy::kThreads;
  const auto kernel = 1 << tasks.lane_bits == kThreads ? CrossEntropyBackwardKernel<kThreads, T>
                                                       : CrossEntropyBackwardKernel<0, T>;
  return Launch(kernel, tasks.count, kThreads, 0, stream, p, stats, dloss, dloss_stride, dx, tasks);
}

template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kMapBlocks<T>)
    ScaleRowsKernel(T* x, int64_t rows, int64_t cols, const ComputeType<T>* factor, int64_t stride,
                    RowTasks tasks) {
  using C = ComputeType<T>;
  if (stride == 0 && *factor == C(1)) return;
  for (int64_t task = blockIdx.x; task < tasks.count; task += gridDim.x) {
    const RowShare<0> share(tasks, task);
    if (share.row >= rows) continue;
    const C scale = factor[share.row * stride];
    if (scale == C(1)) continue;
    T* row = x + share.row * cols;
    MapRow(row, row, cols, tasks, share, [&] {
      return [=](T* at, const auto& pack) {
        auto v = ConvertPack<C>(pack);
        for (C& e : v.v) e *= scale;
        StoreAlignedPack<sizeof(v) / sizeof(C)>(at, ConvertPack<T>(v));
      };
    });
  }
}

// x[r, :] *= factor[r * stride]. A grid no larger than the device: most often there is nothing to
// do, which should not take long to find out.
template <class T>
cudaError_t LaunchScaleRows(T* x, int64_t rows, int64_t cols, const ComputeType<T>* factor,
                            int64_t stride, const DeviceLimits& limits, cudaStream_t stream) {
  using P = CrossEntropyPolicy;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const RowTasks tasks = MakeRowTasks(rows, cols / kPackSize<T>);
  const int64_t most = int64_t{2 * P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  return Launch(ScaleRowsKernel<T>, tasks.count < most ? tasks.count : most, P::kThreads, 0, stream,
                x, rows, cols, factor, stride, tasks);
}

}  // namespace oneflow_lite::cuda
