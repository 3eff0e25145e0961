// SPDX-License-Identifier: Apache-2.0
//
// Along the last dim: the k-th smallest element, medians, and the places around quantiles.
#include "functional/binary.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/ternary.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/place.h"

namespace oneflow_lite {
namespace {

Shape WithoutLast(const Shape& shape) {
  Shape rest = shape;
  rest.dims().pop_back();
  return rest;
}

Status CheckSome(const InferContext& c, const char* what) {
  OFL_RETURN_IF_ERROR(CheckHasLastDim(c));
  const Shape& shape = c.shape(0);
  if (shape[shape.ndim() - 1] > 0) return OkStatus();
  return Error(ErrorKind::kIndex, c.op(), "(): there is no ", what, " of no elements: shape ",
               shape.ToString());
}

void DefineRank(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSome(c, "median"));
    c.SetOutput(0, WithoutLast(c.shape(0)), c.dtype(0));
    c.SetOutput(1, WithoutLast(c.shape(0)), DType::kInt64);
    return OkStatus();
  };
  SplitButLast(op);
  TakeFromPlaces(op, /*keeps_dim=*/false);
}

void DefineKthValue(OpDef& op) {
  DefineRank(op);
  op.Attr("k", AttrType::kInt);
  op.doc = "The k-th smallest element along the last dim, counted from 1, and its place.";
  op.infer = [infer = op.infer](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckHasLastDim(c));
    const int64_t k = c.attr<int64_t>(0), size = c.shape(0)[c.shape(0).ndim() - 1];
    if (k < 1 || k > size) {
      return Error(ErrorKind::kValue, c.op(), "(): k is ", k, ", but it must be in [1, ", size,
                   "]");
    }
    return infer(c);
  };
}
// g over the number of elements that equal the one taken, or are NaN as it is, at each of them.
Status ShareAmongEqual(GradContext& c) {
  if (!c.grad(0).defined()) return OkStatus();
  const Tensor x = c.input(0).Detach();
  OFL_ASSIGN_OR_RETURN(const Tensor taken, functional::Unsqueeze(c.output(0).Detach(), -1));
  OFL_ASSIGN_OR_RETURN(const Tensor dy, functional::Unsqueeze(c.grad(0), -1));
  OFL_ASSIGN_OR_RETURN(const Tensor alike,
                       functional::IsClose(x, taken, /*rtol=*/0, /*atol=*/0, /*equal_nan=*/true));
  OFL_ASSIGN_OR_RETURN(const Tensor number, functional::CountNonzero(alike, Dims{-1}, true));
  OFL_ASSIGN_OR_RETURN(const Tensor share, functional::Div(dy, number));
  return c.Set(0, functional::Where(alike, share, Scalar(0)));
}

void DefineMiddle(OpDef& op) {
  DefineRank(op);
  op.Attr("share", AttrType::kBool, false);
  op.save = [one = op.save](const Attrs& attrs, Needs needs) {
    return attrs.get<bool>(0) ? SavePlan{.inputs = Bit(0), .outputs = Bit(0)} : one(attrs, needs);
  };
  op.backward = [one = op.backward](GradContext& c) {
    return c.attr<bool>(0) ? ShareAmongEqual(c) : one(c);
  };
}

void DefineMedian(OpDef& op) {
  DefineMiddle(op);
  op.doc =
      "The middle element along the last dim, of two the lower, and its place; the first NaN where "
      "there is one.";
}
void DefineNanMedian(OpDef& op) {
  DefineMiddle(op);
  op.doc = "The middle element of those along the last dim that are not NaN, and its place.";
}

void DefineQuantilePlaces(OpDef& op) {
  op.Input("in").Input("q").Output("places").Output("numbers");
  op.Attr("interpolation", AttrType::kString).Attr("skip_nan", AttrType::kBool, false);
  op.doc =
      "Where along the last dim the elements lie that the shares q are between: one place for each "
      "with \"lower\", \"higher\" and \"nearest\", else those below and then those above; and how "
      "many elements there are that are no NaN.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSome(c, "quantile"));
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
    }
    if (c.dtype(1) != DType::kFloat64) return DTypeMismatch(c.op(), "q", c.dtype(1), "float64");
    if (c.shape(1).ndim() != 1) return ShapeMismatch(c.op(), "q", c.shape(1), "1 dim");
    const std::string& how = c.attr<std::string>(0);
    const bool one = how == "lower" || how == "higher" || how == "nearest";
    Shape shape = c.shape(0);
    shape[shape.ndim() - 1] = c.shape(1)[0] * (one ? 1 : 2);
    c.SetOutput(0, shape, DType::kInt64);
    shape[shape.ndim() - 1] = 1;
    c.SetOutput(1, shape, DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    for (int d = 0; d + 1 < c.inputs[0].ndim(); ++d) {
      out.push_back({{Sbp::Split(d), Sbp::Broadcast()}, {Sbp::Split(d), Sbp::Split(d)}});
    }
    return out;
  };
  op.sbp_text = "split on any dim but the last";
}

OFL_REGISTER_OP("kthvalue", DefineKthValue);
OFL_REGISTER_OP("median", DefineMedian);
OFL_REGISTER_OP("nanmedian", DefineNanMedian);
OFL_REGISTER_OP("quantile_places", DefineQuantilePlaces);

}  // namespace
}  // namespace oneflow_lite
