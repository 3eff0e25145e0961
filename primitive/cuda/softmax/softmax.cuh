// SPDX-License-Identifier: Apache-2.0
//
// Row-wise softmax and log_softmax, forward and backward, as a header-only library: C++17, no
// dependency but the CUDA Toolkit. Rows may have any width and any alignment.
//
//   using namespace oneflow_lite::cuda;
//   DeviceLimits limits;
//   QueryDeviceLimits(device, &limits);              // once; keep it
//   DirectLoad<__half> load{x, cols};
//   DirectStore<__half> store{y, cols};
//   cudaError_t error = LaunchSoftmax<false>(load, store, rows, cols, limits, stream);
//
// A launch neither allocates nor synchronises and may be captured into a graph. `workspace` is
// optional device memory of SoftmaxWorkspaceBytes, aligned to 16 bytes, which few wide rows use to
// spread over the device. The output may be the input. The same call gives the same bits.
#pragma once

#include "primitive/cuda/rows/row.cuh"
#include "primitive/cuda/softmax/backward.cuh"
#include "primitive/cuda/softmax/forward.cuh"

namespace oneflow_lite::cuda {

// Bytes of workspace that rows x cols elements of T can make use of, forward or backward.
template <class T>
size_t SoftmaxWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  const size_t forward =
      RowWorkspaceBytes<SoftmaxRow<false, DirectLoad<T>, DirectStore<T>>>(rows, cols, limits);
  const size_t backward =
      RowWorkspaceBytes<SoftmaxBackwardRow<false, DirectLoad<T>, DirectStore<T>>>(rows, cols,
                                                                                  limits);
  return forward > backward ? forward : backward;
}

template <bool kLog, class Load, class Store>
cudaError_t LaunchSoftmax(const Load& load, const Store& store, int64_t rows, int64_t cols,
                          const DeviceLimits& limits, cudaStream_t stream,
                          void* workspace = nullptr) {
  return LaunchRows(SoftmaxRow<kLog, Load, Store>{load, store}, rows, cols, limits, stream,
                    workspace);
}

// y is the forward's output. dx may be dy (or y); otherwise no two may overlap.
template <bool kLog, class Load, class Store>
cudaError_t LaunchSoftmaxBackward(const Load& y, const Load& dy, const Store& dx, int64_t rows,
                                  int64_t cols, const DeviceLimits& limits, cudaStream_t stream,
                                  void* workspace = nullptr) {
  return LaunchRows(SoftmaxBackwardRow<kLog, Load, Store>{y, dy, dx}, rows, cols, limits, stream,
                    workspace);
}

}  // namespace oneflow_lite::cuda
