// SPDX-License-Identifier: Apache-2.0
#include "functional/view_dtype.h"

#include <cstdint>
#include <utility>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {
namespace {

// The strides of `bytes`-byte elements in terms of the tensor's last dim: all but the last one, and
// the offset, must be whole numbers of them.
Status InUnits(const Tensor& x, int64_t was, int64_t bytes, Dims* strides, int64_t* offset) {
  const auto scale = [&](int64_t elements, const char* what) -> StatusOr<int64_t> {
    if (elements * was % bytes == 0) return elements * was / bytes;
    return Error(ErrorKind::kShape, "view(): ", what, " of ", Describe(x), " is ", elements,
                 " elements, which are no whole number of ", bytes, " bytes");
  };
  for (size_t d = 0; d + 1 < strides->size(); ++d) {
    OFL_ASSIGN_OR_RETURN((*strides)[d], scale((*strides)[d], "the stride of a dim"));
  }
  OFL_ASSIGN_OR_RETURN(*offset, scale(*offset, "the offset"));
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> View(const Tensor& x, DType dtype) {
  if (!x.defined()) return NotDefined("view", "self");
  OFL_RETURN_IF_ERROR(CheckDType("view", dtype));
  if (GlobalOf(x)) {
    return Error(ErrorKind::kNotImplemented, "view(): ", Describe(x),
                 " is global; view() of its local part, to_local(), takes a dtype");
  }
  if (dtype == DType::kBool && x.dtype() != DType::kBool) {
    return Error(ErrorKind::kDType, "view(): bytes of ", Describe(x), " may be neither 0 nor 1, ",
                 "which are those of bool; compare with 0");
  }
  Shape shape = x.shape();
  Dims strides = x.strides();
  int64_t offset = x.offset();
  const auto was = static_cast<int64_t>(SizeOf(x.dtype()));
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  if (was != bytes) {
    if (x.ndim() == 0) return ShapeMismatch("view", "self", x.shape(), "at least 1 dim");
    int64_t& last = shape[x.ndim() - 1];
    if (strides.back() != 1 && last * was != 0) {
      return Error(ErrorKind::kShape, "view(): the stride of the last dim of ", Describe(x), " is ",
                   strides.back(), ", but it must be 1 for a dtype of another size");
    }
    if (last * was % bytes != 0) {
      return Error(ErrorKind::kShape, "view(): the last dim of ", Describe(x),
                   " is no whole number of ", Name(dtype), " elements");
    }
    last = last * was / bytes;
    OFL_RETURN_IF_ERROR(InUnits(x, was, bytes, &strides, &offset));
  }
  if (reinterpret_cast<uintptr_t>(x.data()) % static_cast<uintptr_t>(bytes) != 0) {
    return Error(ErrorKind::kValue, "view(): the memory of ", Describe(x), " does not begin at a ",
                 "multiple of the ", bytes, " bytes of ", Name(dtype));
  }
  return Tensor(
      MakeRef<TensorImpl>(x.storage(), std::move(shape), std::move(strides), offset, dtype));
}

OFL_REGISTER_FUNCTION("view.dtype(Tensor(a) self, dtype dtype) -> Tensor",
                      (Overload<const Tensor&, DType>(View)), kMethodOnly,
                      "The same bytes as elements of another dtype, without history; of another "
                      "size they divide or\njoin those of the last dim.");

}  // namespace oneflow_lite::functional
