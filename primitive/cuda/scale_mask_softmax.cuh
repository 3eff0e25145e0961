// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) with every kind of mask, forward and backward, as Load and Store
// functors for LaunchSoftmax. Formulas and corner cases: primitive/scale_mask_softmax.h.
//
//   ScaleMaskProblem p{batch * heads * queries, keys, queries, 0.125, /*causal=*/true};
//   LaunchScaleMaskSoftmax<__half>(p, x, nullptr, y, limits, stream, workspace);
//   LaunchScaleMaskSoftmaxBackward<__half>(p, y, dy, dx, limits, stream, workspace);
//
// A fusion of your own is put together from softmax_fusions.cuh.
#pragma once

#include <type_traits>

#include "primitive/cuda/row_broadcast.cuh"
#include "primitive/cuda/scale_mask_softmax_launch.h"
#include "primitive/cuda/softmax.cuh"
#include "primitive/cuda/softmax_fusions.cuh"

namespace oneflow_lite {
namespace cuda {

// How a pack of scores is read. The aligned forms are free of branches; they ask for fewer than
// 2^31 rows, and for x and the mask to be aligned to packs, row by row.
enum class ScaleMaskAccess { kAligned, kAlignedMask, kAny };

template <class T, ScaleMaskAccess kAccess>
struct ScaleMaskLoad {
  using Element = ComputeType<T>;
  using C = Element;
  static constexpr bool kAligned = kAccess != ScaleMaskAccess::kAny;
  static constexpr bool kMask = kAccess != ScaleMaskAccess::kAligned;
  using Index = std::conditional_t<kAligned, uint32_t, uint64_t>;
  const T* x;
  const void* mask;
  int64_t cols;
  C scale;
  C hidden;  // the score of what is masked: -inf, or the lowest number where rows may be all masked
  CausalRows<Index> causal;
  ScaleMaskKind kind;
  bool wide_mask;
  RowBroadcast<Index> where;

  template <int N>
  __device__ __forceinline__ Pack<C, N> Load(int64_t row, int64_t col) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
    const auto raw = LoadPackIf<N, kAligned>(x + row * cols + col, seen > 0);
    const Pack<C, N> bias = Bias<N>(row, col, seen > 0);
    Pack<C, N> v = ConvertPack<C>(raw);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C score = v.v[i] * scale + bias.v[i];
      // A boolean mask hides anything; an additive one leaves NaN and +inf to make the row NaN.
      const bool masked = kMask && bias.v[i] == MinusInfinity<C>() &&
                          (kind == ScaleMaskKind::kBool || score == MinusInfinity<C>());
      v.v[i] = i >= seen || masked ? hidden : score;
    }
    return v;
  }

  // What the mask adds: -inf where a boolean one hides, 0 without one.
  template <int N>
  __device__ __forceinline__ Pack<C, N> Bias(int64_t row, int64_t col, bool wanted) const {
    Pack<C, N> bias;
    if constexpr (!kMask) {
#pragma unroll
      for (C& v : bias.v) v = C(0);
      return bias;
    } else {
      const bool is_bool = kind == ScaleMaskKind::kBool;
      const bool is_narrow = kind == ScaleMaskKind::kAdditive && !wide_mask;
      const auto keep = LoadBroadcast<N, kAligned>(static_cast<const bool*>(mask), where, row, col,
                                                   wanted && is_bool);
      bias = ConvertPack<C>(LoadBroadcast<N, kAligned>(static_cast<const T*>(mask), where, row, col,
                                                       wanted && is_narrow));
      if constexpr (sizeof(T) == 2) {
        const bool is_wide = kind == ScaleMaskKind::kAdditive && wide_mask;
        const auto wide = LoadBroadcast<N, kAligned>(static_cast<const C*>(mask), where, row, col,
                                                     wanted && is_wide);
#pragma unroll
        for (int i = 0; i < N; ++i) bias.v[i] += wide.v[i];  // one of the two is 0
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (is_bool && !keep.v[i]) bias.v[i] = MinusInfinity<C>();
      }
      return bias;
    }
  }
};

// Writes the result; where rows may be all masked, what is masked becomes 0, which it is in every
// other row (0 * v, so that NaN stays).
template <class T, ScaleMaskAccess kAccess>
struct ScaleMaskStore {
  using Element = T;
  using C = ComputeType<T>;
  DirectStore<T> y;
  bool zero_masked_rows;
  ScaleMaskLoad<T, kAccess> scores;

  __device__ __forceinline__ int Head(int64_t row) const { return y.Head(row); }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, Pack<C, N> v) const {
    if (zero_masked_rows) {
      const int seen = VisibleOf<N>(scores.causal.Visible(row), col);
      const Pack<C, N> bias = scores.template Bias<N>(row, col, seen > 0);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i >= seen || bias.v[i] == MinusInfinity<C>()) v.v[i] *= C(0);
      }
    }
    y.template Store<N>(row, col, v);
  }
};

template <class C>
inline constexpr C kLowestFinite = C(-3.402823466e+38f);
template <>
inline constexpr double kLowestFinite<double> = -1.7976931348623157e+308;

template <class T, ScaleMaskAccess kAccess>
cudaError_t LaunchScaleMaskSoftmaxAs(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                                     const DeviceLimits& limits, cudaStream_t stream,
                                     void* workspace) {
  using C = ComputeType<T>;
  using Index = typename ScaleMaskLoad<T, kAccess>::Index;
  const ScaleMaskLoad<T, kAccess> load{
      x,
      mask,
      p.cols,
      static_cast<C>(p.scale),
      p.zero_masked_rows ? kLowestFinite<C> : static_cast<C>(-__builtin_huge_val()),
      MakeCausalRows<Index>(p.queries, p.cols, p.causal),
      mask ? p.kind : ScaleMaskKind::kNone,
      p.wide_mask,
      MakeRowBroadcast<Index>(p.mask_dims, p.mask_strides, p.mask_col_stride)};
  const ScaleMaskStore<T, kAccess> store{{y, p.cols}, p.zero_masked_rows, load};
  return LaunchSoftmax<false>(load, store, p.rows, p.cols, limits, stream, workspace);
}

// Whether rows of cols elements can be moved in aligned packs only, and counted in 32 bits.
template <class T>
bool HasAlignedRows(const T* x, int64_t rows, int64_t cols) {
  return cols % kPackSize<T> == 0 && reinterpret_cast<uintptr_t>(x) % kPackBytes == 0 &&
         rows < (int64_t{1} << 31);
}
template <class T>
bool HasAlignedMask(const ScaleMaskProblem& p, const void* mask) {
  const bool is_bool = p.kind == ScaleMaskKind::kBool;
  const size_t item = is_bool ? 1 : p.wide_mask ? sizeof(ComputeType<T>) : sizeof(T);
  // A pack, or two accesses of 16 bytes for one of float32 over 16-bit x.
  const size_t pack = kPackSize<T> * item, access = pack < kPackBytes ? pack : kPackBytes;
  bool aligned = p.mask_col_stride == 1 && reinterpret_cast<uintptr_t>(mask) % access == 0;
  for (const int64_t stride : p.mask_strides) {
    aligned = aligned && static_cast<size_t>(stride) * item % access == 0;
  }
  return aligned;
}

// y may be x. `workspace`: as LaunchSoftmax, SoftmaxWorkspaceBytes<T>(rows, cols, limits).
template <class T>
cudaError_t LaunchScaleMaskSoftmax(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                                   const DeviceLimits& limits, cudaStream_t stream,
                                   void* workspace = nullptr) {
  using A = ScaleMaskAccess;
  if (p.rows <= 0 || p.cols <= 0) return cudaSuccess;
  const bool aligned = HasAlignedRows(x, p.rows, p.cols) && HasAlignedRows(y, p.rows, p.cols);
  if (!aligned || (mask && !HasAlignedMask<T>(p, mask))) {
    return LaunchScaleMaskSoftmaxAs<T, A::kAny>(p, x, mask, y, limits, stream, workspace);
  }
  if (mask) {
    return LaunchScaleMaskSoftmaxAs<T, A::kAlignedMask>(p, x, mask, y, limits, stream, workspace);
  }
  return LaunchScaleMaskSoftmaxAs<T, A::kAligned>(p, x, mask, y, limits, stream, workspace);
}

// Rows of y or dy; 0, without reading, where causality hides.
template <class T, bool kAligned>
struct CausalRowLoad {
  using Element = T;
  using Index = std::conditional_t<kAligned, uint32_t, uint64_t>;
  const T* x;
  int64_t cols;
  CausalRows<Index> causal;

  template <int N>
  __device__ __forceinline__ Pack<T, N> Load(int64_t row, int64_t col) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
    auto v = LoadPackIf<N, kAligned>(x + row * cols + col, seen > 0);
    KeepFirst(v, seen);
    return v;
  }
};

template <class T, bool kAligned>
cudaError_t LaunchScaleMaskSoftmaxBackwardAs(const ScaleMaskProblem& p, const T* y, const T* dy,
                                             T* dx, const DeviceLimits& limits, cudaStream_t stream,
                                             void* workspace) {
  using Load = CausalRowLoad<T, kAligned>;
  const auto causal = MakeCausalRows<typename Load::Index>(p.queries, p.cols, p.causal);
  const ScaledStore<DirectStore<T>> store{{dx, p.cols}, static_cast<ComputeType<T>>(p.scale)};
  return LaunchSoftmaxBackward<false>(Load{y, p.cols, causal}, Load{dy, p.cols, causal}, store,
                                      p.rows, p.cols, limits, stream, workspace);
}

// dx = scale y (dy - sum(y dy)); the mask has played its part in y. dx may be dy.
template <class T>
cudaError_t LaunchScaleMaskSoftmaxBackward(const ScaleMaskProblem& p, const T* y, const T* dy,
                                           T* dx, const DeviceLimits& limits, cudaStream_t stream,
                                           void* workspace = nullptr) {
  if (HasAlignedRows(y, p.rows, p.cols) && HasAlignedRows(dy, p.rows, p.cols) &&
      HasAlignedRows(dx, p.rows, p.cols)) {
    return LaunchScaleMaskSoftmaxBackwardAs<T, true>(p, y, dy, dx, limits, stream, workspace);
  }
  return LaunchScaleMaskSoftmaxBackwardAs<T, false>(p, y, dy, dx, limits, stream, workspace);
}

}  // namespace cuda
}  // namespace oneflow_lite
