// SPDX-License-Identifier: Apache-2.0
#include "functional/ranks.h"

#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/shapes.h"
#include "functional/sort.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

const OpExpr& RankExpr(const char* op) {
  return OpBuilder(op).Input("in").Output("values").Output("indices").Attr("share").Get();
}

// Calls an op that takes one element of the last dim along another.
StatusOr<TensorList> CallRank(const OpExpr& op, const Tensor& x, int64_t axis, bool keepdim,
                              const Attrs& attrs = {}) {
  const bool one = x.ndim() == 0;
  OFL_ASSIGN_OR_RETURN(Tensor moved, one ? Unsqueeze(x, 0) : Movedim(x, {axis}, {-1}));
  OFL_ASSIGN_OR_RETURN(TensorList pair, CallAll(op, {moved}, attrs));
  for (Tensor& t : pair) {
    if (!one && keepdim) {
      OFL_ASSIGN_OR_RETURN(t, Unsqueeze(t, axis));
    }
  }
  return pair;
}

StatusOr<TensorList> MiddleAlong(const char* name, const OpExpr& op, const Tensor& x, int64_t dim,
                                 bool keepdim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, x));
  return CallRank(op, x, axis, keepdim, {false});
}

// Of all elements no place is told, and those that are equal share the gradient.
StatusOr<Tensor> MiddleOfAll(const char* name, const OpExpr& op, const Tensor& x) {
  if (!x.defined()) return NotDefined(name, "input");
  if (x.numel() == 0 && IsFloating(x.dtype())) {
    return Full(Shape{}, Scalar(std::numeric_limits<double>::quiet_NaN()), x.dtype(), x.device());
  }
  OFL_ASSIGN_OR_RETURN(Tensor flat, Reshape(x, Shape{-1}));
  OFL_ASSIGN_OR_RETURN(TensorList pair, CallRank(op, flat, 0, false, {true}));
  return std::move(pair[0]);
}

using MiddleOf = StatusOr<Tensor> (*)(const Tensor&);
using MiddlesAlong = StatusOr<TensorList> (*)(const Tensor&, int64_t, bool);
template <MiddlesAlong kAlong, MiddleOf kOfAll>
StatusOr<Value> MiddleFunction(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (dim) {
    OFL_ASSIGN_OR_RETURN(TensorList pair, kAlong(x, *dim, keepdim));
    return Value(std::move(pair));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, kOfAll(x));
  return Value(std::move(y));
}

}  // namespace

StatusOr<TensorList> KthValue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  static const OpExpr& op =
      OpBuilder("kthvalue").Input("in").Output("values").Output("indices").Attr("k").Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("kthvalue", dim, x));
  return CallRank(op, x, axis, keepdim, {k});
}

StatusOr<TensorList> Median(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = RankExpr("median");
  return MiddleAlong("median", op, x, dim, keepdim);
}
StatusOr<Tensor> Median(const Tensor& x) {
  static const OpExpr& op = RankExpr("median");
  return MiddleOfAll("median", op, x);
}
StatusOr<TensorList> NanMedian(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = RankExpr("nanmedian");
  return MiddleAlong("nanmedian", op, x, dim, keepdim);
}
StatusOr<Tensor> NanMedian(const Tensor& x) {
  static const OpExpr& op = RankExpr("nanmedian");
  return MiddleOfAll("nanmedian", op, x);
}

StatusOr<TensorList> Mode(const Tensor& x, int64_t dim, bool keepdim) {
  static const OpExpr& op = OpBuilder("longest_run").Input("sorted").Output("place").Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("mode", dim, x));
  const bool one = x.ndim() == 0;
  if (!one && x.shape()[static_cast<int>(axis)] == 0) {
    return Error(ErrorKind::kIndex, "mode(): there is no mode of no elements: shape ",
                 x.shape().ToString());
  }
  OFL_ASSIGN_OR_RETURN(Tensor moved, one ? Unsqueeze(x, 0) : Movedim(x, {axis}, {-1}));
  OFL_ASSIGN_OR_RETURN(TensorList pair, Sort(moved, -1));
  OFL_ASSIGN_OR_RETURN(Tensor place, Call(op, {pair[0].Detach()}));
  for (Tensor& t : pair) {
    OFL_ASSIGN_OR_RETURN(t, Gather(t, -1, place));
    OFL_ASSIGN_OR_RETURN(t, Squeeze(t, Dims{-1}));
    if (!one && keepdim) {
      OFL_ASSIGN_OR_RETURN(t, Unsqueeze(t, axis));
    }
  }
  return pair;
}

OFL_REGISTER_FUNCTION(
    "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
    "indices)",
    KthValue, kMethod,
    "The k-th smallest element along dim, counted from 1, and its place.\n"
    "ValueError where there is no k-th one.");
OFL_REGISTER_ADAPTER(
    "median(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)",
    (MiddleFunction<Median, Median>), Median, kMethod,
    "The middle element, of two the lower: of all, or the pair (values, indices) along a dim.\n"
    "NaN, and the place of the first one, where there is one. IndexError along a dim of size 0.");
OFL_REGISTER_ADAPTER(
    "nanmedian(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)",
    (MiddleFunction<NanMedian, NanMedian>), NanMedian, kMethod,
    "As median, of the elements that are not NaN.");
OFL_REGISTER_FUNCTION(
    "mode(Tensor input, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", Mode,
    kMethod,
    "What occurs most often along a dim, of several the smallest, and its last place.\n"
    "IndexError along a dim of size 0.");

}  // namespace oneflow_lite::functional
