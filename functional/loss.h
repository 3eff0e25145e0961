// SPDX-License-Identifier: Apache-2.0
//
// Losses of each element, reduced: one pass forward and one backward for each operand that needs a
// gradient. 16-bit floats are computed in float32 and rounded once.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::MseLoss(y, target));
//
// reduction is "mean", "sum" or "none" in all of them, else a ValueError. Operands are promoted to
// one dtype, integers to float32; they broadcast where nothing else is said, else a ShapeError.
#pragma once

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// (x - target)^2 and |x - target|. A weight, of x's shape, multiplies each loss; the mean is then
// over its sum.
OFL_API StatusOr<Tensor> MseLoss(const Tensor& x, const Tensor& target,
                                 absl::string_view reduction = "mean", const Tensor& weight = {});
OFL_API StatusOr<Tensor> L1Loss(const Tensor& x, const Tensor& target,
                                absl::string_view reduction = "mean", const Tensor& weight = {});
// L1Loss less beta / 2, and below beta a parabola that joins it; ValueError for a negative beta.
OFL_API StatusOr<Tensor> SmoothL1Loss(const Tensor& x, const Tensor& target,
                                      absl::string_view reduction = "mean", double beta = 1.0);
// delta times that; ValueError where delta is not positive.
OFL_API StatusOr<Tensor> HuberLoss(const Tensor& x, const Tensor& target,
                                   absl::string_view reduction = "mean", double delta = 1.0,
                                   const Tensor& weight = {});
// target (log(target) - x), x being log-probabilities; 0 where target is 0. With log_target targets
// are logarithms too. reduction "batchmean": the sum over the first dim's size.
OFL_API StatusOr<Tensor> KlDiv(const Tensor& x, const Tensor& target,
                               absl::string_view reduction = "mean", bool log_target = false);
// -target log(x) - (1 - target) log(1 - x) of probabilities, logarithms from -100 on. ValueError on
// the CPU for what is outside [0, 1]. target has x's shape; a weight multiplies each loss.
OFL_API StatusOr<Tensor> BinaryCrossEntropy(const Tensor& x, const Tensor& target,
                                            const Tensor& weight = {},
                                            absl::string_view reduction = "mean");
// The same of logits, without overflow; pos_weight multiplies the first term.
OFL_API StatusOr<Tensor> BinaryCrossEntropyWithLogits(const Tensor& x, const Tensor& target,
                                                      const Tensor& weight = {},
                                                      absl::string_view reduction = "mean",
                                                      const Tensor& pos_weight = {});
// e^x - target x, or x - target log(x + eps) where x is no logarithm. full adds Stirling's
// approximation of log target! where target is above 1.
OFL_API StatusOr<Tensor> PoissonNllLoss(const Tensor& x, const Tensor& target,
                                        bool log_input = true, bool full = false, double eps = 1e-8,
                                        absl::string_view reduction = "mean");
// (log v + (x - target)^2 / v) / 2 with v = max(var, eps), whose gradient passes that bound. var
// may lack the last dim. full adds log(2 pi) / 2. ValueError on the CPU for a negative var.
OFL_API StatusOr<Tensor> GaussianNllLoss(const Tensor& x, const Tensor& target, const Operand& var,
                                         bool full = false, double eps = 1e-6,
                                         absl::string_view reduction = "mean");
// log(1 + exp(-target x)).
OFL_API StatusOr<Tensor> SoftMarginLoss(const Tensor& x, const Tensor& target,
                                        absl::string_view reduction = "mean");
// x where target is 1, max(0, margin - x) where it is -1.
OFL_API StatusOr<Tensor> HingeEmbeddingLoss(const Tensor& x, const Tensor& target,
                                            double margin = 1.0,
                                            absl::string_view reduction = "mean");
// max(0, margin - target (x1 - x2)).
OFL_API StatusOr<Tensor> MarginRankingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                                           double margin = 0.0,
                                           absl::string_view reduction = "mean");

// What the op `loss` says of a call; ops/loss.cpp has the kinds.
struct LossFormula {
  absl::string_view kind;
  double a = 0, b = 0;
};
// The sum of the formula's values over x and t, which have one dtype and shape.
OFL_API StatusOr<Tensor> LossSum(const LossFormula& formula, const Tensor& x, const Tensor& t);
// scale dy times the derivative of the formula by "x", "t", "p" or two of them ("xt"). dy has x's
// shape or none.
OFL_API StatusOr<Tensor> LossSlope(const LossFormula& formula, absl::string_view by,
                                   const Tensor& dy, const Tensor& x, const Tensor& t,
                                   const Tensor& p, double scale = 1);

}  // namespace oneflow_lite::functional
