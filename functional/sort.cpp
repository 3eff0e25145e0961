// SPDX-License-Identifier: Apache-2.0
#include "functional/sort.h"

#include <optional>

#include "functional/copy.h"
#include "functional/device_traits.h"
#include "functional/reduce.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Sorting is stable and topk's result sorted in any case; callers may ask for it, as in PyTorch.
using Asked = std::optional<bool>;
StatusOr<TensorList> SortFunction(const Tensor& x, int64_t dim, bool descending, Asked /*stable*/) {
  return Sort(x, dim, descending);
}
StatusOr<Tensor> ArgSortFunction(const Tensor& x, int64_t dim, bool descending, Asked /*stable*/) {
  return ArgSort(x, dim, descending);
}
StatusOr<TensorList> TopKFunction(const Tensor& x, int64_t k, int64_t dim, bool largest,
                                  bool /*sorted*/) {
  return TopK(x, k, dim, largest);
}

// Calls an op of the last dim, which gives values and places, along another. The results are dense
// in the order of their dims, so that they have any view.
StatusOr<TensorList> CallAlongDim(const OpExpr& op, const Tensor& x, int64_t axis,
                                  const Attrs& attrs) {
  const bool one = x.ndim() == 0;
  OFL_ASSIGN_OR_RETURN(Tensor moved, one ? Unsqueeze(x, 0) : Transpose(x, axis, -1));
  OFL_ASSIGN_OR_RETURN(TensorList pair, CallAll(op, {moved}, attrs));
  for (Tensor& t : pair) {
    if (!one) {
      OFL_ASSIGN_OR_RETURN(const Tensor back, Transpose(t, axis, -1));
      OFL_ASSIGN_OR_RETURN(t, Contiguous(back));
    } else if (t.numel() == 1) {
      OFL_ASSIGN_OR_RETURN(t, Reshape(t, {}));
    }
  }
  return pair;
}

}  // namespace

StatusOr<TensorList> Sort(const Tensor& x, int64_t dim, bool descending) {
  static const OpExpr& op =
      OpBuilder("sort").Input("in").Output("values").Output("indices").Attr("descending").Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("sort", dim, x));
  return CallAlongDim(op, x, axis, {descending});
}

StatusOr<Tensor> ArgSort(const Tensor& x, int64_t dim, bool descending) {
  OFL_ASSIGN_OR_RETURN(TensorList pair, Sort(x, dim, descending));
  return std::move(pair[1]);
}

StatusOr<Tensor> MSort(const Tensor& x) {
  if (!x.defined()) return NotDefined("msort", "input");
  OFL_ASSIGN_OR_RETURN(TensorList pair, Sort(x, 0));
  return std::move(pair[0]);
}

StatusOr<TensorList> TopK(const Tensor& x, int64_t k, int64_t dim, bool largest) {
  static const OpExpr& op = OpBuilder("topk")
                                .Input("in")
                                .Output("values")
                                .Output("indices")
                                .Attr("k")
                                .Attr("largest")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("topk", dim, x));
  const int64_t size = x.ndim() == 0 ? 1 : x.shape()[static_cast<int>(axis)];
  if (k < 0 || k > size) {
    return Error(ErrorKind::kIndex, "topk(): k is ", k, ", but dim ", dim, " has size ", size);
  }
  // Of one the largest along the dim, which a reduction finds sooner on the CPU.
  if (k == 1 && largest && x.ndim() > 0 && CallsAreCheap(x)) return Max(x, axis, /*keepdim=*/true);
  return CallAlongDim(op, x, axis, {k, largest});
}

OFL_REGISTER_ADAPTER(
    "sort(Tensor input, int dim=-1, bool descending=False, *, bool? stable=None) -> (Tensor "
    "values, "
    "Tensor indices)",
    SortFunction, Sort, kMethod,
    "The elements in order along dim, and their places; equal ones keep their order.");
OFL_REGISTER_ADAPTER(
    "argsort(Tensor input, int dim=-1, bool descending=False, *, bool? stable=None) -> Tensor",
    ArgSortFunction, ArgSort, kMethod, "The places of the elements in order along dim.");
OFL_REGISTER_FUNCTION("msort(Tensor input) -> Tensor", MSort, kMethod,
                      "The elements in order along the first dim.");
OFL_REGISTER_ADAPTER(
    "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
    "Tensor indices)",
    TopKFunction, TopK, kMethod,
    "The k largest, or smallest, elements along dim, and their places.");

}  // namespace oneflow_lite::functional
