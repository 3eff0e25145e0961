// SPDX-License-Identifier: Apache-2.0
//
// A tensor: a cheap, counted handle to shape, strides and offset over shared storage. The core
// knows geometry only; views that autograd can follow are functors (functional/view.h).
//
//   OFL_ASSIGN_OR_RETURN(Tensor x, Tensor::Empty(Shape{4, 5}, DType::kFloat32, Device{}));
//   float* p = x.data<float>();
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/ref.h"
#include "oneflow_lite/core/shape.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// A block of memory on one device, shared by the views of a tensor. `version` counts the in-place
// changes, so that autograd can tell whether a saved tensor is still what it was.
class OFL_API Storage : public RefCounted {
 public:
  // Allocates on the current stream of `device`; nbytes = 0 and the meta device take no memory, but
  // the latter counts what tensors there would take (GetMetaMemory).
  static StatusOr<Ref<Storage>> Allocate(size_t nbytes, Device device);
  // Memory of somebody else; release(context) runs when the last view is gone (release may be
  // null).
  static Ref<Storage> FromExternal(void* data, size_t nbytes, Device device, void (*release)(void*),
                                   void* context);
  // The memory of another one under a version of its own: what is changed there counts there alone.
  static Ref<Storage> Aside(const Ref<Storage>& other);

  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void BumpVersion() { version_.fetch_add(1, std::memory_order_relaxed); }
  // Whether it allocated the memory; else somebody else may use that, too.
  bool owns_memory() const { return owned_; }
  // The storage whose memory Aside() gave, or this one.
  const Storage* source() const;
  // Whether some byte is in both, even where the storages are not the same.
  bool Overlaps(const Storage& o) const;

 private:
  Storage(void* data, size_t nbytes, Device device, void (*release)(void*), void* context,
          bool owned)
      : data_(data),
        nbytes_(nbytes),
        device_(device),
        owned_(owned),
        release_(release),
        context_(context) {}
  ~Storage() override;
  // Memory of somebody else may be that of a tensor, by way of NumPy, and so on.
  void Destroy() override { release_ ? DeleteFlat() : RefCounted::Destroy(); }

  void* data_;
  size_t nbytes_;
  Device device_;
  bool owned_;
  std::atomic<uint32_t> version_{0};
  void (*release_)(void*);
  void* context_;
};

// The bytes that the tensors of the meta device would hold, and their peak since the last reset.
struct MetaMemory {
  int64_t held = 0, peak = 0;
};
OFL_API MetaMemory GetMetaMemory();
OFL_API void ResetMetaPeak();

// What autograd hangs on a tensor; defined in framework/autograd.h.
class OFL_API AutogradMetaBase {
 public:
  virtual ~AutogradMetaBase() = default;
};
// Placement, SBP and shard of a global tensor; defined in framework/global.h.
struct GlobalSpec;

class OFL_API TensorImpl : public RefCounted {
 public:
  TensorImpl(Ref<Storage> storage, Shape shape, Dims strides, int64_t offset, DType dtype);
  ~TensorImpl() override {
    if (void* p = py_object.load(std::memory_order_relaxed)) release_py_object(p);
  }

  Ref<Storage> storage;
  Shape shape;
  Dims strides;
  int64_t offset;  // elements
  int64_t numel;
  DType dtype;
  bool contiguous;
  bool wrapped_number = false;  // made of a number that was given as an operand, for one call
  std::unique_ptr<AutogradMetaBase> autograd;
  std::shared_ptr<const GlobalSpec> global_spec;
  std::atomic<void*> py_object{nullptr};  // the binding's: the same tensor is the same object
  // Set once by the binding, before it fills any py_object: frees what it left there.
  static void (*release_py_object)(void*);

 private:
  // What autograd or the binding hung on a tensor may lead to further tensors.
  void Destroy() override {
    const bool linked = autograd || py_object.load(std::memory_order_relaxed);
    linked ? DeleteFlat() : RefCounted::Destroy();
  }
};

class OFL_API Tensor {
 public:
  // Undefined: an absent optional argument or gradient. It reads as a float32 tensor of no dims on
  // the meta device, so that what looks at its inputs before it calls an op, which refuses them,
  // need not ask.
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Uninitialised memory, contiguous. ValueError for a negative dim or more bytes than 2^63.
  static StatusOr<Tensor> Empty(const Shape& shape, DType dtype, Device device);

  bool defined() const { return static_cast<bool>(impl_); }
  const Shape& shape() const { return read().shape; }
  const Dims& strides() const { return read().strides; }
  int64_t offset() const { return read().offset; }
  int ndim() const { return read().shape.ndim(); }
  int64_t numel() const { return read().numel; }
  DType dtype() const { return read().dtype; }
  Device device() const { return read().storage->device(); }
  bool is_contiguous() const { return read().contiguous; }
  size_t nbytes() const { return static_cast<size_t>(numel()) * SizeOf(dtype()); }
  const Ref<Storage>& storage() const { return read().storage; }
  uint32_t version() const { return storage()->version(); }

  // The first element. Null where numel() is 0 or the device is meta.
  void* data() const {
    const TensorImpl& t = read();
    char* base = static_cast<char*>(t.storage->data());
    return base ? base + t.offset * static_cast<int64_t>(SizeOf(t.dtype)) : nullptr;
  }
  // Precondition: T is the C++ type of dtype(); the process ends where it is not.
  template <class T>
  T* data() const {
    if (DTypeOf<T>() != dtype()) WrongType(DTypeOf<T>());
    return static_cast<T*>(data());
  }

  // The same storage under another geometry, unknown to autograd; undefined of an undefined one.
  // Precondition: within storage.
  Tensor WithGeometry(Shape shape, Dims strides, int64_t offset) const;
  // The same data without autograd history.
  Tensor Detach() const { return WithGeometry(shape(), strides(), offset()); }

  bool IsSame(const Tensor& o) const { return impl_ == o.impl_; }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& impl_ref() const { return impl_; }

 private:
  const TensorImpl& read() const { return impl_ ? *impl_ : Undefined(); }
  static const TensorImpl& Undefined();
  // Ends the process with what was asked of data() and what the tensor is.
  [[noreturn]] void WrongType(DType asked) const;

  Ref<TensorImpl> impl_;
};

// A few tensors, in order; what ops take and return.
using TensorList = absl::InlinedVector<Tensor, 2>;

}  // namespace oneflow_lite
