// SPDX-License-Identifier: Apache-2.0
//
// What the four cross_entropy_<dtype>.cu files share: CrossEntropyLaunchers for T.
#pragma once

#include "primitive/cuda/cross_entropy/cross_entropy.cuh"
#include "primitive/cuda/cross_entropy/launch.h"

namespace oneflow_lite::cuda {

template <class T>
struct CrossEntropyOf {
  using C = ComputeType<T>;
  using Problem = CrossEntropyProblem;

  static CrossEntropyRows<T> Rows(const Problem& p, const void* x, const int64_t* target) {
    return {
        p.rows, p.classes,   p.ignore_index, static_cast<C>(p.smoothing), static_cast<const T*>(x),
        target, p.row_stride};
  }
  static cudaError_t Forward(const Problem& p, const void* x, const int64_t* target, void* loss,
                             void* stats, const LaunchSite& at) {
    return LaunchCrossEntropy(Rows(p, x, target), static_cast<C*>(loss), static_cast<C*>(stats),
                              at.limits, at.stream, at.workspace);
  }
  static cudaError_t Backward(const Problem& p, const void* x, const int64_t* target,
                              const void* stats, const void* dloss, int64_t dloss_stride, void* dx,
                              const LaunchSite& at) {
    return LaunchCrossEntropyBackward(Rows(p, x, target), static_cast<const C*>(stats),
                                      static_cast<const C*>(dloss), dloss_stride,
                                      static_cast<T*>(dx), at.limits, at.stream);
  }
  static cudaError_t InPlace(const Problem& p, void* x, const int64_t* target, const void* scale,
                             void* loss, const LaunchSite& at) {
    return LaunchCrossEntropyInPlace(Rows(p, x, target), static_cast<T*>(x),
                                     static_cast<const C*>(scale), static_cast<C*>(loss), at.limits,
                                     at.stream, at.workspace);
  }
  static cudaError_t Reduce(int64_t rows, int64_t ignore_index, const void* loss,
                            const int64_t* target, void* value, void* weight, cudaStream_t stream) {
    return Launch(ReduceLossKernel<T, C>, 1, kWarp * kMaxWarps, 0, stream,
                  static_cast<const C*>(loss), target, rows, ignore_index, static_cast<T*>(value),
                  static_cast<C*>(weight));
  }
  static cudaError_t Scale(int64_t rows, int64_t cols, const void* factor, int64_t stride, void* x,
                           const LaunchSite& at) {
    return LaunchScaleRows(static_cast<T*>(x), rows, cols, static_cast<const C*>(factor), stride,
                           at.limits, at.stream);
  }
  static constexpr CrossEntropyLaunchers kLaunchers = {&CrossEntropyWorkspaceBytes<T>,
                                                       &Forward,
                                                       &Backward,
                                                       &CrossEntropyInPlaceWorkspaceBytes<T>,
                                                       &InPlace,
                                                       &Reduce,
                                                       &Scale};
};

}  // namespace oneflow_lite::cuda
