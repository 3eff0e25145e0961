// SPDX-License-Identifier: Apache-2.0
//
// The product of two matrices [m, k] [k, n], or of two batches of them [b, m, k] [b, k, n]; and
// linear, the product of rows with a transposed matrix, plus a bias.
#include "functional/matmul.h"

#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status InferMatmul(InferContext& c) {
  const Shape &a = c.shape(0), &b = c.shape(1);
  if (!IsFloating(c.dtype(0)) && c.dtype(1) != c.dtype(0)) {
    return Error(ErrorKind::kDType, c.op(), "(): input has dtype ", Name(c.dtype(0)), " and other ",
                 Name(c.dtype(1)), ", but both must be of one of ", kFloatingDTypes);
  }
  if (!IsFloating(c.dtype(0)))
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  if (c.dtype(1) != c.dtype(0)) return DTypeMismatch(c.op(), "other", c.dtype(1), Name(c.dtype(0)));
  const int n = a.ndim();
  if (n != 2 && n != 3) return ShapeMismatch(c.op(), "input", a, "2 or 3 dims");
  if (b.ndim() != n || a[n - 1] != b[n - 2] || (n == 3 && a[0] != b[0])) {
    Shape wanted = b.ndim() == n ? b : a;
    wanted[n - 2] = a[n - 1];
    if (n == 3) wanted[0] = a[0];
    return ShapeMismatch(c.op(), "other", b,
                         absl::StrCat(b.ndim() == n ? wanted.ToString() : absl::StrCat(n, " dims"),
                                      " to go with ", a.ToString()));
  }
  Shape out = a;
  out[n - 1] = b[n - 1];
  c.SetOutput(0, out, c.attr<bool>(0) ? ComputeType(c.dtype(0)) : c.dtype(0));
  return OkStatus();
}

SbpSignatures MatmulSignatures(const SbpContext& c) {
  SbpSignatures out;
  const int n = c.inputs[0].ndim();
  const Sbp B = Sbp::Broadcast(), row = Sbp::Split(n - 2), column = Sbp::Split(n - 1);
  if (n == 3) out.push_back({{Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(0)}});
  out.push_back({{row, B}, {row}});
  out.push_back({{B, column}, {column}});
  out.push_back({{column, row}, {Sbp::PartialSum()}});
  return out;
}

Cost MatmulCost(const InferContext& c, absl::Span<const TensorSpec> out) {
  const double k = static_cast<double>(c.shape(0)[c.shape(0).ndim() - 1]);
  const double elements = static_cast<double>(c.shape(0).numel() + c.shape(1).numel());
  const double outputs = static_cast<double>(out[0].shape.numel());
  return {.bytes = elements * SizeOf(c.dtype(0)) + outputs * SizeOf(out[0].dtype),
          .flops = 2 * outputs * k};
}

void DefineMatmul(OpDef& op) {
  op.Input("a").Input("b").Output("out");
  op.Attr("wide", AttrType::kBool, false);
  op.doc =
      "Matrix product of two matrices or of two batches of matrices; wide: of 16-bit floats in "
      "float32.";
  op.infer = InferMatmul;
  op.sbp = MatmulSignatures;
  op.sbp_text = "a by rows; b by columns; both by batch; both by the inner dim for partial sums";
  op.cost = MatmulCost;
  op.cost_text = "a and b are read once, out written once; 2 operations per output element and k";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = (needs & Bit(0) ? Bit(1) : 0) | (needs & Bit(1) ? Bit(0) : 0)};
  };
  op.backward = [](GradContext& c) -> Status {  // da = g b^T, db = a^T g
    const Tensor& given = c.needs(0) ? c.input(1) : c.input(0);
    OFL_ASSIGN_OR_RETURN(const Tensor g, functional::Cast(c.grad(0), given.dtype()));
    if (c.needs(0)) {
      OFL_ASSIGN_OR_RETURN(Tensor bt, functional::Transpose(c.input(1), -1, -2));
      OFL_RETURN_IF_ERROR(c.Set(0, functional::Matmul(g, bt)));
    }
    if (!c.needs(1)) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Tensor at, functional::Transpose(c.input(0), -1, -2));
    return c.Set(1, functional::Matmul(at, g));
  };
}

Status InferMatmulInto(InferContext& c) {
  const Shape &out = c.shape(0), &a = c.shape(1), &b = c.shape(2);
  if (!IsFloating(c.dtype(0))) return UnsupportedDType(c.op(), "self", c.dtype(0), kFloatingDTypes);
  if (a.ndim() != 2) return ShapeMismatch(c.op(), "a", a, "2 dims");
  if (b.ndim() != 2 || b[0] != a[1]) {
    return ShapeMismatch(c.op(), "b", b, absl::StrCat("[", a[1], ", n] to go with ", a.ToString()));
  }
  const Shape wanted{a[0], b[1]};
  if (out != wanted) return ShapeMismatch(c.op(), "self", out, wanted.ToString());
  if (c.has_input(3) && c.attr<bool>(0)) {
    return BadValue(c.op(), "accumulate", "True", "False beside a bias");
  }
  if (c.has_input(3) && c.shape(3) != Shape{b[1]}) {
    return ShapeMismatch(c.op(), "bias", c.shape(3), Shape{b[1]}.ToString());
  }
  constexpr const char* kNames[] = {"self", "a", "b", "bias"};
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.has_input(i) || c.dtype(i) == c.dtype(0)) continue;
    return DTypeMismatch(c.op(), kNames[i], c.dtype(i), Name(c.dtype(0)));
  }
  c.SetOutput(0, out, c.dtype(0));
  return OkStatus();
}

// For gradients, which have none of their own: their sums, and rows with room behind them.
void DefineMatmulInto(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Input("a").Input("b");
  op.Input("bias", InputDef::Kind::kOptional).Output("out");
  op.Attr("accumulate", AttrType::kBool, false);
  op.doc =
      "self = a b + bias of matrices, or self += a b. The rows of self may lie apart. No gradient.";
  op.infer = InferMatmulInto;
  op.sbp_text = "whole";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double outputs = static_cast<double>(c.shape(0).numel());
    const double read = static_cast<double>(c.shape(1).numel() + c.shape(2).numel());
    return Cost{.bytes = (read + outputs * (c.attr<bool>(0) ? 2 : 1)) * SizeOf(c.dtype(0)),
                .flops = 2 * outputs * static_cast<double>(c.shape(1)[1])};
  };
  op.cost_text = "a and b are read once, self is written once, and read where the product is added";
}

Status InferLinear(InferContext& c) {
  const Shape &x = c.shape(0), &weight = c.shape(1);
  if (!IsFloating(c.dtype(0)))
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  if (c.dtype(1) != c.dtype(0)) {
    return DTypeMismatch(c.op(), "input", c.dtype(0),
                         absl::StrCat(Name(c.dtype(1)), " as the weight"));
  }
  if (weight.ndim() != 2) return ShapeMismatch(c.op(), "weight", weight, "2 dims");
  if (x.ndim() == 0 || x[x.ndim() - 1] != weight[1]) {
    return ShapeMismatch(
        c.op(), "input", x,
        absl::StrCat("a last dim of ", weight[1], " to go with the weight's ", weight.ToString()));
  }
  if (c.has_input(2)) {
    if (c.dtype(2) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "bias", c.dtype(2), absl::StrCat(Name(c.dtype(0))));
    }
    const Shape wanted{weight[0]};
    if (c.shape(2) != wanted) return ShapeMismatch(c.op(), "bias", c.shape(2), wanted.ToString());
  }
  Shape out = x;
  out[x.ndim() - 1] = weight[0];
  c.SetOutput(0, out, c.dtype(0));
  return OkStatus();
}

SbpSignatures LinearSignatures(const SbpContext& c) {
  SbpSignatures out;
  const int last = c.inputs[0].ndim() - 1;
  const Sbp B = Sbp::Broadcast(), P = Sbp::PartialSum();
  for (int d = 0; d < last; ++d) out.push_back({{Sbp::Split(d), B, B}, {Sbp::Split(d)}});
  out.push_back({{B, Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(last)}});
  out.push_back({{Sbp::Split(last), Sbp::Split(1), P}, {P}});
  return out;
}

Cost LinearCost(const InferContext& c, absl::Span<const TensorSpec> out) {
  double elements = static_cast<double>(out[0].shape.numel());
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.has_input(i)) elements += static_cast<double>(c.shape(i).numel());
  }
  const double outputs = static_cast<double>(out[0].shape.numel());
  return {.bytes = elements * SizeOf(c.dtype(0)),
          .flops = 2 * outputs * static_cast<double>(c.shape(1)[1])};
}

// dx = g weight, dweight = g^T x, dbias = g, the last two summed over the rows. dweight comes out
// as the weight lies, so that it becomes .grad without a copy.
Status LinearGradients(GradContext& c) {
  if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, functional::Matmul(c.grad(0), c.input(1))));
  if (!c.needs(1) && !c.needs(2)) return OkStatus();
  const Tensor& g = c.grad(0);
  const int last = g.ndim() - 1;
  const int64_t outputs = g.shape()[last];
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= g.shape()[d];
  OFL_ASSIGN_OR_RETURN(Tensor gradient, functional::Reshape(g, {rows, outputs}));
  if (c.needs(1)) {
    const Tensor& input = c.input(0);
    const int64_t features = input.shape()[input.ndim() - 1];
    OFL_ASSIGN_OR_RETURN(Tensor x, functional::Reshape(input, {rows, features}));
    OFL_ASSIGN_OR_RETURN(Tensor columns, functional::Transpose(gradient, 0, 1));
    OFL_RETURN_IF_ERROR(c.Set(1, functional::Matmul(columns, x)));
  }
  return c.needs(2) ? c.Set(2, functional::Sum(gradient, Dims{0})) : OkStatus();
}

void DefineLinear(OpDef& op) {
  op.Input("input").Input("weight").Input("bias", InputDef::Kind::kOptional).Output("out");
  op.doc = "input [..., in] times weight [out, in] transposed, plus bias [out].";
  op.infer = InferLinear;
  op.sbp = LinearSignatures;
  op.sbp_text =
      "input by any leading dim; weight and bias by outputs; input and weight by the inner dim for "
      "partial sums";
  op.cost = LinearCost;
  op.cost_text = "inputs are read once, out written once; 2 operations per output element and in";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = (needs & Bit(0) ? Bit(1) : 0) | (needs & Bit(1) ? Bit(0) : 0)};
  };
  op.backward = LinearGradients;
}

OFL_REGISTER_OP("matmul", DefineMatmul);
OFL_REGISTER_OP("matmul_into_", DefineMatmulInto);
OFL_REGISTER_OP("linear", DefineLinear);

}  // namespace
}  // namespace oneflow_lite
