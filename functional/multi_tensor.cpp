// SPDX-License-Identifier: Apache-2.0
#include "functional/multi_tensor.h"

#include "functional/argument_names.h"
#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

using Lists = std::initializer_list<Tensors>;

const OpExpr& Expr(const char* name, std::initializer_list<const char*> attrs) {
  OpBuilder op(name);
  op.Input("lr_tensor").Input("scale").Input("found_inf").Input("tensors");
  for (const char* attr : attrs) op.Attr(attr);
  return op.Get();
}

Status Run(const OpExpr& op, Lists lists, const Attrs& attrs, const StepNumbers& numbers = {}) {
  if (lists.begin()->empty()) {
    return BadValue(op.def().name, op.def().lists[0].name, "an empty list", "tensors");
  }
  Tensor alone[] = {numbers.lr_tensor, numbers.grad_scale, numbers.found_inf};
  if (alone[0].defined()) {
    OFL_ASSIGN_OR_RETURN(alone[0], Cast(alone[0], DType::kFloat64));
  }
  OFL_ASSIGN_OR_RETURN(const TensorList inputs, JoinLists(op.def(), alone, lists));
  return CallAll(op, inputs, attrs).status();
}

TensorList ListOf(Tensors tensors) { return TensorList(tensors.begin(), tensors.end()); }

}  // namespace

Status SgdStep(Tensors params, Tensors grads, Tensors momentum_buffers, Tensors masters,
               const SgdOptions& o, const StepNumbers& numbers) {
  static const OpExpr& op = Expr(
      "sgd_", {"lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "first"});
  return Run(op, {params, grads, momentum_buffers, masters},
             {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, o.maximize, o.first},
             numbers);
}

Status RmspropStep(Tensors params, Tensors grads, Tensors square_avgs, Tensors grad_avgs,
                   Tensors momentum_buffers, Tensors masters, Tensors steps,
                   const RmspropOptions& o, const StepNumbers& numbers) {
  static const OpExpr& op =
      Expr("rmsprop_", {"lr", "alpha", "eps", "weight_decay", "momentum", "maximize"});
  return Run(op, {params, grads, square_avgs, grad_avgs, momentum_buffers, masters, steps},
             {o.lr, o.alpha, o.eps, o.weight_decay, o.momentum, o.maximize}, numbers);
}

Status AdadeltaStep(Tensors params, Tensors grads, Tensors square_avgs, Tensors acc_deltas,
                    Tensors masters, Tensors steps, const AdadeltaOptions& o,
                    const StepNumbers& numbers) {
  static const OpExpr& op = Expr("adadelta_", {"lr", "rho", "eps", "weight_decay", "maximize"});
  return Run(op, {params, grads, square_avgs, acc_deltas, masters, steps},
             {o.lr, o.rho, o.eps, o.weight_decay, o.maximize}, numbers);
}

Status AdagradStep(Tensors params, Tensors grads, Tensors sums, Tensors masters, Tensors steps,
                   const AdagradOptions& o, const StepNumbers& numbers) {
  static const OpExpr& op =
      Expr("adagrad_", {"lr", "lr_decay", "eps", "weight_decay", "maximize", "step"});
  return Run(op, {params, grads, sums, masters, steps},
             {o.lr, o.lr_decay, o.eps, o.weight_decay, o.maximize, o.step}, numbers);
}

Status LionStep(Tensors params, Tensors grads, Tensors exp_avgs, Tensors masters,
                const LionOptions& o, const StepNumbers& numbers) {
  static const OpExpr& op = Expr("lion_", {"lr", "beta1", "beta2", "weight_decay", "maximize"});
  return Run(op, {params, grads, exp_avgs, masters},
             {o.lr, o.beta1, o.beta2, o.weight_decay, o.maximize}, numbers);
}

Status MultiLerp(Tensors tensors, Tensors ends, double weight) {
  static const OpExpr& op = Expr("multi_lerp_", {"weight"});
  return Run(op, {tensors, ends}, {weight});
}
Status MultiScale(Tensors tensors, double factor, const Tensor& scale) {
  static const OpExpr& op = Expr("multi_scale_", {"factor"});
  return Run(op, {tensors}, {factor}, {.grad_scale = scale});
}
Status MultiClamp(Tensors tensors, double least, double most) {
  static const OpExpr& op = Expr("multi_clamp_", {"least", "most"});
  return Run(op, {tensors}, {least, most});
}
Status MultiFill(Tensors tensors, double value) {
  static const OpExpr& op = Expr("multi_fill_", {"value"});
  return Run(op, {tensors}, {value});
}
Status MultiUnscale(Tensors tensors, Tensors flags, const Tensor& scale) {
  static const OpExpr& op = Expr("multi_unscale_", {});
  return Run(op, {tensors, flags}, {}, {.grad_scale = scale});
}

Status UpdateScale(const Tensor& scale, const Tensor& found_inf, const Tensor& growth_count,
                   double growth, double backoff, int64_t interval) {
  static const OpExpr& op = Expr("update_scale_", {"growth", "backoff", "interval"});
  const Tensor given[] = {scale, found_inf, growth_count};
  const Tensors all = given;
  Status s = Run(op, {all.subspan(0, 1), all.subspan(1, 1), all.subspan(2, 1)},
                 {growth, backoff, static_cast<double>(interval)});
  for (const char* name : {"scale", "found_inf", "growth_count"}) {  // the op has lists of them
    if (!s.ok()) s = WithArgument(s, absl::StrCat(name, "s[0]"), name);
    if (!s.ok()) s = WithArgument(s, absl::StrCat(name, "s"), name);
  }
  return s;
}

StatusOr<Tensor> MultiNorm(Tensors tensors, double p) {
  static const OpExpr& op = OpBuilder("multi_norm").Input("tensors").Output("out").Attr("p").Get();
  if (tensors.empty()) return BadValue("multi_norm", "tensors", "an empty list", "tensors");
  for (const Tensor& t : tensors) {
    if (!t.defined()) return NotDefined("multi_norm", "tensors");
  }
  return Call(op, tensors, {p});
}

namespace {

StatusOr<TensorList> SgdFunction(Tensors params, Tensors grads, Tensors momentum_buffers,
                                 Tensors masters, double lr, double momentum, double dampening,
                                 double weight_decay, bool nesterov, bool maximize, bool first,
                                 const Tensor& lr_tensor, const Tensor& grad_scale,
                                 const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(SgdStep(params, grads, momentum_buffers, masters,
                              {lr, momentum, dampening, weight_decay, nesterov, maximize, first},
                              {lr_tensor, grad_scale, found_inf}));
  return ListOf(params);
}
StatusOr<TensorList> RmspropFunction(Tensors params, Tensors grads, Tensors square_avgs,
                                     Tensors grad_avgs, Tensors momentum_buffers, Tensors masters,
                                     Tensors steps, double lr, double alpha, double eps,
                                     double weight_decay, double momentum, bool maximize,
                                     const Tensor& lr_tensor, const Tensor& grad_scale,
                                     const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(RmspropStep(params, grads, square_avgs, grad_avgs, momentum_buffers, masters,
                                  steps, {lr, alpha, eps, weight_decay, momentum, maximize},
                                  {lr_tensor, grad_scale, found_inf}));
  return ListOf(params);
}
StatusOr<TensorList> AdadeltaFunction(Tensors params, Tensors grads, Tensors square_avgs,
                                      Tensors acc_deltas, Tensors masters, Tensors steps, double lr,
                                      double rho, double eps, double weight_decay, bool maximize,
                                      const Tensor& lr_tensor, const Tensor& grad_scale,
                                      const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(AdadeltaStep(params, grads, square_avgs, acc_deltas, masters, steps,
                                   {lr, rho, eps, weight_decay, maximize},
                                   {lr_tensor, grad_scale, found_inf}));
  return ListOf(params);
}
StatusOr<TensorList> AdagradFunction(Tensors params, Tensors grads, Tensors sums, Tensors masters,
                                     Tensors steps, double lr, double lr_decay, double eps,
                                     double weight_decay, bool maximize, int64_t step,
                                     const Tensor& lr_tensor, const Tensor& grad_scale,
                                     const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(AdagradStep(params, grads, sums, masters, steps,
                                  {lr, lr_decay, eps, weight_decay, maximize, step},
                                  {lr_tensor, grad_scale, found_inf}));
  return ListOf(params);
}
StatusOr<TensorList> LionFunction(Tensors params, Tensors grads, Tensors exp_avgs, Tensors masters,
                                  double lr, double beta1, double beta2, double weight_decay,
                                  bool maximize, const Tensor& lr_tensor, const Tensor& grad_scale,
                                  const Tensor& found_inf) {
  OFL_RETURN_IF_ERROR(LionStep(params, grads, exp_avgs, masters,
                               {lr, beta1, beta2, weight_decay, maximize},
                               {lr_tensor, grad_scale, found_inf}));
  return ListOf(params);
}
StatusOr<TensorList> LerpFunction(Tensors tensors, Tensors ends, double weight) {
  OFL_RETURN_IF_ERROR(MultiLerp(tensors, ends, weight));
  return ListOf(tensors);
}
StatusOr<TensorList> ScaleFunction(Tensors tensors, double factor, const Tensor& scale) {
  OFL_RETURN_IF_ERROR(MultiScale(tensors, factor, scale));
  return ListOf(tensors);
}
StatusOr<TensorList> ClampFunction(Tensors tensors, double least, double most) {
  OFL_RETURN_IF_ERROR(MultiClamp(tensors, least, most));
  return ListOf(tensors);
}
StatusOr<TensorList> FillFunction(Tensors tensors, double value) {
  OFL_RETURN_IF_ERROR(MultiFill(tensors, value));
  return ListOf(tensors);
}
StatusOr<TensorList> UnscaleFunction(Tensors tensors, Tensors flags, const Tensor& scale) {
  OFL_RETURN_IF_ERROR(MultiUnscale(tensors, flags, scale));
  return ListOf(tensors);
}
StatusOr<Tensor> UpdateFunction(const Tensor& scale, const Tensor& found_inf,
                                const Tensor& growth_count, double growth, double backoff,
                                int64_t interval) {
  OFL_RETURN_IF_ERROR(UpdateScale(scale, found_inf, growth_count, growth, backoff, interval));
  return scale;
}

}  // namespace

#define OFL_STEP_NUMBERS \
  "Tensor? lr_tensor=None, Tensor? grad_scale=None, Tensor? found_inf=None) -> Tensor[]"

OFL_REGISTER_ADAPTER(
    "sgd_(Tensor[] params, Tensor[] grads, Tensor[] momentum_buffers, Tensor[] masters, *, "
    "float lr=0.001, float momentum=0.0, float dampening=0.0, float weight_decay=0.0, "
    "bool nesterov=False, bool maximize=False, bool first=False, " OFL_STEP_NUMBERS,
    SgdFunction, SgdStep, kFunction,
    "A step of gradient descent on all parameters at once; optim.SGD calls it. The last two lists "
    "may be empty; first: the buffers hold nothing yet.");
OFL_REGISTER_ADAPTER(
    "rmsprop_(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] grad_avgs, "
    "Tensor[] momentum_buffers, Tensor[] masters, Tensor[] steps, *, float lr=0.01, "
    "float alpha=0.99, float eps=1e-08, float weight_decay=0.0, float momentum=0.0, "
    "bool maximize=False, " OFL_STEP_NUMBERS,
    RmspropFunction, RmspropStep, kFunction,
    "A step of RMSprop on all parameters at once; optim.RMSprop calls it. The last four lists may "
    "be "
    "empty.");
OFL_REGISTER_ADAPTER(
    "adadelta_(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] acc_deltas, "
    "Tensor[] masters, Tensor[] steps, *, float lr=1.0, float rho=0.9, float eps=1e-06, "
    "float weight_decay=0.0, bool maximize=False, " OFL_STEP_NUMBERS,
    AdadeltaFunction, AdadeltaStep, kFunction,
    "A step of Adadelta on all parameters at once; optim.Adadelta calls it. The last two lists may "
    "be empty.");
OFL_REGISTER_ADAPTER(
    "adagrad_(Tensor[] params, Tensor[] grads, Tensor[] sums, Tensor[] masters, Tensor[] steps, *, "
    "float lr=0.01, float lr_decay=0.0, float eps=1e-10, float weight_decay=0.0, "
    "bool maximize=False, int step=1, " OFL_STEP_NUMBERS,
    AdagradFunction, AdagradStep, kFunction,
    "A step of Adagrad on all parameters at once; optim.Adagrad calls it. The last two lists may "
    "be "
    "empty.");
OFL_REGISTER_ADAPTER(
    "lion_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] masters, *, "
    "float lr=0.0001, float beta1=0.9, float beta2=0.99, float weight_decay=0.0, "
    "bool maximize=False, " OFL_STEP_NUMBERS,
    LionFunction, LionStep, kFunction,
    "A step of Lion on all parameters at once; optim.Lion calls it. masters may be empty.");
OFL_REGISTER_ADAPTER("multi_lerp_(Tensor[] tensors, Tensor[] ends, float weight) -> Tensor[]",
                     LerpFunction, MultiLerp, kFunction,
                     "Moves each tensor by weight towards the one at the same place of ends.");
OFL_REGISTER_ADAPTER("multi_scale_(Tensor[] tensors, float factor, Tensor? scale=None) -> Tensor[]",
                     ScaleFunction, MultiScale, kFunction,
                     "All tensors times a factor, and times a 0-dim float32 tensor.");
OFL_REGISTER_ADAPTER("multi_clamp_(Tensor[] tensors, float least, float most) -> Tensor[]",
                     ClampFunction, MultiClamp, kFunction,
                     "Brings the elements of all tensors between two numbers.");
OFL_REGISTER_ADAPTER("multi_fill_(Tensor[] tensors, float value) -> Tensor[]", FillFunction,
                     MultiFill, kFunction, "Sets all elements of all tensors to a value.");
OFL_REGISTER_ADAPTER(
    "multi_unscale_(Tensor[] tensors, Tensor[] flags, Tensor? scale=None) -> Tensor[]",
    UnscaleFunction, MultiUnscale, kFunction,
    "Divides all tensors by scale; where an element is not finite, its tensor's flag (0-dim "
    "float32; all may be one) becomes 1.");
OFL_REGISTER_ADAPTER(
    "update_scale_(Tensor scale, Tensor found_inf, Tensor growth_count, float growth=2.0, "
    "float backoff=0.5, int interval=2000) -> Tensor",
    UpdateFunction, UpdateScale, kFunction,
    "The scale of a loss after a step: smaller where found_inf is above 0, larger after as many "
    "steps without as the interval has; amp.GradScaler calls it.");
OFL_REGISTER_FUNCTION("multi_norm(Tensor[] tensors, float p=2.0) -> Tensor", MultiNorm, kFunction,
                      "The p-norm of each of many tensors, in one tensor.");

}  // namespace oneflow_lite::functional
