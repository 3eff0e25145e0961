// SPDX-License-Identifier: Apache-2.0
//
// What the four softmax_<dtype>.cu files share: SoftmaxLaunchers for T.
#pragma once

#include "primitive/cuda/softmax/axis.cuh"
#include "primitive/cuda/softmax/launch.h"
#include "primitive/cuda/softmax/softmax.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T>
size_t SoftmaxWorkspace(const SoftmaxProblem& p, const DeviceLimits& limits) {
  if (p.to_float32) {
    return RowWorkspaceBytes<SoftmaxRow<false, DirectLoad<T>, DirectStore<float>>>(p.rows, p.cols,
                                                                                   limits);
  }
  return p.inner == 1 ? SoftmaxWorkspaceBytes<T>(p.rows, p.cols, limits)
                      : SoftmaxAxisWorkspaceBytes<T>(p.rows, p.cols, p.inner, limits);
}

template <class T, bool kLog>
cudaError_t SoftmaxForward(const SoftmaxProblem& p, const T* x, void* out, void* workspace,
                           const DeviceLimits& limits, cudaStream_t stream) {
  if constexpr (sizeof(T) == 2) {
    if (p.to_float32) {
      return LaunchSoftmax<kLog>(DirectLoad<T>{x, p.strides[0]},
                                 DirectStore<float>{static_cast<float*>(out), p.cols}, p.rows,
                                 p.cols, limits, stream, workspace);
    }
  }
  T* y = static_cast<T*>(out);
  if (p.inner != 1) {
    return LaunchSoftmaxAxis<kLog>(x, y, p.rows, p.cols, p.inner, limits, stream, workspace);
  }
  return LaunchSoftmax<kLog>(DirectLoad<T>{x, p.strides[0]}, DirectStore<T>{y, p.cols}, p.rows,
                             p.cols, limits, stream, workspace);
}

template <class T, bool kLog>
cudaError_t SoftmaxBackward(const SoftmaxProblem& p, const T* y, const T* dy, T* dx,
                            void* workspace, const DeviceLimits& limits, cudaStream_t stream) {
  if (p.inner != 1) {
    return LaunchSoftmaxBackwardAxis<kLog>(y, dy, dx, p.rows, p.cols, p.inner, limits, stream,
                                           workspace);
  }
  return LaunchSoftmaxBackward<kLog>(DirectLoad<T>{y, p.strides[0]},
                                     DirectLoad<T>{dy, p.strides[1]}, DirectStore<T>{dx, p.cols},
                                     p.rows, p.cols, limits, stream, workspace);
}

template <class T>
constexpr SoftmaxLaunchers MakeSoftmaxLaunchers() {
  return {&SoftmaxWorkspace<T>,
          [](const SoftmaxProblem& p, const void* x, void* y, void* workspace,
             const DeviceLimits& limits, cudaStream_t stream) {
            const auto launch = p.log ? &SoftmaxForward<T, true> : &SoftmaxForward<T, false>;
            return launch(p, static_cast<const T*>(x), y, workspace, limits, stream);
          },
          [](const SoftmaxProblem& p, const void* y, const void* dy, void* dx, void* workspace,
             const DeviceLimits& limits, cudaStream_t stream) {
            const auto launch = p.log ? &SoftmaxBackward<T, true> : &SoftmaxBackward<T, false>;
            return launch(p, static_cast<const T*>(y), static_cast<const T*>(dy),
                          static_cast<T*>(dx), workspace, limits, stream);
          }};
}

}  // namespace cuda
}  // namespace oneflow_lite
