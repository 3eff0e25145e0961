// SPDX-License-Identifier: Apache-2.0
#include "functional/ravel_multi_index.h"

#include "functional/copy.h"
#include "functional/index_rows.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

StatusOr<Tensor> RavelMultiIndex(absl::Span<const Tensor> indices, const Dims& sizes,
                                 const Dims& dims) {
  static const OpExpr& op = OpBuilder("ravel_multi_index")
                                .Input("indices")
                                .Output("out")
                                .Attr("sizes")
                                .Attr("dims")
                                .Get();
  TensorList places;
  for (const Tensor& index : indices) {
    if (!index.defined()) return NotDefined("ravel_multi_index", "indices");
    if (!IsIntegral(index.dtype())) {
      return DTypeMismatch("ravel_multi_index", "indices", index.dtype(), "an integer dtype");
    }
    OFL_ASSIGN_OR_RETURN(Tensor place, Cast(index, DType::kInt64));
    places.push_back(std::move(place));
  }
  return Call(op, places, {sizes, dims});
}

namespace {

// t in a shape, itself where it is so already.
StatusOr<Tensor> Shaped(const Tensor& t, const Dims& shape) {
  return t.shape() == Shape(shape) ? StatusOr<Tensor>(t) : Reshape(t, shape);
}

// The leading dims of x joined to one, places in it, and the shape of what they pick.
struct Leading {
  Tensor rows, line;
  Dims shape;
};
StatusOr<Leading> LeadingOf(const char* name, const Tensor& x, absl::Span<const Tensor> indices) {
  if (!x.defined()) return NotDefined(name, "input");
  const int count = static_cast<int>(indices.size());
  if (count < 1 || count > x.ndim()) {
    return Error(ErrorKind::kIndex, name, "(): ", count, " indices for a tensor of shape ",
                 x.shape().ToString());
  }
  Dims sizes, dims, rows_shape = {1};
  for (int d = 0; d < x.ndim(); ++d) {
    if (d >= count) {
      rows_shape.push_back(x.shape()[d]);
      continue;
    }
    sizes.push_back(x.shape()[d]);
    dims.push_back(d);
    rows_shape[0] *= x.shape()[d];
  }
  StatusOr<Tensor> places = RavelMultiIndex(indices, sizes, dims);
  if (!places.ok()) return Renamed(name, places.status());
  Leading leading;
  leading.shape = places->shape().dims();
  leading.shape.insert(leading.shape.end(), rows_shape.begin() + 1, rows_shape.end());
  OFL_ASSIGN_OR_RETURN(leading.rows, Reshape(x, rows_shape));
  leading.line = *std::move(places);
  if (leading.line.ndim() != 1) {
    OFL_ASSIGN_OR_RETURN(leading.line, Reshape(leading.line, {-1}));
  }
  return leading;
}

}  // namespace

StatusOr<Tensor> IndexLeading(const Tensor& x, absl::Span<const Tensor> indices) {
  if (indices.size() == 1) return IndexFirst(x, indices[0]);
  OFL_ASSIGN_OR_RETURN(const Leading leading, LeadingOf("index", x, indices));
  OFL_ASSIGN_OR_RETURN(const Tensor y, SelectPlaces(leading.rows, 0, leading.line, false));
  return Shaped(y, leading.shape);
}

StatusOr<Tensor> IndexLeadingInto(const Tensor& x, absl::Span<const Tensor> indices,
                                  const Tensor& value, bool accumulate) {
  constexpr char kName[] = "setitem";
  if (indices.size() == 1) return IndexDimInto(x, 0, indices[0], value, 0, accumulate);
  OFL_ASSIGN_OR_RETURN(const Leading leading, LeadingOf(kName, x, indices));
  if (!x.is_contiguous()) return BadValue(kName, "x", "strided", "contiguous");
  OFL_ASSIGN_OR_RETURN(Tensor source, ValueFor(value, x, leading.shape));
  Dims rows = leading.rows.shape().dims();
  rows[0] = leading.line.numel();
  OFL_ASSIGN_OR_RETURN(source, Shaped(source, rows));
  OFL_RETURN_IF_ERROR(IndexDimInto(leading.rows, 0, leading.line, source, 0, accumulate).status());
  return x;
}

}  // namespace oneflow_lite::functional
