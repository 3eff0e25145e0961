// SPDX-License-Identifier: Apache-2.0
//
// The table of arithmetic, comparisons, bits and gradients of two operands. Divisions and the
// functions of integers and floats are in binary_math.cu.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/binary.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// With the operands exchanged, so that a > b needs no kernel beside b < a.
template <class C, class Op>
cudaError_t LaunchSwapped(const Pass<2>& given, const NoNumbers& none, cudaStream_t stream) {
  return LaunchOp<2, NoNumbers, C, Op>(WithInputsExchanged(given), none, stream);
}

template <unsigned kSet, class Op>
BinaryLauncher For(DType common) {
  return FindFor<kSet, 2, NoNumbers, Op>(common);
}
template <class Op>
BinaryLauncher Swapped(DType common) {
  if (common == DType::kFloat64) return &LaunchSwapped<double, Op>;
  if (common >= DType::kFloat16) return &LaunchSwapped<float, Op>;
  return common == DType::kInt64 ? &LaunchSwapped<int64_t, Op> : &LaunchSwapped<int32_t, Op>;
}

}  // namespace

BinaryLauncher FindBinary(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::kAdd:
      return For<kAll | kWrapping, Add>(t);
    case BinaryOp::kSub:
      return For<kNumbers | kWrapping, Sub>(t);
    case BinaryOp::kMul:
      return For<kAll | kWrapping, Mul>(t);
    case BinaryOp::kDiv:
      return For<kFloats, Div>(t);
    case BinaryOp::kEq:
      return For<kAll, Eq>(t);
    case BinaryOp::kNe:
      return For<kAll, Ne>(t);
    case BinaryOp::kLt:
      return For<kAll, Lt>(t);
    case BinaryOp::kLe:
      return For<kAll, Le>(t);
    case BinaryOp::kGt:
      return Swapped<Lt>(t);
    case BinaryOp::kGe:
      return Swapped<Le>(t);
    case BinaryOp::kReluBackward:
      return For<kFloats, ReluBackward>(t);
    case BinaryOp::kGeluBackward:
      return For<kFloats, GeluBackward>(t);
    case BinaryOp::kGeluTanhBackward:
      return For<kFloats, GeluTanhBackward>(t);
    case BinaryOp::kMaximum:
      return For<kAll, Maximum>(t);
    case BinaryOp::kMinimum:
      return For<kAll, Minimum>(t);
    case BinaryOp::kPrelu:
      return For<kFloats, Prelu>(t);
    case BinaryOp::kPow:
      return For<kNumbers, Pow>(t);
    case BinaryOp::kAnd:
      return For<kIntegers | kBools | kWrapping, And>(t);
    case BinaryOp::kOr:
      return For<kIntegers | kBools | kWrapping, Or>(t);
    case BinaryOp::kXor:
      return For<kIntegers | kBools | kWrapping, Xor>(t);
    default:
      return nullptr;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
