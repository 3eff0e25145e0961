// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of two inputs, with broadcasting and promotion, and their in-place forms; a
// 0-dim operand on the CPU may have the compute type of the other's dtype. An op is one entry:
// name, documentation, dtypes, what backward keeps, and the two gradients before they are summed
// to the inputs' shapes.
#include "functional/binary.h"

#include "functional/copy.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/broadcast.h"
#include "ops/gelu.h"
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
  const Term g{c.grad(0)}, a{c.input(0)}, b{c.input(1)};
  return (0 - g * (a / b) / b).value;
}
StatusOr<Tensor> Negated(C c) { return functional::Sub(Scalar(0), c.grad(0)); }

// Of an operand: 0 where the other one beats it, half of g where they are equal, else g, also of
// NaN.
template <StatusOr<Tensor> (*kBeats)(const Operand&, const Operand&), int kOwn>
StatusOr<Tensor> WinnersGradient(C c) {
  const Tensor &own = c.input(kOwn), &other = c.input(1 - kOwn), &g = c.grad(0);
  OFL_ASSIGN_OR_RETURN(Tensor beaten, kBeats(other, own));
  OFL_ASSIGN_OR_RETURN(Tensor equal, functional::Eq(own, other));
  OFL_ASSIGN_OR_RETURN(Tensor share, Mul(g, Scalar(0.5)));
  OFL_ASSIGN_OR_RETURN(share, functional::Where(equal, share, g));
  return functional::Where(beaten, Scalar(0), share);
}
SavePlan SaveBoth(Needs) { return {.inputs = Bit(0) | Bit(1)}; }

SavePlan SaveForPow(Needs needs) {
  return {.inputs = Bit(0) | Bit(1), .outputs = needs & Bit(1) ? Bit(0) : 0};
}
// g b a^(b - 1), and 0 where b is 0, whatever a is.
StatusOr<Tensor> PowGradientA(C c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  OFL_ASSIGN_OR_RETURN(Tensor less, functional::Sub(b, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(Tensor power, functional::Pow(a, less));
  OFL_ASSIGN_OR_RETURN(Tensor slope, Mul(b, power));
  OFL_ASSIGN_OR_RETURN(Tensor constant, functional::Eq(b, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(slope, functional::Where(constant, Scalar(0), slope));
  return Mul(c.grad(0), slope);
}
// g a^b log(a), and 0 where a is 0 and b is not negative.
StatusOr<Tensor> PowGradientB(C c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  OFL_ASSIGN_OR_RETURN(Tensor log, functional::Log(a));
  OFL_ASSIGN_OR_RETURN(Tensor slope, Mul(c.output(0), log));
  OFL_ASSIGN_OR_RETURN(Tensor zero, functional::Eq(a, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor positive, functional::Ge(b, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor flat, Mul(zero, positive));
  OFL_ASSIGN_OR_RETURN(slope, functional::Where(flat, Scalar(0), slope));
  return Mul(c.grad(0), slope);
}

constexpr DTypeSet kBits = kAllDTypes & ~kFloatingSet;

// clang-format off
constexpr BinaryEntry kBinaryEntries[] = {
    {"add", "a + b.", kAllDTypes, false, SaveNothing, Pass, Pass},
    {"sub", "a - b.", kNumericSet, false, SaveNothing, Pass, Negated},
    {"mul", "a * b.", kAllDTypes, false, SaveOther,
     [](C c) { return Mul(c.grad(0), c.input(1)); }, [](C c) { return Mul(c.grad(0), c.input(0)); }},
    {"div", "a / b.", kFloatingSet, false, SaveForDiv,
     [](C c) { return Div(c.grad(0), c.input(1)); }, DivGradientB},
    {"relu_backward", "0 where b <= 0, else a: the gradient of relu from its output b.", kFloatingSet,
     false, SaveB, [](C c) { return ReluBackward(c.grad(0), c.input(1)); },
     [](C c) { return Mul(c.grad(0), Scalar(0)); }},
    {"gelu_backward", "a times the slope of gelu at b.", kFloatingSet, false, SaveForSlope,
     [](C c) { return functional::GeluBackward(c.grad(0), c.input(1)); }, BendGradient<GeluBend>},
    {"gelu_tanh_backward", "a times the slope of gelu_tanh at b.", kFloatingSet, false,
     SaveForSlope, [](C c) { return functional::GeluTanhBackward(c.grad(0), c.input(1)); },
     BendGradient<GeluTanhBend>},
    {"maximum", "The larger of a and b; NaN where one of them is.", kAllDTypes, false, SaveBoth,
     WinnersGradient<functional::Gt, 0>, WinnersGradient<functional::Gt, 1>},
    {"minimum", "The smaller of a and b; NaN where one of them is.", kAllDTypes, false, SaveBoth,
     WinnersGradient<functional::Lt, 0>, WinnersGradient<functional::Lt, 1>},
    {"pow", "a to the power of b.", kNumericSet, false, SaveForPow, PowGradientA, PowGradientB},
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
};
// clang-format on
constexpr size_t kNumInPlace = 4;  // the first entries also have the form a += b

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

Status InferBroadcast(InferContext& c, const BinaryEntry& entry, bool in_place) {
  DType dtype = Promoted(c);
  if (entry.dtypes == kFloatingSet && !IsFloating(dtype)) dtype = DType::kFloat32;
  if (in_place) {
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
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    OFL_ASSIGN_OR_RETURN(Tensor g, i == 0 ? entry.gradient_a(c) : entry.gradient_b(c));
    OFL_ASSIGN_OR_RETURN(g, SumToShape(g, c.spec(i).shape));
    OFL_RETURN_IF_ERROR(c.Set(i, functional::To(g, c.spec(i).device, c.spec(i).dtype)));
  }
  return OkStatus();
}

template <size_t kIndex, bool kInPlace>
void DefineBinary(OpDef& op) {
  static constexpr const BinaryEntry& entry = kBinaryEntries[kIndex];
  if (kInPlace)
    op.Input("self", InputDef::Kind::kMutated).Input("other").Output("out");
  else
    op.Input("a").Input("b").Output("out");
  op.doc = entry.doc;
  op.scalar_operands = true;
  op.differentiable = entry.gradient_a != nullptr;
  op.infer = [](InferContext& c) -> Status { return InferBroadcast(c, entry, kInPlace); };
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
  op.save = [](const Attrs&, Needs needs) { return entry.save(needs); };
  op.backward = [](GradContext& c) -> Status { return Backward(c, entry); };
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
  return (internal::AppendOp(names[I].c_str(), DefineBinary<I, true>, __FILE__, __LINE__) && ...);
}
const bool binary_registered =
    RegisterBinary(std::make_index_sequence<std::size(kBinaryEntries)>()) &&
    RegisterInPlace(std::make_index_sequence<kNumInPlace>());

}  // namespace
}  // namespace oneflow_lite
