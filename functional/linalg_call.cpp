// SPDX-License-Identifier: Apache-2.0
#include "functional/linalg_call.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "functional/host_value.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite::functional {

Status CheckMatrix(const char* name, const char* argument, const Tensor& a, bool square) {
  if (!a.defined()) return NotDefined(name, argument);
  if (a.dtype() != DType::kFloat32 && a.dtype() != DType::kFloat64) {
    return UnsupportedDType(name, argument, a.dtype(), kWideDTypes);
  }
  const int n = a.ndim();
  if (n < 2) return ShapeMismatch(name, argument, a.shape(), "at least 2 dims");
  if (square && a.shape()[n - 1] != a.shape()[n - 2]) {
    return ShapeMismatch(name, argument, a.shape(), "square matrices");
  }
  return OkStatus();
}

Status CheckSameDType(const char* name, const Tensor& a, const char* argument, const Tensor& b) {
  if (!b.defined()) return NotDefined(name, argument);
  if (b.dtype() != a.dtype()) return DTypeMismatch(name, argument, b.dtype(), Name(a.dtype()));
  return OkStatus();
}

Dims BatchOf(const Tensor& a) {
  const Dims& dims = a.shape().dims();
  return Dims(dims.begin(), dims.end() - 2);
}

Status BroadcastBatches(const char* name, Tensor* a, Tensor* b) {
  const Shape batches[] = {Shape(BatchOf(*a)), Shape(BatchOf(*b))};
  if (batches[0] == batches[1]) return OkStatus();
  const StatusOr<Shape> common = CommonShape(name, absl::MakeConstSpan(batches));
  if (!common.ok()) {
    return Error(ErrorKind::kShape, name, "(): the batches of shapes ", a->shape().ToString(),
                 " and ", b->shape().ToString(), " do not broadcast");
  }
  for (Tensor* t : {a, b}) {
    Dims shape = common->dims();
    shape.insert(shape.end(), {t->shape()[t->ndim() - 2], t->shape()[t->ndim() - 1]});
    OFL_ASSIGN_OR_RETURN(*t, Expand(*t, shape));
  }
  return OkStatus();
}

Status CheckInfo(const char* name, const Tensor& info, absl::string_view problem) {
  if (!ChecksValues(info)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const Tensor host, ReadBack(name, info));
  const int32_t* values = host.data<int32_t>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (values[i] == 0) continue;
    const std::string batch = info.ndim() > 0 ? absl::StrCat("(Batch element ", i, "): ") : "";
    const std::string place = absl::StrCat(values[i]);
    return Error(kLinAlgError, name, "(): ", batch,
                 values[i] < 0 ? "the matrix has elements that are not finite"
                               : absl::StrReplaceAll(problem, {{"{}", place}}));
  }
  return OkStatus();
}

}  // namespace oneflow_lite::functional
