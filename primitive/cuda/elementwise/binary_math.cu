// SPDX-License-Identifier: Apache-2.0
//
// The table of divisions, of functions of integers and of mathematical functions of two operands.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/division.cuh"
#include "primitive/cuda/functions/float_gamma_math.cuh"
#include "primitive/cuda/functions/math.cuh"
#include "primitive/zeta_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// `spare`: the bits that the compute type has beyond those of the dtype, of which the product's
// sign is one.
struct Lcm : Long {
  explicit Lcm(DType dtype) : spare(dtype == DType::kInt8 ? 24 : dtype == DType::kInt16 ? 16 : 0) {}
  template <class C>
  __device__ C operator()(C a, C b) const {
    if (a == 0 || b == 0) return C(0);
    const auto product = Magnitude(a) / GreatestDivisor(a, b) * Magnitude(b);
    return static_cast<C>(Magnitude(static_cast<C>(product << spare) >> spare));
  }
  int spare;
};

struct ZetaOf : Long {
  __device__ float operator()(float a, float b) const {
    return fast::IsUsualZeta(a, b) ? fast::ZetaOfPositive(a, b) : static_cast<float>(Zeta(a, b));
  }
  __device__ double operator()(double a, double b) const { return Zeta(a, b); }
};

template <unsigned kSet, class Op>
BinaryLauncher For(DType common) {
  return FindFor<kSet, 2, NoNumbers, Op>(common);
}
// Steps are those of the dtype in memory.
BinaryLauncher NextAfters(DType t) {
  if (t == DType::kFloat16) return For<kFloats, NextHalf>(DType::kFloat32);
  if (t == DType::kBFloat16) return For<kFloats, NextBFloat>(DType::kFloat32);
  return For<kFloats, NextAfter>(t);
}

}  // namespace

BinaryLauncher FindBinaryMath(BinaryOp op, DType t) {
  switch (op) {
    // Divisions and functions of integers: division_functions.cuh.
    // clang-format off
    case BinaryOp::kFmod: return For<kNumbers, Fmod>(t);
    case BinaryOp::kRemainder: return For<kNumbers, Remainder>(t);
    case BinaryOp::kFloorDivide: return For<kNumbers, FloorDivide>(t);
    case BinaryOp::kTruncDivide: return For<kNumbers, TruncDivide>(t);
    case BinaryOp::kGcd: return For<kIntegers, Gcd>(t);
    case BinaryOp::kLcm: return For<kIntegers, Lcm>(t);
    case BinaryOp::kShiftLeft: return For<kIntegers, ShiftLeft>(t);
    case BinaryOp::kShiftRight: return For<kIntegers, ShiftRight>(t);
    case BinaryOp::kLogicalAnd: return For<kAll, LogicalAnd>(t);
    case BinaryOp::kLogicalOr: return For<kAll, LogicalOr>(t);
    case BinaryOp::kLogicalXor: return For<kAll, LogicalXor>(t);
    // Functions of floats: math_functions.cuh.
    case BinaryOp::kFmax: return For<kFloats, Fmax>(t);
    case BinaryOp::kFmin: return For<kFloats, Fmin>(t);
    case BinaryOp::kHypot: return For<kFloats, Hypot>(t);
    case BinaryOp::kAtan2: return For<kFloats, Atan2>(t);
    case BinaryOp::kLogAddExp: return For<kFloats, LogAddExp>(t);
    case BinaryOp::kLogAddExp2: return For<kFloats, LogAddExp2>(t);
    case BinaryOp::kXLogY: return For<kFloats, XLogY>(t);
    case BinaryOp::kXLog1PY: return For<kFloats, XLog1PY>(t);
    case BinaryOp::kCopySign: return For<kFloats, CopySign>(t);
    case BinaryOp::kNextAfter: return NextAfters(t);
    case BinaryOp::kLdexp: return For<kFloats, Ldexp>(t);
    case BinaryOp::kZeta: return For<kFloats, ZetaOf>(t);
    case BinaryOp::kHeaviside: return For<kAll, Heaviside>(t);
      // clang-format on
    default:
      return nullptr;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
