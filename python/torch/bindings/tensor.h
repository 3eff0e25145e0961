// SPDX-License-Identifier: Apache-2.0
//
// Tensors of PyTorch as the primitives see them: pointers, dtypes, rows.
//
//   const TensorInfo x(input);
//   const Rows rows = RowsOf(x, x.ndim - 1);       // rows.stride is 0 where a copy is needed
//   Tensor y = Empty(x.sizes, x.ndim, x.dtype, input);
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <optional>
#include <string>
#include <utility>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite::torch_ops {

// What these throw comes to Python as a RuntimeError of that text, but for memory that was not
// there: torch.OutOfMemoryError. The text of a call that failed begins so that Python knows it from
// one that was refused, which PyTorch's own function may serve (_support.py).
//
// Of a launch.
[[noreturn]] void Fail(const Status& status);
inline void Check(const Status& status) {
  if (!status.ok()) [[unlikely]]
    Fail(status);
}
// Throws where a function of the stable ABI failed: one that asks a tensor, and one that computes
// or takes memory. `what` was tried; it is the text where PyTorch does not give its own.
void Ok(AOTITorchError error);
void Done(AOTITorchError error, const char* what);
// A class of PyTorch by its name in Python, or RuntimeError where there is no such class.
[[noreturn]] void ThrowAs(const std::string& name, const std::string& text);
// Arguments that an operator does not serve.
[[noreturn]] void Refuse(const Status& status);
template <class... Parts>
void Require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    Refuse(Error(ErrorKind::kRuntime, parts...));
}

// A tensor of PyTorch, by a handle that is this object's own. A copy is another handle of the same
// tensor, which takes an allocation. torch::stable::Tensor shares its handle instead, which takes
// one for every tensor that passes.
class Tensor {
 public:
  explicit Tensor(AtenTensorHandle handle) : handle_(handle) {}
  Tensor(const Tensor& t) { Ok(aoti_torch_new_tensor_handle(t.handle_, &handle_)); }
  Tensor(Tensor&& t) noexcept : handle_(t.release()) {}
  Tensor& operator=(Tensor t) noexcept {
    std::swap(handle_, t.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) aoti_torch_delete_tensor_object(handle_);
  }

  AtenTensorHandle get() const { return handle_; }
  AtenTensorHandle release() { return std::exchange(handle_, nullptr); }
  void* data() const {
    void* data;
    Ok(aoti_torch_get_data_ptr(handle_, &data));
    return data;
  }

 private:
  AtenTensorHandle handle_ = nullptr;
};
using OptionalTensor = std::optional<Tensor>;
inline const Tensor* Address(const OptionalTensor& t) { return t ? &*t : nullptr; }

// What is asked of a tensor more than once. The pointers are the tensor's own.
struct TensorInfo {
  explicit TensorInfo(const Tensor& t);

  int64_t numel() const;
  bool is_floating() const { return known && IsFloating(dtype); }

  const int64_t *sizes, *strides;
  int64_t ndim;
  DType dtype = DType::kFloat32;
  bool known;   // dtype is one that this library knows
  bool placed;  // on a CPU or a CUDA device
  Device device;
  void* data;
};

// What a kernel reads beside x: operators are called with any tensors, and a kernel believes what
// it is told. Each throws in the names of the operator and of the argument.
//
// `beside` has x's place, and memory.
void RequireBeside(const char* op, const char* name, const TensorInfo& beside, const TensorInfo& x);
// ... and x's shape and dtype.
void RequireAlike(const char* op, const char* name, const TensorInfo& beside, const TensorInfo& x);
// ... and `count` elements of a dtype, without gaps.
void RequireNumbers(const char* op, const char* name, const TensorInfo& beside, DType dtype,
                    int64_t count, const TensorInfo& x);
bool HasShapeOf(const TensorInfo& a, const TensorInfo& b);

// A tensor seen as rows x cols, with the dims from `axis` on as columns.
struct Rows {
  int64_t rows = 1, cols = 1;
  int64_t stride = 0;  // from row to row, in elements; 0 where the tensor lies otherwise
};
Rows RowsOf(const TensorInfo& x, int64_t axis);
bool IsContiguous(const TensorInfo& x);
// The tensor itself where it is contiguous, else a copy.
Tensor Contiguous(const Tensor& t);
Tensor Copied(const Tensor& t);  // a contiguous copy; the tensor itself where it is contiguous
Tensor CopyOf(const Tensor& t);  // a contiguous copy, always
void CopyInto(const Tensor& to, const Tensor& from);
void Zero(const Tensor& t);

// A new contiguous tensor on the device of `like`, from PyTorch's allocator.
Tensor Empty(const int64_t* sizes, int64_t ndim, DType dtype, const Device& device);
inline Tensor EmptyLike(const TensorInfo& x) { return Empty(x.sizes, x.ndim, x.dtype, x.device); }
// Of the outputs that are not asked for.
inline Tensor Nothing(const TensorInfo& x) {
  const int64_t none = 0;
  return Empty(&none, 1, x.dtype, x.device);
}

// PyTorch's number for a dtype, and back; false where it is none of ours.
int32_t TorchDType(DType dtype);
bool FromTorchDType(int32_t dtype, DType* out);

// The dim from the front.
int64_t WrapDim(int64_t dim, int64_t ndim, const char* op);

}  // namespace oneflow_lite::torch_ops
