// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax of 16-bit rows as float32: softmax(x, dim, dtype=float32) without a copy
// in that type.
#include "primitive/cuda/softmax/launch.h"
#include "primitive/cuda/softmax/softmax.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T, bool kLog>
cudaError_t ToFloat32(const SoftmaxProblem& p, const T* x, float* y, void* workspace,
                      const DeviceLimits& limits, cudaStream_t stream) {
  return LaunchSoftmax<kLog>(DirectLoad<T>{x, p.strides[0]}, DirectStore<float>{y, p.cols}, p.rows,
                             p.cols, limits, stream, workspace);
}

template <class T>
constexpr SoftmaxLaunchers Launchers() {
  return {[](const SoftmaxProblem& p, const DeviceLimits& limits) {
            using Row = SoftmaxRow<false, DirectLoad<T>, DirectStore<float>>;
            return RowWorkspaceBytes<Row>(p.rows, p.cols, limits);
          },
          [](const SoftmaxProblem& p, const void* x, void* y, void* workspace,
             const DeviceLimits& limits, cudaStream_t stream) {
            const auto launch = p.log ? &ToFloat32<T, true> : &ToFloat32<T, false>;
            return launch(p, static_cast<const T*>(x), static_cast<float*>(y), workspace, limits,
                          stream);
          },
          nullptr};
}

}  // namespace

const SoftmaxLaunchers kSoftmaxFloat16ToFloat32 = Launchers<__half>();
const SoftmaxLaunchers kSoftmaxBFloat16ToFloat32 = Launchers<__nv_bfloat16>();

}  // namespace cuda
}  // namespace oneflow_lite
