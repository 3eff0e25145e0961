// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of three inputs of one dtype, with broadcasting, and their in-place forms; a
// 0-dim operand on the CPU may have the compute type of the others' dtype. An op is one entry:
// name, documentation, dtypes, and for each operand its gradient and the inputs that this needs.
// The slopes are the gradients of ops in binary.cpp: linear in g, and differentiable in turn.
#include "functional/ternary.h"

#include <cmath>
#include <string>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/broadcast.h"
#include "ops/in_place.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Mul;
using functional::MulDiv;
using C = const GradContext&;
using Gradient = StatusOr<Tensor> (*)(C c);

struct TernaryEntry {
  const char* name;
  const char* doc;
  DTypeSet dtypes;
  bool comparison;       // the result is bool
  bool has_value;        // has the attribute `value`, a number
  uint64_t saved[3];     // the inputs that the gradient of operand i needs
  Gradient gradient[3];  // null where there is none
};

constexpr uint64_t kA = 1, kB = 2, kC = 4;

double ValueOf(C c) { return c.attr<Scalar>(0).to<double>(); }
Scalar NegativeOf(C c) { return Scalar(-ValueOf(c)); }
StatusOr<Tensor> Pass(C c) { return c.grad(0); }
StatusOr<Tensor> NoSlope(C c) {
  return functional::Zeros(c.grad(0).shape().dims(), c.grad(0).dtype(), c.grad(0).device());
}
// g (1 - c): g - g c is NaN where g is infinite.
StatusOr<Tensor> LerpGradientA(C c) {
  OFL_ASSIGN_OR_RETURN(const Tensor share, functional::Sub(Scalar(1), c.input(2)));
  return Mul(c.grad(0), share);
}
StatusOr<Tensor> LerpGradientC(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor way, functional::Sub(c.input(1), c.input(0)));
  return Mul(c.grad(0), way);
}
StatusOr<Tensor> AddCDivGradientC(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor share, functional::Div(c.grad(0), c.input(2)));
  return MulDiv(share, c.input(1), c.input(2), NegativeOf(c));
}
StatusOr<Tensor> MulDivGradientC(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor product, MulDiv(c.grad(0), c.input(0), c.input(2), NegativeOf(c)));
  return MulDiv(product, c.input(1), c.input(2));
}
// An operand's share of the gradient, which is 0, a half or 1.
StatusOr<Tensor> ShareOfClamp(C c, int64_t which) {
  OFL_ASSIGN_OR_RETURN(const Tensor share,
                       functional::ClampShare(c.input(0), c.input(1), c.input(2), which));
  OFL_ASSIGN_OR_RETURN(const Tensor half,
                       functional::ToTensor("clamp", Scalar(0.5), ComputeType(share.dtype())));
  return functional::MaximumSlope(c.grad(0), share, half);
}
bool IsNumber(C c, int i) { return c.spec(i).shape.ndim() == 0 && !c.needs(i); }
// Whether a bound is an infinite number, which stands for none.
bool IsNone(C c, int i) {
  const Tensor& bound = c.input(i);
  if (!IsNumber(c, i) || bound.device().type != DeviceType::kCPU) return false;
  return VisitFloating(bound.dtype(), [&]<class T>(Tag<T>) {
    return std::isinf(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(*bound.data<T>()));
  });
}
// Between two numbers the slope at either is 0. Where a bound is a tensor, x shares it with the
// bound that it equals, and has it alone where both bounds are that value, as in PyTorch. A tensor
// of one number and no gradient counts as a number.
StatusOr<Tensor> ClampGradientX(C c) {
  if (IsNumber(c, 1) && IsNumber(c, 2)) {
    OFL_ASSIGN_OR_RETURN(const Tensor inside,
                         functional::ClampInside(c.input(0), c.input(1), c.input(2)));
    return functional::Where(inside, c.grad(0), Scalar(0));
  }
  if (IsNone(c, 2)) return functional::MaximumSlope(c.grad(0), c.input(0), c.input(1));
  if (IsNone(c, 1)) return functional::MinimumSlope(c.grad(0), c.input(0), c.input(2));
  return ShareOfClamp(c, 0);
}
template <int kBound>
StatusOr<Tensor> ClampGradientBound(C c) {
  const Tensor &x = c.input(0), &bound = c.input(kBound);
  if (kBound == 1 && IsNone(c, 2)) return functional::MaximumSlope(c.grad(0), bound, x);
  if (kBound == 2 && IsNone(c, 1)) return functional::MinimumSlope(c.grad(0), bound, x);
  return ShareOfClamp(c, kBound);
}

// Second order: u = grad g, and kSlope(u, a, b) is what the slope is of u instead of g.
using Slope = StatusOr<Tensor> (*)(const Tensor& g, const Tensor& a, const Tensor& b);
template <Slope kSlope>
StatusOr<Tensor> Linear(C c) {
  return kSlope(c.grad(0), c.input(1), c.input(2));
}
using ScaledSlope = StatusOr<Tensor> (*)(const Tensor& g, const Tensor& a, const Tensor& b,
                                         Scalar value);
template <ScaledSlope kSlope>
StatusOr<Tensor> ScaledLinear(C c) {
  return kSlope(c.grad(0), c.input(1), c.input(2), c.attr<Scalar>(0));
}
StatusOr<Tensor> Both(C c) { return Mul(c.grad(0), c.input(0)); }  // u = grad g

// u b (b - 1) a^(b - 2), and 0 where b is 0.
StatusOr<Tensor> PowSlopeAByA(C c) {
  const Tensor &a = c.input(1), &b = c.input(2);
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(u, Mul(u, b));
  OFL_ASSIGN_OR_RETURN(Tensor less, functional::Sub(b, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(Tensor slope, functional::PowSlopeA(u, a, less));
  OFL_ASSIGN_OR_RETURN(Tensor flat, functional::Eq(b, Scalar(0)));
  return functional::Where(flat, Scalar(0), slope);
}
// u a^(b - 1) (1 + b log a): of either slope by the other operand.
StatusOr<Tensor> PowSlopeMixed(C c) {
  const Tensor &a = c.input(1), &b = c.input(2);
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(Tensor less, functional::Sub(b, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(Tensor power, functional::Pow(a, less));
  OFL_ASSIGN_OR_RETURN(Tensor log, functional::XLogY(b, a));
  const Term product = Term{Mul(u, power)};
  return (product + product * Term{log}).value;
}
StatusOr<Tensor> PowSlopeBByB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(Tensor slope, functional::PowSlopeB(u, c.input(1), c.input(2)));
  return functional::XLogY(slope, c.input(1));
}

// With r^2 = a^2 + b^2 the slope is u b / r^2: by a it is -2 u a b / r^4, by b u (a^2 - b^2) / r^4.
StatusOr<Tensor> Atan2SlopeByA(C c) {
  const Tensor &a = c.input(1), &b = c.input(2);
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(Tensor once, functional::Atan2SlopeA(u, a, b));
  OFL_ASSIGN_OR_RETURN(Tensor twice, functional::Atan2SlopeA(once, b, a));
  return Mul(twice, Scalar(-2.0));
}
StatusOr<Tensor> Atan2SlopeByB(C c) {
  const Tensor &a = c.input(1), &b = c.input(2);
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(Tensor of_a, functional::Atan2SlopeA(u, b, a));
  OFL_ASSIGN_OR_RETURN(of_a, functional::Atan2SlopeA(of_a, b, a));
  OFL_ASSIGN_OR_RETURN(Tensor of_b, functional::Atan2SlopeA(u, a, b));
  OFL_ASSIGN_OR_RETURN(of_b, functional::Atan2SlopeA(of_b, a, b));
  return functional::Sub(of_a, of_b);
}

// With s the share of a, 1 - s that of b: v u s (1 - s), and the negative.
template <int kSign>
StatusOr<Tensor> LogAddExpSlopeBy(C c) {
  const Tensor &a = c.input(1), &b = c.input(2);
  const Scalar value = c.attr<Scalar>(0);
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(u, functional::LogAddExpSlope(u, a, b, value));
  OFL_ASSIGN_OR_RETURN(u, functional::LogAddExpSlope(u, b, a, value));
  return Mul(u, Scalar(kSign * value.to<double>()));
}

// u / (b + v), and for the slope by b, u a / (b + v), by its own b.
StatusOr<Tensor> OverShifted(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(Tensor shifted, functional::Add(c.input(2), c.attr<Scalar>(0)));
  return functional::Div(u, shifted);
}
StatusOr<Tensor> XLogYSlopeBByB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor u, Both(c));
  OFL_ASSIGN_OR_RETURN(u, functional::XLogYSlopeB(u, c.input(1), c.input(2), c.attr<Scalar>(0)));
  OFL_ASSIGN_OR_RETURN(Tensor shifted, functional::Add(c.input(2), c.attr<Scalar>(0)));
  OFL_ASSIGN_OR_RETURN(u, functional::Div(u, shifted));
  return functional::Neg(u);
}

// Where b is positive neither slope of prelu has the factor c.
StatusOr<Tensor> PreluSlopeByFactor(C c) {
  return functional::PreluSlopeB(c.grad(0), c.input(1), c.input(0));
}

// clang-format off
constexpr TernaryEntry kTernaryEntries[] = {
    {"lerp", "a + c (b - a), from the end that is nearer.", kFloatingSet, false, false,
     {kC, kC, kA | kB},
     {LerpGradientA, [](C c) { return Mul(c.grad(0), c.input(2)); }, LerpGradientC}},
    {"addcmul", "a + value b c.", kNumericSet, false, true, {0, kC, kB},
     {Pass, [](C c) { return functional::AddCMul(Scalar(0), c.grad(0), c.input(2), Scalar(ValueOf(c))); },
      [](C c) { return functional::AddCMul(Scalar(0), c.grad(0), c.input(1), Scalar(ValueOf(c))); }}},
    {"addcdiv", "a + value b / c.", kFloatingSet, false, true, {0, kC, kB | kC},
     {Pass, [](C c) { return functional::AddCDiv(Scalar(0), c.grad(0), c.input(2), Scalar(ValueOf(c))); },
      AddCDivGradientC}},
    {"clamp", "a, not below b and then not above c; NaN where one of the three is.", kAllDTypes,
     false, false, {kA | kB | kC, kA | kB | kC, kA | kB | kC},
     {ClampGradientX, ClampGradientBound<1>, ClampGradientBound<2>}},
    {"mul_div", "value a (b / c).", kFloatingSet, false, true, {kB | kC, kA | kC, kA | kB | kC},
     {[](C c) { return MulDiv(c.grad(0), c.input(1), c.input(2), Scalar(ValueOf(c))); },
      [](C c) { return MulDiv(c.grad(0), c.input(0), c.input(2), Scalar(ValueOf(c))); },
      MulDivGradientC}},
    {"clamp_inside", "Whether a is strictly between b and c; infinite bounds stand for none.",
     kFloatingSet, true, false, {0, 0, 0}, {nullptr, nullptr, nullptr}},
    {"clamp_share", "The share of clamp's gradient that a (value 0), b (1) or c (2) has.",
     kFloatingSet, false, true, {0, 0, 0}, {nullptr, nullptr, nullptr}},
    {"pow_slope_a", "a times the slope of b^c by b; 0 where c is 0.", kFloatingSet, false, false,
     {kB | kC, kA | kB | kC, kA | kB | kC},
     {Linear<functional::PowSlopeA>, PowSlopeAByA, PowSlopeMixed}},
    {"pow_slope_b", "a times the slope of b^c by c; 0 where b is 0 and c is not negative.",
     kFloatingSet, false, false, {kB | kC, kA | kB | kC, kA | kB | kC},
     {Linear<functional::PowSlopeB>, PowSlopeMixed, PowSlopeBByB}},
    {"maximum_slope", "a where b > c, half of it where they are equal, 0 where b < c.",
     kFloatingSet, false, false, {kB | kC, 0, 0},
     {Linear<functional::MaximumSlope>, NoSlope, NoSlope}},
    {"minimum_slope", "a where b < c, half of it where they are equal, 0 where b > c.",
     kFloatingSet, false, false, {kB | kC, 0, 0},
     {Linear<functional::MinimumSlope>, NoSlope, NoSlope}},
    {"fmax_slope", "As maximum_slope; beside NaN a for the number.", kFloatingSet, false, false,
     {kB | kC, 0, 0}, {Linear<functional::FmaxSlope>, NoSlope, NoSlope}},
    {"fmin_slope", "As minimum_slope; beside NaN a for the number.", kFloatingSet, false, false,
     {kB | kC, 0, 0}, {Linear<functional::FminSlope>, NoSlope, NoSlope}},
    {"fmod_slope_b", "a times the slope of fmod(b, c) by c, -(b / c) rounded towards 0.",
     kFloatingSet, false, false, {kB | kC, 0, 0},
     {Linear<functional::FmodSlopeB>, NoSlope, NoSlope}},
    {"atan2_slope_a", "a times the slope of atan2(b, c) by b.", kFloatingSet, false, false,
     {kB | kC, kA | kB | kC, kA | kB | kC},
     {Linear<functional::Atan2SlopeA>, Atan2SlopeByA, Atan2SlopeByB}},
    {"logaddexp_slope", "a / (1 + exp(value (c - b))).", kFloatingSet, false, true,
     {kB | kC, kA | kB | kC, kA | kB | kC},
     {ScaledLinear<functional::LogAddExpSlope>, LogAddExpSlopeBy<1>, LogAddExpSlopeBy<-1>}},
    {"xlogy_slope_a", "a log(c + value), with value 0 or 1; 0 where b is 0 and that is no number.",
     kFloatingSet, false, true, {kB | kC, 0, kA | kC},
     {ScaledLinear<functional::XLogYSlopeA>, NoSlope, OverShifted}},
    {"xlogy_slope_b", "a b / (c + value); 0 where b is 0.", kFloatingSet, false, true,
     {kB | kC, kA | kC, kA | kB | kC},
     {ScaledLinear<functional::XLogYSlopeB>, OverShifted, XLogYSlopeBByB}},
    {"copysign_slope", "a with its sign changed where those of b and c differ; 0 where b is 0.",
     kFloatingSet, false, false, {kB | kC, 0, 0},
     {Linear<functional::CopySignSlope>, NoSlope, NoSlope}},
    {"prelu_slope_a", "a where b is positive, else a c.", kFloatingSet, false, false,
     {kB | kC, 0, kA | kB},
     {Linear<functional::PreluSlopeA>, NoSlope, PreluSlopeByFactor}},
    {"prelu_slope_b", "0 where b is positive, else a c.", kFloatingSet, false, false,
     {kB | kC, 0, kA | kB},
     {Linear<functional::PreluSlopeB>, NoSlope, PreluSlopeByFactor}},
};
// clang-format on
constexpr size_t kNumInPlace = 4;  // the first entries also have a form in place

// Whether operand i is a number in the type that elements of `dtype` are computed in.
bool IsWideNumber(const InferContext& c, int i, DType dtype) {
  return c.shape(i).ndim() == 0 && c.input(i).device.type == DeviceType::kCPU &&
         c.dtype(i) == ComputeType(dtype);
}

Status InferTernary(InferContext& c, DTypeSet dtypes, bool comparison) {
  constexpr const char* kOperands[] = {"the first operand", "the second operand",
                                       "the third operand"};
  DType dtype = c.dtype(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (ComputeType(c.dtype(i)) != c.dtype(i)) dtype = c.dtype(i);
  }
  Shape out;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != dtype && !IsWideNumber(c, i, dtype)) {
      return DTypeMismatch(c.op(), kOperands[i], c.dtype(i), Name(dtype));
    }
    OFL_ASSIGN_OR_RETURN(out, Broadcast(c, out, i, kOperands[i]));
  }
  if (!(dtypes & SetOf(dtype))) {
    return UnsupportedDType(c.op(), "an operand", dtype, "one of " + ToString(dtypes));
  }
  c.SetOutput(0, out, comparison ? DType::kBool : dtype);
  return OkStatus();
}

Status Backward(GradContext& c, const TernaryEntry& entry) {
  for (int i = 0; i < 3; ++i) {
    if (!c.needs(i)) continue;
    OFL_ASSIGN_OR_RETURN(Tensor g, entry.gradient[i](c));
    OFL_ASSIGN_OR_RETURN(g, functional::SumToShape(g, c.spec(i).shape));
    OFL_RETURN_IF_ERROR(c.Set(i, functional::To(g, c.spec(i).device, c.spec(i).dtype)));
  }
  return OkStatus();
}

void DefineForm(OpDef& op, const TernaryEntry& entry, bool in_place) {
  op.Input("a").Input("b").Input("c").Output("out");
  if (in_place) Overwrite(op);
  if (entry.has_value) op.Attr("value", AttrType::kScalar);
  op.doc = entry.doc;
  op.scalar_operands = true;
  op.differentiable = entry.gradient[0] != nullptr;
  op.infer = [&entry](InferContext& c) { return InferTernary(c, entry.dtypes, entry.comparison); };
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
  op.save = [&entry](const Attrs&, Needs needs) {
    SavePlan plan{.keep_numbers = true};  // the weight of lerp, the alpha of add
    for (int i = 0; i < 3; ++i) {
      if (needs & Bit(i)) plan.inputs |= entry.saved[i];
    }
    return plan;
  };
  op.backward = [&entry](GradContext& c) { return Backward(c, entry); };
}
template <size_t kIndex, bool kInPlace>
void DefineTernary(OpDef& op) {
  DefineForm(op, kTernaryEntries[kIndex], kInPlace);
}

void DefineIsClose(OpDef& op) {
  op.Input("a").Input("b").Output("out").Attr("rtol", AttrType::kFloat);
  op.Attr("atol", AttrType::kFloat).Attr("equal_nan", AttrType::kBool);
  op.doc = "Whether |a - b| <= atol + rtol |b|.";
  op.scalar_operands = true;
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status { return InferTernary(c, kAllDTypes, true); };
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
}

template <size_t... I>
bool RegisterTernary(std::index_sequence<I...>) {
  return (
      (internal::AppendOp(kTernaryEntries[I].name, DefineTernary<I, false>, __FILE__, __LINE__) &&
       internal::KeepLayout(kTernaryEntries[I].name)) &&
      ...);
}
template <size_t... I>
bool RegisterInPlace(std::index_sequence<I...>) {
  static const std::string names[] = {std::string(kTernaryEntries[I].name) + "_" ...};
  return (internal::AppendOp(names[I].c_str(), DefineTernary<I, true>, __FILE__, __LINE__) && ...);
}
const bool ternary_registered =
    RegisterTernary(std::make_index_sequence<std::size(kTernaryEntries)>()) &&
    RegisterInPlace(std::make_index_sequence<kNumInPlace>());
OFL_REGISTER_OP("isclose", DefineIsClose);
const bool isclose_keeps_layout = internal::KeepLayout("isclose");

}  // namespace
}  // namespace oneflow_lite
