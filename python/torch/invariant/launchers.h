// SPDX-License-Identifier: Apache-2.0
//
// The launchers of rows that are no whole packs of 16 bytes, by width and dtype alone
// (own_columns.cuh, own_staged.cuh, norm_teams.cuh, column_rows.cuh), compiled once per element
// type (rows_<dtype>.cu).
#pragma once

#include "primitive/cuda/cross_entropy/launch.h"
#include "primitive/cuda/norms/launch.h"
#include "primitive/cuda/scale_mask/launch.h"
#include "primitive/cuda/softmax/launch.h"

namespace oneflow_lite {
namespace cuda {

// Pointers are aligned to their element. `centre`: layer_norm, else rms_norm.
struct InvariantLaunchers {
  cudaError_t (*softmax)(const SoftmaxProblem&, const void* x, void* y, const DeviceLimits&,
                         cudaStream_t);
  cudaError_t (*softmax_backward)(const SoftmaxProblem&, const void* y, const void* dy, void* dx,
                                  const DeviceLimits&, cudaStream_t);
  cudaError_t (*scale_mask)(const ScaleMaskProblem&, const void* x, const void* mask, void* y,
                            const DeviceLimits&, cudaStream_t);
  cudaError_t (*scale_mask_backward)(const ScaleMaskProblem&, const void* y, const void* dy,
                                     void* dx, const DeviceLimits&, cudaStream_t);
  cudaError_t (*loss)(const CrossEntropyProblem&, const void* x, const int64_t* target, void* loss,
                      void* stats, const DeviceLimits&, cudaStream_t);
  cudaError_t (*loss_in_place)(const CrossEntropyProblem&, void* x, const int64_t* target,
                               const void* scale, void* loss, const DeviceLimits&, cudaStream_t);
  cudaError_t (*norm)(bool centre, const NormProblem&, const NormForwardPointers&,
                      const DeviceLimits&, cudaStream_t);
  size_t (*norm_backward_bytes)(bool centre, const NormProblem&, const DeviceLimits&);
  cudaError_t (*norm_backward)(bool centre, const NormProblem&, const NormBackwardPointers&,
                               void* workspace, const DeviceLimits&, cudaStream_t);
};
extern const InvariantLaunchers kInvariantFloat16, kInvariantBFloat16;
extern const InvariantLaunchers kInvariantFloat32, kInvariantFloat64;

}  // namespace cuda
}  // namespace oneflow_lite
