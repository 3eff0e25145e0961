// SPDX-License-Identifier: Apache-2.0
//
// The launchers of the elementwise functions: by function and by the dtype that the operands are
// promoted to, null where there is no code for them. The dtypes in memory are the pass's.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/elementwise_pass.h"
#include "primitive/op_kinds.h"

namespace oneflow_lite {
namespace cuda {

template <int N>
using PassLauncher = cudaError_t (*)(const Pass<N>& pass, cudaStream_t stream);

using UnaryLauncher = PassLauncher<1>;
UnaryLauncher FindUnary(UnaryOp op, DType common);

struct BinaryLaunchers {
  PassLauncher<2> launch = nullptr;
};
BinaryLaunchers FindBinary(BinaryOp op, DType common);

// The dtype whose type a cast computes in, a pass's `common`: a float wherever one takes part.
constexpr DType CastsThrough(DType from, DType to) {
  if (from == DType::kFloat64 && to < DType::kFloat16) return DType::kFloat64;
  if (to == DType::kFloat64) return DType::kFloat64;
  return from >= DType::kFloat16 || to >= DType::kFloat16 ? DType::kFloat32 : DType::kInt64;
}
PassLauncher<1> FindCast(DType through, DType to);

}  // namespace cuda
}  // namespace oneflow_lite
