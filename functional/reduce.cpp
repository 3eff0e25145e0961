// SPDX-License-Identifier: Apache-2.0
#include "functional/reduce.h"

#include <algorithm>

#include "functional/copy.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Sorted, non-negative dims; all where none are given.
StatusOr<Dims> WrapDims(const char* name, const Tensor& x, const std::optional<Dims>& dims) {
  Dims wrapped;
  if (!dims || dims->empty()) {
    for (int d = 0; d < x.ndim(); ++d) wrapped.push_back(d);
    return wrapped;
  }
  for (int64_t d : *dims) {
    OFL_ASSIGN_OR_RETURN(const int64_t w, WrapDim(name, d, x));
    if (x.ndim() > 0) wrapped.push_back(w);
  }
  std::sort(wrapped.begin(), wrapped.end());
  if (std::adjacent_find(wrapped.begin(), wrapped.end()) != wrapped.end()) {
    return BadValue(name, "dim", ToString(*dims), "a list without repetition");
  }
  return wrapped;
}

// The ops reduce a run of neighbouring dims; others are brought to the end first.
StatusOr<Tensor> CallReduce(const OpExpr& op, const Tensor& x, const Dims& dims, bool keepdim) {
  const int n = static_cast<int>(dims.size());
  if (n == 0 || dims[n - 1] - dims[0] == n - 1) return Call(op, {x}, {dims, keepdim});
  Dims order;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) order.push_back(d);
  }
  const int kept = static_cast<int>(order.size());
  order.insert(order.end(), dims.begin(), dims.end());
  OFL_ASSIGN_OR_RETURN(Tensor moved, Permute(x, order));
  Dims last;
  for (int d = kept; d < x.ndim(); ++d) last.push_back(d);
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {moved}, {last, false}));
  if (!keepdim) return y;
  Shape shape = x.shape();
  for (int64_t d : dims) shape[static_cast<int>(d)] = 1;
  return Reshape(y, shape);
}

const OpExpr& ReduceOpExpr(const char* name) {
  return OpBuilder(name).Input("in").Output("out").Attr("dims").Attr("keepdim").Get();
}

StatusOr<Tensor> CallWithDType(const char* name, const OpExpr& op, const Tensor& input,
                               const std::optional<Dims>& dims, bool keepdim,
                               std::optional<DType> dtype) {
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(input, dtype.value_or(input.dtype())));
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(name, x, dims));
  OFL_ASSIGN_OR_RETURN(Tensor y, CallReduce(op, x, wrapped, keepdim));
  return Cast(y, dtype.value_or(y.dtype()));  // integers are added up in int64
}

StatusOr<Value> Max(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (dim) {
    OFL_ASSIGN_OR_RETURN(TensorList pair, MaxAlong(x, *dim, keepdim));
    return Value(std::move(pair));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Amax(x, {}, keepdim));
  return Value(std::move(y));
}

}  // namespace

StatusOr<Tensor> Sum(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                     std::optional<DType> dtype) {
  static const OpExpr& op = ReduceOpExpr("sum");
  return CallWithDType("sum", op, x, dims, keepdim, dtype);
}

StatusOr<Tensor> Mean(const Tensor& x, std::optional<Dims> dims, bool keepdim,
                      std::optional<DType> dtype) {
  static const OpExpr& op = ReduceOpExpr("mean");
  return CallWithDType("mean", op, x, dims, keepdim, dtype);
}

StatusOr<Tensor> Amax(const Tensor& x, std::optional<Dims> dims, bool keepdim) {
  static const OpExpr& op = ReduceOpExpr("amax");
  return CallWithDType("max", op, x, dims, keepdim, {});
}

StatusOr<TensorList> MaxAlong(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = OpBuilder("max")
                                .Input("in")
                                .Output("values")
                                .Output("indices")
                                .Attr("dim")
                                .Attr("keepdim")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("max", dim, x));
  const Tensor inputs[] = {x};
  return CallAll(op, inputs, {axis, keepdim});
}

StatusOr<Tensor> ArgMax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  static const OpExpr& op =
      OpBuilder("argmax").Input("in").Output("indices").Attr("dim").Attr("keepdim").Get();
  if (dim) {
    OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("argmax", *dim, x));
    return Call(op, {x}, {axis, keepdim});
  }
  OFL_ASSIGN_OR_RETURN(Tensor flat, Reshape(x, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {flat}, {int64_t{0}, false}));
  if (!keepdim) return y;
  return Reshape(y, Shape(Dims(x.ndim(), 1)));
}

OFL_REGISTER_FUNCTION(
    "sum(Tensor input, int[]? dim=None, bool keepdim=False, dtype? dtype=None) -> Tensor", Sum,
    kMethod, "Sum over the dims given, or over all; bool and integers are summed in int64.");
OFL_REGISTER_FUNCTION(
    "mean(Tensor input, int[]? dim=None, bool keepdim=False, dtype? dtype=None) -> Tensor", Mean,
    kMethod, "Mean over the dims given, or over all; input must be floating.");
OFL_REGISTER_FUNCTION(
    "max(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)", Max,
    kMethod, "The largest element; with a dim, the pair (values, indices) along it.");
OFL_REGISTER_FUNCTION("amax(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", Amax,
                      kMethod, "The largest elements over the dims given, or over all.");
OFL_REGISTER_FUNCTION("argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", ArgMax,
                      kMethod, "The place of the first maximum along dim, or in the flat tensor.");

}  // namespace oneflow_lite::functional
