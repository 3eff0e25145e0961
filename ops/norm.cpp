// SPDX-License-Identifier: Apache-2.0
#include "ops/norm.h"

#include <algorithm>
#include <cmath>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/layer_norm.h"
#include "functional/rms_norm.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "ops/norm_terms.h"

namespace oneflow_lite {
namespace {

using functional::kGradBias;
using functional::kGradWeight;
using functional::kGradX;
using functional::NormGradients;

// Attributes; 0 is the axis.
constexpr int kEps = 1, kMemoryEfficient = 2, kStatistics = 3, kWanted = 1;

// Where the tensors of a forward op stand; -1: it has none. x is input 0, the residual input 1, y
// output 0.
struct Places {
  int weight, bias, sum, mean, rstd;

  explicit Places(NormKind k)
      : weight(1 + k.residual),
        bias(k.centred ? 2 + k.residual : -1),
        sum(k.residual ? 1 : -1),
        mean(k.centred ? 1 + k.residual : -1),
        rstd(1 + k.residual + k.centred) {}
};

// ---- Inference ----

Shape ColumnShape(const Shape& x, int axis) {
  return Shape(absl::MakeConstSpan(x.dims()).subspan(axis));
}
// Of mean and rstd: the normalised dims stay as size 1.
Shape RowShape(const Shape& x, int axis) {
  Shape s = x;
  for (int d = axis; d < s.ndim(); ++d) s[d] = 1;
  return s;
}

Status CheckAxis(const InferContext& c, int* axis) {
  const int ndim = c.shape(0).ndim();
  if (ndim == 0) return ShapeMismatch(c.op(), "input", c.shape(0), "at least 1 dim");
  const int64_t given = c.attr<int64_t>(0);
  if (given < -ndim || given >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): axis ", given, " is out of range [", -ndim, ", ",
                 ndim - 1, "] for shape ", c.shape(0).ToString());
  }
  *axis = WrapNormAxis(c.attrs(), ndim);
  return OkStatus();
}

Status CheckLike(const InferContext& c, int i, const char* name, const Shape& shape, DType dtype) {
  if (!c.has_input(i)) return OkStatus();
  if (c.shape(i) != shape) return ShapeMismatch(c.op(), name, c.shape(i), shape.ToString());
  if (c.dtype(i) != dtype) return DTypeMismatch(c.op(), name, c.dtype(i), Name(dtype));
  return OkStatus();
}

// weight and bias: of the columns' shape and x's dtype or float32, both of one dtype.
Status CheckColumns(const InferContext& c, int weight, int bias, int axis) {
  const Shape columns = ColumnShape(c.shape(0), axis);
  for (const int i : {weight, bias}) {
    if (i < 0 || !c.has_input(i)) continue;
    const char* name = i == weight ? "weight" : "bias";
    const DType x = c.dtype(0);
    if (c.dtype(i) != x && c.dtype(i) != DType::kFloat32) {
      const char* or_float32 = x == DType::kFloat32 ? "" : " or float32";
      return DTypeMismatch(c.op(), name, c.dtype(i), absl::StrCat(Name(x), or_float32));
    }
    const bool both = i == bias && c.has_input(weight);
    OFL_RETURN_IF_ERROR(CheckLike(c, i, name, columns, c.dtype(both ? weight : i)));
  }
  return OkStatus();
}

Status InferForward(InferContext& c, NormKind kind) {
  const Places at(kind);
  const Shape& x = c.shape(0);
  const DType dtype = c.dtype(0);
  if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "input", dtype, kFloatingDTypes);
  int axis;
  OFL_RETURN_IF_ERROR(CheckAxis(c, &axis));
  if (kind.residual) OFL_RETURN_IF_ERROR(CheckLike(c, 1, "residual", x, dtype));
  OFL_RETURN_IF_ERROR(CheckColumns(c, at.weight, at.bias, axis));
  // One below 0 is taken, as in PyTorch: it leaves NaN in rows of less variance.
  if (const double eps = c.attr<double>(kEps); std::isnan(eps)) {
    return BadValue(c.op(), "eps", absl::StrCat(eps), "a number");
  }
  c.SetOutput(0, x, dtype);
  if (kind.residual) c.SetOutput(at.sum, x, dtype);
  const Shape rows = c.attr<bool>(kStatistics) ? RowShape(x, axis) : Shape{0};
  if (kind.centred) c.SetOutput(at.mean, rows, ComputeType(dtype));
  c.SetOutput(at.rstd, rows, ComputeType(dtype));
  return OkStatus();
}

// An output that is not wanted has no elements.
Status InferBackward(InferContext& c, NormKind kind) {
  using I = NormBackwardInputs;
  const Shape& dy = c.shape(I::kDy);
  const DType dtype = c.dtype(I::kDy);
  if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "dy", dtype, kFloatingDTypes);
  int axis;
  OFL_RETURN_IF_ERROR(CheckAxis(c, &axis));
  if (c.has_input(I::kX) == c.has_input(I::kY)) {
    return Error(ErrorKind::kValue, c.op(), "(): either x or y must be given");
  }
  if (kind.centred && c.has_input(I::kX) && !c.has_input(I::kMean)) {
    return Error(ErrorKind::kValue, c.op(), "(): x needs its mean");
  }
  const Shape rows = RowShape(dy, axis);
  OFL_RETURN_IF_ERROR(CheckLike(c, I::kRstd, "rstd", rows, ComputeType(dtype)));
  OFL_RETURN_IF_ERROR(CheckLike(c, I::kX, "x", dy, dtype));
  OFL_RETURN_IF_ERROR(CheckLike(c, I::kY, "y", dy, dtype));
  OFL_RETURN_IF_ERROR(CheckLike(c, I::kDSum, "dsum", dy, dtype));
  OFL_RETURN_IF_ERROR(CheckColumns(c, I::kWeight, kind.centred ? I::kBias : -1, axis));
  if (kind.centred) {
    OFL_RETURN_IF_ERROR(CheckLike(c, I::kMean, "mean", rows, ComputeType(dtype)));
  }
  const int64_t wanted = c.attr<int64_t>(kWanted);
  const int64_t possible = kGradX | (c.has_input(I::kWeight) ? kGradWeight : 0) |
                           (kind.centred && c.has_input(I::kBias) ? kGradBias : 0);
  if (wanted & ~possible) {
    return BadValue(c.op(), "wanted", absl::StrCat(wanted), absl::StrCat("bits of ", possible));
  }
  const Shape none{0}, columns = ColumnShape(dy, axis);
  c.SetOutput(0, wanted & kGradX ? dy : none, dtype);
  const DType weight = c.has_input(I::kWeight) ? c.dtype(I::kWeight) : dtype;
  c.SetOutput(1, wanted & kGradWeight ? columns : none, weight);
  if (kind.centred) {
    const DType bias = c.has_input(I::kBias) ? c.dtype(I::kBias) : weight;
    c.SetOutput(2, wanted & kGradBias ? columns : none, bias);
  }
  return OkStatus();
}

// ---- SBP and cost ----

// Split on a dim that is not normalised; weight and bias, bits of `columns` among the inputs, are
// whole everywhere. Outputs from `partial` on (their gradients) are summands.
struct NormSbp {
  int inputs, columns, outputs, partial;

  SbpSignatures operator()(const SbpContext& c) const {
    SbpSignatures signatures;
    const int axis = WrapNormAxis(c.attrs, c.inputs[0].ndim());
    for (int d = 0; d < axis; ++d) {
      SbpSignature s;
      for (int i = 0; i < inputs; ++i) {
        s.inputs.push_back(columns >> i & 1 ? Sbp::Broadcast() : Sbp::Split(d));
      }
      for (int i = 0; i < outputs; ++i) {
        s.outputs.push_back(i < partial ? Sbp::Split(d) : Sbp::PartialSum());
      }
      signatures.push_back(std::move(s));
    }
    return signatures;
  }
};

// Every tensor moves once; `flops` for each element.
Cost CostPerElement(const InferContext& c, absl::Span<const TensorSpec> outputs, double flops) {
  Cost cost{.flops = flops * static_cast<double>(c.shape(0).numel())};
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.has_input(i)) continue;
    cost.bytes += static_cast<double>(c.shape(i).numel()) * SizeOf(c.dtype(i));
  }
  for (const TensorSpec& out : outputs) {
    cost.bytes += static_cast<double>(out.shape.numel()) * SizeOf(out.dtype);
  }
  return cost;
}

// ---- Gradient ----

bool NeedsX(Needs needs, NormKind kind) { return needs & (Bit(0) | (kind.residual ? Bit(1) : 0)); }

// The gradient of bias alone needs nothing but dy.
SavePlan Save(const Attrs& attrs, Needs needs, NormKind kind) {
  const Places at(kind);
  SavePlan plan;
  if (!NeedsX(needs, kind) && !(needs & Bit(at.weight))) return plan;
  const bool from_y = attrs.get<bool>(kMemoryEfficient);
  plan.inputs = Bit(at.weight);
  if (kind.centred && (from_y || (needs & Bit(at.bias)))) plan.inputs |= Bit(at.bias);
  plan.outputs = Bit(at.rstd);
  if (from_y) {
    plan.outputs |= Bit(0);
  } else {
    (kind.residual ? plan.outputs : plan.inputs) |= kind.residual ? Bit(at.sum) : Bit(0);
    if (kind.centred) plan.outputs |= Bit(at.mean);
  }
  return plan;
}

// What flowed back to mean and rstd, as a gradient of x. With x_hat and the number of columns n,
// dmean/dx = 1 / n and drstd/dx = -rstd^2 x_hat / n.
Term ThroughStatistics(const GradContext& c, NormKind kind,
                       const functional::NormGradientInputs& in) {
  const Places at(kind);
  const Term dmean{kind.centred ? c.grad(at.mean) : Tensor()}, drstd{c.grad(at.rstd)};
  if (dmean.nothing() && drstd.nothing()) return {};
  const Shape& shape = c.spec(0).shape;
  const int axis = WrapNormAxis(c.attrs(), shape.ndim());
  const double scale = 1 / static_cast<double>(ColumnShape(shape, axis).numel());
  Term x_hat;
  if (!drstd.nothing()) {
    const NormTerms terms(in);
    x_hat = terms.x_hat * (terms.rstd * terms.rstd * drstd);
  }
  return As(dmean * scale - x_hat * scale, c.spec(0).dtype, shape);
}

StatusOr<NormGradients> Backward(const GradContext& c, NormKind kind,
                                 const functional::NormGradientInputs& in) {
  const Places at(kind);
  const int axis = WrapNormAxis(c.attrs(), c.spec(0).shape.ndim());
  int64_t wanted = c.needs(at.weight) ? kGradWeight : 0;
  if (kind.centred && c.needs(at.bias)) wanted |= kGradBias;
  if (c.needs(0) || (kind.residual && c.needs(1))) wanted |= kGradX;
  if (!in.dy.defined()) return NormGradients{.dx = wanted & kGradX ? in.dsum : Tensor()};
  if (wanted == kGradBias) {
    const TensorSpec& bias = c.spec(at.bias);
    OFL_ASSIGN_OR_RETURN(Tensor dy, functional::Cast(in.dy, bias.dtype));
    OFL_ASSIGN_OR_RETURN(Tensor dbias, functional::SumToShape(dy, bias.shape));
    return NormGradients{.dbias = dbias};
  }
  return kind.centred ? functional::LayerNormBackward(in, axis, wanted)
                      : functional::RmsNormBackward(in, axis, wanted);
}

Status Gradient(GradContext& c, NormKind kind) {
  const Places at(kind);
  functional::NormGradientInputs in{.dy = c.grad(0), .rstd = c.output(at.rstd)};
  if (c.attr<bool>(kMemoryEfficient)) {
    in.y = c.output(0);
  } else {
    in.x = kind.residual ? c.output(at.sum) : c.input(0);
    if (kind.centred) in.mean = c.output(at.mean);
  }
  in.weight = c.input(at.weight);
  if (kind.centred) in.bias = c.input(at.bias);
  if (kind.residual) in.dsum = c.grad(at.sum);
  OFL_ASSIGN_OR_RETURN(NormGradients grads, Backward(c, kind, in));
  if (c.needs(0) || (kind.residual && c.needs(1))) {
    const Term dx = Term{grads.dx} + ThroughStatistics(c, kind, in);
    if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, dx.value));
    if (kind.residual && c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, dx.value));
  }
  if (c.needs(at.weight)) OFL_RETURN_IF_ERROR(c.Set(at.weight, grads.dweight));
  if (kind.centred && c.needs(at.bias)) OFL_RETURN_IF_ERROR(c.Set(at.bias, grads.dbias));
  return OkStatus();
}

}  // namespace

void DefineNorm(OpDef& op, NormKind kind) {
  const Places at(kind);
  op.Input("x");
  if (kind.residual) op.Input("residual");
  op.Input("weight", InputDef::Kind::kOptional);
  if (kind.centred) op.Input("bias", InputDef::Kind::kOptional);
  op.Output("y");
  if (kind.residual) op.Output("sum");
  if (kind.centred) op.Output("mean");
  op.Output("rstd");
  op.Attr("axis", AttrType::kInt, int64_t{-1}).Attr("eps", AttrType::kFloat, 1e-5);
  op.Attr("memory_efficient", AttrType::kBool, false).Attr("statistics", AttrType::kBool, true);
  op.infer = [kind](InferContext& c) { return InferForward(c, kind); };
  const int outputs = static_cast<int>(op.outputs.size());
  const int columns = 1 << at.weight | (kind.centred ? 1 << at.bias : 0);
  const NormSbp split{static_cast<int>(op.inputs.size()), columns, outputs, outputs};
  op.sbp = [split, always = 1 + kind.residual](const SbpContext& c) {
    SbpSignatures signatures = split(c);
    if (c.attrs.get<bool>(kStatistics)) return signatures;
    for (SbpSignature& s : signatures) {
      std::fill(s.outputs.begin() + always, s.outputs.end(), Sbp::Broadcast());
    }
    return signatures;
  };
  op.sbp_text = "split on a dim that is not normalised, weight and bias whole";
  // Centre, square, add up; scale, weigh, shift.
  op.cost = [kind](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    return CostPerElement(c, outputs, (kind.centred ? 8 : 4) + kind.residual);
  };
  op.cost_text = absl::StrCat("every tensor moves once; ", (kind.centred ? 8 : 4) + kind.residual,
                              " operations per element");
  op.save = [kind](const Attrs& attrs, Needs needs) { return Save(attrs, needs, kind); };
  op.backward = [kind](GradContext& c) { return Gradient(c, kind); };
}

void DefineNormBackward(OpDef& op, NormKind kind) {
  constexpr auto kOptional = InputDef::Kind::kOptional;
  op.Input("dy").Input("rstd").Input("x", kOptional).Input("y", kOptional);
  op.Input("weight", kOptional).Input("dsum", kOptional);
  if (kind.centred) op.Input("bias", kOptional).Input("mean", kOptional);
  op.Output("dx").Output("dweight");
  if (kind.centred) op.Output("dbias");
  op.Attr("axis", AttrType::kInt, int64_t{-1}).Attr("wanted", AttrType::kInt, kGradX);
  op.infer = [kind](InferContext& c) { return InferBackward(c, kind); };
  const int columns = 1 << NormBackwardInputs::kWeight | 1 << NormBackwardInputs::kBias;
  op.sbp = NormSbp{static_cast<int>(op.inputs.size()), columns, static_cast<int>(op.outputs.size()),
                   /*partial=*/1};
  op.sbp_text =
      "split on a dim that is not normalised, weight and bias whole, their gradients partial sums";
  op.cost = [kind](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    return CostPerElement(c, outputs, kind.centred ? 15 : 11);
  };
  op.cost_text =
      absl::StrCat("every tensor moves once; ", kind.centred ? 15 : 11, " operations per element");
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(8) - 1}; };
  op.backward = [kind](GradContext& c) { return NormSecondOrder(c, kind); };
}

}  // namespace oneflow_lite
