// SPDX-License-Identifier: Apache-2.0
#include "ops/view_gradient.h"

#include <algorithm>
#include <utility>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/view.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

// For each element of a geometry its place in the storage, counted from `first`, as a flat list.
StatusOr<Tensor> Places(const Dims& shape, const Dims& strides, int64_t first, Device device) {
  OFL_ASSIGN_OR_RETURN(Tensor places, functional::Full({}, Scalar(first), DType::kInt64, device));
  for (size_t d = 0; d < shape.size(); ++d) {
    OFL_ASSIGN_OR_RETURN(
        Tensor line, functional::Arange(Scalar(0), Scalar(shape[d]), {}, DType::kInt64, device));
    OFL_ASSIGN_OR_RETURN(line, functional::Mul(line, Scalar(strides[d])));
    Dims along(shape.size(), 1);
    along[d] = shape[d];
    OFL_ASSIGN_OR_RETURN(line, functional::Reshape(line, along));
    OFL_ASSIGN_OR_RETURN(places, functional::Add(places, line));
  }
  return functional::Reshape(places, {-1});
}

int64_t LastPlace(const Dims& shape, const Dims& strides, int64_t first) {
  for (size_t d = 0; d < shape.size(); ++d)
    first += std::max<int64_t>(0, shape[d] - 1) * strides[d];
  return first;
}

// By way of the stretch of storage that the input and the view lie in.
StatusOr<Tensor> AddInStorage(const Shape& input, const Dims& input_strides, const Tensor& grad,
                              const Geometry& view) {
  const Dims& base = input.dims();
  const Dims base_strides = input_strides.empty() ? ContiguousStrides(input) : input_strides;
  const int64_t begin = std::min<int64_t>(0, view.offset);
  const int64_t end = 1 + std::max(LastPlace(base, base_strides, 0),
                                   LastPlace(view.shape.dims(), view.strides, view.offset));
  const Device device = grad.device();
  const DType wide = ComputeType(grad.dtype());
  OFL_ASSIGN_OR_RETURN(const Tensor to,
                       Places(view.shape.dims(), view.strides, view.offset - begin, device));
  OFL_ASSIGN_OR_RETURN(Tensor flat, functional::Cast(grad, wide));
  OFL_ASSIGN_OR_RETURN(flat, functional::Reshape(flat, {-1}));
  OFL_ASSIGN_OR_RETURN(Tensor sum, functional::Zeros({end - begin}, wide, device));
  OFL_ASSIGN_OR_RETURN(sum, functional::ScatterAddInto(sum, 0, to, flat));
  if (input_strides.empty()) {
    OFL_ASSIGN_OR_RETURN(sum, functional::Slice(sum, 0, -begin, input.numel() - begin));
  } else {
    OFL_ASSIGN_OR_RETURN(const Tensor from, Places(base, base_strides, -begin, device));
    if (!IsInjective(base, base_strides)) {
      OFL_ASSIGN_OR_RETURN(const Tensor one, functional::Ones({from.numel()}, wide, device));
      OFL_ASSIGN_OR_RETURN(Tensor count, functional::Zeros({end - begin}, wide, device));
      OFL_ASSIGN_OR_RETURN(count, functional::ScatterAddInto(count, 0, from, one));
      OFL_ASSIGN_OR_RETURN(count, functional::Maximum(count, Scalar(1)));
      OFL_ASSIGN_OR_RETURN(sum, functional::Div(sum, count));
    }
    OFL_ASSIGN_OR_RETURN(sum, functional::IndexSelect(sum, 0, from));
  }
  OFL_ASSIGN_OR_RETURN(sum, functional::Reshape(sum, base));
  return functional::Cast(sum, grad.dtype());
}

}  // namespace

bool Fits(const Dims& shape, const Dims& strides, int64_t offset, int64_t available) {
  if (shape.size() != strides.size() || offset < 0 || CheckedNumel(shape) < 0) return false;
  int64_t last = offset;
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t reach;
    if (shape[d] < 0 || strides[d] < 0) return false;
    empty = empty || shape[d] == 0;
    if (shape[d] == 0) continue;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  return empty || last < available;
}

// Each dim, by rising stride, steps over all before it.
bool IsInjective(const Dims& shape, const Dims& strides) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 5> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) dims.emplace_back(strides[d], shape[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

StatusOr<Tensor> PutInto(const Shape& input, const Tensor& grad, const Geometry& view) {
  static const OpExpr& put = OpBuilder("as_strided_backward")
                                 .Input("grad")
                                 .Output("out")
                                 .Attr("base_shape")
                                 .Attr("shape")
                                 .Attr("strides")
                                 .Attr("offset")
                                 .Get();
  return Call(put, {grad}, {input.dims(), view.shape.dims(), view.strides, view.offset});
}

StatusOr<Tensor> AddInto(const Shape& input, const Dims& input_strides, const Tensor& grad,
                         const Geometry& view) {
  const bool alone = input_strides.empty() && IsInjective(view.shape.dims(), view.strides) &&
                     Fits(view.shape.dims(), view.strides, view.offset, input.numel());
  return alone ? PutInto(input, grad, view) : AddInStorage(input, input_strides, grad, view);
}

}  // namespace oneflow_lite
