// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of two inputs, with broadcasting and promotion, and their in-place forms; a
// 0-dim operand on the CPU may have the compute type of the other's dtype. An op is one entry:
// name, documentation, dtypes, what backward keeps, and the two gradients before they are summed
// to the inputs' shapes.
#include "functional/binary.h"

#include <string_view>

#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/loss.h"
#include "functional/select.h"
#include "functional/special.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/binary_backward.h"
#include "ops/broadcast.h"
#include "ops/gelu.h"
#include "ops/in_place.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Div;
using functional::Mul;
using functional::ReluBackward;
using functional::SumToShape;

struct BinaryEntry {
  const char* name;
  const char* doc;
  DTypeSet dtypes;
  bool comparison;  // the result is bool
  SavePlan (*save)(Needs needs);
  StatusOr<Tensor> (*gradient_a)(const GradContext& c);  // null where there is none
  StatusOr<Tensor> (*gradient_b)(const GradContext& c);
};

using C = const GradContext&;
SavePlan SaveNothing(Needs) { return {}; }
// Each operand's gradient needs the other operand.
SavePlan SaveOther(Needs needs) {
  return {.inputs = (needs & Bit(0) ? Bit(1) : 0) | (needs & Bit(1) ? Bit(0) : 0)};
}
SavePlan SaveForDiv(Needs needs) { return {.inputs = Bit(1) | (needs & Bit(1) ? Bit(0) : 0)}; }
SavePlan SaveB(Needs) { return {.inputs = Bit(1)}; }
SavePlan SaveForSlope(Needs needs) { return SaveForDiv(needs); }  // b, and a for b's gradient
StatusOr<Tensor> Pass(C c) { return c.grad(0); }

// -g a / b^2
StatusOr<Tensor> DivGradientB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor share, Div(c.grad(0), c.input(1)));
  return functional::MulDiv(share, c.input(0), c.input(1), Scalar(-1));
}
StatusOr<Tensor> Negated(C c) { return functional::Sub(Scalar(0), c.grad(0)); }

using Slope = StatusOr<Tensor> (*)(const Tensor& g, const Tensor& a, const Tensor& b);
// The slope of one operand, and with the operands exchanged that of the other.
template <Slope kSlope>
StatusOr<Tensor> SlopeOf(C c) {
  return kSlope(c.grad(0), c.input(0), c.input(1));
}
template <Slope kSlope>
StatusOr<Tensor> SlopeExchanged(C c) {
  return kSlope(c.grad(0), c.input(1), c.input(0));
}
StatusOr<Tensor> NoSlope(C c) {
  return functional::Zeros(c.grad(0).shape().dims(), c.grad(0).dtype(), c.grad(0).device());
}
SavePlan SaveBoth(Needs) { return {.inputs = Bit(0) | Bit(1)}; }

SavePlan SaveBothForB(Needs needs) { return {.inputs = needs & Bit(1) ? Bit(0) | Bit(1) : 0}; }
SavePlan SaveAForB(Needs needs) { return {.inputs = needs & Bit(1) ? Bit(0) : 0}; }
SavePlan SaveBothForA(Needs needs) { return {.inputs = needs & Bit(0) ? Bit(0) | Bit(1) : 0}; }

// The rest is a less the quotient times b.
StatusOr<Tensor> RemainderGradientB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor quotient, functional::FloorDivide(c.input(0), c.input(1)));
  return functional::AddCMul(Scalar(0), c.grad(0), quotient, Scalar(-1));
}
SavePlan SaveForHypot(Needs needs) { return {.inputs = needs, .outputs = Bit(0)}; }
template <int kOwn>
StatusOr<Tensor> HypotGradient(C c) {
  return functional::MulDiv(c.grad(0), c.input(kOwn), c.output(0));
}
StatusOr<Tensor> Atan2GradientB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor slope, SlopeExchanged<functional::Atan2SlopeA>(c));
  return functional::Neg(slope);
}
constexpr double kLog2 = 0.69314718055994530942;
SavePlan SaveForLdexp(Needs needs) {
  return {.inputs = needs & Bit(0) ? Bit(1) : 0, .outputs = needs & Bit(1) ? Bit(0) : 0};
}
StatusOr<Tensor> ZetaGradientA(C) {
  return Error(ErrorKind::kNotImplemented, "zeta(): has no gradient with respect to the power");
}
// -a zeta(a + 1, b)
StatusOr<Tensor> ZetaGradientB(C c) {
  const Term a{c.input(0)}, b{c.input(1)};
  return (-(Term{c.grad(0)} * a) * Combine(a + 1, b, functional::Zeta)).value;
}
StatusOr<Tensor> HeavisideGradientB(C c) {
  OFL_ASSIGN_OR_RETURN(Tensor at_0, functional::Eq(c.input(0), Scalar(0)));
  return functional::Where(at_0, c.grad(0), Scalar(0));
}

// The element's needs both, the weight's the element.
SavePlan SaveForPrelu(Needs needs) { return {.inputs = Bit(0) | (needs & Bit(0) ? Bit(1) : 0)}; }
// One weight has the sum as its gradient, whose terms are never written.
StatusOr<Tensor> PreluGradientB(C c) {
  const Tensor& x = c.input(0);
  const bool one = c.spec(1).shape.ndim() == 0 && x.ndim() > 0;
  if (one && functional::SumsLossesAtOnce(x)) {
    return functional::LossSum({"prelu_weight"}, x, c.grad(0));
  }
  return functional::PreluSlopeB(c.grad(0), c.input(0), c.input(0));
}

constexpr DTypeSet kBits = kAllDTypes & ~kFloatingSet;
constexpr DTypeSet kIntegerSet = kNumericSet & ~kFloatingSet;

// clang-format off
constexpr BinaryEntry kBinaryEntries[] = {
    {"add", "a + b.", kAllDTypes, false, SaveNothing, Pass, Pass},
    {"sub", "a - b.", kNumericSet, false, SaveNothing, Pass, Negated},
    {"mul", "a * b.", kAllDTypes, false, SaveOther,
     [](C c) { return Mul(c.grad(0), c.input(1)); }, [](C c) { return Mul(c.grad(0), c.input(0)); }},
    {"div", "a / b.", kFloatingSet, false, SaveForDiv,
     [](C c) { return Div(c.grad(0), c.input(1)); }, DivGradientB},
    {"relu_backward", "0 where b <= 0, else a: the gradient of relu from its output b.", kFloatingSet,
     false, SaveB, [](C c) { return ReluBackward(c.grad(0), c.input(1)); }, NoSlope},
    {"gelu_backward", "a times the slope of gelu at b.", kFloatingSet, false, SaveForSlope,
     [](C c) { return functional::GeluBackward(c.grad(0), c.input(1)); }, BendGradient<GeluBend>},
    {"gelu_tanh_backward", "a times the slope of gelu_tanh at b.", kFloatingSet, false,
     SaveForSlope, [](C c) { return functional::GeluTanhBackward(c.grad(0), c.input(1)); },
     BendGradient<GeluTanhBend>},
    {"maximum", "The larger of a and b; NaN where one of them is.", kAllDTypes, false, SaveBoth,
     SlopeOf<functional::MaximumSlope>, SlopeExchanged<functional::MaximumSlope>},
    {"minimum", "The smaller of a and b; NaN where one of them is.", kAllDTypes, false, SaveBoth,
     SlopeOf<functional::MinimumSlope>, SlopeExchanged<functional::MinimumSlope>},
    {"pow", "a to the power of b.", kNumericSet, false, SaveBoth, SlopeOf<functional::PowSlopeA>,
     SlopeOf<functional::PowSlopeB>},
    {"bitwise_and", "The bits that a and b both have.", kBits, false, SaveNothing, nullptr, nullptr},
    {"bitwise_or", "The bits that a or b has.", kBits, false, SaveNothing, nullptr, nullptr},
    {"bitwise_xor", "The bits that one of a and b has.", kBits, false, SaveNothing, nullptr,
     nullptr},
    {"eq", "a == b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"ne", "a != b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"lt", "a < b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"le", "a <= b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"gt", "a > b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"ge", "a >= b.", kAllDTypes, true, SaveNothing, nullptr, nullptr},

    // Divisions, functions of integers, logical ones.
    {"fmod", "What a division rounded towards 0 leaves of a.", kNumericSet, false, SaveBothForB,
     Pass, SlopeOf<functional::FmodSlopeB>},
    {"remainder", "What a division rounded down leaves of a.", kNumericSet, false, SaveBothForB,
     Pass, RemainderGradientB},
    {"floor_divide", "a / b rounded down.", kNumericSet, false, SaveNothing, NoSlope, NoSlope},
    {"trunc_divide", "a / b rounded towards 0.", kNumericSet, false, SaveNothing, NoSlope, NoSlope},
    {"gcd", "The greatest common divisor of a and b.", kIntegerSet, false, SaveNothing, nullptr,
     nullptr},
    {"lcm", "The least common multiple of a and b.", kIntegerSet, false, SaveNothing, nullptr,
     nullptr},
    {"bitwise_left_shift", "The bits of a moved b places to the left.", kIntegerSet, false,
     SaveNothing, nullptr, nullptr},
    {"bitwise_right_shift", "The bits of a moved b places to the right.", kIntegerSet, false,
     SaveNothing, nullptr, nullptr},
    {"logical_and", "Whether a and b are not 0.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"logical_or", "Whether a or b is not 0.", kAllDTypes, true, SaveNothing, nullptr, nullptr},
    {"logical_xor", "Whether one of a and b is 0.", kAllDTypes, true, SaveNothing, nullptr, nullptr},

    // Mathematical functions of two floats.
    {"fmax", "The larger of a and b; of a number and NaN the number.", kFloatingSet, false, SaveBoth,
     SlopeOf<functional::FmaxSlope>, SlopeExchanged<functional::FmaxSlope>},
    {"fmin", "The smaller of a and b; of a number and NaN the number.", kFloatingSet, false,
     SaveBoth, SlopeOf<functional::FminSlope>, SlopeExchanged<functional::FminSlope>},
    {"hypot", "sqrt(a^2 + b^2).", kFloatingSet, false, SaveForHypot, HypotGradient<0>,
     HypotGradient<1>},
    {"atan2", "The angle of the point (b, a).", kFloatingSet, false, SaveBoth,
     SlopeOf<functional::Atan2SlopeA>, Atan2GradientB},
    {"logaddexp", "log(exp(a) + exp(b)).", kFloatingSet, false, SaveBoth,
     [](C c) { return functional::LogAddExpSlope(c.grad(0), c.input(0), c.input(1), Scalar(1.0)); },
     [](C c) { return functional::LogAddExpSlope(c.grad(0), c.input(1), c.input(0), Scalar(1.0)); }},
    {"logaddexp2", "log2(2^a + 2^b).", kFloatingSet, false, SaveBoth,
     [](C c) { return functional::LogAddExpSlope(c.grad(0), c.input(0), c.input(1), Scalar(kLog2)); },
     [](C c) { return functional::LogAddExpSlope(c.grad(0), c.input(1), c.input(0), Scalar(kLog2)); }},
    {"xlogy", "a log(b); 0 where a is 0.", kFloatingSet, false, SaveBoth,
     [](C c) { return functional::XLogYSlopeA(c.grad(0), c.input(0), c.input(1), Scalar(0.0)); },
     [](C c) { return functional::XLogYSlopeB(c.grad(0), c.input(0), c.input(1), Scalar(0.0)); }},
    {"xlog1py", "a log(1 + b); 0 where a is 0.", kFloatingSet, false, SaveBoth,
     [](C c) { return functional::XLogYSlopeA(c.grad(0), c.input(0), c.input(1), Scalar(1.0)); },
     [](C c) { return functional::XLogYSlopeB(c.grad(0), c.input(0), c.input(1), Scalar(1.0)); }},
    {"copysign", "a with the sign of b.", kFloatingSet, false, SaveBothForA,
     SlopeOf<functional::CopySignSlope>, NoSlope},
    // A step to the next number is rounding: its slope by a is 1.
    {"nextafter", "The number next to a on the way to b.", kFloatingSet, false, SaveNothing, Pass,
     NoSlope},
    {"ldexp", "a 2^b.", kFloatingSet, false, SaveForLdexp,
     [](C c) { return functional::Ldexp(c.grad(0), c.input(1)); },
     [](C c) { return functional::AddCMul(Scalar(0), c.grad(0), c.output(0), Scalar(kLog2)); }},
    {"zeta", "Hurwitz's zeta function: the sum of (b + k)^-a over k >= 0.", kFloatingSet, false,
     SaveBothForB, ZetaGradientA, ZetaGradientB},
    {"heaviside", "0 where a is below 0, b where it is 0, 1 where it is above.", kAllDTypes, false,
     SaveAForB, NoSlope, HeavisideGradientB},
    {"prelu", "a where it is positive, else a b.", kFloatingSet, false, SaveForPrelu,
     SlopeOf<functional::PreluSlopeA>, PreluGradientB},
};
// clang-format on
// Those that also have the form a += b.
constexpr std::string_view kInPlace[] = {"add",
                                         "sub",
                                         "mul",
                                         "div",
                                         "pow",
                                         "bitwise_and",
                                         "bitwise_or",
                                         "bitwise_xor",
                                         "fmod",
                                         "remainder",
                                         "floor_divide",
                                         "trunc_divide",
                                         "gcd",
                                         "lcm",
                                         "bitwise_left_shift",
                                         "bitwise_right_shift",
                                         "hypot",
                                         "atan2",
                                         "xlogy",
                                         "copysign",
                                         "nextafter",
                                         "ldexp",
                                         "heaviside"};
constexpr bool HasInPlace(const BinaryEntry& entry) {
  for (const std::string_view name : kInPlace) {
    if (name == entry.name) return true;
  }
  return false;
}

// Those of floats that take integers and bool as float32.
constexpr std::string_view kWidening[] = {"div",   "hypot",   "atan2",    "logaddexp", "logaddexp2",
                                          "xlogy", "xlog1py", "copysign", "ldexp",     "zeta"};
constexpr bool Widens(const BinaryEntry& entry) {
  for (const std::string_view name : kWidening) {
    if (name == entry.name) return true;
  }
  return false;
}

// Whether operand i is a number in the type that the other operand is computed in.
bool IsWideNumber(const InferContext& c, int i) {
  return c.shape(i).ndim() == 0 && c.input(i).device.type == DeviceType::kCPU &&
         c.dtype(i) == ComputeType(c.dtype(1 - i));
}

// bool < integers < floats
int KindOf(DType t) { return t == DType::kBool ? 0 : IsFloating(t) ? 2 : 1; }

// The dtype that the operands are promoted to: functional::ResultDType of their specs.
DType Promoted(const InferContext& c) {
  if (IsWideNumber(c, 0)) return c.dtype(1);
  if (IsWideNumber(c, 1)) return c.dtype(0);
  const bool weak[] = {c.shape(0).ndim() == 0, c.shape(1).ndim() == 0};
  if (weak[0] == weak[1]) return PromoteTypes(c.dtype(0), c.dtype(1));
  const DType strong = c.dtype(weak[0] ? 1 : 0), other = c.dtype(weak[0] ? 0 : 1);
  return KindOf(other) > KindOf(strong) ? other : strong;
}

// What the ops of an entry differ in.
struct Form {
  const BinaryEntry* entry;
  bool in_place, widens;
};

Status InferBroadcast(InferContext& c, const Form& form) {
  const BinaryEntry& entry = *form.entry;
  DType dtype = Promoted(c);
  if (form.widens && !IsFloating(dtype)) dtype = DType::kFloat32;
  if (form.in_place) {
    if (KindOf(dtype) > KindOf(c.dtype(0))) {
      return DTypeMismatch(c.op(), "the second operand", c.dtype(1), Name(c.dtype(0)));
    }
    dtype = c.dtype(0);
  }
  if (!(entry.dtypes & SetOf(dtype))) {
    return UnsupportedDType(c.op(), "an operand", dtype, "one of " + ToString(entry.dtypes));
  }
  OFL_ASSIGN_OR_RETURN(const Shape out, Broadcast(c, c.shape(0), 1, "the second operand"));
  c.SetOutput(0, out, entry.comparison ? DType::kBool : dtype);
  return OkStatus();
}

Status Backward(GradContext& c, const BinaryEntry& entry) {
  OFL_ASSIGN_OR_RETURN(const bool both, SetBothGradients(entry.name, c));
  if (both) return OkStatus();
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    OFL_ASSIGN_OR_RETURN(Tensor g, i == 0 ? entry.gradient_a(c) : entry.gradient_b(c));
    OFL_ASSIGN_OR_RETURN(g, SumToShape(g, c.spec(i).shape));
    OFL_RETURN_IF_ERROR(c.Set(i, functional::To(g, c.spec(i).device, c.spec(i).dtype)));
  }
  return OkStatus();
}

void DefineForm(OpDef& op, const Form& form) {
  const BinaryEntry& entry = *form.entry;
  op.Input("a").Input(form.in_place ? "other" : "b").Output("out");
  if (form.in_place) Overwrite(op);
  op.doc = entry.doc;
  op.scalar_operands = true;
  op.differentiable = entry.gradient_a != nullptr;
  op.infer = [form](InferContext& c) { return InferBroadcast(c, form); };
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
  op.save = [save = entry.save](const Attrs&, Needs needs) { return save(needs); };
  op.backward = [&entry](GradContext& c) { return Backward(c, entry); };
}
template <size_t kIndex, bool kInPlace>
void DefineBinary(OpDef& op) {
  constexpr const BinaryEntry& entry = kBinaryEntries[kIndex];
  DefineForm(op, {&entry, kInPlace, Widens(entry)});
}

template <size_t... I>
bool RegisterBinary(std::index_sequence<I...>) {
  return (internal::AppendOp(kBinaryEntries[I].name, DefineBinary<I, false>, __FILE__, __LINE__) &&
          ...) &&
         (internal::KeepLayout(kBinaryEntries[I].name) && ...);
}
template <size_t... I>
bool RegisterInPlace(std::index_sequence<I...>) {
  static const std::string names[] = {std::string(kBinaryEntries[I].name) + "_" ...};
  return ((!HasInPlace(kBinaryEntries[I]) ||
           internal::AppendOp(names[I].c_str(), DefineBinary<I, true>, __FILE__, __LINE__)) &&
          ...);
}
const bool binary_registered =
    RegisterBinary(std::make_index_sequence<std::size(kBinaryEntries)>()) &&
    RegisterInPlace(std::make_index_sequence<std::size(kBinaryEntries)>());

}  // namespace
}  // namespace oneflow_lite
