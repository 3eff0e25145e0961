// SPDX-License-Identifier: Apache-2.0
#include "functional/rotary.h"

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

StatusOr<Tensor> Rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated,
                         bool inverse) {
  static const OpExpr& op = OpBuilder("rotary")
                                .Input("input")
                                .Input("cos")
                                .Input("sin")
                                .Output("out")
                                .Attr("rotated")
                                .Attr("inverse")
                                .Get();
  return Call(op, {x, cos, sin}, {rotated, inverse});
}

StatusOr<Tensor> RotaryEmbedding(const Tensor& x, const Tensor& cos, const Tensor& sin,
                                 std::optional<int64_t> rotated) {
  constexpr char kName[] = "rotary_embedding";
  for (const auto& [t, name] : {std::pair(x, "input"), {cos, "cos"}, {sin, "sin"}}) {
    if (!t.defined()) return NotDefined(kName, name);
    if (!IsFloating(t.dtype())) return UnsupportedDType(kName, name, t.dtype(), kFloatingDTypes);
    if (t.device() != x.device()) {
      return DeviceMismatch(kName, "input", x.device(), name, t.device());
    }
  }
  const DType wide = ComputeType(x.dtype());
  OFL_ASSIGN_OR_RETURN(const Tensor c, Cast(cos, wide));
  OFL_ASSIGN_OR_RETURN(const Tensor s, Cast(sin, wide));
  const int64_t features = x.ndim() > 0 ? x.shape()[x.ndim() - 1] : 0;
  StatusOr<Tensor> y = Rotated(x, c, s, rotated.value_or(features), false);
  return y.ok() ? y : Renamed(kName, y.status());
}

OFL_REGISTER_FUNCTION(
    "rotary_embedding(Tensor input, Tensor cos, Tensor sin, int? rotated=None) -> Tensor",
    RotaryEmbedding, kFunction,
    "Rotary position embedding (Su et al., 2021) of input [..., length, heads * size].\n"
    "\n"
    "Feature i of a head and feature size / 2 + i are a pair; at a place they are turned by the\n"
    "angle whose cosine and sine are cos[place, i] and sin[place, i]. Both are [length, size / 2]\n"
    "and have no gradient. `rotated`: so many features from the first on, whole heads, are "
    "turned,\n"
    "the others copied; all where it is None. Computed in float32, in float64 of float64.");

}  // namespace oneflow_lite::functional
