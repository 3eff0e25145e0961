// SPDX-License-Identifier: Apache-2.0
#include "functional/adam.h"

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

Status AdamStep(const AdamLists& lists, const AdamOptions& options) {
  static const OpExpr& op = OpBuilder("adam_")
                                .Input("lr_tensor")
                                .Input("grad_scale")
                                .Input("found_inf")
                                .Input("tensors")
                                .Attr("lr")
                                .Attr("beta1")
                                .Attr("beta2")
                                .Attr("eps")
                                .Attr("weight_decay")
                                .Attr("decoupled")
                                .Attr("maximize")
                                .Attr("step")
                                .Get();
  if (lists.params.empty()) return BadValue("adam_", "params", "an empty list", "tensors");
  Tensor alone[] = {options.lr_tensor, options.grad_scale, options.found_inf};
  if (alone[0].defined()) {
    OFL_ASSIGN_OR_RETURN(alone[0], Cast(alone[0], DType::kFloat64));
  }
  OFL_ASSIGN_OR_RETURN(const TensorList inputs,
                       JoinLists(op.def(), alone,
                                 {lists.params, lists.grads, lists.exp_avgs, lists.exp_avg_sqs,
                                  lists.max_exp_avg_sqs, lists.masters, lists.steps}));
  return CallAll(op, inputs,
                 {options.lr, options.beta1, options.beta2, options.eps, options.weight_decay,
                  options.decoupled, options.maximize, options.step})
      .status();
}

namespace {

StatusOr<TensorList> AdamFunction(absl::Span<const Tensor> params, absl::Span<const Tensor> grads,
                                  absl::Span<const Tensor> exp_avgs,
                                  absl::Span<const Tensor> exp_avg_sqs,
                                  absl::Span<const Tensor> max_exp_avg_sqs,
                                  absl::Span<const Tensor> masters, absl::Span<const Tensor> steps,
                                  double lr, double beta1, double beta2, double eps,
                                  double weight_decay, bool decoupled, bool maximize, int64_t step,
                                  const Tensor& lr_tensor, const Tensor& grad_scale,
                                  const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(
      AdamStep({params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, masters, steps},
               {lr, beta1, beta2, eps, weight_decay, decoupled, maximize, step, lr_tensor,
                grad_scale, found_inf}));
  return TensorList(params.begin(), params.end());
}

}  // namespace

OFL_REGISTER_ADAPTER(
    "adam_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] max_exp_avg_sqs, Tensor[] masters, Tensor[] steps, *, float lr=0.001, "
    "float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0.0, "
    "bool decoupled=False, bool maximize=False, int step=1, Tensor? lr_tensor=None, "
    "Tensor? grad_scale=None, Tensor? found_inf=None) -> Tensor[]",
    AdamFunction, AdamStep, kFunction,
    "A step of Adam, of AdamW where decoupled, on all parameters at once; optim.AdamW calls it. "
    "The lists have one length; the last three may be empty.");

}  // namespace oneflow_lite::functional
