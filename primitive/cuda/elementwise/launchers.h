// SPDX-License-Identifier: Apache-2.0
//
// The launchers of the elementwise functions: by function and by the dtype that the operands are
// promoted to, null where there is no code for them. The dtypes in memory are the pass's.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/activation_kinds.h"
#include "primitive/cuda/elementwise/pass.h"
#include "primitive/op_kinds.h"

namespace oneflow_lite {
namespace cuda {

struct NoNumbers {};
// `numbers` are what the function takes beside its N operands.
template <int N, class Numbers = NoNumbers>
using PassLauncher = cudaError_t (*)(const Pass<N>& pass, const Numbers& numbers, cudaStream_t);

using UnaryLauncher = PassLauncher<1, UnaryParams>;
UnaryLauncher FindUnary(UnaryOp op, DType common);
UnaryLauncher FindElementary(UnaryOp op, DType common);  // unary_elementary.cu
UnaryLauncher FindSpecial(UnaryOp op, DType common);     // unary_special.cu

// Operands: dy, and what the function saved.
using UnaryBackwardLauncher = PassLauncher<2, UnaryParams>;
UnaryBackwardLauncher FindUnaryBackward(UnaryOp op, DType dtype);
UnaryBackwardLauncher FindSpecialSlope(UnaryOp op, DType dtype);  // unary_special.cu

using BinaryLauncher = PassLauncher<2>;
BinaryLauncher FindBinary(BinaryOp op, DType common);
BinaryLauncher FindBinaryMath(BinaryOp op, DType common);  // binary_math.cu

using TernaryLauncher = PassLauncher<3, TernaryNumbers>;
TernaryLauncher FindTernary(TernaryOp op, DType common);

using ActivationLauncher = PassLauncher<1, ActivationNumbers>;
ActivationLauncher FindActivation(ActivationOp op, DType common);
// Operands: dy, x; with of_output, y instead of x.
using SlopeLauncher = PassLauncher<2, ActivationNumbers>;
SlopeLauncher FindSlope(ActivationOp op, bool of_output, DType dtype);

// Elements that are moved are integers of their size; those of up to 4 bytes share a launcher.
PassLauncher<3> FindSelect(DType moved);  // operands: condition, a, b
PassLauncher<1> FindMove(DType moved);
constexpr DType MovedAs(int bytes) {
  return bytes == 1   ? DType::kUInt8
         : bytes == 2 ? DType::kInt16
         : bytes == 4 ? DType::kInt32
                      : DType::kInt64;
}

// The dtype whose type a cast computes in, a pass's `common`: a float wherever one takes part.
constexpr DType CastsThrough(DType from, DType to) {
  if (from == DType::kFloat64 && to < DType::kFloat16) return DType::kFloat64;
  if (to == DType::kFloat64) return DType::kFloat64;
  return from >= DType::kFloat16 || to >= DType::kFloat16 ? DType::kFloat32 : DType::kInt64;
}
PassLauncher<1> FindCast(DType through, DType to);

}  // namespace cuda
}  // namespace oneflow_lite
