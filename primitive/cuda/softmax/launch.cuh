// SPDX-License-Identifier: Apache-2.0
//
// What the four softmax_<dtype>.cu files share: SoftmaxLaunchers for T.
#pragma once

#include "primitive/cuda/softmax/axis.cuh"
#include "primitive/cuda/softmax/launch.h"
#include "primitive/cuda/softmax/softmax.cuh"

namespace oneflow_lite::cuda {

template <class T>
size_t SoftmaxWorkspace(const SoftmaxProblem& p, const DeviceLimits& limits) {
  if (p.to_float32) {
    return RowWorkspaceBytes<SoftmaxRow<false, DirectLoad<T>, DirectStore<float>>>(p.rows, p.cols,
                                                                                   limits);
  }
  return p.inner == 1 ? SoftmaxWorkspaceBytes<T>(p.rows, p.cols, limits)
                      : SoftmaxAxisWorkspaceBytes<T>(p.rows, p.cols, p.inner, limits);
}

template <class T>
cudaError_t SoftmaxForward(const SoftmaxProblem& p, const void* in, void* out, void* workspace,
                           const DeviceLimits& limits, cudaStream_t stream) {
  const DirectLoad<T> x{static_cast<const T*>(in), p.strides[0]};
  return VisitBool(p.log, [&](auto log) {
    constexpr bool kLog = decltype(log)::value;
    if constexpr (sizeof(T) == 2) {
      if (p.to_float32) {
        return LaunchSoftmax<kLog>(x, DirectStore<float>{static_cast<float*>(out), p.cols}, p.rows,
                                   p.cols, limits, stream, workspace);
      }
    }
    T* y = static_cast<T*>(out);
    if (p.inner != 1) {
      return LaunchSoftmaxAxis<kLog>(x.x, y, p.rows, p.cols, p.inner, limits, stream, workspace);
    }
    return LaunchSoftmax<kLog>(x, DirectStore<T>{y, p.cols}, p.rows, p.cols, limits, stream,
                               workspace);
  });
}

template <class T>
cudaError_t SoftmaxBackward(const SoftmaxProblem& p, const void* y, const void* dy, void* dx,
                            void* workspace, const DeviceLimits& limits, cudaStream_t stream) {
  const DirectLoad<T> of_y{static_cast<const T*>(y), p.strides[0]};
  const DirectLoad<T> of_dy{static_cast<const T*>(dy), p.strides[1]};
  const DirectStore<T> to{static_cast<T*>(dx), p.cols};
  return VisitBool(p.log, [&](auto log) {
    constexpr bool kLog = decltype(log)::value;
    if (p.inner != 1) {
      return LaunchSoftmaxBackwardAxis<kLog>(of_y.x, of_dy.x, to.y, p.rows, p.cols, p.inner, limits,
                                             stream, workspace);
    }
    return LaunchSoftmaxBackward<kLog>(of_y, of_dy, to, p.rows, p.cols, limits, stream, workspace);
  });
}

template <class T>
constexpr SoftmaxLaunchers MakeSoftmaxLaunchers() {
  return {&SoftmaxWorkspace<T>, &SoftmaxForward<T>, &SoftmaxBackward<T>};
}

}  // namespace oneflow_lite::cuda
