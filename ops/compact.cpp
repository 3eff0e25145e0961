// SPDX-License-Identifier: Apache-2.0
//
// Elements where a mask holds. How many there are the caller has counted: an op's shapes do not
// depend on data.
#include "functional/compact.h"

#include <algorithm>
#include <limits>

#include "functional/creation.h"
#include "functional/select.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status CheckCount(const InferContext& c, int64_t most) {
  const int64_t count = c.attr<int64_t>(0);
  if (count >= 0 && count <= most) return OkStatus();
  return BadValue(c.op(), "count", absl::StrCat(count), absl::StrCat("in [0, ", most, "]"));
}
Status CheckMask(const InferContext& c) {
  if (c.dtype(1) != DType::kBool) return DTypeMismatch(c.op(), "mask", c.dtype(1), "bool");
  if (c.shape(1) == c.shape(0)) return OkStatus();
  return ShapeMismatch(c.op(), "mask", c.shape(1), c.shape(0).ToString());
}

void DefineNonzero(OpDef& op) {
  op.Input("in").Output("out").Attr("count", AttrType::kInt);
  op.doc = "The coordinates of the first `count` elements that are not 0, a row for each.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckCount(c, c.shape(0).numel()));
    c.SetOutput(0, Shape{c.attr<int64_t>(0), c.shape(0).ndim()}, DType::kInt64);
    return OkStatus();
  };
}

void DefinePresence(OpDef& op) {
  op.Input("in").Output("out").Attr("low", AttrType::kInt).Attr("size", AttrType::kInt);
  op.doc = "For each whole number from `low` on whether it is an element, of `size` numbers.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (!IsIntegral(c.dtype(0))) {
      return DTypeMismatch(c.op(), "in", c.dtype(0), "an integer dtype");
    }
    const int64_t size = c.attr<int64_t>(1);
    if (size < 0) return BadValue(c.op(), "size", absl::StrCat(size), "at least 0");
    const int64_t low = c.attr<int64_t>(0), last = std::max<int64_t>(size - 1, 0);
    if (low > std::numeric_limits<int64_t>::max() - last) {
      return BadValue(c.op(), "size", absl::StrCat(size), "of numbers that fit into int64");
    }
    for (const int64_t number : {low, low + last}) {
      if (!Scalar(number).Fits(c.dtype(0))) return NumberOutOfRange(c.op(), number, c.dtype(0));
    }
    c.SetOutput(0, Shape{size}, DType::kBool);
    return OkStatus();
  };
}

void DefineMaskedTake(OpDef& op) {
  op.Input("in").Input("mask").Output("out").Attr("count", AttrType::kInt);
  op.doc = "The first `count` elements where the mask holds; 0 where there are no more.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMask(c));
    if (c.attr<int64_t>(0) < 0) return CheckCount(c, c.shape(0).numel());
    c.SetOutput(0, Shape{c.attr<int64_t>(0)}, c.dtype(0));
    return OkStatus();
  };
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(const Tensor zeros,
                         functional::Zeros(c.spec(0).shape, c.grad(0).dtype(), c.grad(0).device()));
    return c.Set(0, functional::MaskedPut(zeros, c.input(1), c.grad(0)));
  };
}

void DefineMaskedPut(OpDef& op) {
  op.Input("in").Input("mask").Input("src").Output("out");
  op.doc =
      "Where the mask holds the elements of src, in their order, as long as there are some; "
      "else those of in.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMask(c));
    if (c.dtype(2) != c.dtype(0)) return DTypeMismatch(c.op(), "src", c.dtype(2), Name(c.dtype(0)));
    if (c.shape(2).ndim() != 1) return ShapeMismatch(c.op(), "src", c.shape(2), "1 dim");
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  // Where src had no more elements than places, which the functor sees to.
  op.backward = [](GradContext& c) -> Status {
    if (c.needs(0)) {
      OFL_RETURN_IF_ERROR(c.Set(0, functional::Where(c.input(1), Scalar(0), c.grad(0))));
    }
    if (!c.needs(2)) return OkStatus();
    return c.Set(2, functional::MaskedTake(c.grad(0), c.input(1), c.spec(2).shape.numel()));
  };
}

OFL_REGISTER_OP("nonzero", DefineNonzero);
OFL_REGISTER_OP("presence", DefinePresence);
OFL_REGISTER_OP("masked_take", DefineMaskedTake);
OFL_REGISTER_OP("masked_put", DefineMaskedPut);

}  // namespace
}  // namespace oneflow_lite
