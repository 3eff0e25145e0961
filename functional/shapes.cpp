// SPDX-License-Identifier: Apache-2.0
#include "functional/shapes.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "functional/argument_names.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

StatusOr<Dims> WrapDims(absl::string_view op, const Tensor& x, absl::Span<const int64_t> dims) {
  Dims wrapped;
  for (const int64_t d : dims) {
    OFL_ASSIGN_OR_RETURN(const int64_t w, WrapDim(op, d, x));
    if (std::find(wrapped.begin(), wrapped.end(), w) != wrapped.end()) {
      return Error(ErrorKind::kValue, op, "(): a dim occurs twice in ", ToString(dims));
    }
    wrapped.push_back(w);
  }
  return wrapped;
}

StatusOr<Shape> CommonShape(absl::string_view op, absl::Span<const Shape> shapes) {
  Shape common;
  bool fits = true;
  for (const Shape& s : shapes) {
    const int missing = s.ndim() - common.ndim();
    if (missing > 0) common.dims().insert(common.dims().begin(), missing, 1);
    for (int d = s.ndim() - 1, to = common.ndim() - 1; d >= 0; --d, --to) {
      if (common[to] == 1) common[to] = s[d];
      fits = fits && (s[d] == 1 || s[d] == common[to]);
    }
  }
  if (fits) return common;
  const auto text = [](std::string* out, const Shape& s) { out->append(s.ToString()); };
  return Error(ErrorKind::kShape, op, "(): the shapes ", absl::StrJoin(shapes, " and ", text),
               " do not broadcast");
}

StatusOr<Shape> CommonShape(absl::string_view op, absl::Span<const Tensor> tensors) {
  absl::InlinedVector<Shape, 4> shapes;
  for (const Tensor& t : tensors) {
    if (!t.defined()) return NotDefined(op, "a tensor");
    shapes.push_back(t.shape());
  }
  return CommonShape(op, absl::MakeConstSpan(shapes));
}

StatusOr<Tensor> Movedim(const Tensor& x, absl::Span<const int64_t> source,
                         absl::Span<const int64_t> destination) {
  OFL_ASSIGN_OR_RETURN(const Dims from, WrapDims("movedim", x, source));
  OFL_ASSIGN_OR_RETURN(const Dims to, WrapDims("movedim", x, destination));
  if (from.size() != to.size()) {
    return Error(ErrorKind::kValue, "movedim(): ", from.size(), " dims to ", to.size(), " places");
  }
  if (x.ndim() == 0) return Permute(x, {});
  Dims order(x.ndim(), -1);
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    d = next++;
  }
  return Permute(x, order);
}

namespace {

// Works out -1 among the parts of one dim of an empty tensor, whose number of elements says nothing
// about them. ShapeError where their product is not the dim's size.
Status DivideDim(const Tensor& x, int64_t axis, Dims* parts) {
  const int64_t size = x.shape()[static_cast<int>(axis)];
  int64_t known = 1;
  int64_t* free = nullptr;
  for (int64_t& n : *parts) {
    if (n == -1 && !free)
      free = &n;
    else if (n < 0 || __builtin_mul_overflow(known, n, &known))
      known = 0;
  }
  if (free && known > 0 && size % known == 0) {
    *free = size / known;
    known = size;
  }
  if (known == size) return OkStatus();
  return Error(ErrorKind::kShape, "unflatten(): sizes ", ToString(*parts), " do not go with dim ",
               axis, " of ", Describe(x));
}

}  // namespace

StatusOr<Tensor> Unflatten(const Tensor& x, int64_t dim, absl::Span<const int64_t> sizes) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("unflatten", dim, x));
  Dims parts(sizes.begin(), sizes.end());
  if (x.numel() == 0) {
    OFL_RETURN_IF_ERROR(DivideDim(x, axis, &parts));
  }
  Dims shape(x.shape().begin(), x.shape().end());
  if (x.ndim() > 0) shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, parts.begin(), parts.end());
  StatusOr<Tensor> y = Reshape(x, shape);
  return y.ok() ? y : WithArgument(Renamed("unflatten", y.status()), "shape", "sizes");
}

StatusOr<Tensor> Ravel(const Tensor& x) { return Reshape(x, {-1}); }

StatusOr<Tensor> BroadcastTo(const Tensor& x, absl::Span<const int64_t> size) {
  return Expand(x, size);
}

StatusOr<TensorList> BroadcastTensors(absl::Span<const Tensor> tensors) {
  OFL_ASSIGN_OR_RETURN(const Shape shape, CommonShape("broadcast_tensors", tensors));
  TensorList result;
  for (const Tensor& t : tensors) {
    OFL_ASSIGN_OR_RETURN(Tensor wide, Expand(t, shape));
    result.push_back(std::move(wide));
  }
  return result;
}

StatusOr<TensorList> Meshgrid(absl::Span<const Tensor> tensors, absl::string_view indexing) {
  if (indexing != "ij" && indexing != "xy") {
    return BadValue("meshgrid", "indexing", absl::StrCat("\"", indexing, "\""), "\"ij\" or \"xy\"");
  }
  Dims shape;
  for (const Tensor& t : tensors) {
    if (t.ndim() > 1) return ShapeMismatch("meshgrid", "a tensor", t.shape(), "at most 1 dim");
    shape.push_back(t.numel());
  }
  TensorList grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims line(tensors.size(), 1);
    line[i] = shape[i];
    OFL_ASSIGN_OR_RETURN(Tensor grid, Reshape(tensors[i], line));
    OFL_ASSIGN_OR_RETURN(grid, Expand(grid, shape));
    if (indexing == "xy" && tensors.size() > 1) {
      OFL_ASSIGN_OR_RETURN(grid, Transpose(grid, 0, 1));
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

StatusOr<Tensor> Atleast1d(const Tensor& x) {
  return x.defined() && x.ndim() == 0 ? Reshape(x, {1}) : StatusOr<Tensor>(x);
}
StatusOr<Tensor> Atleast2d(const Tensor& x) {
  return x.defined() && x.ndim() < 2 ? Reshape(x, {1, x.numel()}) : StatusOr<Tensor>(x);
}
StatusOr<Tensor> Atleast3d(const Tensor& x) {
  if (!x.defined() || x.ndim() > 2) return x;
  return x.ndim() < 2 ? Reshape(x, {1, x.numel(), 1}) : Unsqueeze(x, 2);
}

namespace {
const OpExpr& DiagonalOp() {
  static const OpExpr& op = OpBuilder("diagonal")
                                .Input("in")
                                .Output("out")
                                .Attr("dim1")
                                .Attr("dim2")
                                .Attr("offset")
                                .Get();
  return op;
}
}  // namespace

StatusOr<Tensor> Diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  if (x.ndim() < 2) return ShapeMismatch("diagonal", "input", x.shape(), "at least 2 dims");
  OFL_ASSIGN_OR_RETURN(const Dims pair, WrapDims("diagonal", x, {dim1, dim2}));
  return Call(DiagonalOp(), {x}, {pair[0], pair[1], offset});
}

StatusOr<Tensor> DiagonalToRead(const Tensor& matrix) {
  if (GlobalOf(matrix) || (GradEnabled() && autograd::RequiresGrad(matrix))) {
    return Diagonal(matrix);
  }
  OFL_ASSIGN_OR_RETURN(const Geometry g, DiagonalOp().def().view(matrix, {0, 1, 0}));
  return matrix.WithGeometry(g.shape, g.strides, g.offset);
}

StatusOr<Tensor> Unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  static const OpExpr& op =
      OpBuilder("unfold").Input("in").Output("out").Attr("dim").Attr("size").Attr("step").Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("unfold", dimension, x));
  if (x.ndim() > 0) return Call(op, {x}, {axis, size, step});
  OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(x, {1}));
  OFL_ASSIGN_OR_RETURN(const Tensor windows, Call(op, {line}, {axis, size, step}));
  return Select(windows, 0, 0);
}

namespace {

template <StatusOr<Tensor> (*kOne)(const Tensor&), int kDims>
StatusOr<TensorList> OfEach(absl::Span<const Tensor> tensors) {
  TensorList result;
  for (const Tensor& t : tensors) {
    if (!t.defined()) return NotDefined(absl::StrCat("atleast_", kDims, "d"), "a tensor");
    OFL_ASSIGN_OR_RETURN(Tensor y, kOne(t));
    result.push_back(std::move(y));
  }
  return result;
}

}  // namespace

StatusOr<Tensor> ViewAs(const Tensor& x, const Tensor& other) {
  if (!other.defined()) return NotDefined("view_as", "other");
  StatusOr<Tensor> y = View(x, other.shape());
  return y.ok() ? y : WithArgument(y.status(), "size", "shape");
}
StatusOr<Tensor> ReshapeAs(const Tensor& x, const Tensor& other) {
  if (!other.defined()) return NotDefined("reshape_as", "other");
  return Reshape(x, other.shape());
}
StatusOr<Tensor> ExpandAs(const Tensor& x, const Tensor& other) {
  if (!other.defined()) return NotDefined("expand_as", "other");
  return Expand(x, other.shape());
}

OFL_REGISTER_FUNCTION("movedim(Tensor(a) input, int[] source, int[] destination) -> Tensor",
                      Movedim, kMethod,
                      "A view with dims moved to other places; the others keep their order.");
OFL_REGISTER_ALIAS("moveaxis", "movedim");
OFL_REGISTER_FUNCTION("unflatten(Tensor(a) input, int dim, int[] sizes) -> Tensor", Unflatten,
                      kMethod, "One dim as several, of which one may be -1.");
OFL_REGISTER_FUNCTION("ravel(Tensor(a) input) -> Tensor", Ravel, kMethod,
                      "The elements along one dim, copied where strides cannot express it.");
OFL_REGISTER_FUNCTION("broadcast_to(Tensor(a) input, int[] size) -> Tensor", BroadcastTo, kMethod,
                      "The tensor repeated to a shape, without a copy.");
OFL_REGISTER_FUNCTION("broadcast_tensors(Tensor... tensors) -> Tensor[]", BroadcastTensors,
                      kFunction, "All tensors repeated to one shape, without a copy.");
OFL_REGISTER_FUNCTION(
    "meshgrid(Tensor... tensors, *, str indexing='ij') -> Tensor[]", Meshgrid, kFunction,
    "The coordinates of all points of a grid; \"xy\" has its first two dims the other way round.");
OFL_REGISTER_ADAPTER("atleast_1d(Tensor... tensors) -> Tensor...", (OfEach<Atleast1d, 1>),
                     Atleast1d, kFunction,
                     "The tensor, with a dim where it has none; of several, a tuple.");
OFL_REGISTER_ADAPTER(
    "atleast_2d(Tensor... tensors) -> Tensor...", (OfEach<Atleast2d, 2>), Atleast2d, kFunction,
    "The tensor, with as many dims of 1 in front that it has two; of several, a tuple.");
OFL_REGISTER_ADAPTER(
    "atleast_3d(Tensor... tensors) -> Tensor...", (OfEach<Atleast3d, 3>), Atleast3d, kFunction,
    "The tensor as [1, n, 1] or [m, n, 1] where it has fewer dims; of several, a tuple.");
OFL_REGISTER_FUNCTION(
    "diagonal(Tensor(a) input, int offset=0, int dim1=0, int dim2=1) -> Tensor", Diagonal, kMethod,
    "The diagonal of two dims, at the end: a view.\n"
    "With an offset it starts so many columns to the right, or if negative rows further down.");
OFL_REGISTER_FUNCTION("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor", Unfold,
                      kMethodOnly,
                      "All windows of a size along a dim, each a step on: the last dim is the "
                      "window's. A view.");
OFL_REGISTER_FUNCTION("view_as(Tensor(a) self, Tensor other) -> Tensor", ViewAs, kMethodOnly,
                      "The same memory under the shape of another tensor.");
OFL_REGISTER_FUNCTION(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor", ReshapeAs, kMethodOnly,
    "The tensor under the shape of another, copied where strides cannot express it.");
OFL_REGISTER_FUNCTION("expand_as(Tensor(a) self, Tensor other) -> Tensor", ExpandAs, kMethodOnly,
                      "The tensor repeated to the shape of another, without a copy.");

}  // namespace oneflow_lite::functional
