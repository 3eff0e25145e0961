// SPDX-License-Identifier: Apache-2.0
#include "functional/scan.h"

#include "functional/copy.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

StatusOr<Tensor> CumSum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  static const OpExpr& op = OpBuilder("cumsum").Input("in").Output("out").Attr("reverse").Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("cumsum", dim, input));
  const DType own = IsFloating(input.dtype()) ? input.dtype() : DType::kInt64;
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(input, dtype.value_or(own)));
  if (x.ndim() == 0) return Clone(x);
  OFL_ASSIGN_OR_RETURN(Tensor moved, Transpose(x, axis, -1));
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {moved}, {false}));
  return Transpose(y, axis, -1);
}

OFL_REGISTER_FUNCTION("cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", CumSum,
                      kMethod,
                      "The sums of the elements up to each one along dim; bool and integers are "
                      "summed in int64.");

}  // namespace oneflow_lite::functional
