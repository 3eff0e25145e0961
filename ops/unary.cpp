// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input. An op is one entry: name, documentation, dtypes, what backward
// keeps, and the gradient.
#include "functional/unary.h"

#include <cmath>
#include <numbers>

#include "functional/select.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Cast;
using functional::Div;
using functional::Mul;
using functional::Neg;
using functional::ReluBackward;
using functional::Sub;

constexpr SavePlan kNothing{};
constexpr SavePlan kInput{.inputs = Bit(0)};
constexpr SavePlan kOutput{.outputs = Bit(0)};

struct UnaryEntry {
  const char* name;
  const char* doc;
  DTypeSet dtypes;
  SavePlan save;
  StatusOr<Tensor> (*gradient)(const GradContext& c);  // of the input
};

// g where x > 0, -g where x < 0.
StatusOr<Tensor> AbsGradient(const GradContext& c) {
  const Tensor &g = c.grad(0), &x = c.input(0);
  OFL_ASSIGN_OR_RETURN(Tensor above, functional::Gt(x, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor below, functional::Lt(x, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(above, Cast(above, g.dtype()));
  OFL_ASSIGN_OR_RETURN(below, Cast(below, g.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor sign, Sub(above, below));
  if (GradEnabled() && autograd::RequiresGrad(x)) {  // a history that leads to x with a slope of 0
    OFL_ASSIGN_OR_RETURN(const Tensor everywhere, functional::Eq(sign, sign));
    OFL_ASSIGN_OR_RETURN(sign, functional::Where(everywhere, sign, x));
  }
  return Mul(g, sign);
}
// g / 2 y
StatusOr<Tensor> SqrtGradient(const GradContext& c) {
  const Term g{c.grad(0)}, y{c.output(0)};
  return (g / (y * 2)).value;
}
// -g y^3 / 2
StatusOr<Tensor> RsqrtGradient(const GradContext& c) {
  const Term g{c.grad(0)}, y{c.output(0)};
  return (g * (y * y * y * -0.5)).value;
}
// g (1 - y^2)
StatusOr<Tensor> TanhGradient(const GradContext& c) {
  const Term g{c.grad(0)}, y{c.output(0)};
  return (g * (1 - y * y)).value;
}
// g y (1 - y)
StatusOr<Tensor> SigmoidGradient(const GradContext& c) {
  const Term g{c.grad(0)}, y{c.output(0)};
  return (g * (y * (1 - y))).value;
}
// g slope(x), computed as kernels do: the 16-bit floats in float32, rounded once.
template <Term (*kSlope)(const Term& x)>
StatusOr<Tensor> ChainGradient(const GradContext& c) {
  const DType dtype = c.grad(0).dtype(), wide = ComputeType(dtype);
  const Term x{Cast(c.input(0), wide)}, g{Cast(c.grad(0), wide)};
  OFL_ASSIGN_OR_RETURN(const Tensor product, (g * kSlope(x)).value);
  return Cast(product, dtype);
}
Term SinSlope(const Term& x) { return Apply(functional::Cos, x); }
Term CosSlope(const Term& x) { return -Apply(functional::Sin, x); }
// 2 / sqrt(pi) exp(-x^2)
Term ErfSlope(const Term& x) {
  return Apply(functional::Exp, x * x * -1) * (2 / std::sqrt(std::numbers::pi));
}
// s (1 + x (1 - s)), s = sigmoid(x)
Term SiluSlope(const Term& x) {
  const Term s = Apply(functional::Sigmoid, x);
  return s * (x * (1 - s) + 1);
}

// clang-format off
constexpr UnaryEntry kUnaryEntries[] = {
    {"neg", "Negates each element.", kNumericSet, kNothing,
     [](const GradContext& c) { return Neg(c.grad(0)); }},
    {"exp", "e to the power of each element.", kFloatingSet, kOutput,
     [](const GradContext& c) { return Mul(c.grad(0), c.output(0)); }},
    {"log", "Natural logarithm of each element.", kFloatingSet, kInput,
     [](const GradContext& c) { return Div(c.grad(0), c.input(0)); }},
    {"relu", "max(x, 0) of each element.", kNumericSet, kOutput,
     [](const GradContext& c) { return ReluBackward(c.grad(0), c.output(0)); }},
    {"abs", "|x| of each element.", kNumericSet, kInput, AbsGradient},
    {"sqrt", "Square root of each element.", kFloatingSet, kOutput, SqrtGradient},
    {"rsqrt", "1 / sqrt(x) of each element.", kFloatingSet, kOutput, RsqrtGradient},
    {"tanh", "Hyperbolic tangent of each element.", kFloatingSet, kOutput, TanhGradient},
    {"sigmoid", "1 / (1 + exp(-x)) of each element.", kFloatingSet, kOutput, SigmoidGradient},
    {"sin", "Sine of each element.", kFloatingSet, kInput, ChainGradient<SinSlope>},
    {"cos", "Cosine of each element.", kFloatingSet, kInput, ChainGradient<CosSlope>},
    {"erf", "The error function of each element.", kFloatingSet, kInput, ChainGradient<ErfSlope>},
    {"floor", "The largest integer not above each element.", kFloatingSet, kNothing,
     [](const GradContext& c) { return Mul(c.grad(0), Scalar(0)); }},
    {"silu", "x sigmoid(x) of each element.", kFloatingSet, kInput, ChainGradient<SiluSlope>},
    {"gelu_tanh", "x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3).", kFloatingSet, kInput,
     [](const GradContext& c) { return functional::GeluTanhBackward(c.grad(0), c.input(0)); }},
    {"gelu", "x P(N <= x) of each element, of a standard normal N.", kFloatingSet, kInput,
     [](const GradContext& c) { return functional::GeluBackward(c.grad(0), c.input(0)); }},
};
// clang-format on

template <size_t kIndex>
void DefineUnary(OpDef& op) {
  static constexpr const UnaryEntry& entry = kUnaryEntries[kIndex];
  op.Input("in").Output("out");
  op.doc = entry.doc;
  op.infer = [](InferContext& c) -> Status {
    // Integers and bool become float32 where an op has floats only.
    const bool widened = entry.dtypes == kFloatingSet && !IsFloating(c.dtype(0));
    const DType dtype = widened ? DType::kFloat32 : c.dtype(0);
    if (!(entry.dtypes & SetOf(dtype))) {
      return UnsupportedDType(c.op(), "the input", dtype, "one of " + ToString(entry.dtypes));
    }
    c.SetOutput(0, c.shape(0), dtype);
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.save = [](const Attrs&, Needs) { return entry.save; };
  op.backward = [](GradContext& c) -> Status { return c.Set(0, entry.gradient(c)); };
}

template <size_t... I>
bool RegisterUnary(std::index_sequence<I...>) {
  return (internal::AppendOp(kUnaryEntries[I].name, DefineUnary<I>, __FILE__, __LINE__) && ...) &&
         (internal::KeepLayout(kUnaryEntries[I].name) && ...);
}
const bool unary_registered = RegisterUnary(std::make_index_sequence<std::size(kUnaryEntries)>());

}  // namespace
}  // namespace oneflow_lite
