// SPDX-License-Identifier: Apache-2.0
//
// The activations, their forms in place, and the ops of their gradients. An op is one entry: name,
// documentation, dtypes, attributes, when its output suffices for backward, the op of its gradient.
// That has one entry too: its attributes are the first ones of the activation's.
#include "functional/activation.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/in_place.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using C = const GradContext&;

// ---- The ops of the gradients: dy times the slope at x ----

// The slope's own slope at x, of the compute type.
using Bend = Term (*)(const Attrs& attrs, const Term& x);

using Comparison = StatusOr<Tensor> (*)(const Operand&, const Operand&);
// 1 where the comparison of x and the number holds, else 0.
template <Comparison kHolds>
Term Where(const Term& x, double number) {
  if (!x.ok()) return x;
  const StatusOr<Tensor> mask = kHolds(*x.value, Scalar(number));
  return {mask.ok() ? functional::Cast(*mask, x.value->dtype()) : mask};
}

Term SiluBend(const Attrs&, const Term& given) {
  const Term x = Within(1000, given);
  const Term s = Apply(functional::Sigmoid, x), rest = Apply(functional::Sigmoid, -x);
  return s * rest * (x * (rest - s) + 2);
}
// With t = tanh(log(1 + e^x)), s = 1 / (1 + e^-x): s (1 - t^2) (2 + x (1 - s - 2 t s)).
Term MishBend(const Attrs&, const Term& given) {
  const Term x = Within(1000, given);
  const Term s = Apply(functional::Sigmoid, x), rest = Apply(functional::Sigmoid, -x);
  const Term t = Apply(functional::Tanh, -Apply(functional::LogSigmoid, -x));
  return s * (1 - t * t) * (x * (rest - t * s * 2) + 2);
}
Term HardswishBend(const Attrs&, const Term& x) {
  return Where<functional::Lt>(Apply(functional::Abs, x), 3) * (1.0 / 3);
}
// a c^2 exp(c x) up to 0.
Term EluBend(const Attrs& attrs, const Term& x) {
  const double a = attrs.get<double>(0), c = attrs.get<double>(2);
  const auto lowered = [](const Tensor& t) { return functional::Minimum(t, Scalar(0.0)); };
  const Term low = Apply(+lowered, x);  // the exp of what is above may be infinite
  return Where<functional::Le>(x, 0) * Apply(functional::Exp, low * c) * (a * c * c);
}
// Of y: c up to 0.
Term EluBendOfOutput(const Attrs& attrs, const Term& y) {
  return Where<functional::Le>(y, 0) * attrs.get<double>(2);
}
Term SoftplusBend(const Attrs& attrs, const Term& x) {
  const Term z = x * attrs.get<double>(0);
  const Term bend = Apply(functional::Sigmoid, z) * Apply(functional::Sigmoid, -z);
  return Where<functional::Le>(z, attrs.get<double>(1)) * bend * attrs.get<double>(0);
}
Term LogSigmoidBend(const Attrs&, const Term& x) {
  return -(Apply(functional::Sigmoid, x) * Apply(functional::Sigmoid, -x));
}
// -2 sign(x) / (1 + |x|)^3
Term SoftsignBend(const Attrs&, const Term& x) {
  const Term sum = Apply(functional::Abs, x) + 1;
  return (Where<functional::Lt>(x, 0) * 4 + -2) / (sum * sum * sum);
}
Term TanhshrinkBend(const Attrs&, const Term& x) {
  const Term t = Apply(functional::Tanh, x);
  return t * (1 - t * t) * 2;
}

struct SlopeEntry {
  const char* name;
  const char* doc;
  const char* attrs[3];
  Bend bend;  // null: 0
};

// clang-format off
constexpr SlopeEntry kSlopes[] = {
    {"silu_backward", "dy times the slope of silu at x.", {}, SiluBend},
    {"mish_backward", "dy times the slope of mish at x.", {}, MishBend},
    {"hardswish_backward", "dy times the slope of hardswish at x.", {}, HardswishBend},
    {"hardsigmoid_backward", "dy / 6 where |x| < 3, else 0.", {}, nullptr},
    {"hardtanh_backward", "dy where x is between the bounds, else 0; of the result it is the same.",
     {"min_val", "max_val"}, nullptr},
    {"leaky_relu_backward", "dy where x > 0, else negative_slope times it.", {"negative_slope"},
     nullptr},
    {"elu_backward", "dy times scale where x > 0, else alpha input_scale exp(input_scale x).",
     {"alpha", "scale", "input_scale"}, EluBend},
    {"elu_backward_of_output", "As elu_backward, of the result x: (x + alpha) input_scale.",
     {"alpha", "scale", "input_scale"}, EluBendOfOutput},
    {"softplus_backward", "dy / (1 + exp(-beta x)), and dy where beta x > threshold.",
     {"beta", "threshold"}, SoftplusBend},
    {"logsigmoid_backward", "dy / (1 + exp(x)).", {}, LogSigmoidBend},
    {"softsign_backward", "dy / (1 + |x|)^2.", {}, SoftsignBend},
    {"tanhshrink_backward", "dy tanh(x)^2.", {}, TanhshrinkBend},
    {"shrink_backward", "dy where |x| > lambd, else 0.", {"lambd"}, nullptr},
    {"threshold_backward", "dy where x > threshold, else 0.", {"threshold"}, nullptr},
};
// clang-format on

constexpr int SlopeOf(std::string_view name) {
  int i = 0;
  while (kSlopes[i].name != name) ++i;
  return i;
}
int NumAttrs(const SlopeEntry& entry) {
  return static_cast<int>(std::count_if(std::begin(entry.attrs), std::end(entry.attrs),
                                        [](const char* name) { return name != nullptr; }));
}

// The op of an entry, found when it is first called.
const OpExpr& SlopeOp(int slope) {
  static std::atomic<const OpExpr*> found[std::size(kSlopes)];
  const OpExpr* op = found[slope].load(std::memory_order_acquire);
  if (op == nullptr) {
    OpBuilder builder(kSlopes[slope].name);
    builder.Input("dy").Input("x").Output("dx");
    for (int i = 0; i < NumAttrs(kSlopes[slope]); ++i) builder.Attr(kSlopes[slope].attrs[i]);
    op = &builder.Get();
    found[slope].store(op, std::memory_order_release);
  }
  return *op;
}
// dy times the slope at x, by the op; its attributes are the first of `attrs`.
StatusOr<Tensor> CallSlope(int slope, const Tensor& dy, const Tensor& x, const Attrs& attrs) {
  Attrs numbers;
  for (int i = 0; i < NumAttrs(kSlopes[slope]); ++i) {
    const Scalar* scalar = std::get_if<Scalar>(&attrs[i]);
    numbers.push_back(scalar ? AttrValue(scalar->to<double>()) : attrs[i]);
  }
  return Call(SlopeOp(slope), {dy, x}, numbers);
}

Status InferSlope(InferContext& c) {
  if (!(kFloatingSet & SetOf(c.dtype(0)))) {
    return UnsupportedDType(c.op(), "dy", c.dtype(0), "one of " + ToString(kFloatingSet));
  }
  if (c.dtype(1) != c.dtype(0)) {
    return DTypeMismatch(c.op(), "x", c.dtype(1), Name(c.dtype(0)));
  }
  if (c.shape(1) != c.shape(0)) {
    return ShapeMismatch(c.op(), "x", c.shape(1), c.shape(0).ToString());
  }
  c.SetOutput(0, c.shape(0), c.dtype(0));
  return OkStatus();
}

// g dy bend(x), computed as kernels do: the 16-bit floats in float32, rounded once.
StatusOr<Tensor> BendGradient(C c, Bend bend) {
  const TensorSpec& x = c.spec(1);
  if (!bend) return functional::Zeros(x.shape.dims(), x.dtype, x.device);
  const DType wide = ComputeType(x.dtype);
  const Term g{functional::Cast(c.grad(0), wide)}, dy{functional::Cast(c.input(0), wide)};
  const Term at{functional::Cast(c.input(1), wide)};
  OFL_ASSIGN_OR_RETURN(const Tensor product, (g * dy * bend(c.attrs(), at)).value);
  return functional::Cast(product, x.dtype);
}

// Functions of an entry know it by its index, so that one of each kind is compiled for all.
void DefineSlopeAt(OpDef& op, int slope) {
  const SlopeEntry& entry = kSlopes[slope];
  op.Input("dy").Input("x").Output("dx");
  for (int i = 0; i < NumAttrs(entry); ++i) op.Attr(entry.attrs[i], AttrType::kFloat);
  op.doc = entry.doc;
  op.infer = InferSlope;
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.save = [bends = entry.bend != nullptr](const Attrs&, Needs needs) {
    const bool both = (needs & Bit(1)) != 0 && bends;
    return SavePlan{.inputs = (both ? Bit(0) : 0) | (both || (needs & Bit(0)) ? Bit(1) : 0)};
  };
  op.backward = [slope](GradContext& c) -> Status {
    if (c.needs(0)) {
      OFL_RETURN_IF_ERROR(c.Set(0, CallSlope(slope, c.grad(0), c.input(1), c.attrs())));
    }
    return c.needs(1) ? c.Set(1, BendGradient(c, kSlopes[slope].bend)) : OkStatus();
  };
}
template <int kSlope>
void DefineSlope(OpDef& op) {
  DefineSlopeAt(op, kSlope);
}

// ---- The activations ----

struct AttrEntry {
  const char* name = nullptr;
  AttrType type = AttrType::kFloat;
};

// Whether backward can do with the output, which it then keeps.
using OutputSuffices = bool (*)(const Attrs& attrs, bool in_place);
bool Never(const Attrs&, bool) { return false; }
// The input is kept where there is one, as in PyTorch: the result may be changed in place then.
bool InPlace(const Attrs&, bool in_place) { return in_place; }
// A result that is not positive comes from what is not.
bool InPlaceOfSlopeNotBelow0(const Attrs& a, bool in_place) {
  return in_place && a.get<double>(0) >= 0;
}
bool InPlaceOfValueBelow(const Attrs& a, bool in_place) {
  return in_place && a.get<Scalar>(1).to<double>() <= 0 && a.get<Scalar>(0).to<double>() >= 0;
}
// The output has lost digits that the slope far below 0 needs; in place there is nothing better.
bool InPlaceOfAlphaNotBelow0(const Attrs& a, bool in_place) {
  return in_place && a.get<double>(0) >= 0;
}

struct ActivationEntry {
  const char* name;
  const char* doc;
  DTypeSet dtypes;
  AttrEntry attrs[3];
  OutputSuffices output_suffices;
  int slope;
  bool in_place = false;  // there is a form that overwrites the input
  int slope_of_output = slope;
};

constexpr AttrType kScalar = AttrType::kScalar;
// clang-format off
constexpr ActivationEntry kActivations[] = {
    {"silu", "x / (1 + exp(-x)) of each element.", kFloatingSet, {}, Never,
     SlopeOf("silu_backward"), true},
    {"mish", "x tanh(log(1 + exp(x))) of each element.", kFloatingSet, {}, Never,
     SlopeOf("mish_backward"), true},
    {"hardswish", "x times its hardsigmoid.", kFloatingSet, {}, Never,
     SlopeOf("hardswish_backward"), true},
    {"hardsigmoid", "(x + 3) / 6, not below 0 and not above 1.", kFloatingSet, {}, Never,
     SlopeOf("hardsigmoid_backward"), true},
    {"hardtanh", "Each element, not below min_val and not above max_val.", kNumericSet,
     {{"min_val", kScalar}, {"max_val", kScalar}}, InPlace, SlopeOf("hardtanh_backward"), true},
    {"leaky_relu", "x where x > 0, else negative_slope times it.", kFloatingSet,
     {{"negative_slope"}}, InPlaceOfSlopeNotBelow0, SlopeOf("leaky_relu_backward"), true},
    {"elu", "x scale where x > 0, else alpha (exp(input_scale x) - 1).", kFloatingSet,
     {{"alpha"}, {"scale"}, {"input_scale"}}, InPlaceOfAlphaNotBelow0, SlopeOf("elu_backward"),
     true, SlopeOf("elu_backward_of_output")},
    {"softplus", "log(1 + exp(beta x)) / beta, and x where beta x > threshold.", kFloatingSet,
     {{"beta"}, {"threshold"}}, Never, SlopeOf("softplus_backward")},
    {"logsigmoid", "-log(1 + exp(-x)) of each element.", kFloatingSet, {}, Never,
     SlopeOf("logsigmoid_backward")},
    {"softsign", "x / (1 + |x|) of each element.", kFloatingSet, {}, Never,
     SlopeOf("softsign_backward")},
    {"tanhshrink", "x - tanh(x) of each element.", kFloatingSet, {}, Never,
     SlopeOf("tanhshrink_backward")},
    {"softshrink", "Each element moved by lambd towards 0, and 0 where that passes it.",
     kFloatingSet, {{"lambd"}}, Never, SlopeOf("shrink_backward")},
    {"hardshrink", "x where |x| > lambd, else 0.", kFloatingSet, {{"lambd"}}, Never,
     SlopeOf("shrink_backward")},
    {"threshold", "x where x > threshold, else value.", kNumericSet,
     {{"threshold", kScalar}, {"value", kScalar}}, InPlaceOfValueBelow,
     SlopeOf("threshold_backward"), true},
};
// clang-format on

void DefineForm(OpDef& op, const ActivationEntry& entry, bool in_place) {
  op.Input("x").Output("y");
  if (in_place) Overwrite(op);
  for (const AttrEntry& attr : entry.attrs) {
    if (attr.name) op.Attr(attr.name, attr.type);
  }
  op.doc = entry.doc;
  op.infer = [&entry, in_place](InferContext& c) -> Status {
    // Kernels load integers and bool as float32 where an op is for floats.
    const bool widened = !in_place && entry.dtypes == kFloatingSet && !IsFloating(c.dtype(0));
    const DType dtype = widened ? DType::kFloat32 : c.dtype(0);
    if (!(entry.dtypes & SetOf(dtype))) {
      return UnsupportedDType(c.op(), "the input", dtype, "one of " + ToString(entry.dtypes));
    }
    c.SetOutput(0, c.shape(0), dtype);
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.save = [suffices = entry.output_suffices, in_place](const Attrs& attrs, Needs) {
    const bool output = suffices(attrs, in_place);
    return SavePlan{.inputs = output ? 0 : Bit(0), .outputs = output ? Bit(0) : 0};
  };
  op.backward = [&entry](GradContext& c) -> Status {
    const bool of_output = c.output(0).defined();
    return c.Set(0, CallSlope(of_output ? entry.slope_of_output : entry.slope, c.grad(0),
                              of_output ? c.output(0) : c.input(0), c.attrs()));
  };
}
template <int kIndex, bool kInPlace>
void DefineActivation(OpDef& op) {
  DefineForm(op, kActivations[kIndex], kInPlace);
}

template <int... I>
bool RegisterSlopes(std::integer_sequence<int, I...>) {
  return (internal::AppendOp(kSlopes[I].name, DefineSlope<I>, __FILE__, __LINE__) && ...) &&
         (internal::KeepLayout(kSlopes[I].name) && ...);
}
template <int kIndex>
bool RegisterActivation() {
  static const std::string in_place = std::string(kActivations[kIndex].name) + "_";
  bool done = internal::AppendOp(kActivations[kIndex].name, DefineActivation<kIndex, false>,
                                 __FILE__, __LINE__) &&
              internal::KeepLayout(kActivations[kIndex].name);
  if constexpr (kActivations[kIndex].in_place) {
    done =
        internal::AppendOp(in_place.c_str(), DefineActivation<kIndex, true>, __FILE__, __LINE__) &&
        done;
  }
  return done;
}
template <int... I>
bool RegisterActivations(std::integer_sequence<int, I...>) {
  return (RegisterActivation<I>() && ...);
}
const bool activations_registered =
    RegisterSlopes(std::make_integer_sequence<int, static_cast<int>(std::size(kSlopes))>()) &&
    RegisterActivations(
        std::make_integer_sequence<int, static_cast<int>(std::size(kActivations))>());

}  // namespace
}  // namespace oneflow_lite
