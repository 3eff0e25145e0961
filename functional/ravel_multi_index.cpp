// SPDX-License-Identifier: Apache-2.0
#include "functional/ravel_multi_index.h"

#include <algorithm>
#include <functional>
#include <numeric>

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

// Neighbouring dims of x joined to one, places in it, and the shape of what they pick.
struct Joined {
  Tensor x, line;
  Dims shape;
};
// An index for each of the dims from `first` on; `dims` are these in messages.
StatusOr<Joined> JoinedAt(const char* name, const Tensor& x, int first,
                          absl::Span<const Tensor> indices, const Dims& dims) {
  if (!x.defined()) return NotDefined(name, "input");
  const int count = static_cast<int>(indices.size());
  if (count < 1 || first < 0 || first + count > x.ndim()) {
    return Error(ErrorKind::kIndex, name, "(): ", count, " indices for a tensor of shape ",
                 x.shape().ToString());
  }
  const Dims& sizes = x.shape().dims();
  const auto begin = sizes.begin() + first, end = begin + count;
  StatusOr<Tensor> places = RavelMultiIndex(indices, Dims(begin, end), dims);
  if (!places.ok()) return Renamed(name, places.status());
  Joined joined;
  Dims shape(sizes.begin(), begin);
  joined.shape = shape;
  const Dims& picked = places->shape().dims();
  joined.shape.insert(joined.shape.end(), picked.begin(), picked.end());
  joined.shape.insert(joined.shape.end(), end, sizes.end());
  shape.push_back(Shape(Dims(begin, end)).numel());
  shape.insert(shape.end(), end, sizes.end());
  OFL_ASSIGN_OR_RETURN(joined.x, Reshape(x, shape));
  OFL_ASSIGN_OR_RETURN(joined.line, Shaped(*places, {places->numel()}));
  return joined;
}
Dims FirstDims(absl::Span<const Tensor> indices) {
  Dims dims(indices.size());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}
StatusOr<Tensor> PickedAt(const Tensor& x, int64_t first, absl::Span<const Tensor> indices,
                          const Dims& dims) {
  OFL_ASSIGN_OR_RETURN(const Joined joined,
                       JoinedAt("index", x, static_cast<int>(first), indices, dims));
  OFL_ASSIGN_OR_RETURN(const Tensor y, SelectPlaces(joined.x, first, joined.line, false));
  return Shaped(y, joined.shape);
}

}  // namespace

StatusOr<Tensor> IndexLeading(const Tensor& x, absl::Span<const Tensor> indices) {
  if (indices.size() == 1) return IndexFirst(x, indices[0]);
  return PickedAt(x, 0, indices, FirstDims(indices));
}

StatusOr<Tensor> IndexDims(const Tensor& x, const Dims& dims, absl::Span<const Tensor> indices,
                           const Dims& source_dims) {
  if (!x.defined()) return NotDefined("index", "input");
  const bool rises = std::is_sorted(dims.begin(), dims.end(), std::less_equal<>());
  if (dims.empty() || dims.size() != indices.size() || !rises) {
    return BadValue("index", "dims", ToString(dims), "one for each index, in their order");
  }
  const bool neighbours = dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
  if (neighbours) return PickedAt(x, dims.front(), indices, source_dims);
  Dims order = dims;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) order.push_back(d);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor moved, Permute(x, order));
  return PickedAt(moved, 0, indices, source_dims);
}

StatusOr<Tensor> IndexLeadingInto(const Tensor& x, absl::Span<const Tensor> indices,
                                  const Tensor& value, bool accumulate) {
  constexpr char kName[] = "setitem";
  if (indices.size() == 1) return IndexDimInto(x, 0, indices[0], value, 0, accumulate);
  OFL_ASSIGN_OR_RETURN(const Joined joined, JoinedAt(kName, x, 0, indices, FirstDims(indices)));
  if (!x.is_contiguous()) return BadValue(kName, "x", "strided", "contiguous");
  OFL_ASSIGN_OR_RETURN(Tensor source, ValueFor(value, x, joined.shape));
  Dims rows = joined.x.shape().dims();
  rows[0] = joined.line.numel();
  OFL_ASSIGN_OR_RETURN(source, Shaped(source, rows));
  OFL_RETURN_IF_ERROR(IndexDimInto(joined.x, 0, joined.line, source, 0, accumulate).status());
  return x;
}

}  // namespace oneflow_lite::functional
