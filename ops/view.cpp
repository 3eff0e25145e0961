// SPDX-License-Identifier: Apache-2.0
//
// Views: ops whose output is the input's memory under another geometry. They have no kernel. The
// gradient of a view that leaves elements out puts the incoming gradient into zeros of the base's
// shape (as_strided_backward).
#include "functional/view.h"

#include <algorithm>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/view_gradient.h"
#include "ops/view_shards.h"

namespace oneflow_lite {
namespace {

using Geo = StatusOr<Geometry>;

Status OutOfRange(const char* op, const char* what, int64_t value, const Tensor& x) {
  return Error(ErrorKind::kIndex, op, "(): ", what, " ", value, " is out of range for ",
               Describe(x));
}

bool HasDim(const Tensor& x, int64_t dim) { return dim >= 0 && dim < x.ndim(); }

void DefineViewOp(OpDef& op, const char* doc) {
  op.Input("in", InputDef::Kind::kViewed).Output("out");
  op.doc = doc;
}

// The shape that the call asks for, as far as it is a shard's.
Status ShapeOfShard(PhysicalContext& c) {
  c.attrs[0] = c.OutputShape(0).dims();
  return OkStatus();
}

// The dims but one, which goes from the output where `dropped`.
SbpSignatures SplitOtherDims(const SbpContext& c, bool dropped) {
  SbpSignatures out;
  const int dim = static_cast<int>(c.attrs.get<int64_t>(0));
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (d != dim) out.push_back({{Sbp::Split(d)}, {Sbp::Split(dropped && d > dim ? d - 1 : d)}});
  }
  return out;
}

void DefineView(OpDef& op) {
  DefineViewOp(op, "The same elements in another shape.");
  op.Attr("shape", AttrType::kInts);
  op.view = [](const Tensor& x, const Attrs& attrs) -> Geo {
    const Dims& shape = attrs.get<Dims>(0);
    Geometry g{Shape(shape), {}, x.offset()};
    if (CheckedNumel(shape) != x.numel() ||
        std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; })) {
      return Error(ErrorKind::kShape, "view(): shape ", ToString(shape), " does not go with ",
                   Describe(x));
    }
    if (!ViewStrides(x.shape(), x.strides(), shape, &g.strides)) {
      return Error(ErrorKind::kShape, "view(): ", Describe(x), " with strides ",
                   ToString(x.strides()), " cannot be seen as ", ToString(shape),
                   " without a copy; use reshape()");
    }
    return g;
  };
  op.sbp = ViewSignatures;
  op.sbp_text =
      "split on a dim that stays, or on the first of dims that become others, where the parts are "
      "even";
  op.infer_physical = ShapeOfShard;
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::Reshape(c.grad(0), c.spec(0).shape));
  };
}

void DefinePermute(OpDef& op) {
  DefineViewOp(op, "The dims in another order.");
  op.Attr("dims", AttrType::kInts);
  op.view = [](const Tensor& x, const Attrs& attrs) -> Geo {
    const Dims& order = attrs.get<Dims>(0);
    Dims sorted = order;
    std::sort(sorted.begin(), sorted.end());
    bool valid = static_cast<int>(order.size()) == x.ndim();
    for (size_t d = 0; valid && d < sorted.size(); ++d)
      valid = sorted[d] == static_cast<int64_t>(d);
    if (!valid) {
      return Error(ErrorKind::kValue, "permute(): dims ", ToString(order),
                   " are not an order of the dims of ", Describe(x));
    }
    Geometry g{{}, {}, x.offset()};
    for (int64_t d : order) {
      g.shape.dims().push_back(x.shape()[d]);
      g.strides.push_back(x.strides()[d]);
    }
    return g;
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Dims& order = c.attrs.get<Dims>(0);
    for (int d = 0; d < static_cast<int>(order.size()); ++d) {
      out.push_back({{Sbp::Split(static_cast<int>(order[d]))}, {Sbp::Split(d)}});
    }
    return out;
  };
  op.sbp_text = "split on any dim";
  op.backward = [](GradContext& c) -> Status {
    const Dims& order = c.attr<Dims>(0);
    Dims inverse(order.size());
    for (size_t d = 0; d < order.size(); ++d) inverse[order[d]] = static_cast<int64_t>(d);
    return c.Set(0, functional::Permute(c.grad(0), inverse));
  };
}

void DefineExpand(OpDef& op) {
  DefineViewOp(op, "Dims of size 1 repeated, new dims in front.");
  op.Attr("shape", AttrType::kInts);
  op.view = [](const Tensor& x, const Attrs& attrs) -> Geo {
    const Dims& shape = attrs.get<Dims>(0);
    const int extra = static_cast<int>(shape.size()) - x.ndim();
    bool valid = extra >= 0 && CheckedNumel(shape) >= 0;
    Geometry g{Shape(shape), Dims(shape.size(), 0), x.offset()};
    for (int d = 0; valid && d < static_cast<int>(shape.size()); ++d) {
      const int64_t size = d < extra ? 1 : x.shape()[d - extra];
      valid = shape[d] >= 0 && (size == 1 || size == shape[d]);
      if (d >= extra && size == shape[d]) g.strides[d] = x.strides()[d - extra];
    }
    if (!valid) {
      return Error(ErrorKind::kShape, "expand(): ", Describe(x), " does not expand to ",
                   ToString(shape));
    }
    return g;
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Shape& in = c.inputs[0];
    const Dims& shape = c.attrs.get<Dims>(0);
    const int extra = static_cast<int>(shape.size()) - in.ndim();
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      const bool kept = d >= extra && in[d - extra] == shape[d];
      out.push_back({{kept ? Sbp::Split(d - extra) : Sbp::Broadcast()}, {Sbp::Split(d)}});
    }
    return out;
  };
  op.sbp_text = "the result split on any dim, with it the input where it is not repeated";
  op.infer_physical = ShapeOfShard;
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::SumToShape(c.grad(0), c.spec(0).shape));
  };
}

// The geometry that the view would have of a dense input.
StatusOr<Geometry> OfDenseInput(const GradContext& c) {
  return c.op().view(DenseBase(c.spec(0).shape, c.spec(0).dtype), c.attrs());
}
// The gradient of a view without overlap.
StatusOr<Tensor> PutBack(const GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Geometry g, OfDenseInput(c));
  return PutInto(c.spec(0).shape, c.grad(0), g);
}

void DefineSlice(OpDef& op) {
  DefineViewOp(op, "Elements start, start + step, ... before end along a dim.");
  op.Attr("dim", AttrType::kInt).Attr("start", AttrType::kInt).Attr("end", AttrType::kInt);
  op.Attr("step", AttrType::kInt, int64_t{1});
  op.view = [](const Tensor& x, const Attrs& a) -> Geo {
    const int64_t dim = a.get<int64_t>(0), start = a.get<int64_t>(1), end = a.get<int64_t>(2);
    const int64_t step = a.get<int64_t>(3);
    if (!HasDim(x, dim)) return OutOfRange("slice", "dim", dim, x);
    if (start < 0 || start > end || end > x.shape()[dim]) return OutOfRange("slice", "end", end, x);
    if (step <= 0) return BadValue("slice", "step", absl::StrCat(step), "positive");
    Geometry g{x.shape(), x.strides(), x.offset()};
    g.shape[dim] = end == start ? 0 : (end - start - 1) / step + 1;
    if (g.shape[dim] > 0) g.offset += start * x.strides()[dim];
    g.strides[dim] *= g.shape[dim] > 1 ? step : 1;
    return g;
  };
  op.sbp = [](const SbpContext& c) { return SplitOtherDims(c, /*dropped=*/false); };
  op.sbp_text = "split on any other dim";
  op.backward = [](GradContext& c) -> Status { return c.Set(0, PutBack(c)); };
}

void DefineSelect(OpDef& op) {
  DefineViewOp(op, "One element along a dim, which goes.");
  op.Attr("dim", AttrType::kInt).Attr("index", AttrType::kInt);
  op.view = [](const Tensor& x, const Attrs& a) -> Geo {
    const int64_t dim = a.get<int64_t>(0), index = a.get<int64_t>(1);
    if (!HasDim(x, dim)) return OutOfRange("select", "dim", dim, x);
    if (index < 0 || index >= x.shape()[dim]) return OutOfRange("select", "index", index, x);
    Geometry g{x.shape(), x.strides(), x.offset() + index * x.strides()[dim]};
    g.shape.dims().erase(g.shape.dims().begin() + dim);
    g.strides.erase(g.strides.begin() + dim);
    return g;
  };
  op.sbp = [](const SbpContext& c) { return SplitOtherDims(c, /*dropped=*/true); };
  op.sbp_text = "split on any other dim";
  op.backward = [](GradContext& c) -> Status { return c.Set(0, PutBack(c)); };
}

void DefineDiagonal(OpDef& op) {
  DefineViewOp(op, "The diagonal of two dims, which go, as the last dim.");
  op.Attr("dim1", AttrType::kInt).Attr("dim2", AttrType::kInt);
  op.Attr("offset", AttrType::kInt, int64_t{0});
  op.view = [](const Tensor& x, const Attrs& a) -> Geo {
    const int64_t dims[] = {a.get<int64_t>(0), a.get<int64_t>(1)}, offset = a.get<int64_t>(2);
    if (!HasDim(x, dims[0])) return OutOfRange("diagonal", "dim1", dims[0], x);
    if (!HasDim(x, dims[1]) || dims[0] == dims[1]) {
      return OutOfRange("diagonal", "dim2", dims[1], x);
    }
    const int64_t rows = x.shape()[dims[0]], cols = x.shape()[dims[1]];
    const int64_t down = offset < 0 ? -std::max(offset, -rows) : 0;
    const int64_t right = offset > 0 ? std::min(offset, cols) : 0;
    const int64_t n = std::max<int64_t>(0, std::min(rows - down, cols - right));
    const int64_t row = x.strides()[dims[0]], col = x.strides()[dims[1]];
    Geometry g{x.shape(), x.strides(), x.offset() + (n > 0 ? down * row + right * col : 0)};
    for (const int64_t d : {std::max(dims[0], dims[1]), std::min(dims[0], dims[1])}) {
      g.shape.dims().erase(g.shape.dims().begin() + d);
      g.strides.erase(g.strides.begin() + d);
    }
    g.shape.dims().push_back(n);
    g.strides.push_back(row + col);
    return g;
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const auto dim1 = c.attrs.get<int64_t>(0), dim2 = c.attrs.get<int64_t>(1);
    for (int d = 0; d < c.inputs[0].ndim(); ++d) {
      if (d == dim1 || d == dim2) continue;
      out.push_back({{Sbp::Split(d)}, {Sbp::Split(d - (d > dim1) - (d > dim2))}});
    }
    return out;
  };
  op.sbp_text = "split on any other dim";
  op.backward = [](GradContext& c) -> Status { return c.Set(0, PutBack(c)); };
}

void DefineUnfold(OpDef& op) {
  DefineViewOp(op, "Windows of `size` elements, `step` apart along a dim, as the last dim.");
  op.Attr("dim", AttrType::kInt).Attr("size", AttrType::kInt).Attr("step", AttrType::kInt);
  op.view = [](const Tensor& x, const Attrs& a) -> Geo {
    const int64_t dim = a.get<int64_t>(0), size = a.get<int64_t>(1), step = a.get<int64_t>(2);
    if (!HasDim(x, dim)) return OutOfRange("unfold", "dim", dim, x);
    const int64_t most = x.shape()[dim];
    if (size < 0 || size > most) {
      return BadValue("unfold", "size", absl::StrCat(size), absl::StrCat("in [0, ", most, "]"));
    }
    if (step < 1) return BadValue("unfold", "step", absl::StrCat(step), "positive");
    Geometry g{x.shape(), x.strides(), x.offset()};
    g.shape[dim] = (most - size) / step + 1;
    g.shape.dims().push_back(size);
    g.strides.push_back(g.strides[dim]);
    if (__builtin_mul_overflow(g.strides[dim], step, &g.strides[dim])) g.strides[dim] = 0;
    return g;
  };
  op.sbp = [](const SbpContext& c) { return SplitOtherDims(c, /*dropped=*/false); };
  op.sbp_text = "split on any other dim";
  op.backward = [](GradContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(const Geometry g, OfDenseInput(c));
    return c.Set(0, AddInto(c.spec(0).shape, {}, c.grad(0), g));
  };
}

void DefineAsStrided(OpDef& op) {
  DefineViewOp(op, "Any geometry within the storage; the offset counts from the input's.");
  op.Attr("shape", AttrType::kInts).Attr("strides", AttrType::kInts).Attr("offset", AttrType::kInt);
  // Of an input that is not contiguous, for the gradient; empty: contiguous.
  op.Attr("input_strides", AttrType::kInts, AttrValue(std::in_place_type<Dims>));
  op.view = [](const Tensor& x, const Attrs& a) -> Geo {
    const int64_t offset = x.offset() + a.get<int64_t>(2);
    const int64_t available = static_cast<int64_t>(x.storage()->nbytes() / SizeOf(x.dtype()));
    if (!Fits(a.get<Dims>(0), a.get<Dims>(1), offset, available)) {
      return Error(ErrorKind::kValue, "as_strided(): shape ", ToString(a.get<Dims>(0)),
                   " with strides ", ToString(a.get<Dims>(1)), " and offset ", offset,
                   " does not lie within a storage of ", available, " elements");
    }
    if (const Dims& given = a.get<Dims>(3); !given.empty() && given != x.strides()) {
      return BadValue("as_strided", "input_strides", ToString(given),
                      "empty or those of the input, " + ToString(x.strides()));
    }
    return Geometry{Shape(a.get<Dims>(0)), a.get<Dims>(1), offset};
  };
  op.backward = [](GradContext& c) -> Status {
    const Dims &shape = c.attr<Dims>(0), &strides = c.attr<Dims>(1);
    const Geometry g{Shape(shape), strides, c.attr<int64_t>(2)};
    return c.Set(0, AddInto(c.spec(0).shape, c.attr<Dims>(3), c.grad(0), g));
  };
}

void DefineAsStridedBackward(OpDef& op) {
  op.Input("grad").Output("out").Attr("base_shape", AttrType::kInts);
  op.Attr("shape", AttrType::kInts).Attr("strides", AttrType::kInts).Attr("offset", AttrType::kInt);
  op.doc = "Zeros of base_shape with grad put in under the geometry of a view.";
  op.infer = [](InferContext& c) -> Status {
    const Dims& base = c.attr<Dims>(0);
    if (Shape(c.attr<Dims>(1)) != c.shape(0)) {
      return ShapeMismatch(c.op(), "grad", c.shape(0), ToString(c.attr<Dims>(1)));
    }
    if (!Fits(c.attr<Dims>(1), c.attr<Dims>(2), c.attr<int64_t>(3), CheckedNumel(base))) {
      return Error(ErrorKind::kValue, c.op(), "(): the geometry does not fit into ",
                   ToString(base));
    }
    if (!IsInjective(c.attr<Dims>(1), c.attr<Dims>(2))) {
      return Error(ErrorKind::kNotImplemented, c.op(),
                   "(): the gradient of a view with overlapping elements is not there; clone the "
                   "view or its base before one of them is changed in place");
    }
    c.SetOutput(0, Shape(base), c.dtype(0));
    return OkStatus();
  };
  op.sbp = PutBackSignatures;
  op.sbp_text = "split on a dim of which the view has all";
  op.infer_physical = PutBackInShard;
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& as_strided = OpBuilder("as_strided")
                                          .Input("in")
                                          .Output("out")
                                          .Attr("shape")
                                          .Attr("strides")
                                          .Attr("offset")
                                          .Attr("input_strides")
                                          .Get();
    static const OpExpr& dense = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
    static const Dims contiguous;  // no strides to tell the gradient
    OFL_ASSIGN_OR_RETURN(Tensor g, Call(dense, {c.grad(0)}, {c.grad(0).dtype()}));
    return c.Set(0, Call(as_strided, {g},
                         {c.attr<Dims>(1), c.attr<Dims>(2), c.attr<int64_t>(3), contiguous}));
  };
}

OFL_REGISTER_OP("view", DefineView);
OFL_REGISTER_OP("permute", DefinePermute);
OFL_REGISTER_OP("expand", DefineExpand);
OFL_REGISTER_OP("slice", DefineSlice);
OFL_REGISTER_OP("select", DefineSelect);
OFL_REGISTER_OP("diagonal", DefineDiagonal);
OFL_REGISTER_OP("unfold", DefineUnfold);
OFL_REGISTER_OP("as_strided", DefineAsStrided);
OFL_REGISTER_OP("as_strided_backward", DefineAsStridedBackward);

}  // namespace
}  // namespace oneflow_lite
