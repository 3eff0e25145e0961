// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of two inputs and their in-place forms: broadcast geometry, then the
// primitive of the op's name; a 0-dim CPU operand goes in as a number.
#include "primitive/binary.h"

#include "kernels/broadcast.h"
#include "kernels/number.h"
#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class BinaryKernel final : public PrimitiveKernel<Binary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &a = c.input(0), &b = c.input(1), &out = c.output(0);
    const auto g = MakeElementwise<3>(
        out.shape(),
        {BroadcastStrides(a, out.shape()), BroadcastStrides(b, out.shape()), out.strides()});
    const Number number = NumberOf(a, b, out);
    if (number == Number::kA)
      return primitive_->Launch(c.stream(), g, NumberIn(a), b.data(), out.data());
    if (number == Number::kB)
      return primitive_->Launch(c.stream(), g, a.data(), NumberIn(b), out.data());
    return primitive_->Launch(c.stream(), g, a.data(), b.data(), out.data());
  }

 private:
  // The operand that goes in as a number.
  enum class Number { kNone, kA, kB };
  static Number NumberOf(const Tensor& a, const Tensor& b, const Tensor& out) {
    // Two of one dtype are elements like any others; of two dtypes, the wider one is the number.
    if (IsNumber(out) && a.dtype() == b.dtype()) return Number::kNone;
    const bool wide_a = a.dtype() == ComputeType(b.dtype());
    if (IsNumber(a) && (wide_a || !IsNumber(b))) return Number::kA;
    return IsNumber(b) ? Number::kB : Number::kNone;
  }
};

// What the operands are promoted to: the result's dtype, or of a comparison their common one.
DType CommonType(BinaryOp op, const BindContext& c) {
  return IsComparison(op) ? PromoteTypes(c.inputs[0], c.inputs[1]) : c.outputs[0];
}

struct BinaryEntry {
  const char* op;
  BinaryOp primitive;
  DTypeSet dtypes;
};

constexpr DTypeSet kIntegerSet = kNumericSet & ~kFloatingSet;

constexpr BinaryEntry kBinaryEntries[] = {
    {"add", BinaryOp::kAdd, kAllDTypes},
    {"add_", BinaryOp::kAdd, kAllDTypes},
    {"sub", BinaryOp::kSub, kNumericSet},
    {"sub_", BinaryOp::kSub, kNumericSet},
    {"mul", BinaryOp::kMul, kAllDTypes},
    {"mul_", BinaryOp::kMul, kAllDTypes},
    {"div", BinaryOp::kDiv, kFloatingSet},
    {"div_", BinaryOp::kDiv, kFloatingSet},
    {"eq", BinaryOp::kEq, kAllDTypes},
    {"ne", BinaryOp::kNe, kAllDTypes},
    {"lt", BinaryOp::kLt, kAllDTypes},
    {"le", BinaryOp::kLe, kAllDTypes},
    {"gt", BinaryOp::kGt, kAllDTypes},
    {"ge", BinaryOp::kGe, kAllDTypes},
    {"relu_backward", BinaryOp::kReluBackward, kFloatingSet},
    {"gelu_backward", BinaryOp::kGeluBackward, kFloatingSet},
    {"gelu_tanh_backward", BinaryOp::kGeluTanhBackward, kFloatingSet},
    {"maximum", BinaryOp::kMaximum, kAllDTypes},
    {"minimum", BinaryOp::kMinimum, kAllDTypes},
    {"pow", BinaryOp::kPow, kNumericSet},
    {"bitwise_and", BinaryOp::kAnd, kAllDTypes & ~kFloatingSet},
    {"bitwise_or", BinaryOp::kOr, kAllDTypes & ~kFloatingSet},
    {"bitwise_xor", BinaryOp::kXor, kAllDTypes & ~kFloatingSet},

    // Divisions, functions of integers, logical ones, functions of floats, each in place too.
    {"fmod", BinaryOp::kFmod, kNumericSet},
    {"fmod_", BinaryOp::kFmod, kNumericSet},
    {"remainder", BinaryOp::kRemainder, kNumericSet},
    {"remainder_", BinaryOp::kRemainder, kNumericSet},
    {"floor_divide", BinaryOp::kFloorDivide, kNumericSet},
    {"floor_divide_", BinaryOp::kFloorDivide, kNumericSet},
    {"trunc_divide", BinaryOp::kTruncDivide, kNumericSet},
    {"trunc_divide_", BinaryOp::kTruncDivide, kNumericSet},
    {"gcd", BinaryOp::kGcd, kIntegerSet},
    {"gcd_", BinaryOp::kGcd, kIntegerSet},
    {"lcm", BinaryOp::kLcm, kIntegerSet},
    {"lcm_", BinaryOp::kLcm, kIntegerSet},
    {"bitwise_left_shift", BinaryOp::kShiftLeft, kIntegerSet},
    {"bitwise_left_shift_", BinaryOp::kShiftLeft, kIntegerSet},
    {"bitwise_right_shift", BinaryOp::kShiftRight, kIntegerSet},
    {"bitwise_right_shift_", BinaryOp::kShiftRight, kIntegerSet},
    {"fmax", BinaryOp::kFmax, kFloatingSet},
    {"fmin", BinaryOp::kFmin, kFloatingSet},
    {"hypot", BinaryOp::kHypot, kFloatingSet},
    {"hypot_", BinaryOp::kHypot, kFloatingSet},
    {"atan2", BinaryOp::kAtan2, kFloatingSet},
    {"atan2_", BinaryOp::kAtan2, kFloatingSet},
    {"logaddexp", BinaryOp::kLogAddExp, kFloatingSet},
    {"logaddexp2", BinaryOp::kLogAddExp2, kFloatingSet},
    {"xlogy", BinaryOp::kXLogY, kFloatingSet},
    {"xlogy_", BinaryOp::kXLogY, kFloatingSet},
    {"xlog1py", BinaryOp::kXLog1PY, kFloatingSet},
    {"copysign", BinaryOp::kCopySign, kFloatingSet},
    {"copysign_", BinaryOp::kCopySign, kFloatingSet},
    {"nextafter", BinaryOp::kNextAfter, kFloatingSet},
    {"nextafter_", BinaryOp::kNextAfter, kFloatingSet},
    {"ldexp", BinaryOp::kLdexp, kFloatingSet},
    {"ldexp_", BinaryOp::kLdexp, kFloatingSet},
    {"zeta", BinaryOp::kZeta, kFloatingSet},
    {"heaviside", BinaryOp::kHeaviside, kAllDTypes},
    {"heaviside_", BinaryOp::kHeaviside, kAllDTypes},
    {"prelu", BinaryOp::kPrelu, kFloatingSet},
    {"logical_and", BinaryOp::kLogicalAnd, kAllDTypes},
    {"logical_or", BinaryOp::kLogicalOr, kAllDTypes},
    {"logical_xor", BinaryOp::kLogicalXor, kAllDTypes},
    {"pow_", BinaryOp::kPow, kNumericSet},
    {"bitwise_and_", BinaryOp::kAnd, kAllDTypes & ~kFloatingSet},
    {"bitwise_or_", BinaryOp::kOr, kAllDTypes & ~kFloatingSet},
    {"bitwise_xor_", BinaryOp::kXor, kAllDTypes & ~kFloatingSet},
};

const bool binary_registered = [] {
  for (const BinaryEntry& e : kBinaryEntries) {
    const auto bind = [op = e.primitive](const BindContext& c) {
      return BindKernel<BinaryKernel>(
          c, {.op = op, .dtype = CommonType(op, c), .a = c.inputs[0], .b = c.inputs[1]});
    };
    // Of the first operand, which may have another dtype than the common one.
    const DTypeSet dtypes = e.dtypes & kFloatingSet ? kAllDTypes : e.dtypes | SetOf(DType::kBool);
    internal::AppendKernel({.op = e.op, .dtypes = dtypes, .strided_inputs = 0b11, .bind = bind},
                           __FILE__, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
