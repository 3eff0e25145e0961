// SPDX-License-Identifier: Apache-2.0
#include "functional/norm.h"

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite::functional {

StatusOr<int64_t> FirstNormalizedDim(const char* op, const Tensor& x,
                                     absl::Span<const int64_t> normalized_shape) {
  if (normalized_shape.empty()) {
    return Error(ErrorKind::kShape, op, "(): normalized_shape is [], but it must name a dim");
  }
  const int64_t axis = x.ndim() - static_cast<int64_t>(normalized_shape.size());
  if (axis >= 0 && absl::MakeConstSpan(x.shape().dims()).subspan(axis) == normalized_shape) {
    return axis;
  }
  std::string expected = "[...";
  for (const int64_t d : normalized_shape) absl::StrAppend(&expected, ", ", d);
  return ShapeMismatch(op, "input", x.shape(), expected + "] to go with normalized_shape");
}

StatusOr<TensorList> CallNorm(const OpExpr& op, std::initializer_list<Tensor> inputs, int64_t axis,
                              double eps, bool memory_efficient) {
  const bool statistics =
      GradEnabled() && std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) {
        return t.defined() && autograd::RequiresGrad(t);
      });
  return CallAll(op, inputs, {axis, eps, memory_efficient, statistics});
}

}  // namespace oneflow_lite::functional
