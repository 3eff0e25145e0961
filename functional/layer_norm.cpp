// SPDX-License-Identifier: Apache-2.0
#include "functional/layer_norm.h"

#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

StatusOr<Tensor> LayerNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape,
                           const Tensor& weight, const Tensor& bias, double eps,
                           bool memory_efficient) {
  static const OpExpr& op = OpBuilder("layer_norm")
                                .Input("x")
                                .Input("weight")
                                .Input("bias")
                                .Output("y")
                                .Output("mean")
                                .Output("rstd")
                                .Attr("axis")
                                .Attr("eps")
                                .Attr("memory_efficient")
                                .Attr("statistics")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, FirstNormalizedDim("layer_norm", x, normalized_shape));
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallNorm(op, {x, weight, bias}, axis, eps, memory_efficient));
  return std::move(out[0]);
}

StatusOr<TensorList> AddLayerNorm(const Tensor& x, const Tensor& residual,
                                  absl::Span<const int64_t> normalized_shape, const Tensor& weight,
                                  const Tensor& bias, double eps, bool memory_efficient) {
  static const OpExpr& op = OpBuilder("add_layer_norm")
                                .Input("x")
                                .Input("residual")
                                .Input("weight")
                                .Input("bias")
                                .Output("y")
                                .Output("sum")
                                .Output("mean")
                                .Output("rstd")
                                .Attr("axis")
                                .Attr("eps")
                                .Attr("memory_efficient")
                                .Attr("statistics")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis,
                       FirstNormalizedDim("add_layer_norm", x, normalized_shape));
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallNorm(op, {x, residual, weight, bias}, axis, eps, memory_efficient));
  out.resize(2);
  return out;
}

StatusOr<NormGradients> LayerNormBackward(const NormGradientInputs& in, int64_t axis,
                                          int64_t wanted) {
  static const OpExpr& op = OpBuilder("layer_norm_backward")
                                .Input("dy")
                                .Input("rstd")
                                .Input("x")
                                .Input("y")
                                .Input("weight")
                                .Input("dsum")
                                .Input("bias")
                                .Input("mean")
                                .Output("dx")
                                .Output("dweight")
                                .Output("dbias")
                                .Attr("axis")
                                .Attr("wanted")
                                .Get();
  OFL_ASSIGN_OR_RETURN(
      TensorList out,
      CallAll(op, {in.dy, in.rstd, in.x, in.y, in.weight, in.dsum, in.bias, in.mean},
              {axis, wanted}));
  NormGradients grads;
  if (wanted & kGradX) grads.dx = std::move(out[0]);
  if (wanted & kGradWeight) grads.dweight = std::move(out[1]);
  if (wanted & kGradBias) grads.dbias = std::move(out[2]);
  return grads;
}

OFL_REGISTER_FUNCTION(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool memory_efficient=False) -> Tensor",
    LayerNorm, kFunction,
    "(input - mean) / sqrt(var + eps) * weight + bias over the last dims, which normalized_shape "
    "names.\n\n"
    "weight and bias have that shape and input's dtype or float32; either may be absent.\n"
    "memory_efficient keeps the result for backward instead of input: a weight nearer to 0 than "
    "1e-5\ncounts as 1e-5 there, and one that is exactly 0 gets the gradient 0 and stays 0.");
OFL_REGISTER_FUNCTION(
    "add_layer_norm(Tensor input, Tensor residual, int[] normalized_shape, Tensor? weight=None, "
    "Tensor? bias=None, float eps=1e-05, bool memory_efficient=False) -> (Tensor, Tensor)",
    AddLayerNorm, kFunction,
    "(layer_norm(s), s) with s = input + residual: a residual connection and the norm behind it "
    "in one\npass. Arguments as for layer_norm; residual has the shape and dtype of input.");

}  // namespace oneflow_lite::functional
