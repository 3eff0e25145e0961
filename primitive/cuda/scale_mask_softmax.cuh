// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) with every kind of mask, forward and backward, header-only. Formulas
// and corner cases: primitive/scale_mask_softmax.h.
//
//   ScaleMaskProblem p;
//   p.rows = batch * heads * queries, p.cols = keys, p.queries = queries;
//   p.scale = 0.125, p.causal = true;
//   LaunchScaleMaskSoftmax<__half>(p, x, nullptr, y, limits, stream, workspace);
//   LaunchScaleMaskSoftmaxBackward<__half>(p, y, dy, dx, limits, stream, workspace);
//
// Scores and masks are kept on chip as they lie in memory and combined where they are first used,
// so that all loads of a row are in flight together. A fusion of your own is put together from
// softmax_fusions.cuh.
#pragma once

#include "primitive/cuda/row_broadcast.cuh"
#include "primitive/cuda/scale_mask_softmax_launch.h"
#include "primitive/cuda/softmax.cuh"

namespace oneflow_lite {
namespace cuda {

// An algorithm of the row kernels (row.cuh). Beside a pack of x it reads kMaskPacks packs of T's
// size that hold the mask's bytes: 0, without a mask; 1, boolean or of x's own type; 2, float32
// over 16-bit x. Boolean ones fill half of theirs or less.
template <class T, int kMaskPacks, class Index_>
struct ScaleMaskRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  using Index = Index_;
  static constexpr int kPack = kPackSize<T>, kInputs = 1 + kMaskPacks;

  using Statistics = OnlineSum<C>;
  using Merge = MergeOnline;

  const T* x;
  DirectStore<T> y;
  const void* mask;
  C scale;
  bool zero_masked_rows;
  bool mask_is_aligned;  // to packs, in every row
  ScaleMaskKind kind;
  bool wide_mask;
  CausalRows<Index> causal;
  RowBroadcast<Index> where;

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];
  };
  struct Total {
    C max = 0;  // of the scores, or 0 where they are all -inf
    C scale = 0;
  };

  __device__ __forceinline__ int Head(int64_t row) const { return y.Head(row); }
  // Heads are 0 where masks are aligned to x's packs.
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return IsAlignedFor<uint4>(x + row * y.row_stride + head) &&
           (kMaskPacks == 0 || (mask_is_aligned && head == 0));
  }
  __device__ __forceinline__ Total Begin(int64_t) const { return {}; }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t, const Total&) const {}

  // What causality hides becomes the infinity that the scale turns into -inf; or the mask says it.
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
    const T* p = x + row * y.row_stride + col;
    Raw<N> raw;
    if constexpr (kMaskPacks == 0) {
      const T hidden = ConvertTo<T>(scale < C(0) ? -MinusInfinity<C>() : MinusInfinity<C>());
      raw.input[0] = LoadPackIf<kAccess, N>(p, seen > 0, hidden);
      FillFrom(raw.input[0], seen, hidden);
    } else {
      raw.input[0] = LoadPackIf<kAccess, N>(p, seen > 0, ConvertTo<T>(0.0f));
      LoadMask<kAccess, N>(row, col, seen, raw);
    }
    return raw;
  }

  // In registers: packs as they lie in memory, then the scores, then their exponentials.
  template <int N>
  struct Value {
    StowedPack<T, N> input[kInputs];
    Pack<C, N> v;
  };
  static constexpr int kRounds = 2;
  static constexpr bool kClusterRegisters = false;
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    Value<N> value;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) value.input[i] = StowedPack<T, N>::Of(raw.input[i]);
    return value;
  }
  template <int kRound>
  static __device__ __forceinline__ auto Join() {
    return std::conditional_t<kRound == 0, Larger, Plus>{};
  }
  template <int kRound>
  static __device__ __forceinline__ C Identity() {
    return kRound == 0 ? MinusInfinity<C>() : C(0);
  }
  template <int kRound, int N>
  __device__ __forceinline__ C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      Raw<N> raw;
#pragma unroll
      for (int i = 0; i < kInputs; ++i) raw.input[i] = value.input[i].Get();
      value.v = present ? Scores(raw) : FilledPack<N>(MinusInfinity<C>());
      return MaxOf<C>(value.v);
    } else {
      C sum = 0;
#pragma unroll
      for (C& v : value.v.v) sum += v = ExpNonPositive(v - total.max);
      return sum;
    }
  }
  template <int kRound>
  __device__ __forceinline__ void Finish(C found, Total& total) const {
    if constexpr (kRound == 0) {
      total.max = OnlineSum<C>::Finite(found);
    } else {
      Conclude({total.max, found}, total);
    }
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    Pack<C, N> out = value.v;
#pragma unroll
    for (C& v : out.v) v *= total.scale;
    y.template Store<N>(row, col, out);
  }

  // Streamed: maximum and sum at once; scores and exponentials are formed again when written.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t, const Total&,
                                      Statistics& s) const {
    s.Add(Scores(raw));
  }
  // Scores that are all -inf sum up to 0: 0 / 0 is NaN, unless the row is to be 0.
  __device__ __forceinline__ void Conclude(const OnlineSum<C>& row, Total& total) const {
    total = {OnlineSum<C>::Finite(row.max),
             zero_masked_rows && row.sum == C(0) ? C(0) : C(1) / row.sum};
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Value<N> value;
    value.v = Scores(raw);
#pragma unroll
    for (C& v : value.v.v) v = ExpNonPositive(v - total.max);
    Store<N>(row, col, value, total);
  }

 private:
  template <Access kAccess, int N>
  __device__ __forceinline__ void LoadMask(int64_t row, int64_t col, int seen, Raw<N>& raw) const {
    if (kind != ScaleMaskKind::kAdditive) {
      auto keep = FilledPack<N>(true);
      if (kind == ScaleMaskKind::kBool) {
        keep = LoadBroadcast<kAccess, N>(static_cast<const bool*>(mask), where, row, col, seen > 0,
                                         false);
      }
      if (kind == ScaleMaskKind::kNone && seen == 0) keep = FilledPack<N>(false);
      FillFrom(keep, seen, false);
      memcpy(&raw.input[1], &keep, sizeof(keep));
    } else if (kMaskPacks == 2 && wide_mask) {
      constexpr int kHalf = N > 1 ? N / 2 : 1;
      Pack<C, kHalf> part[N / kHalf];
#pragma unroll
      for (int h = 0; h < N / kHalf; ++h) {
        part[h] = LoadBroadcast<kAccess, kHalf>(static_cast<const C*>(mask), where, row,
                                                col + h * kHalf, seen > 0, MinusInfinity<C>());
        FillFrom(part[h], seen > 0 ? max(seen - h * kHalf, 0) : 0, MinusInfinity<C>());
        if (seen <= h * kHalf) part[h] = FilledPack<kHalf>(MinusInfinity<C>());
      }
      memcpy(&raw.input[1], part, sizeof(part));
    } else {
      const T lowest = ConvertTo<T>(MinusInfinity<C>());
      raw.input[1] =
          LoadBroadcast<kAccess, N>(static_cast<const T*>(mask), where, row, col, seen > 0, lowest);
      FillFrom(raw.input[1], seen, lowest);
    }
  }

  template <int N>
  __device__ __forceinline__ Pack<C, N> Scores(const Raw<N>& raw) const {
    Pack<C, N> v = ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& e : v.v) e *= scale;
    if constexpr (kMaskPacks > 0) {
      if (kind != ScaleMaskKind::kAdditive) {
        Pack<bool, N> keep;
        memcpy(&keep, &raw.input[1], sizeof(keep));
#pragma unroll
        for (int i = 0; i < N; ++i) v.v[i] = keep.v[i] ? v.v[i] : MinusInfinity<C>();
      } else if (kMaskPacks == 2 && wide_mask) {
        Pack<C, N> bias;
        memcpy(&bias, &raw.input[1], sizeof(bias));
#pragma unroll
        for (int i = 0; i < N; ++i) v.v[i] += bias.v[i];
      } else {
        const Pack<C, N> bias = ConvertPack<C>(raw.input[1]);
#pragma unroll
        for (int i = 0; i < N; ++i) v.v[i] += bias.v[i];
      }
    }
    return v;
  }
};

namespace internal {

// Whether every pack of the mask that goes with a pack of x is aligned to its size, or to 16 bytes.
template <class T>
bool HasAlignedMask(const ScaleMaskProblem& p, const void* mask) {
  const size_t item = p.kind == ScaleMaskKind::kBool ? 1
                      : p.wide_mask                  ? sizeof(ComputeType<T>)
                                                     : sizeof(T);
  const size_t pack = kPackSize<T> * item, access = pack < kPackBytes ? pack : kPackBytes;
  bool aligned = p.mask_col_stride == 1 && reinterpret_cast<uintptr_t>(mask) % access == 0;
  for (const int64_t stride : p.mask_strides) {
    aligned = aligned && static_cast<size_t>(stride) * item % access == 0;
  }
  return aligned;
}

template <class A, class T>
cudaError_t LaunchScaleMask(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                            const DeviceLimits& limits, cudaStream_t stream, void* workspace) {
  using Index = typename A::Index;
  const A a{x,
            {y, p.cols},
            mask,
            static_cast<ComputeType<T>>(p.scale),
            p.zero_masked_rows,
            mask == nullptr || HasAlignedMask<T>(p, mask),
            mask ? p.kind : ScaleMaskKind::kNone,
            p.wide_mask,
            MakeCausalRows<Index>(p.queries, p.cols, p.causal),
            MakeRowBroadcast<Index>(p.mask_dims, p.mask_strides, p.mask_col_stride)};
  return LaunchRows(a, p.rows, p.cols, limits, stream, workspace);
}

}  // namespace internal

template <class T>
size_t ScaleMaskWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  const size_t forward = RowWorkspaceBytes<ScaleMaskRow<T, 0, uint32_t>>(rows, cols, limits);
  const size_t backward = SoftmaxWorkspaceBytes<T>(rows, cols, limits);
  return forward > backward ? forward : backward;
}

// y may be x. `workspace` is optional: ScaleMaskWorkspaceBytes, aligned to 16 bytes. A mask of
// float32 over 16-bit x, and more than 2^31 rows, take a form of the kernels that serves all cases.
template <class T>
cudaError_t LaunchScaleMaskSoftmax(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                                   const DeviceLimits& limits, cudaStream_t stream,
                                   void* workspace = nullptr) {
  constexpr int kMost = sizeof(T) == 2 ? 2 : 1;
  // Without a mask, what causality hides takes a scale other than 0 or NaN to say so.
  const bool plain = !mask && (!p.causal || p.scale < 0 || p.scale > 0);
  if (p.rows >= int64_t{1} << 31 || (mask && p.wide_mask)) {
    return internal::LaunchScaleMask<ScaleMaskRow<T, kMost, uint64_t>>(p, x, mask, y, limits,
                                                                       stream, workspace);
  }
  if (plain) {
    return internal::LaunchScaleMask<ScaleMaskRow<T, 0, uint32_t>>(p, x, mask, y, limits, stream,
                                                                   workspace);
  }
  return internal::LaunchScaleMask<ScaleMaskRow<T, 1, uint32_t>>(p, x, mask, y, limits, stream,
                                                                 workspace);
}

// Rows of y or dy; 0, without reading, where causality hides.
template <class T>
struct CausalRowLoad {
  using Element = T;
  DirectLoad<T> rows;
  CausalRows<uint64_t> causal;

  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return rows.IsAligned(row, head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Pack<T, N> LoadAs(int64_t row, int64_t col) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
    const T zero = ConvertTo<T>(0.0f);
    auto v = LoadPackIf<kAccess, N>(rows.x + row * rows.row_stride + col, seen > 0, zero);
    FillFrom(v, seen, zero);
    return v;
  }
  template <int N>
  __device__ __forceinline__ Pack<T, N> Load(int64_t row, int64_t col) const {
    return LoadAs<Access::kAny, N>(row, col);
  }
  template <int N>
  __device__ __forceinline__ Pack<T, N> LoadAligned(int64_t row, int64_t col) const {
    return LoadAs<Access::kAligned, N>(row, col);
  }
  template <int N>
  __device__ __forceinline__ Pack<T, N> LoadInside(int64_t row, int64_t col) const {
    return LoadAs<Access::kInside, N>(row, col);
  }
};

// Rows of dx; 0 where causality hides, also in a row whose sum is NaN.
template <class T>
struct ScaledRowStore {
  using Element = T;
  using C = ComputeType<T>;
  DirectStore<T> dx;
  C scale;
  CausalRows<uint64_t> causal;

  __device__ __forceinline__ int Head(int64_t row) const { return dx.Head(row); }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, Pack<C, N> v) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = i < seen ? v.v[i] * scale : C(0);
    dx.template Store<N>(row, col, v);
  }
};

// dx = scale y (dy - sum(y dy)); the mask has played its part in y. dx may be dy.
template <class T>
cudaError_t LaunchScaleMaskSoftmaxBackward(const ScaleMaskProblem& p, const T* y, const T* dy,
                                           T* dx, const DeviceLimits& limits, cudaStream_t stream,
                                           void* workspace = nullptr) {
  using Load = CausalRowLoad<T>;
  const auto causal = MakeCausalRows<uint64_t>(p.queries, p.cols, p.causal);
  const ScaledRowStore<T> store{{dx, p.cols}, static_cast<ComputeType<T>>(p.scale), causal};
  return LaunchSoftmaxBackward<false>(Load{{y, p.cols}, causal}, Load{{dy, p.cols}, causal}, store,
                                      p.rows, p.cols, limits, stream, workspace);
}

}  // namespace cuda
}  // namespace oneflow_lite
