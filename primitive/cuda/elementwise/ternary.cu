// SPDX-License-Identifier: Apache-2.0
//
// The table of the functions of three operands.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/ternary.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// A function of functions/ternary.cuh with its numbers.
template <class Op>
struct WithNumbers {
  explicit WithNumbers(const TernaryNumbers& numbers) : v(numbers) {}
  template <class C>
  __device__ auto operator()(C a, C b, C c) const
      -> decltype(Op{}(a, b, c, std::declval<const TernaryNumbers&>())) {
    return Op{}(a, b, c, v);
  }
  TernaryNumbers v;
};

template <class Op>
TernaryLauncher Floats(DType common) {
  return FindFor<kFloats, 3, TernaryNumbers, WithNumbers<Op>>(common);
}
template <class Op>
TernaryLauncher Numbers(DType common) {
  return FindFor<kNumbers, 3, TernaryNumbers, WithNumbers<Op>>(common);
}
template <class Op>
TernaryLauncher All(DType common) {
  return FindFor<kAll, 3, TernaryNumbers, WithNumbers<Op>>(common);
}

}  // namespace

TernaryLauncher FindTernary(TernaryOp op, DType t) {
  switch (op) {
    case TernaryOp::kLerp:
      return Floats<Lerp>(t);
    case TernaryOp::kAddCMul:
      return Numbers<AddCMul>(t);
    case TernaryOp::kAddCDiv:
      return Floats<AddCDiv>(t);
    case TernaryOp::kMulDiv:
      return Floats<MulDiv>(t);
    case TernaryOp::kClamp:
      return All<Clamp>(t);
    case TernaryOp::kClampInside:
      return Floats<ClampInside>(t);
    case TernaryOp::kClampShare:
      return Floats<ClampShare>(t);
    case TernaryOp::kIsClose:
      return All<IsClose>(t);
    case TernaryOp::kPowSlopeA:
      return Floats<PowSlopeA>(t);
    case TernaryOp::kPowSlopeB:
      return Floats<PowSlopeB>(t);
    case TernaryOp::kMaximumSlope:
      return Floats<ChosenSlope<1, false>>(t);
    case TernaryOp::kMinimumSlope:
      return Floats<ChosenSlope<-1, false>>(t);
    case TernaryOp::kFmaxSlope:
      return Floats<ChosenSlope<1, true>>(t);
    case TernaryOp::kFminSlope:
      return Floats<ChosenSlope<-1, true>>(t);
    case TernaryOp::kFmodSlopeB:
      return Floats<FmodSlopeB>(t);
    case TernaryOp::kAtan2SlopeA:
      return Floats<Atan2SlopeA>(t);
    case TernaryOp::kLogAddExpSlope:
      return Floats<LogAddExpSlope>(t);
    case TernaryOp::kXLogYSlopeA:
      return Floats<XLogYSlopeA>(t);
    case TernaryOp::kXLogYSlopeB:
      return Floats<XLogYSlopeB>(t);
    case TernaryOp::kCopySignSlope:
      return Floats<CopySignSlope>(t);
    case TernaryOp::kPreluSlopeA:
      return Floats<PreluSlopeA>(t);
    case TernaryOp::kPreluSlopeB:
      return Floats<PreluSlopeB>(t);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
