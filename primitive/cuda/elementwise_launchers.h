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

}  // namespace cuda
}  // namespace oneflow_lite
