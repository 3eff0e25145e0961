// SPDX-License-Identifier: Apache-2.0
#include "functional/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/reduce_call.h"
#include "functional/select.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite::functional {
namespace {

// Infinite where no degrees of freedom are left over all elements: there PyTorch has another
// gradient than over all dims by name (SpreadGrad). No other correction is that large.
double CorrectionOf(const Tensor& x, const std::optional<Dims>& dims, bool unbiased,
                    std::optional<double> correction) {
  const double asked = correction.value_or(unbiased ? 1 : 0);
  const bool whole = !dims || dims->empty() || x.ndim() == 0;
  if (whole && asked >= static_cast<double>(x.numel())) {
    return std::numeric_limits<double>::infinity();
  }
  return std::min(asked, std::numeric_limits<double>::max());
}

StatusOr<Tensor> CallSpread(const char* name, const OpExpr& op, const Tensor& x,
                            const std::optional<Dims>& dims, bool keepdim, double correction) {
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(name, x, dims));
  return CallReduce(op, x, wrapped, keepdim, {correction});
}
StatusOr<TensorList> CallSpreadAndMean(const char* name, const OpExpr& op, const Tensor& x,
                                       const std::optional<Dims>& dims, bool keepdim,
                                       double correction) {
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(name, x, dims));
  return CallReduceAll(op, x, wrapped, keepdim, {correction});
}

}  // namespace

StatusOr<Tensor> Var(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                     std::optional<double> correction) {
  static const OpExpr& op = ReduceExpr("var", {"out"}, {"correction"});
  return CallSpread("var", op, x, dims, keepdim, CorrectionOf(x, dims, unbiased, correction));
}

StatusOr<Tensor> Std(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                     std::optional<double> correction) {
  static const OpExpr& op = ReduceExpr("std", {"out"}, {"correction"});
  return CallSpread("std", op, x, dims, keepdim, CorrectionOf(x, dims, unbiased, correction));
}

StatusOr<TensorList> VarMean(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                             std::optional<double> correction) {
  static const OpExpr& op = ReduceExpr("var_mean", {"var", "mean"}, {"correction"});
  return CallSpreadAndMean("var_mean", op, x, dims, keepdim,
                           CorrectionOf(x, dims, unbiased, correction));
}

StatusOr<TensorList> StdMean(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                             std::optional<double> correction) {
  static const OpExpr& op = ReduceExpr("std_mean", {"std", "mean"}, {"correction"});
  return CallSpreadAndMean("std_mean", op, x, dims, keepdim,
                           CorrectionOf(x, dims, unbiased, correction));
}

StatusOr<Tensor> VectorNorm(const Tensor& input, double p, std::optional<Dims> dims, bool keepdim,
                            std::optional<DType> dtype) {
  static const OpExpr& op = ReduceExpr("vector_norm", {"out"}, {"p", "dtype"});
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims("vector_norm", input, dims));
  OFL_ASSIGN_OR_RETURN(Tensor x, IsFloating(input.dtype()) ? input : Cast(input, DType::kFloat32));
  AttrValue to;
  if (dtype && *dtype != x.dtype()) {
    const bool narrower = IsFloating(*dtype) && *dtype != DType::kFloat64 && IsFloating(x.dtype());
    if (narrower) {
      to = *dtype;
    } else {
      OFL_ASSIGN_OR_RETURN(x, Cast(x, *dtype));
    }
  }
  if (std::isinf(p) && x.numel() == 0) {
    int64_t outputs = 1;
    for (int d = 0; d < x.ndim(); ++d) {
      if (!std::binary_search(wrapped.begin(), wrapped.end(), d)) outputs *= x.shape()[d];
    }
    if (outputs > 0) {
      return Error(ErrorKind::kIndex, "vector_norm(): there is no ", p > 0 ? "maximum" : "minimum",
                   " of no elements: shape ", x.shape().ToString());
    }
  }
  return CallReduce(op, x, wrapped, keepdim, {p, to});
}

StatusOr<Tensor> LogSumExpAs(const Tensor& x, const Dims& dims, bool keepdim, DType dtype) {
  static const OpExpr& op = ReduceExpr("logsumexp", {"out"}, {"dtype"});
  return CallReduce(op, x, dims, keepdim, {dtype});
}

StatusOr<Tensor> LogSumExp(const Tensor& input, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceExpr("logsumexp", {"out"}, {"dtype"});
  OFL_ASSIGN_OR_RETURN(Tensor x, IsFloating(input.dtype()) ? input : Cast(input, DType::kFloat32));
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims("logsumexp", x, dims));
  return CallReduce(op, x, wrapped, keepdim, {AttrValue()});
}

OFL_REGISTER_FUNCTION(
    "var(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False, "
    "*, float? correction=None) -> Tensor",
    Var, kMethod,
    "Variance over the dims given, or over all: the squared distances from the "
    "mean over n - correction, which is 1 if unbiased, else 0.");
OFL_REGISTER_FUNCTION(
    "std(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False, "
    "*, float? correction=None) -> Tensor",
    Std, kMethod, "The root of var.");
OFL_REGISTER_FUNCTION(
    "var_mean(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False, "
    "*, float? correction=None) -> Tensor[]",
    VarMean, kFunction, "The variance, as var with these arguments, and the mean.");
OFL_REGISTER_FUNCTION(
    "std_mean(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False, "
    "*, float? correction=None) -> Tensor[]",
    StdMean, kFunction, "The standard deviation, as std with these arguments, and the mean.");
OFL_REGISTER_FUNCTION(
    "vector_norm(Tensor input, float p=2, int[]? dim=None, bool keepdim=False, "
    "dtype? dtype=None) -> Tensor",
    VectorNorm, kFunction,
    "The p-norm over the dims given, or over all; p may be infinite, or 0 for a count.");
OFL_REGISTER_FUNCTION("logsumexp(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                      LogSumExp, kMethod,
                      "log(sum(exp(x))) over the dims given, or over all, without overflow.");

}  // namespace oneflow_lite::functional
