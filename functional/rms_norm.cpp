// SPDX-License-Identifier: Apache-2.0
#include "functional/rms_norm.h"

#include <limits>

#include "functional/copy.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

double EpsFor(const Tensor& x, std::optional<double> eps) {
  if (eps) return *eps;
  return x.dtype() == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                      : std::numeric_limits<float>::epsilon();
}

// The kernels take a weight of x's dtype or its compute type; another floating one is cast to the
// latter, and its gradient comes back in its own.
StatusOr<Tensor> WeightFor(const Tensor& x, const Tensor& weight) {
  if (!weight.defined() || weight.dtype() == x.dtype() || !IsFloating(weight.dtype()) ||
      !IsFloating(x.dtype())) {
    return weight;
  }
  return Cast(weight, ComputeType(x.dtype()));
}

}  // namespace

StatusOr<Tensor> RmsNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape,
                         const Tensor& weight, std::optional<double> eps, bool memory_efficient) {
  static const OpExpr& op = OpBuilder("rms_norm")
                                .Input("x")
                                .Input("weight")
                                .Output("y")
                                .Output("rstd")
                                .Attr("axis")
                                .Attr("eps")
                                .Attr("memory_efficient")
                                .Attr("statistics")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, FirstNormalizedDim("rms_norm", x, normalized_shape));
  OFL_ASSIGN_OR_RETURN(const Tensor scale, WeightFor(x, weight));
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallNorm(op, {x, scale}, axis, EpsFor(x, eps), memory_efficient));
  return std::move(out[0]);
}

StatusOr<TensorList> AddRmsNorm(const Tensor& x, const Tensor& residual,
                                absl::Span<const int64_t> normalized_shape, const Tensor& weight,
                                std::optional<double> eps, bool memory_efficient) {
  static const OpExpr& op = OpBuilder("add_rms_norm")
                                .Input("x")
                                .Input("residual")
                                .Input("weight")
                                .Output("y")
                                .Output("sum")
                                .Output("rstd")
                                .Attr("axis")
                                .Attr("eps")
                                .Attr("memory_efficient")
                                .Attr("statistics")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, FirstNormalizedDim("add_rms_norm", x, normalized_shape));
  OFL_ASSIGN_OR_RETURN(const Tensor scale, WeightFor(x, weight));
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallNorm(op, {x, residual, scale}, axis, EpsFor(x, eps), memory_efficient));
  out.resize(2);
  return out;
}

StatusOr<NormGradients> RmsNormBackward(const NormGradientInputs& in, int64_t axis,
                                        int64_t wanted) {
  static const OpExpr& op = OpBuilder("rms_norm_backward")
                                .Input("dy")
                                .Input("rstd")
                                .Input("x")
                                .Input("y")
                                .Input("weight")
                                .Input("dsum")
                                .Output("dx")
                                .Output("dweight")
                                .Attr("axis")
                                .Attr("wanted")
                                .Get();
  OFL_ASSIGN_OR_RETURN(TensorList out, CallAll(op, {in.dy, in.rstd, in.x, in.y, in.weight, in.dsum},
                                               {axis, wanted}));
  NormGradients grads;
  if (wanted & kGradX) grads.dx = std::move(out[0]);
  if (wanted & kGradWeight) grads.dweight = std::move(out[1]);
  return grads;
}

OFL_REGISTER_FUNCTION(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None, "
    "bool memory_efficient=False) -> Tensor",
    RmsNorm, kFunction,
    "input / sqrt(mean(input^2) + eps) * weight over the last dims, which normalized_shape names."
    "\n\nWithout eps, that of the type computed in: float64's for float64, else float32's. Other "
    "arguments\nas for layer_norm.");
OFL_REGISTER_FUNCTION(
    "add_rms_norm(Tensor input, Tensor residual, int[] normalized_shape, Tensor? weight=None, "
    "float? eps=None, bool memory_efficient=False) -> (Tensor, Tensor)",
    AddRmsNorm, kFunction,
    "(rms_norm(s), s) with s = input + residual: a residual connection and the norm behind it in "
    "one pass.\nArguments as for rms_norm; residual has the shape and dtype of input.");

}  // namespace oneflow_lite::functional
