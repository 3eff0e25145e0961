// SPDX-License-Identifier: Apache-2.0
#include "functional/norm.h"

#include "oneflow_lite/core/error.h"

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

}  // namespace oneflow_lite::functional
