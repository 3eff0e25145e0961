// SPDX-License-Identifier: Apache-2.0
#include "functional/loss.h"

#include <cmath>
#include <numbers>
#include <string>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// The operands of a loss, and what it is called.
struct LossCall {
  const char* name;
  LossFormula formula;
  Tensor x, t, p = {};
};

// Of one dtype and, but for p, of one shape.
Status Prepare(LossCall* c) {
  if (!c->x.defined()) return NotDefined(c->name, "input");
  if (!c->t.defined()) return NotDefined(c->name, "target");
  DType dtype = PromoteTypes(c->x.dtype(), c->t.dtype());
  if (c->p.defined()) dtype = PromoteTypes(dtype, c->p.dtype());
  if (!IsFloating(dtype)) dtype = DType::kFloat32;
  for (Tensor* t : {&c->x, &c->t, &c->p}) {
    if (!t->defined() || t->dtype() == dtype) continue;
    OFL_ASSIGN_OR_RETURN(*t, Cast(*t, dtype));
  }
  if (c->x.shape() == c->t.shape()) return OkStatus();
  const Shape shapes[] = {c->x.shape(), c->t.shape()};
  const StatusOr<Shape> shape = CommonShape(c->name, absl::MakeConstSpan(shapes));
  if (!shape.ok()) {
    return Error(ErrorKind::kShape, c->name, "(): target has shape ", shapes[1].ToString(),
                 ", input ", shapes[0].ToString(), ": they do not broadcast");
  }
  for (Tensor* t : {&c->x, &c->t}) {
    if (t->shape() == *shape) continue;
    OFL_ASSIGN_OR_RETURN(*t, Expand(*t, *shape));
  }
  return OkStatus();
}

// p as the op takes it: the last dims of x, or x's shape.
Status FitThird(LossCall* c) {
  Dims own = c->p.shape().dims();
  while (!own.empty() && own.front() == 1) own.erase(own.begin());
  const Dims& whole = c->x.shape().dims();
  const bool suffix =
      own.size() <= whole.size() && std::equal(own.rbegin(), own.rend(), whole.rbegin());
  StatusOr<Tensor> p = suffix ? Reshape(c->p, own) : Expand(c->p, whole);
  if (!p.ok()) return Renamed(c->name, p.status());
  c->p = *std::move(p);
  return OkStatus();
}

StatusOr<Tensor> RunLoss(LossCall c, absl::string_view reduction) {
  static const OpExpr& op = OpBuilder("loss")
                                .Input("x")
                                .Input("t")
                                .Input("p")
                                .Output("y")
                                .Attr("kind")
                                .Attr("reduction")
                                .Attr("a")
                                .Attr("b")
                                .Get();
  OFL_RETURN_IF_ERROR(CheckReduction(c.name, reduction));
  OFL_RETURN_IF_ERROR(Prepare(&c));
  if (c.p.defined()) OFL_RETURN_IF_ERROR(FitThird(&c));
  StatusOr<Tensor> y =
      Call(op, {c.x, c.t, c.p},
           {std::string(c.formula.kind), std::string(reduction), c.formula.a, c.formula.b});
  return y.ok() ? y : Renamed(c.name, y.status());
}

// Each loss times its weight, reduced. The mean is over the weights' sum, or over the elements.
StatusOr<Tensor> RunWeighted(const LossCall& c, const Tensor& weight, absl::string_view reduction,
                             bool over_weights) {
  if (!weight.defined()) return RunLoss(c, reduction);
  OFL_RETURN_IF_ERROR(CheckReduction(c.name, reduction));
  OFL_ASSIGN_OR_RETURN(Tensor loss, RunLoss(c, "none"));
  StatusOr<Tensor> weighted = Mul(loss, weight);
  if (!weighted.ok()) return Renamed(c.name, weighted.status());
  if (reduction == "none") return weighted;
  // A sum of 16 bits that overflows may have a mean that does not.
  const DType dtype = weighted->dtype(), wide = ComputeType(dtype);
  if (reduction == "mean" && !over_weights) return Mean(*weighted);
  OFL_ASSIGN_OR_RETURN(Tensor total, Sum(*weighted, {}, /*keepdim=*/false, wide));
  if (reduction == "mean") {
    OFL_ASSIGN_OR_RETURN(const Tensor weights, Sum(weight, {}, /*keepdim=*/false, wide));
    OFL_ASSIGN_OR_RETURN(total, Div(total, weights));
  }
  return Cast(total, dtype);
}

Status CheckSameShape(const char* name, const char* argument, const Tensor& t, const Tensor& x) {
  if (!x.defined()) return NotDefined(name, "input");
  if (!t.defined()) return NotDefined(name, argument);
  if (t.shape() == x.shape()) return OkStatus();
  return ShapeMismatch(name, argument, t.shape(), x.shape().ToString());
}
Status CheckWeight(const char* name, const Tensor& weight, const Tensor& x) {
  return weight.defined() ? CheckSameShape(name, "weight", weight, x) : OkStatus();
}

// On the CPU alone: a GPU would have to be waited for.
Status CheckRange(const char* name, const char* argument, const Tensor& t, double least,
                  double most, const char* allowed) {
  if (!IsInHostMemory(t) || !ChecksValues(t)) return OkStatus();
  const Tensor values = t.Detach();
  OFL_ASSIGN_OR_RETURN(const Tensor low, Amin(values));
  OFL_ASSIGN_OR_RETURN(const Tensor high, Amax(values));
  OFL_ASSIGN_OR_RETURN(const double from, ValueOf<double>(name, low));
  OFL_ASSIGN_OR_RETURN(const double to, ValueOf<double>(name, high));
  if (from >= least && to <= most) return OkStatus();
  return Error(ErrorKind::kValue, name, "(): ", argument, " has elements from ", from, " to ", to,
               ", but they must be ", allowed);
}

}  // namespace

StatusOr<Tensor> MseLoss(const Tensor& x, const Tensor& target, absl::string_view reduction,
                         const Tensor& weight) {
  OFL_RETURN_IF_ERROR(CheckWeight("mse_loss", weight, x));
  return RunWeighted({"mse_loss", {"mse"}, x, target}, weight, reduction, true);
}
StatusOr<Tensor> L1Loss(const Tensor& x, const Tensor& target, absl::string_view reduction,
                        const Tensor& weight) {
  OFL_RETURN_IF_ERROR(CheckWeight("l1_loss", weight, x));
  return RunWeighted({"l1_loss", {"l1"}, x, target}, weight, reduction, true);
}
StatusOr<Tensor> SmoothL1Loss(const Tensor& x, const Tensor& target, absl::string_view reduction,
                              double beta) {
  if (!(beta >= 0)) {
    return Error(ErrorKind::kValue, "smooth_l1_loss(): beta is ", beta,
                 ", but it must not be negative");
  }
  const char* kind = beta == 0 ? "l1" : "smooth_l1";
  return RunLoss({"smooth_l1_loss", {kind, beta}, x, target}, reduction);
}
StatusOr<Tensor> HuberLoss(const Tensor& x, const Tensor& target, absl::string_view reduction,
                           double delta, const Tensor& weight) {
  if (!(delta > 0)) return BadValue("huber_loss", "delta", absl::StrCat(delta), "positive");
  OFL_RETURN_IF_ERROR(CheckWeight("huber_loss", weight, x));
  return RunWeighted({"huber_loss", {"huber", delta}, x, target}, weight, reduction, false);
}

StatusOr<Tensor> KlDiv(const Tensor& x, const Tensor& target, absl::string_view reduction,
                       bool log_target) {
  const LossCall call = {"kl_div", {log_target ? "kl_div_log" : "kl_div"}, x, target};
  if (reduction != "batchmean") return RunLoss(call, reduction);
  OFL_ASSIGN_OR_RETURN(const Tensor sum, RunLoss(call, "sum"));
  return x.ndim() == 0 ? StatusOr<Tensor>(sum)
                       : Div(sum, Scalar(static_cast<double>(x.shape()[0])));
}

StatusOr<Tensor> BinaryCrossEntropy(const Tensor& x, const Tensor& target, const Tensor& weight,
                                    absl::string_view reduction) {
  constexpr char kName[] = "binary_cross_entropy";
  OFL_RETURN_IF_ERROR(CheckSameShape(kName, "target", target, x));
  OFL_RETURN_IF_ERROR(CheckRange(kName, "input", x, 0, 1, "in [0, 1]"));
  OFL_RETURN_IF_ERROR(CheckRange(kName, "target", target, 0, 1, "in [0, 1]"));
  OFL_ASSIGN_OR_RETURN(const Tensor t, IsFloating(x.dtype()) ? Cast(target, x.dtype()) : target);
  return RunWeighted({kName, {"bce"}, x, t}, weight, reduction, false);
}

StatusOr<Tensor> BinaryCrossEntropyWithLogits(const Tensor& x, const Tensor& target,
                                              const Tensor& weight, absl::string_view reduction,
                                              const Tensor& pos_weight) {
  constexpr char kName[] = "binary_cross_entropy_with_logits";
  OFL_RETURN_IF_ERROR(CheckSameShape(kName, "target", target, x));
  return RunWeighted({kName, {"bce_with_logits"}, x, target, pos_weight}, weight, reduction, false);
}

StatusOr<Tensor> PoissonNllLoss(const Tensor& x, const Tensor& target, bool log_input, bool full,
                                double eps, absl::string_view reduction) {
  const LossFormula formula = {log_input ? "poisson_nll_log" : "poisson_nll", eps,
                               full ? 1.0 : 0.0};
  return RunLoss({"poisson_nll_loss", formula, x, target}, reduction);
}

StatusOr<Tensor> GaussianNllLoss(const Tensor& x, const Tensor& target, const Operand& variance,
                                 bool full, double eps, absl::string_view reduction) {
  constexpr char kName[] = "gaussian_nll_loss";
  if (!(eps > 0)) return BadValue(kName, "eps", absl::StrCat(eps), "positive");
  if (!x.defined()) return NotDefined(kName, "input");
  const auto* number = std::get_if<Scalar>(&variance);
  const StatusOr<Tensor> made =
      number ? Full({}, *number, x.dtype(), x.device()) : std::get<Tensor>(variance);
  OFL_ASSIGN_OR_RETURN(const Tensor var, made);
  if (!var.defined()) return NotDefined(kName, "var");
  OFL_RETURN_IF_ERROR(CheckRange(kName, "var", var, 0, HUGE_VAL, "at least 0"));
  Tensor v = var;
  Dims rows = x.shape().dims();
  if (!rows.empty()) rows.pop_back();
  if (var.ndim() > 0 && var.shape() != x.shape() && var.shape().dims() == rows) {
    OFL_ASSIGN_OR_RETURN(v, Unsqueeze(var, -1));
  }
  const double constant = full ? 0.5 * std::log(2 * std::numbers::pi) : 0.0;
  return RunLoss({kName, {"gaussian_nll", eps, constant}, x, target, v}, reduction);
}

StatusOr<Tensor> SoftMarginLoss(const Tensor& x, const Tensor& target,
                                absl::string_view reduction) {
  return RunLoss({"soft_margin_loss", {"soft_margin"}, x, target}, reduction);
}
StatusOr<Tensor> HingeEmbeddingLoss(const Tensor& x, const Tensor& target, double margin,
                                    absl::string_view reduction) {
  return RunLoss({"hinge_embedding_loss", {"hinge_embedding", margin}, x, target}, reduction);
}
StatusOr<Tensor> MarginRankingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                                   double margin, absl::string_view reduction) {
  constexpr char kName[] = "margin_ranking_loss";
  if (!target.defined()) return NotDefined(kName, "target");
  LossCall call = {kName, {"margin_ranking", margin}, x1, x2, target};
  if (x1.defined() && x2.defined() && target.ndim() > 0) {  // a target may be the largest of them
    const Shape shapes[] = {x1.shape(), x2.shape(), target.shape()};
    OFL_ASSIGN_OR_RETURN(const Shape shape, CommonShape(kName, absl::MakeConstSpan(shapes)));
    OFL_ASSIGN_OR_RETURN(call.x, Expand(x1, shape));
  }
  return RunLoss(std::move(call), reduction);
}

StatusOr<Tensor> LossSum(const LossFormula& formula, const Tensor& x, const Tensor& t) {
  return RunLoss({"loss", formula, x, t}, "sum");
}

StatusOr<Tensor> LossSlope(const LossFormula& formula, absl::string_view by, const Tensor& dy,
                           const Tensor& x, const Tensor& t, const Tensor& p, double scale) {
  static const OpExpr& op = OpBuilder("loss_slope")
                                .Input("dy")
                                .Input("x")
                                .Input("t")
                                .Input("p")
                                .Output("dx")
                                .Attr("kind")
                                .Attr("by")
                                .Attr("scale")
                                .Attr("a")
                                .Attr("b")
                                .Get();
  return Call(op, {dy, x, t, p},
              {std::string(formula.kind), std::string(by), scale, formula.a, formula.b});
}

OFL_REGISTER_FUNCTION(
    "mse_loss(Tensor input, Tensor target, str reduction='mean', *, Tensor? weight=None) -> Tensor",
    MseLoss, kFunction,
    "(input - target)^2, reduced by \"mean\", \"sum\" or not (\"none\").\n"
    "weight, of the input's shape, multiplies each loss; the mean is over its sum.");
OFL_REGISTER_FUNCTION(
    "l1_loss(Tensor input, Tensor target, str reduction='mean', *, Tensor? weight=None) -> Tensor",
    L1Loss, kFunction, "|input - target|, weighted and reduced as in mse_loss.");
OFL_REGISTER_FUNCTION(
    "smooth_l1_loss(Tensor input, Tensor target, str reduction='mean', float beta=1.0) -> Tensor",
    SmoothL1Loss, kFunction, "l1_loss less beta / 2, and below beta a parabola that joins it.");
OFL_REGISTER_FUNCTION(
    "huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, "
    "Tensor? weight=None) -> Tensor",
    HuberLoss, kFunction,
    "delta times smooth_l1_loss with that beta. weight multiplies each loss; unlike mse_loss's, "
    "the\n"
    "mean is over their number.");
OFL_REGISTER_FUNCTION(
    "kl_div(Tensor input, Tensor target, str reduction='mean', bool log_target=False) -> Tensor",
    KlDiv, kFunction,
    "target * (log(target) - input), input being log-probabilities; 0 where target is 0.\n"
    "reduction=\"batchmean\" divides the sum by the first dim.");
OFL_REGISTER_FUNCTION(
    "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, "
    "str reduction='mean') -> Tensor",
    BinaryCrossEntropy, kFunction,
    "-target * log(x) - (1 - target) * log(1 - x) of probabilities; logarithms from -100 on.\n"
    "weight multiplies each loss. ValueError where an input or a target is outside [0, 1]; a GPU,\n"
    "which would have to be waited for, does not look.");
OFL_REGISTER_FUNCTION(
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, "
    "str reduction='mean', Tensor? pos_weight=None) -> Tensor",
    BinaryCrossEntropyWithLogits, kFunction,
    "-target * log(sigmoid(x)) - (1 - target) * log(sigmoid(-x)), without overflow.\n"
    "weight multiplies each loss, pos_weight its first term.");
OFL_REGISTER_FUNCTION(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, "
    "float eps=1e-8, str reduction='mean') -> Tensor",
    PoissonNllLoss, kFunction,
    "exp(input) - target * input, or input - target * log(input + eps) without log_input.\n"
    "full adds Stirling's approximation of log(target!) where target is above 1.");
OFL_REGISTER_FUNCTION(
    "gaussian_nll_loss(Tensor input, Tensor target, Operand var, bool full=False, "
    "float eps=1e-6, str reduction='mean') -> Tensor",
    GaussianNllLoss, kFunction,
    "(log(v) + (input - target)^2 / v) / 2 with v = max(var, eps); full adds log(2 pi) / 2.\n"
    "var has the input's shape, or lacks its last dim, or is a number. ValueError on the CPU where "
    "it is negative.");
OFL_REGISTER_FUNCTION(
    "soft_margin_loss(Tensor input, Tensor target, str reduction='mean') -> Tensor", SoftMarginLoss,
    kFunction, "log(1 + exp(-target * input)).");
OFL_REGISTER_FUNCTION(
    "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, "
    "str reduction='mean') -> Tensor",
    HingeEmbeddingLoss, kFunction,
    "input where target is 1, max(0, margin - input) where it is -1.");
OFL_REGISTER_FUNCTION(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "str reduction='mean') -> Tensor",
    MarginRankingLoss, kFunction, "max(0, margin - target * (input1 - input2)).");

}  // namespace oneflow_lite::functional
