// SPDX-License-Identifier: Apache-2.0
#include "functional/nll_loss.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/cross_entropy_rows.h"
#include "functional/reduce.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

Status CheckReduction(const char* op, absl::string_view reduction) {
  if (reduction == "none" || reduction == "sum" || reduction == "mean") return OkStatus();
  return BadValue(op, "reduction", absl::StrCat("\"", reduction, "\""),
                  "\"none\", \"sum\" or \"mean\"");
}

StatusOr<NllRows> NllLossRows(const Tensor& logp, const Tensor& target, const Tensor& weight,
                              int64_t ignore_index) {
  static const OpExpr& op = OpBuilder("nll_loss")
                                .Input("logp")
                                .Input("target")
                                .Input("weight")
                                .Output("loss")
                                .Output("row_weight")
                                .Attr("ignore_index")
                                .Get();
  const bool narrow = IsIntegral(target.dtype()) && target.dtype() != DType::kInt64;
  OFL_ASSIGN_OR_RETURN(Tensor wide, narrow ? Cast(target, DType::kInt64) : target);
  const Tensor inputs[] = {logp, wide, weight};
  OFL_ASSIGN_OR_RETURN(TensorList out, CallAll(op, inputs, {ignore_index}));
  return NllRows{out[0], out[1], wide};
}

StatusOr<Tensor> ReducedLoss(const Tensor& loss, const Tensor& weight,
                             absl::string_view reduction) {
  if (reduction == "none") return loss;
  // A sum that overflows may have a mean that does not.
  const DType wide = ComputeType(loss.dtype());
  OFL_ASSIGN_OR_RETURN(Tensor value, Sum(loss, {}, /*keepdim=*/false, wide));
  if (reduction == "mean") {
    OFL_ASSIGN_OR_RETURN(Tensor count, Sum(weight, {}, /*keepdim=*/false, wide));
    OFL_ASSIGN_OR_RETURN(value, Div(value, count));
  }
  return Cast(value, loss.dtype());
}

StatusOr<Tensor> NllLoss(const Tensor& logp, const Tensor& target, const Tensor& weight,
                         int64_t ignore_index, absl::string_view reduction) {
  OFL_RETURN_IF_ERROR(CheckReduction("nll_loss", reduction));
  OFL_ASSIGN_OR_RETURN(NllRows rows, NllLossRows(logp, target, weight, ignore_index));
  const Tensor& loss = rows.loss;
  if (reduction != "none" && !weight.defined() && loss.ndim() == 1 &&
      loss.dtype() == ComputeType(loss.dtype()) && loss.numel() <= kRowsOfOneBlock) {
    return ReducedRows(loss, reduction == "mean" ? rows.target : Tensor(), ignore_index,
                       loss.dtype());
  }
  return ReducedLoss(loss, rows.weight, reduction);
}

OFL_REGISTER_FUNCTION(
    "nll_loss(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    "str reduction='mean') -> Tensor",
    NllLoss, kFunction,
    "Negative log likelihood of log-probabilities [N, C, ...] at integer targets [N, ...].");

}  // namespace oneflow_lite::functional
