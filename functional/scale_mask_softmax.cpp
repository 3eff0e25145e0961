// SPDX-License-Identifier: Apache-2.0
#include "functional/scale_mask_softmax.h"

#include "functional/copy.h"
#include "functional/view.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Whether a mask changes direction so often, seen from x, that the kernels' three strides cannot
// follow: broadcast, not broadcast, broadcast, ...
bool NeedsExpansion(const Tensor& mask, const Tensor& x) {
  const int missing = x.ndim() - mask.ndim();
  if (missing < 0 || mask.ndim() <= 3) return false;
  Dims strides(x.ndim(), 0);
  for (int d = missing; d < x.ndim(); ++d) {
    if (mask.shape()[d - missing] > 1) strides[d] = mask.strides()[d - missing];
  }
  const absl::Span<const int64_t> all = x.shape().dims(), steps = strides;
  const auto g = MakeElementwise<1>(all.subspan(0, x.ndim() - 1), {steps.subspan(0, x.ndim() - 1)});
  return g.ndim > 3;
}

}  // namespace

StatusOr<Tensor> FusedScaleMaskSoftmax(const Tensor& x, const Tensor& mask, double scale,
                                       absl::string_view masked_row, bool causal) {
  static const OpExpr& op = OpBuilder("scale_mask_softmax")
                                .Input("in")
                                .Input("mask")
                                .Output("out")
                                .Attr("scale")
                                .Attr("causal")
                                .Attr("zero_masked_rows")
                                .Get();
  if (masked_row != "nan" && masked_row != "zero") {
    return BadValue("fused_scale_mask_softmax", "masked_row", absl::StrCat("\"", masked_row, "\""),
                    "\"nan\" or \"zero\"");
  }
  Tensor seen = mask;
  if (mask.defined() && NeedsExpansion(mask, x)) {
    OFL_ASSIGN_OR_RETURN(seen, Expand(mask, x.shape().dims()));
    OFL_ASSIGN_OR_RETURN(seen, Contiguous(seen));
  }
  StatusOr<Tensor> y = Call(op, {x, seen}, {scale, causal, masked_row == "zero"});
  if (!y.ok()) return Renamed("fused_scale_mask_softmax", y.status());
  return y;
}

StatusOr<Tensor> ScaleMaskSoftmaxBackward(const Tensor& y, const Tensor& dy, double scale,
                                          bool causal) {
  static const OpExpr& op = OpBuilder("scale_mask_softmax_backward")
                                .Input("y")
                                .Input("dy")
                                .Output("dx")
                                .Attr("scale")
                                .Attr("causal")
                                .Get();
  return Call(op, {y, dy}, {scale, causal});
}

OFL_REGISTER_FUNCTION(
    "fused_scale_mask_softmax(Tensor input, Tensor? mask=None, float scale=1.0, "
    "str masked_row='nan', bool causal=False) -> Tensor",
    FusedScaleMaskSoftmax, kFunction,
    "softmax(scale * input + mask) over the last dim, in one pass: attention's scores.\n\n"
    "mask broadcasts against input [..., queries, keys]: a boolean one keeps where it is True, a\n"
    "floating one is added. With causal, query q sees the keys up to keys - queries + q. A row of\n"
    "which nothing is left is NaN, and so is its gradient whatever comes back to it; with\n"
    "masked_row='zero' both are 0.");

}  // namespace oneflow_lite::functional
