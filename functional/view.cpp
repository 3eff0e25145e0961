// SPDX-License-Identifier: Apache-2.0
#include "functional/view.h"

#include <algorithm>

#include "functional/argument_names.h"
#include "functional/copy.h"
#include "functional/shapes.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// The shape with its -1 worked out.
StatusOr<Dims> ResolveShape(const char* name, const Tensor& x, absl::Span<const int64_t> shape) {
  Dims out(shape.begin(), shape.end());
  int64_t known = 1, free = -1;
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] == -1 && free < 0)
      free = static_cast<int64_t>(d);
    else if (out[d] < 0)
      return BadValue(name, "shape", ToString(shape), "non-negative but for one -1");
    else if (__builtin_mul_overflow(known, out[d], &known))
      known = 0;
  }
  if (free >= 0) {
    if (known == 0 || x.numel() % known != 0) {
      return Error(ErrorKind::kShape, name, "(): shape ", ToString(shape), " does not go with ",
                   Describe(x));
    }
    out[free] = x.numel() / known;
  }
  if (CheckedNumel(out) != x.numel()) {
    return Error(ErrorKind::kShape, name, "(): shape ", ToString(shape), " does not go with ",
                 Describe(x));
  }
  return out;
}

StatusOr<Tensor> CallView(const Tensor& x, const Dims& shape) {
  static const OpExpr& op = OpBuilder("view").Input("in").Output("out").Attr("shape").Get();
  return Call(op, {x}, {shape});
}

}  // namespace

StatusOr<Tensor> View(const Tensor& x, absl::Span<const int64_t> shape) {
  const StatusOr<Dims> dims = ResolveShape("view", x, shape);
  if (!dims.ok()) return WithArgument(dims.status(), "shape", "size");
  return CallView(x, *dims);
}

StatusOr<Tensor> Reshape(const Tensor& x, absl::Span<const int64_t> shape) {
  OFL_ASSIGN_OR_RETURN(Dims dims, ResolveShape("reshape", x, shape));
  Dims strides;
  if (ViewStrides(x.shape(), x.strides(), dims, &strides)) return CallView(x, dims);
  OFL_ASSIGN_OR_RETURN(Tensor dense, Contiguous(x));
  return CallView(dense, dims);
}

StatusOr<Tensor> Permute(const Tensor& x, absl::Span<const int64_t> dims) {
  static const OpExpr& op = OpBuilder("permute").Input("in").Output("out").Attr("dims").Get();
  Dims order;
  for (int64_t d : dims) {
    OFL_ASSIGN_OR_RETURN(const int64_t w, WrapDim("permute", d, x));
    order.push_back(w);
  }
  return Call(op, {x}, {std::move(order)});
}

StatusOr<Tensor> Transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  OFL_ASSIGN_OR_RETURN(const int64_t a, WrapDim("transpose", dim0, x));
  OFL_ASSIGN_OR_RETURN(const int64_t b, WrapDim("transpose", dim1, x));
  Dims order;
  for (int d = 0; d < x.ndim(); ++d) order.push_back(d);
  if (x.ndim() > 0) std::swap(order[a], order[b]);
  return Permute(x, order);
}

StatusOr<Tensor> T(const Tensor& x) {
  if (x.ndim() > 2) return ShapeMismatch("t", "input", x.shape(), "at most 2 dims");
  return x.ndim() < 2 ? View(x, x.shape()) : Transpose(x, 0, 1);  // a view in any case
}

StatusOr<Tensor> Slice(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                       std::optional<int64_t> end, int64_t step) {
  static const OpExpr& op = OpBuilder("slice")
                                .Input("in")
                                .Output("out")
                                .Attr("dim")
                                .Attr("start")
                                .Attr("end")
                                .Attr("step")
                                .Get();
  if (!x.defined()) return NotDefined("slice", "input");
  if (x.ndim() == 0) return Error(ErrorKind::kIndex, "slice(): a 0-dim tensor cannot be sliced");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("slice", dim, x));
  if (step <= 0) return BadValue("slice", "step", absl::StrCat(step), "positive");
  const int64_t size = x.shape()[static_cast<int>(axis)];
  const auto clamp = [size](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? std::max(i, -size) + size : i, 0, size);
  };
  const int64_t first = clamp(start.value_or(0));
  const int64_t last = std::max(first, clamp(end.value_or(size)));
  return Call(op, {x}, {axis, first, last, step});
}

StatusOr<Tensor> Narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("narrow", dim, x));
  if (x.ndim() == 0) return Error(ErrorKind::kIndex, "narrow(): a 0-dim tensor has no dims");
  const int64_t size = x.shape()[static_cast<int>(axis)];
  if (start < -size || start > size) {
    return Error(ErrorKind::kIndex, "narrow(): start ", start, " is out of range [", -size, ", ",
                 size, "] for dim ", dim, " of size ", size);
  }
  const int64_t first = start < 0 ? start + size : start;
  if (length < 0 || length > size - first) {
    return Error(ErrorKind::kIndex, "narrow(): start ", start, " and length ", length,
                 " go beyond dim ", dim, " of size ", size);
  }
  return Slice(x, axis, first, first + length);
}

StatusOr<Tensor> Select(const Tensor& x, int64_t dim, int64_t index) {
  static const OpExpr& op =
      OpBuilder("select").Input("in").Output("out").Attr("dim").Attr("index").Get();
  if (!x.defined()) return NotDefined("select", "input");
  if (x.ndim() == 0) {
    return Error(ErrorKind::kIndex, "select(): a 0-dim tensor cannot be indexed; use item()");
  }
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("select", dim, x));
  const int64_t size = x.shape()[static_cast<int>(axis)];
  if (index < -size || index >= size) return IndexOutOfRange("select", index, dim, size);
  return Call(op, {x}, {axis, index < 0 ? index + size : index});
}

StatusOr<Tensor> Expand(const Tensor& x, absl::Span<const int64_t> shape) {
  static const OpExpr& op = OpBuilder("expand").Input("in").Output("out").Attr("shape").Get();
  Dims dims(shape.begin(), shape.end());
  const int extra = static_cast<int>(dims.size()) - x.ndim();
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    if (dims[d] == -1 && d >= extra && extra >= 0) dims[d] = x.shape()[d - extra];
  }
  return Call(op, {x}, {std::move(dims)});
}

StatusOr<Tensor> Squeeze(const Tensor& x, std::optional<Dims> dims) {
  Dims chosen;
  if (dims) {
    OFL_ASSIGN_OR_RETURN(chosen, WrapDims("squeeze", x, *dims));
  }
  Dims shape;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool named = !dims || std::find(chosen.begin(), chosen.end(), d) != chosen.end();
    if (!(named && x.shape()[d] == 1)) shape.push_back(x.shape()[d]);
  }
  return CallView(x, shape);
}

StatusOr<Tensor> Unsqueeze(const Tensor& x, int64_t dim) {
  const int64_t ndim = x.ndim() + 1;
  if (dim < -ndim || dim >= ndim) {
    return Error(ErrorKind::kIndex, "unsqueeze(): dim ", dim, " is out of range [", -ndim, ", ",
                 ndim - 1, "] for ", Describe(x));
  }
  Dims shape = x.shape().dims();
  shape.insert(shape.begin() + (dim < 0 ? dim + ndim : dim), 1);
  return CallView(x, shape);
}

StatusOr<Tensor> Flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t first, WrapDim("flatten", start_dim, x));
  OFL_ASSIGN_OR_RETURN(const int64_t last, WrapDim("flatten", end_dim, x));
  if (first > last) {
    return Error(ErrorKind::kValue, "flatten(): start_dim ", start_dim, " lies after end_dim ",
                 end_dim);
  }
  Dims shape;
  for (int d = 0; d < std::max(1, x.ndim()); ++d) {
    const int64_t size = x.ndim() == 0 ? 1 : x.shape()[d];
    if (d <= first || d > last)
      shape.push_back(size);
    else
      shape.back() *= size;
  }
  return Reshape(x, shape);
}

StatusOr<Tensor> AsStrided(const Tensor& x, absl::Span<const int64_t> shape,
                           absl::Span<const int64_t> strides, std::optional<int64_t> offset) {
  static const OpExpr& op = OpBuilder("as_strided")
                                .Input("in")
                                .Output("out")
                                .Attr("shape")
                                .Attr("strides")
                                .Attr("offset")
                                .Attr("input_strides")
                                .Get();
  Dims given;  // needed by the gradient of an input that is not contiguous
  if (!x.is_contiguous()) given = x.strides();
  return Call(op, {x},
              {Dims(shape.begin(), shape.end()), Dims(strides.begin(), strides.end()),
               offset.value_or(x.offset()) - x.offset(), std::move(given)});
}

OFL_REGISTER_FUNCTION("view(Tensor(a) self, int[] size) -> Tensor",
                      (Overload<const Tensor&, absl::Span<const int64_t>>(View)), kMethodOnly,
                      "The same memory in another shape; one dim may be -1.");
OFL_REGISTER_FUNCTION("reshape(Tensor(a) input, int[] shape) -> Tensor", Reshape, kMethod,
                      "The tensor in another shape, a view where possible; one dim may be -1.");
OFL_REGISTER_FUNCTION("permute(Tensor(a) input, int[] dims) -> Tensor", Permute, kMethod,
                      "A view with the dims in the given order.");
OFL_REGISTER_FUNCTION("transpose(Tensor(a) input, int dim0, int dim1) -> Tensor", Transpose,
                      kMethod, "A view with two dims exchanged.");
OFL_REGISTER_FUNCTION("t(Tensor(a) input) -> Tensor", T, kMethod,
                      "The transpose of a tensor of at most 2 dims, a view.");
OFL_REGISTER_FUNCTION(
    "slice(Tensor(a) input, int dim, int? start=None, int? end=None, int step=1) -> Tensor", Slice,
    kFunction, "A view of elements start, start + step, ... before end along dim.");
OFL_REGISTER_FUNCTION("narrow(Tensor(a) input, int dim, int start, int length) -> Tensor", Narrow,
                      kMethod, "A view of `length` elements from `start` on along dim.");
OFL_REGISTER_FUNCTION("select(Tensor(a) input, int dim, int index) -> Tensor", Select, kMethod,
                      "A view of one element along dim, which goes.");
OFL_REGISTER_FUNCTION("expand(Tensor(a) self, int[] size) -> Tensor", Expand, kMethodOnly,
                      "A view with dims of size 1 repeated; -1 keeps a dim.");
OFL_REGISTER_FUNCTION("squeeze(Tensor(a) input, int[]? dim=None) -> Tensor", Squeeze, kMethod,
                      "A view without the given, or all, dims of size 1.");
OFL_REGISTER_FUNCTION("unsqueeze(Tensor(a) input, int dim) -> Tensor", Unsqueeze, kMethod,
                      "A view with a dim of size 1 put in before dim.");
OFL_REGISTER_FUNCTION("flatten(Tensor(a) input, int start_dim=0, int end_dim=-1) -> Tensor",
                      Flatten, kMethod, "Dims start_dim to end_dim merged into one.");
OFL_REGISTER_FUNCTION(
    "as_strided(Tensor(a) input, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    AsStrided, kMethod, "A view of any geometry within the tensor's storage.");

}  // namespace oneflow_lite::functional
