// SPDX-License-Identifier: Apache-2.0
#include "python/torch/bindings/tensor.h"

#include <algorithm>

#include "python/torch/bindings/boxed.h"

namespace oneflow_lite::torch_ops {
namespace {

// PyTorch's numbers for dtypes and devices.
struct Numbers {
  Numbers() {
    for (int8_t& dtype : dtypes) dtype = -1;
    const auto set = [&](DType t, int32_t n) {
      numbers[static_cast<int>(t)] = n;
      if (n >= 0 && n < kMost) dtypes[n] = static_cast<int8_t>(t);
    };
    set(DType::kBool, aoti_torch_dtype_bool());
    set(DType::kUInt8, aoti_torch_dtype_uint8());
    set(DType::kInt8, aoti_torch_dtype_int8());
    set(DType::kInt16, aoti_torch_dtype_int16());
    set(DType::kInt32, aoti_torch_dtype_int32());
    set(DType::kInt64, aoti_torch_dtype_int64());
    set(DType::kFloat16, aoti_torch_dtype_float16());
    set(DType::kBFloat16, aoti_torch_dtype_bfloat16());
    set(DType::kFloat32, aoti_torch_dtype_float32());
    set(DType::kFloat64, aoti_torch_dtype_float64());
  }
  static constexpr int kMost = 64;
  const int32_t cpu = aoti_torch_device_type_cpu(), cuda = aoti_torch_device_type_cuda();
  int32_t numbers[kNumDTypes];
  int8_t dtypes[kMost];  // by PyTorch's number; -1 where it is none of ours
};
const Numbers& Known() {
  static const Numbers numbers;
  return numbers;
}

}  // namespace

TensorInfo::TensorInfo(const Tensor& t) {
  const AtenTensorHandle handle = t.get();
  int64_t *size_pointer, *stride_pointer;
  int32_t number, kind, index = 0;
  Ok(aoti_torch_get_sizes(handle, &size_pointer));
  Ok(aoti_torch_get_strides(handle, &stride_pointer));
  Ok(aoti_torch_get_dim(handle, &ndim));
  Ok(aoti_torch_get_dtype(handle, &number));
  Ok(aoti_torch_get_device_type(handle, &kind));
  Ok(aoti_torch_get_data_ptr(handle, &data));
  sizes = size_pointer;
  strides = stride_pointer;
  known = FromTorchDType(number, &dtype);
  const bool cuda = kind == Known().cuda;
  placed = cuda || kind == Known().cpu;
  if (cuda) Ok(aoti_torch_get_device_index(handle, &index));
  device = {cuda ? DeviceType::kCUDA : DeviceType::kCPU,
            static_cast<int16_t>(index < 0 ? 0 : index)};
}

int64_t TensorInfo::numel() const {
  int64_t n = 1;
  for (int64_t d = 0; d < ndim; ++d) n *= sizes[d];
  return n;
}

bool HasShapeOf(const TensorInfo& a, const TensorInfo& b) {
  return a.ndim == b.ndim && std::equal(a.sizes, a.sizes + a.ndim, b.sizes);
}

void RequireBeside(const char* op, const char* name, const TensorInfo& beside,
                   const TensorInfo& x) {
  Require(
      beside.placed && beside.device.type == x.device.type && beside.device.index == x.device.index,
      op, "(): ", name, " is on another device than input");
  Require(beside.data || beside.numel() == 0, op, "(): ", name, " has no memory");
}

void RequireAlike(const char* op, const char* name, const TensorInfo& beside, const TensorInfo& x) {
  Require(beside.known && beside.dtype == x.dtype && HasShapeOf(beside, x), op, "(): ", name,
          " must have input's shape and dtype");
  RequireBeside(op, name, beside, x);
}

void RequireNumbers(const char* op, const char* name, const TensorInfo& beside, DType dtype,
                    int64_t count, const TensorInfo& x) {
  Require(beside.known && beside.dtype == dtype && beside.numel() == count && IsContiguous(beside),
          op, "(): ", name, " must be ", count, " numbers of ", Name(dtype), ", without gaps");
  RequireBeside(op, name, beside, x);
}

Rows RowsOf(const TensorInfo& x, int64_t axis) {
  Rows r;
  int64_t dense = 1, stride = 0, rows = 1;  // of the dims with more than one element
  bool regular = true;
  for (int64_t d = x.ndim - 1; d >= 0; --d) {
    const int64_t size = x.sizes[d], step = x.strides[d];
    (d >= axis ? r.cols : r.rows) *= size;
    if (size == 1 || !regular) continue;
    if (d >= axis) {
      regular = step == dense;
      dense *= size;
    } else if (stride == 0) {
      regular = step >= dense && step > 0;
      stride = step;
      rows = size;
    } else {
      regular = step == stride * rows;
      rows *= size;
    }
  }
  r.stride = !regular ? 0 : stride == 0 ? dense : stride;
  return r;
}

bool IsContiguous(const TensorInfo& x) {
  int64_t dense = 1;
  bool contiguous = true;
  for (int64_t d = x.ndim - 1; d >= 0; --d) {
    if (x.sizes[d] == 0) return true;
    if (x.sizes[d] != 1 && x.strides[d] != dense) contiguous = false;
    dense *= x.sizes[d];
  }
  return contiguous;
}

Tensor Contiguous(const Tensor& t) { return IsContiguous(TensorInfo(t)) ? t : Copied(t); }
Tensor Copied(const Tensor& t) {
  return OnStack<Tensor>::Take(
      CallOperator("aten::contiguous", t, torch::headeronly::MemoryFormat::Contiguous)[0]);
}
Tensor CopyOf(const Tensor& t) {
  const Tensor copy = EmptyLike(TensorInfo(t));
  CopyInto(copy, t);
  return copy;
}
void CopyInto(const Tensor& to, const Tensor& from) {
  OnStack<Tensor>::Take(CallOperator("aten::copy_", to, from, false)[0]);
}
void Zero(const Tensor& t) { OnStack<Tensor>::Take(CallOperator("aten::zero_", t)[0]); }

Tensor Empty(const int64_t* sizes, int64_t ndim, DType dtype, const Device& device) {
  constexpr int64_t kMost = 64;  // PyTorch's own limit
  int64_t strides[kMost], step = 1;
  Require(ndim <= kMost, "oneflow_lite_torch: a tensor has ", ndim, " dims; at most 64 are served");
  for (int64_t d = ndim - 1; d >= 0; --d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  const bool cuda = device.type == DeviceType::kCUDA;
  AtenTensorHandle handle;
  Done(
      aoti_torch_empty_strided(ndim, sizes, strides, TorchDType(dtype),
                               cuda ? Known().cuda : Known().cpu, cuda ? device.index : 0, &handle),
      cuda ? "CUDA out of memory" : "PyTorch gave no memory");
  return Tensor(handle);
}

int32_t TorchDType(DType dtype) { return Known().numbers[static_cast<int>(dtype)]; }

bool FromTorchDType(int32_t number, DType* out) {
  if (number < 0 || number >= Numbers::kMost || Known().dtypes[number] < 0) return false;
  *out = static_cast<DType>(Known().dtypes[number]);
  return true;
}

int64_t WrapDim(int64_t dim, int64_t ndim, const char* op) {
  const int64_t dims = ndim > 0 ? ndim : 1;  // a number has one dim to speak of
  Require(dim >= -dims && dim < dims, op, "(): dim ", dim, " is out of range [", -dims, ", ",
          dims - 1, "]");
  return dim < 0 ? dim + dims : dim;
}

}  // namespace oneflow_lite::torch_ops
