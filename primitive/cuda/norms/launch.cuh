// SPDX-License-Identifier: Apache-2.0
//
// What the layer_norm_<dtype>.cu and rms_norm_<dtype>.cu files share: NormLaunchers for T.
#pragma once

#include "primitive/cuda/norms/launch.h"
#include "primitive/cuda/norms/norm.cuh"

namespace oneflow_lite::cuda {

template <class T, bool kCentre>
cudaError_t LaunchNormOf(const NormProblem& p, const NormForwardPointers& pointers, void* workspace,
                         const DeviceLimits& limits, cudaStream_t stream) {
  using C = ComputeType<T>;
  NormForward<T> a;
  a.rows = p.rows, a.cols = p.cols, a.x_stride = p.x_stride, a.eps = p.eps;
  a.x = static_cast<const T*>(pointers.x);
  a.residual = static_cast<const T*>(pointers.residual);
  a.weight = pointers.weight;
  a.bias = pointers.bias;
  a.float_weight = p.float_weight;
  a.y = static_cast<T*>(pointers.y);
  a.sum = static_cast<T*>(pointers.sum);
  a.mean = static_cast<C*>(pointers.mean);
  a.rstd = static_cast<C*>(pointers.rstd);
  return LaunchNorm<kCentre>(a, limits, stream, workspace);
}

template <class T, bool kCentre>
cudaError_t LaunchNormBackwardOf(const NormProblem& p, const NormBackwardPointers& pointers,
                                 void* workspace, const DeviceLimits& limits, cudaStream_t stream) {
  using C = ComputeType<T>;
  NormBackward<T> a;
  a.rows = p.rows, a.cols = p.cols;
  a.from_output = pointers.x == nullptr && pointers.y != nullptr;
  a.x = static_cast<const T*>(a.from_output ? pointers.y : pointers.x);
  a.x_stride = a.from_output ? p.cols : p.x_stride;
  a.dy = static_cast<const T*>(pointers.dy);
  a.dsum = static_cast<const T*>(pointers.dsum);
  a.weight = pointers.weight;
  a.bias = pointers.bias;
  a.float_weight = p.float_weight;
  a.mean = static_cast<const C*>(pointers.mean);
  a.rstd = static_cast<const C*>(pointers.rstd);
  a.dx = static_cast<T*>(pointers.dx);
  a.dweight = pointers.dweight;
  a.dbias = pointers.dbias;
  return LaunchNormBackward<kCentre>(a, limits, stream, workspace);
}

template <class T, bool kCentre>
constexpr NormLaunchers MakeNormLaunchers() {
  return {&NormWorkspaceBytes<T, kCentre>, &NormBackwardWorkspaceBytes<T, kCentre>,
          &LaunchNormOf<T, kCentre>, &LaunchNormBackwardOf<T, kCentre>};
}

}  // namespace oneflow_lite::cuda
