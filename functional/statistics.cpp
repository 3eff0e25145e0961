// SPDX-License-Identifier: Apache-2.0
#include "functional/statistics.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite::functional {
namespace {

// Orders elements the other way round, and is its own inverse: -x, and for integers, where the
// least has no negative, -1 - x, that is, all bits.
StatusOr<Tensor> Reversed(const Tensor& x) {
  return IsFloating(x.dtype()) ? Neg(x) : BitwiseNot(x);
}

StatusOr<Value> Min(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (dim) {
    OFL_ASSIGN_OR_RETURN(TensorList pair, MinAlong(x, *dim, keepdim));
    return Value(std::move(pair));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Amin(x, {}, keepdim));
  return Value(std::move(y));
}

// How many elements the sum of `reduced` elements each was taken over.
int64_t Terms(const Tensor& x, const Tensor& reduced) {
  return reduced.numel() > 0 ? x.numel() / reduced.numel() : 0;
}

// The variance in the compute type: the sum of squares of 16 bits would soon overflow. With d the
// distances from any constant near the mean it is (sum d^2 - (sum d)^2 / n) / (n - correction), so
// the mean may be rounded, as it is where it is large beside the spread, and needs no gradient.
StatusOr<Tensor> WideVar(const Tensor& input, const std::optional<Dims>& dims, bool unbiased,
                         bool keepdim, std::optional<double> correction) {
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(input, ComputeType(input.dtype())));
  OFL_ASSIGN_OR_RETURN(Tensor plain, Detach(x));
  OFL_ASSIGN_OR_RETURN(Tensor centre, Mean(plain, dims, /*keepdim=*/true));
  OFL_ASSIGN_OR_RETURN(Tensor d, Sub(x, centre));
  OFL_ASSIGN_OR_RETURN(Tensor squares, Mul(d, d));
  OFL_ASSIGN_OR_RETURN(squares, Sum(squares, dims, keepdim));
  OFL_ASSIGN_OR_RETURN(Tensor sum, Sum(d, dims, keepdim));
  const int64_t terms = Terms(x, sum);
  OFL_ASSIGN_OR_RETURN(Tensor shift, Mul(sum, sum));
  OFL_ASSIGN_OR_RETURN(shift, Div(shift, Scalar(terms)));
  OFL_ASSIGN_OR_RETURN(Tensor total, Sub(squares, shift));
  // Where all elements are the same, rounding may leave a little less than 0.
  OFL_ASSIGN_OR_RETURN(total, Clamp(total, Scalar(0), std::nullopt));
  // With no degrees of freedom left it is 0 / 0.
  const double freedom =
      std::max(0.0, static_cast<double>(terms) - correction.value_or(unbiased ? 1 : 0));
  OFL_ASSIGN_OR_RETURN(Tensor variance, Div(total, Scalar(freedom)));
  if (freedom > 0 || !GradEnabled() || !autograd::RequiresGrad(x)) return variance;
  // 0 / 0 where all elements are the same, which makes gradients NaN; else they are 2 d / 0.
  OFL_ASSIGN_OR_RETURN(Tensor factor, Detach(variance));
  OFL_ASSIGN_OR_RETURN(const Tensor undefined, Ne(factor, factor));
  OFL_ASSIGN_OR_RETURN(factor, Where(undefined, factor, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(const Tensor infinite, Div(squares, Scalar(0)));
  return Mul(infinite, factor);
}

}  // namespace

StatusOr<Tensor> Amin(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor reversed, Reversed(x));
  OFL_ASSIGN_OR_RETURN(Tensor most, Amax(reversed, dims, keepdim));
  return Reversed(most);
}

StatusOr<TensorList> MinAlong(const Tensor& x, int64_t dim, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor reversed, Reversed(x));
  OFL_ASSIGN_OR_RETURN(TensorList pair, MaxAlong(reversed, dim, keepdim));
  OFL_ASSIGN_OR_RETURN(pair[0], Reversed(pair[0]));
  return pair;
}

StatusOr<Tensor> ArgMin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor reversed, Reversed(x));
  return ArgMax(reversed, dim, keepdim);
}

StatusOr<Tensor> Any(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor holds, Ne(x, Scalar(false)));
  OFL_ASSIGN_OR_RETURN(Tensor count, Sum(holds, dims, keepdim));
  return Ne(count, Scalar(0));
}

StatusOr<Tensor> All(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor fails, LogicalNot(x));
  OFL_ASSIGN_OR_RETURN(Tensor count, Sum(fails, dims, keepdim));
  return Eq(count, Scalar(0));
}

StatusOr<Tensor> Var(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                     std::optional<double> correction) {
  OFL_ASSIGN_OR_RETURN(Tensor variance, WideVar(x, dims, unbiased, keepdim, correction));
  return Cast(variance, x.dtype());
}

StatusOr<Tensor> Std(const Tensor& x, std::optional<Dims> dims, bool unbiased, bool keepdim,
                     std::optional<double> correction) {
  OFL_ASSIGN_OR_RETURN(Tensor variance, WideVar(x, dims, unbiased, keepdim, correction));
  OFL_ASSIGN_OR_RETURN(Tensor root, Sqrt(variance));
  return Cast(root, x.dtype());
}

StatusOr<Tensor> LogSumExp(const Tensor& input, std::optional<Dims> dims, bool keepdim) {
  OFL_ASSIGN_OR_RETURN(Tensor x, IsFloating(input.dtype()) ? input : Cast(input, DType::kFloat32));
  if (x.numel() == 0) {  // no maximum to shift by: log(0) where no element goes into a sum
    OFL_ASSIGN_OR_RETURN(Tensor nothing, Sum(x, dims, keepdim));
    return Log(nothing);
  }
  OFL_ASSIGN_OR_RETURN(Tensor plain, Detach(x));
  OFL_ASSIGN_OR_RETURN(Tensor most, Amax(plain, dims, /*keepdim=*/true));
  OFL_ASSIGN_OR_RETURN(Tensor finite, IsFinite(most));
  OFL_ASSIGN_OR_RETURN(most, Where(finite, most, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor shifted, Sub(x, most));
  OFL_ASSIGN_OR_RETURN(Tensor terms, Exp(shifted));
  OFL_ASSIGN_OR_RETURN(Tensor sum, Sum(terms, dims, keepdim));
  OFL_ASSIGN_OR_RETURN(Tensor log, Log(sum));
  OFL_ASSIGN_OR_RETURN(Tensor shift, Reshape(most, sum.shape()));
  return Add(log, shift);
}

OFL_REGISTER_FUNCTION("amin(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Amin,
                      kMethod, "The smallest elements over the dims given, or over all.");
OFL_REGISTER_FUNCTION(
    "min(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)", Min,
    kMethod, "The smallest element; with a dim, the pair (values, indices) along it.");
OFL_REGISTER_FUNCTION("argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", ArgMin,
                      kMethod, "The place of the first minimum along dim, or in the flat tensor.");
OFL_REGISTER_FUNCTION("any(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Any,
                      kMethod, "Whether any element over the dims given, or over all, is not 0.");
OFL_REGISTER_FUNCTION("all(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", All,
                      kMethod, "Whether no element over the dims given, or over all, is 0.");
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
OFL_REGISTER_FUNCTION("logsumexp(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                      LogSumExp, kMethod,
                      "log(sum(exp(x))) over the dims given, or over all, without overflow.");

}  // namespace oneflow_lite::functional
