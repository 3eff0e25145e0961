// SPDX-License-Identifier: Apache-2.0
//
// The product of two matrices [m, k] [k, n], or of two batches of them [b, m, k] [b, k, n].
#include "functional/matmul.h"

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
  c.SetOutput(0, out, c.dtype(0));
  return OkStatus();
}

void MatmulSignatures(const SbpContext& c, std::vector<SbpSignature>* out) {
  const int n = c.inputs[0].ndim();
  const Sbp B = Sbp::Broadcast(), row = Sbp::Split(n - 2), column = Sbp::Split(n - 1);
  if (n == 3) out->push_back({{Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(0)}});
  out->push_back({{row, B}, {row}});
  out->push_back({{B, column}, {column}});
  out->push_back({{column, row}, {Sbp::PartialSum()}});
}

Cost MatmulCost(const InferContext& c, absl::Span<const TensorSpec> out) {
  const double k = static_cast<double>(c.shape(0)[c.shape(0).ndim() - 1]);
  const double elements = static_cast<double>(c.shape(0).numel() + c.shape(1).numel());
  const double outputs = static_cast<double>(out[0].shape.numel());
  return {.bytes = (elements + outputs) * SizeOf(c.dtype(0)), .flops = 2 * outputs * k};
}

void DefineMatmul(OpDef& op) {
  op.Input("a").Input("b").Output("out");
  op.doc = "Matrix product of two matrices or of two batches of matrices.";
  op.infer = InferMatmul;
  op.sbp = MatmulSignatures;
  op.sbp_text = "a by rows; b by columns; both by batch; both by the inner dim for partial sums";
  op.cost = MatmulCost;
  op.cost_text = "a and b are read once, out written once; 2 operations per output element and k";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = (needs & Bit(0) ? Bit(1) : 0) | (needs & Bit(1) ? Bit(0) : 0)};
  };
  op.backward = [](GradContext& c) -> Status {  // da = g b^T, db = a^T g
    if (c.needs(0)) {
      OFL_ASSIGN_OR_RETURN(Tensor bt, functional::Transpose(c.input(1), -1, -2));
      OFL_RETURN_IF_ERROR(c.Set(0, functional::Matmul(c.grad(0), bt)));
    }
    if (!c.needs(1)) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Tensor at, functional::Transpose(c.input(0), -1, -2));
    return c.Set(1, functional::Matmul(at, c.grad(0)));
  };
}

OFL_REGISTER_OP("matmul", DefineMatmul);

}  // namespace
}  // namespace oneflow_lite
