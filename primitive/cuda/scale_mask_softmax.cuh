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
  const bool added = mask && p.kind == ScaleMaskKind::kAdditive;
  const bool wide = added && p.wide_mask;
  const bool is_scale = p.scale > 0 && p.scale < 1e30;  // times log2(e) and x still finite
  const bool is_small = p.rows < int64_t{1} << 31 && p.cols < int64_t{1} << 31;
  if (!is_small || wide || !(added || is_scale)) {
    const MaskType type = wide ? MaskType::kWide : added ? MaskType::kOwn : MaskType::kBool;
    const AnyScores<T, uint64_t> scores{MakeMaskedRows<T, void, uint64_t>(p, x, mask), type};
    return LaunchScores(p, scores, y, limits, stream, workspace);
  }
  if (added) {
    const AddedScores<T, uint32_t> scores{MakeMaskedRows<T, T, uint32_t>(p, x, mask)};
    return LaunchScores(p, scores, y, limits, stream, workspace);
  }
  KeptScores<T, uint32_t> scores{MakeMaskedRows<T, bool, uint32_t>(p, x, mask)};
  if (scores.kBase2) scores.scale *= kLog2E;
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
