// SPDX-License-Identifier: Apache-2.0
//
// What the four scale_mask_softmax_<dtype>.cu files share: ScaleMaskLaunchers for T.
#pragma once

#include "primitive/cuda/scale_mask/launch.h"
#include "primitive/cuda/scale_mask/scale_mask_softmax.cuh"

namespace oneflow_lite::cuda {

template <class T>
constexpr ScaleMaskLaunchers MakeScaleMaskLaunchers() {
  return {&ScaleMaskWorkspaceBytes<T>,
          [](const ScaleMaskProblem& a, const void* x, const void* mask, void* y, void* workspace,
             const DeviceLimits& limits, cudaStream_t stream) {
            return LaunchScaleMaskSoftmax(a, static_cast<const T*>(x), mask, static_cast<T*>(y),
                                          limits, stream, workspace);
          },
          [](const ScaleMaskProblem& a, const void* y, const void* dy, void* dx, void* workspace,
             const DeviceLimits& limits, cudaStream_t stream) {
            return LaunchScaleMaskSoftmaxBackward(a, static_cast<const T*>(y),
                                                  static_cast<const T*>(dy), static_cast<T*>(dx),
                                                  limits, stream, workspace);
          }};
}

}  // namespace oneflow_lite::cuda
