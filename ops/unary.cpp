// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input, by functional/unary_table.h, and their gradients: a formula, or
// an op of its own, <name>_backward(dy, saved), whose second derivative is a formula again.
#include "functional/unary.h"

#include <atomic>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/select.h"
#include "functional/special.h"
#include "functional/unary_table.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/broadcast.h"
#include "ops/gelu.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Cast;
using functional::Mul;

constexpr double kPi = std::numbers::pi;
constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;

struct UnaryFormula {
  const char* name;
  uint8_t save;                                        // kSaveInput ...
  StatusOr<Tensor> (*gradient)(const GradContext& c);  // of the input
};
constexpr uint8_t kSaveNothing = 0, kSaveInput = 1, kSaveOutput = 2;

// <name>_backward(dy, saved).
Term Back(const char* name, const Term& dy, const Term& saved, const Attrs& attrs = {}) {
  if (!dy.ok()) return dy;
  if (!saved.ok()) return saved;
  const StatusOr<const OpExpr*> op = FindOp(absl::StrCat(name, "_backward"));
  if (!op.ok()) return {op.status()};
  return {Call(**op, {*dy.value, *saved.value}, attrs)};
}
// Of pow_half and pow_minus_half, which are the root `name`: from its value, computed again.
StatusOr<Tensor> RootGradient(const GradContext& c, const char* name,
                              StatusOr<Tensor> (*root)(const Tensor& x)) {
  return Back(name, Term{c.grad(0)}, Apply(root, Term{c.input(0)})).value;
}

// clang-format off
constexpr UnaryFormula kUnaryFormulas[] = {
    {"neg", kSaveNothing, [](const GradContext& c) { return functional::Neg(c.grad(0)); }},
    {"exp", kSaveOutput, [](const GradContext& c) { return Mul(c.grad(0), c.output(0)); }},
    {"log", kSaveInput,
     [](const GradContext& c) { return functional::Div(c.grad(0), c.input(0)); }},
    {"relu", kSaveOutput,
     [](const GradContext& c) { return functional::ReluBackward(c.grad(0), c.output(0)); }},
    {"gelu_tanh", kSaveInput,
     [](const GradContext& c) { return functional::GeluTanhBackward(c.grad(0), c.input(0)); }},
    {"gelu", kSaveInput,
     [](const GradContext& c) { return functional::GeluBackward(c.grad(0), c.input(0)); }},
    {"pow_half", kSaveInput,
     [](const GradContext& c) { return RootGradient(c, "sqrt", functional::Sqrt); }},
    {"pow_minus_half", kSaveInput,
     [](const GradContext& c) { return RootGradient(c, "rsqrt", functional::Rsqrt); }},
    {"frac", kSaveNothing, [](const GradContext& c) -> StatusOr<Tensor> { return c.grad(0); }},
    {"deg2rad", kSaveNothing,
     [](const GradContext& c) { return Mul(c.grad(0), Scalar(kPi / 180)); }},
    {"rad2deg", kSaveNothing,
     [](const GradContext& c) { return Mul(c.grad(0), Scalar(180 / kPi)); }},
};
// clang-format on

constexpr const UnaryFormula* FormulaOf(absl::string_view name) {
  for (const UnaryFormula& formula : kUnaryFormulas) {
    if (absl::string_view(formula.name) == name) return &formula;
  }
  return nullptr;
}

// `value` where the condition holds, else y.
Term Choose(const Term& condition, const Term& value, const Term& y) {
  if (!condition.ok()) return condition;
  return Combine(value, y,
                 [&](auto& a, auto& b) { return functional::Where(*condition.value, a, b); });
}
// y, but `value` where x is 0, or nearer to it than that.
Term At0(const Term& x, const Term& value, const Term& y) {
  if (!x.ok()) return x;
  return Choose({functional::Eq(*x.value, Scalar(0))}, value, y);
}
Term Near0(const Term& x, double within, const Term& value, const Term& y) {
  const Term size = Apply(functional::Abs, x);
  if (!size.ok()) return size;
  return Choose({functional::Lt(*size.value, Scalar(within))}, value, y);
}

// Second derivatives where differences lose their digits: of I1 for |x| < kNearI1, by its series;
// of erfcx for x > kFarErfcx, by its asymptotic one.
constexpr double kNearI1 = 0.25, kFarErfcx = 24;
Term BowOfI1(const Term& x) {
  const Term s = x * x;
  Term sum = s * (11.0 / 17694720);
  for (const double c : {1.0 / 20480, 7.0 / 3072, 5.0 / 96}) sum = (sum + c) * s;
  return (sum + 3.0 / 8) * x;
}
Term BowOfErfcx(const Term& x) {
  const Term r = Apply(functional::Reciprocal, x), s = r * r;
  Term sum = s * 590.625;
  for (const double c : {-105.0, 22.5, -6.0}) sum = (sum + c) * s;
  return (sum + 2.0) * r * s * 0.56418958354775628695;
}

// The derivative of <name>_backward(dy, s) with respect to s.
struct UnaryBend {
  const char* name;
  Term (*bend)(const Term& dy, const Term& s, const Attrs& attrs);
};
using In = const Term&;
using Given = const Attrs&;

// clang-format off
constexpr UnaryBend kUnaryBends[] = {
    {"abs", [](In dy, In, Given) { return dy * 0.0; }},
    {"sqrt", [](In dy, In y, Given) { return dy / (y * y) * -0.5; }},
    {"rsqrt", [](In dy, In y, Given) { return dy * (y * y) * -1.5; }},
    {"tanh", [](In dy, In y, Given) { return dy * y * -2; }},
    {"sigmoid", [](In dy, In y, Given) { return dy * (1 - y * 2); }},
    {"square", [](In dy, In, Given) { return dy * 2; }},
    {"reciprocal", [](In dy, In y, Given) { return dy * y * -2; }},
    {"nan_to_num", [](In dy, In, Given) { return dy * 0.0; }},
    {"exp2", [](In dy, In, Given) { return dy * kLn2; }},
    {"expm1", [](In dy, In, Given) { return dy; }},
    {"log1p", [](In dy, In x, Given) { return -Back("log1p", Back("log1p", dy, x), x); }},
    {"log2", [](In dy, In x, Given) { return -Back("log2", dy, x) / x; }},
    {"log10", [](In dy, In x, Given) { return -Back("log10", dy, x) / x; }},
    {"logit", [](In dy, In x, Given a) {
       return Back("logit", Back("logit", dy, x, a), x, a) * (x * 2 + -1.0); }},
    {"sin", [](In dy, In x, Given) { return -dy * Apply(functional::Sin, x); }},
    {"cos", [](In dy, In x, Given) { return -dy * Apply(functional::Cos, x); }},
    {"tan", [](In dy, In y, Given) { return dy * y * 2; }},
    {"sinh", [](In dy, In x, Given) { return dy * Apply(functional::Sinh, x); }},
    {"cosh", [](In dy, In x, Given) { return dy * Apply(functional::Cosh, x); }},
    {"asin", [](In dy, In x, Given) { return Back("asin", dy, x) * x / (1 - x * x); }},
    {"acos", [](In dy, In x, Given) { return Back("acos", dy, x) * x / (1 - x * x); }},
    {"atan", [](In dy, In x, Given) { return Back("atan", Back("atan", dy, x), x) * x * -2; }},
    {"asinh", [](In dy, In x, Given) { return -Back("asinh", dy, x) * x / (x * x + 1); }},
    {"acosh", [](In dy, In x, Given) { return -Back("acosh", dy, x) * x / (x * x + -1.0); }},
    {"atanh", [](In dy, In x, Given) { return Back("atanh", Back("atanh", dy, x), x) * x * 2; }},
    {"erf", [](In dy, In x, Given) { return Back("erf", dy, x) * x * -2; }},
    {"erfc", [](In dy, In x, Given) { return Back("erfc", dy, x) * x * -2; }},
    {"erfinv", [](In dy, In y, Given) { return Back("erfinv", dy, y) * y * 2; }},
    // With f = sin(t) / t, t = pi x: -pi^2 f - 2 f' / x; at 0 it is -pi^2 / 3.
    {"sinc", [](In dy, In x, Given) {
       const Term bow = dy * Apply(functional::Sinc, x) * (-kPi * kPi);
       const Term far = bow - Back("sinc", dy, x) * 2 / x;
       return At0(x, dy * (-kPi * kPi / 3), far); }},
    {"lgamma", [](In dy, In x, Given) { return Back("digamma", dy, x); }},
    // I0(x) - I1(x) / x; at 0 it is 1 / 2.
    {"i0", [](In dy, In x, Given) {
       return At0(x, dy * 0.5, dy * Apply(functional::I0, x) - Back("i0", dy, x) / x); }},
    {"ndtr", [](In dy, In x, Given) { return -Back("ndtr", dy, x) * x; }},
    {"ndtri", [](In dy, In y, Given) { return Back("ndtri", dy, y) * y; }},
    {"log_ndtr", [](In dy, In x, Given) {
       const Term once = Back("log_ndtr", dy, x);
       return -once * x - Back("log_ndtr", once, x); }},
    {"entr", [](In dy, In x, Given) { return -dy / x; }},
    {"erfcx", [](In dy, In x, Given) {
       const Term near = (dy * Apply(functional::Erfcx, x) + Back("erfcx", dy, x) * x) * 2;
       return x.ok() ? Choose({functional::Gt(*x.value, Scalar(kFarErfcx))}, dy * BowOfErfcx(x),
                              near) : x; }},
    {"i0e", [](In dy, In x, Given) {
       return Back("i1e", dy, x) - Back("i0e", dy, x) * Apply(functional::Sign, x); }},
    // I1 - (I1 / x)'
    {"i1", [](In dy, In x, Given) {
       const Term i1 = dy * Apply(functional::I1, x);
       const Term far = i1 - (Back("i1", dy, x) - i1 / x) / x;
       return Near0(x, kNearI1, dy * BowOfI1(x), far); }},
    {"i1e", [](In dy, In x, Given) {
       const Term i0 = dy * Apply(functional::I0e, x), i1 = dy * Apply(functional::I1e, x);
       const Term sign = Apply(functional::Sign, x);
       const Term far = (i1 + (i1 / x + i1 * sign - i0 * 0.5) / x - i0 * sign) * 2;
       const Term near = dy * BowOfI1(x) * Apply(functional::Exp, -Apply(functional::Abs, x)) -
                         (Back("i1e", dy, x) + i1 * sign) * sign * 2 + i1;
       return At0(x, dy * -1.0, Near0(x, kNearI1, near, far)); }},
    {"polygamma", [](In dy, In x, Given a) {
       return Back("polygamma", dy, x, {a.get<double>(0) + 1}); }},
    {"mvlgamma", [](In dy, In x, Given a) {
       Term sum;
       for (int i = 0; i < a.get<double>(0); ++i) sum = sum + Back("digamma", dy, x + i * -0.5);
       return sum; }},
    // The derivative of trigamma, and so on.
    {"digamma", [](In dy, In x, Given) { return Back("polygamma", dy, x, {1.0}); }},
};
// clang-format on

constexpr const UnaryBend* BendOf(absl::string_view name) {
  for (const UnaryBend& bend : kUnaryBends) {
    if (absl::string_view(bend.name) == name) return &bend;
  }
  return nullptr;
}

constexpr DTypeSet DTypesOf(UnaryRow::Rule rule) {
  switch (rule) {
    case UnaryRow::kNumber:
      return kNumericSet;
    case UnaryRow::kTruth:
      return kAllDTypes;
    case UnaryRow::kBits:
      return kAllDTypes & ~kFloatingSet;
    default:
      return kFloatingSet;
  }
}

SavePlan PlanOf(const UnaryRow& row) {
  uint8_t save = row.gradient == UnaryRow::kFromInput    ? kSaveInput
                 : row.gradient == UnaryRow::kFromOutput ? kSaveOutput
                                                         : kSaveNothing;
  if (row.gradient == UnaryRow::kFormula) save = FormulaOf(row.name)->save;
  return {.inputs = save == kSaveInput ? Bit(0) : 0, .outputs = save == kSaveOutput ? Bit(0) : 0};
}

// <name>_backward of each row that has one, found when it is first called.
const OpExpr& BackwardOf(size_t index) {
  static std::atomic<const OpExpr*> found[kNumUnaryRows];
  const OpExpr* op = found[index].load(std::memory_order_acquire);
  if (op == nullptr) {
    op = *FindOp(absl::StrCat(kUnaryRows[index].name, "_backward"));
    found[index].store(op, std::memory_order_release);
  }
  return *op;
}

Status SetZero(GradContext& c) {  // whatever flows back: infinity times 0 is NaN
  const Tensor& dy = c.grad(0);
  return c.Set(0, functional::Zeros(dy.shape().dims(), dy.dtype(), dy.device()));
}
std::function<Status(GradContext&)> GradientOf(size_t index) {
  const UnaryRow& row = kUnaryRows[index];
  if (row.gradient == UnaryRow::kZero) return SetZero;
  if (row.gradient == UnaryRow::kFormula) {
    return [f = FormulaOf(row.name)->gradient](GradContext& c) { return c.Set(0, f(c)); };
  }
  return [index, from_input = row.gradient == UnaryRow::kFromInput](GradContext& c) {
    const Tensor& saved = from_input ? c.input(0) : c.output(0);
    return c.Set(0, Call(BackwardOf(index), {c.grad(0), saved}, c.attrs()));
  };
}

void AddAttrs(OpDef& op, const UnaryRow& row) {
  for (const char* attr : row.attrs) {
    if (attr != nullptr) op.Attr(attr, AttrType::kFloat);
  }
}

Status InferUnary(InferContext& c, bool is_float, bool truth, DTypeSet dtypes) {
  // Kernels load integers and bool as float32 where an op is for floats.
  const DType dtype = is_float && !IsFloating(c.dtype(0)) ? DType::kFloat32 : c.dtype(0);
  if (!(dtypes & SetOf(dtype))) {
    return UnsupportedDType(c.op(), "the input", dtype, "one of " + ToString(dtypes));
  }
  c.SetOutput(0, c.shape(0), truth ? DType::kBool : dtype);
  return OkStatus();
}

// Functions of a row know it by its index, so that one of each kind is compiled for all rows.
void DefineRow(OpDef& op, size_t index) {
  const UnaryRow& row = kUnaryRows[index];
  op.Input("in").Output("out");
  AddAttrs(op, row);
  op.doc = row.doc;
  op.infer = [is_float = row.rule == UnaryRow::kFloat, truth = row.rule == UnaryRow::kTruth,
              dtypes = DTypesOf(row.rule)](InferContext& c) {
    return InferUnary(c, is_float, truth, dtypes);
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.differentiable = row.gradient != UnaryRow::kNone;
  if (!op.differentiable) return;
  op.save = [plan = PlanOf(row)](const Attrs&, Needs) { return plan; };
  op.backward = GradientOf(index);
}

// g times the bend, computed as kernels do: the 16-bit floats in float32, rounded once.
StatusOr<Tensor> BendGradientOf(const GradContext& c, const UnaryBend& bend) {
  const DType dtype = c.grad(0).dtype(), wide = ComputeType(dtype);
  const Term g{Cast(c.grad(0), wide)}, dy{Cast(c.input(0), wide)}, s{Cast(c.input(1), wide)};
  OFL_ASSIGN_OR_RETURN(const Tensor product, (g * bend.bend(dy, s, c.attrs())).value);
  return Cast(product, dtype);
}

Status BackwardOfBackward(GradContext& c, size_t index) {
  if (c.needs(0)) {
    OFL_RETURN_IF_ERROR(c.Set(0, Call(BackwardOf(index), {c.grad(0), c.input(1)}, c.attrs())));
  }
  if (!c.needs(1)) return OkStatus();
  const char* name = kUnaryRows[index].name;
  const UnaryBend* bend = BendOf(name);
  if (bend == nullptr) {
    return Error(ErrorKind::kNotImplemented, name, "_backward(): saved has no gradient");
  }
  return c.Set(1, BendGradientOf(c, *bend));
}

Status InferBackward(InferContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (!(kFloatingSet & SetOf(c.dtype(i)))) {
      return UnsupportedDType(c.op(), i == 0 ? "dy" : "saved", c.dtype(i),
                              "one of " + ToString(kFloatingSet));
    }
  }
  if (c.dtype(0) != c.dtype(1)) {
    return DTypeMismatch(c.op(), "saved", c.dtype(1), Name(c.dtype(0)));
  }
  if (c.shape(0) != c.shape(1)) {
    return ShapeMismatch(c.op(), "saved", c.shape(1), c.shape(0).ToString());
  }
  c.SetOutput(0, c.shape(0), c.dtype(0));
  return OkStatus();
}

void DefineRowBackward(OpDef& op, size_t index) {
  const UnaryRow& row = kUnaryRows[index];
  op.Input("dy").Input("saved").Output("dx");
  AddAttrs(op, row);
  op.doc = absl::StrCat("dy times the slope of ", row.name, ", from its ",
                        row.gradient == UnaryRow::kFromInput ? "input." : "output.");
  op.infer = InferBackward;
  op.sbp = BroadcastSignatures;  // of two of one shape: both split alike
  op.sbp_text = "split on any dim, both alike";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = Bit(1) | (needs & Bit(1) ? Bit(0) : 0)};
  };
  op.backward = [index](GradContext& c) { return BackwardOfBackward(c, index); };
}

template <size_t kIndex>
void DefineUnary(OpDef& op) {
  constexpr const UnaryRow& row = kUnaryRows[kIndex];
  static_assert(row.gradient != UnaryRow::kFormula || FormulaOf(row.name) != nullptr,
                "the row says kFormula; kUnaryFormulas has none of its name");
  DefineRow(op, kIndex);
}
template <size_t kIndex>
void DefineUnaryBackward(OpDef& op) {
  DefineRowBackward(op, kIndex);
}

bool AppendRow(size_t index, void (*define)(OpDef&), void (*define_backward)(OpDef&)) {
  static std::string names[kNumUnaryRows];  // of the gradients' ops
  const char* name = kUnaryRows[index].name;
  bool done = true;
  if (define_backward != nullptr) {
    names[index] = absl::StrCat(name, "_backward");
    done = internal::AppendOp(names[index].c_str(), define_backward, __FILE__, __LINE__) &&
           internal::KeepLayout(names[index]);
  }
  return internal::AppendOp(name, define, __FILE__, __LINE__) && internal::KeepLayout(name) && done;
}
template <size_t kIndex>
bool RegisterRow() {
  constexpr bool kHasBackward = kUnaryRows[kIndex].gradient >= UnaryRow::kFromInput;
  if constexpr (kHasBackward) {
    return AppendRow(kIndex, DefineUnary<kIndex>, DefineUnaryBackward<kIndex>);
  } else {
    return AppendRow(kIndex, DefineUnary<kIndex>, nullptr);
  }
}
template <size_t... I>
bool RegisterUnary(std::index_sequence<I...>) {
  return (RegisterRow<I>() && ...);
}
const bool unary_registered = RegisterUnary(std::make_index_sequence<kNumUnaryRows>());

}  // namespace
}  // namespace oneflow_lite
