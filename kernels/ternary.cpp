// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of three inputs and their in-place forms: broadcast geometry, then the
// primitive of the op's name; 0-dim CPU operands go in as numbers.
#include "primitive/ternary.h"

#include "kernels/broadcast.h"
#include "kernels/number.h"
#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

Ternary::Operand OperandOf(const Tensor& t) {
  if (IsNumber(t)) return {.data = nullptr, .number = NumberIn(t)};
  return {.data = t.data(), .number = {}};
}

// kHasValue: the op's attribute 0 is the number v.
template <bool kHasValue>
class TernaryKernel final : public PrimitiveKernel<Ternary> {
 public:
  using PrimitiveKernel<Ternary>::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &y = c.input(1), &z = c.input(2), &out = c.output(0);
    const auto g = MakeElementwise<4>(
        out.shape(), {BroadcastStrides(x, out.shape()), BroadcastStrides(y, out.shape()),
                      BroadcastStrides(z, out.shape()), out.strides()});
    TernaryNumbers numbers;
    if constexpr (kHasValue) {
      const Scalar& value = c.attr<Scalar>(0);
      numbers.v = value.to<double>();
      numbers.whole = value.is_float() ? 0 : value.to<int64_t>();
    }
    const Ternary::Operand operands[] = {OperandOf(x), OperandOf(y), OperandOf(z)};
    return primitive_->Launch(c.stream(), g, operands, numbers, out.data());
  }
};

class IsCloseKernel final : public PrimitiveKernel<Ternary> {
 public:
  using PrimitiveKernel<Ternary>::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &y = c.input(1), &out = c.output(0);
    const Dims none(out.ndim(), 0);
    const auto g = MakeElementwise<4>(
        out.shape(),
        {BroadcastStrides(x, out.shape()), BroadcastStrides(y, out.shape()), none, out.strides()});
    const TernaryNumbers numbers{
        .v = c.attr<double>(1), .rtol = c.attr<double>(0), .equal_nan = c.attr<bool>(2)};
    const Ternary::Operand operands[] = {OperandOf(x), OperandOf(y), {}};
    return primitive_->Launch(c.stream(), g, operands, numbers, out.data());
  }
};

// The dtype of the elements, beside which a number may have their compute type.
DType ElementType(const BindContext& c) {
  for (const DType t : c.inputs) {
    if (ComputeType(t) != t) return t;
  }
  return c.inputs[0];
}

struct TernaryEntry {
  const char* op;
  TernaryOp primitive;
  DTypeSet dtypes;
  bool has_value = false;
};

constexpr TernaryEntry kTernaryEntries[] = {
    {"lerp", TernaryOp::kLerp, kFloatingSet},
    {"lerp_", TernaryOp::kLerp, kFloatingSet},
    {"addcmul", TernaryOp::kAddCMul, kNumericSet, true},
    {"addcmul_", TernaryOp::kAddCMul, kNumericSet, true},
    {"addcdiv", TernaryOp::kAddCDiv, kFloatingSet, true},
    {"addcdiv_", TernaryOp::kAddCDiv, kFloatingSet, true},
    {"mul_div", TernaryOp::kMulDiv, kFloatingSet, true},
    {"clamp", TernaryOp::kClamp, kAllDTypes},
    {"clamp_", TernaryOp::kClamp, kAllDTypes},
    {"clamp_inside", TernaryOp::kClampInside, kFloatingSet},
    {"clamp_share", TernaryOp::kClampShare, kFloatingSet, true},
    {"pow_slope_a", TernaryOp::kPowSlopeA, kFloatingSet},
    {"pow_slope_b", TernaryOp::kPowSlopeB, kFloatingSet},
    {"maximum_slope", TernaryOp::kMaximumSlope, kFloatingSet},
    {"minimum_slope", TernaryOp::kMinimumSlope, kFloatingSet},
    {"fmax_slope", TernaryOp::kFmaxSlope, kFloatingSet},
    {"fmin_slope", TernaryOp::kFminSlope, kFloatingSet},
    {"fmod_slope_b", TernaryOp::kFmodSlopeB, kFloatingSet},
    {"atan2_slope_a", TernaryOp::kAtan2SlopeA, kFloatingSet},
    {"logaddexp_slope", TernaryOp::kLogAddExpSlope, kFloatingSet, true},
    {"xlogy_slope_a", TernaryOp::kXLogYSlopeA, kFloatingSet, true},
    {"xlogy_slope_b", TernaryOp::kXLogYSlopeB, kFloatingSet, true},
    {"copysign_slope", TernaryOp::kCopySignSlope, kFloatingSet},
    {"prelu_slope_a", TernaryOp::kPreluSlopeA, kFloatingSet},
    {"prelu_slope_b", TernaryOp::kPreluSlopeB, kFloatingSet},
};

StatusOr<std::unique_ptr<BoundKernel>> BindTernary(const BindContext& c, const TernaryEntry& e) {
  const Ternary::Spec spec{.op = e.primitive, .dtype = ElementType(c)};
  return e.has_value ? BindKernel<TernaryKernel<true>>(c, spec)
                     : BindKernel<TernaryKernel<false>>(c, spec);
}
StatusOr<std::unique_ptr<BoundKernel>> BindIsClose(const BindContext& c) {
  return BindKernel<IsCloseKernel>(c, {.op = TernaryOp::kIsClose, .dtype = ElementType(c)});
}

const bool ternary_registered = [] {
  for (const TernaryEntry& e : kTernaryEntries) {
    internal::AppendKernel({.op = e.op,
                            .dtypes = e.dtypes,
                            .strided_inputs = 0b111,
                            .bind = [&e](const BindContext& c) { return BindTernary(c, e); }},
                           __FILE__, __LINE__);
  }
  return true;
}();
OFL_REGISTER_KERNEL(
    {.op = "isclose", .dtypes = kAllDTypes, .strided_inputs = 0b11, .bind = BindIsClose});

}  // namespace
}  // namespace oneflow_lite
