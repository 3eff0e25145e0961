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
// A fusion of your own is put together from softmax_fusions.cuh.
#pragma once

#include "primitive/cuda/row.cuh"
#include "primitive/cuda/row_whole.cuh"
#include "primitive/cuda/scale_mask_backward.cuh"
#include "primitive/cuda/scale_mask_forward.cuh"
#include "primitive/cuda/scale_mask_softmax_launch.h"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether every pack of the mask that goes with a pack of x is aligned to its size.
template <class T>
bool HasAlignedMask(const ScaleMaskProblem& p, const void* mask) {
  const size_t item = p.kind == ScaleMaskKind::kBool ? 1 : sizeof(T);
  const size_t pack = kPackSize<T> * item;
  bool aligned = p.mask_col_stride == 1 && reinterpret_cast<uintptr_t>(mask) % pack == 0;
  for (const int64_t stride : p.mask_strides) {
    aligned = aligned && static_cast<size_t>(stride) * item % pack == 0;
  }
  return aligned;
}

template <class T, class M, class Index>
MaskedRows<T, M, Index> MakeMaskedRows(const ScaleMaskProblem& p, const T* x, const void* mask) {
  return {x,
          p.cols,
          static_cast<const M*>(mask),
          mask && HasAlignedMask<T>(p, mask),
          static_cast<ComputeType<T>>(p.scale),
          MakeCausalRows<Index>(p.queries, p.cols, p.causal),
          MakeRowBroadcast<Index>(p.mask_dims, p.mask_strides, p.mask_col_stride)};
}

template <class T, class Scores>
cudaError_t LaunchScores(const ScaleMaskProblem& p, const Scores& scores, T* y,
                         const DeviceLimits& limits, cudaStream_t stream, void* workspace) {
  return LaunchRows(ScaleMaskRow<T, Scores>{scores, {y, p.cols}, p.zero_masked_rows}, p.rows,
                    p.cols, limits, stream, workspace);
}

// Blocks for rows that are known to be aligned: 4 packs a thread, whose masks wait beside them.
template <class C>
struct AlignedBlock : BlockBounds<C> {
  static constexpr bool kAligned = true;
  static constexpr int kPacks = 4;
};

// Rows of whole aligned packs, of x, y and mask alike, are most rows of attention. The kernels that
// ask nothing about a row take half the instructions of those that serve all: of a copy 0.95 in
// place of 0.71 (2048 columns of float16 under a boolean mask). False where they do not serve.
template <class T, class Scores>
bool LaunchWholeScores(const ScaleMaskProblem& p, const Scores& scores, T* y,
                       const DeviceLimits& limits, cudaStream_t stream, cudaError_t* error) {
  using A = ScaleMaskRow<T, Scores>;
  using Shape = AlignedBlock<typename A::C>;
  const auto is_aligned = [&](const T* rows) {
    return reinterpret_cast<uintptr_t>(rows) % kPackBytes == 0;
  };
  const bool is_whole = p.cols % A::kPack == 0 && is_aligned(scores.x) && is_aligned(y) &&
                        (!scores.mask || scores.mask_is_aligned);
  const int64_t packs = p.cols / A::kPack;
  if (!is_whole || packs > Shape::kPacks * Shape::kThreads) return false;
  const A a{scores, {y, p.cols}, p.zero_masked_rows};
  if (packs > 32 * RowPolicy::kGroupPacks) {
    if (p.rows * 2 <= limits.multiprocessors) return false;  // several blocks a row are faster
    const int threads = static_cast<int>(CeilDiv(packs, Shape::kPacks * 32) * 32);
    *error = Launch(RowBlockKernel<false, A, Shape>, p.rows, threads, 0, stream, a, p.rows, p.cols);
    return true;
  }
  RowTraits traits;
  traits.pack = A::kPack;
  traits.group_packs = RowPolicy::kGroupPacks;
  *error = VisitGroupShape(ChooseRowPlan(p.rows, p.cols, traits, limits), [&](auto shape) {
    constexpr int kRows = RowPolicy::kGroupThreads / decltype(shape)::lanes;
    return Launch(RowWholeKernel<decltype(shape)::lanes, decltype(shape)::packs, A>,
                  CeilDiv(p.rows, kRows), RowPolicy::kGroupThreads, 0, stream, a, p.rows,
                  static_cast<int>(packs));
  });
  return true;
}

// Scores of every kind: one kernel for narrow rows and one for wide ones.
template <class T>
cudaError_t LaunchAnyScores(const ScaleMaskProblem& p, const AnyScores<T>& scores, T* y,
                            const DeviceLimits& limits, cudaStream_t stream) {
  using A = ScaleMaskRow<T, AnyScores<T>>;
  const A a{scores, {y, p.cols}, p.zero_masked_rows};
  if (p.cols / A::kPack <= 32 * RowPolicy::kGroupPacks) {
    return Launch(RowGroupKernel<32, RowPolicy::kGroupPacks, A>,
                  CeilDiv(p.rows, RowPolicy::kGroupThreads / 32), RowPolicy::kGroupThreads, 0,
                  stream, a, p.rows, p.cols);
  }
  return Launch(RowStreamedKernel<false, A>, p.rows, RowPolicy::kWideThreads, kRowScratchBytes,
                stream, a, p.rows, p.cols);
}

}  // namespace internal

template <class T>
size_t ScaleMaskWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  const size_t forward =
      RowWorkspaceBytes<ScaleMaskRow<T, KeptScores<T, uint32_t>>>(rows, cols, limits);
  const size_t backward = RowWorkspaceBytes<ScaleMaskBackwardRow<T>>(rows, cols, limits);
  return forward > backward ? forward : backward;
}

// y may be x. `workspace` is optional: ScaleMaskWorkspaceBytes, aligned to 16 bytes. A mask of
// float32 over 16-bit x, 2^31 rows or columns and more, and a boolean mask or none with a scale
// that is not above 0, take a slower form of the kernels.
template <class T>
cudaError_t LaunchScaleMaskSoftmax(const ScaleMaskProblem& p, const T* x, const void* mask, T* y,
                                   const DeviceLimits& limits, cudaStream_t stream,
                                   void* workspace = nullptr) {
  using namespace internal;
  if (p.rows <= 0 || p.cols <= 0) return cudaSuccess;
  const bool added = mask && p.kind == ScaleMaskKind::kAdditive;
  const bool wide = added && p.wide_mask;
  const bool is_scale = p.scale > 0 && p.scale < 1e30;  // times log2(e) and x still finite
  const bool is_small = p.rows < int64_t{1} << 31 && p.cols < int64_t{1} << 31;
  if (!is_small || wide || !(added || is_scale)) {
    const MaskType type = wide ? MaskType::kWide : added ? MaskType::kOwn : MaskType::kBool;
    const AnyScores<T> scores{MakeMaskedRows<T, void, uint64_t>(p, x, mask), type};
    return LaunchAnyScores(p, scores, y, limits, stream);
  }
  if (added) {
    const AddedScores<T, uint32_t> scores{MakeMaskedRows<T, T, uint32_t>(p, x, mask)};
    return LaunchScores(p, scores, y, limits, stream, workspace);
  }
  KeptScores<T, uint32_t> scores{MakeMaskedRows<T, bool, uint32_t>(p, x, mask)};
  if (scores.kBase2) scores.scale *= kLog2E;
  cudaError_t error;
  if (LaunchWholeScores(p, scores, y, limits, stream, &error)) return error;
  return LaunchScores(p, scores, y, limits, stream, workspace);
}

// dx = scale y (dy - sum(y dy)); the mask has played its part in y. dx may be dy.
template <class T>
cudaError_t LaunchScaleMaskSoftmaxBackward(const ScaleMaskProblem& p, const T* y, const T* dy,
                                           T* dx, const DeviceLimits& limits, cudaStream_t stream,
                                           void* workspace = nullptr) {
  const ScaleMaskBackwardRow<T> row{{y, p.cols},
                                    {dy, p.cols},
                                    {dx, p.cols},
                                    static_cast<ComputeType<T>>(p.scale),
                                    MakeCausalRows<uint64_t>(p.queries, p.cols, p.causal)};
  return LaunchRows(row, p.rows, p.cols, limits, stream, workspace);
}

}  // namespace cuda
}  // namespace oneflow_lite
