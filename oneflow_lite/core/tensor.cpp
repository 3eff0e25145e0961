// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/tensor.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

std::atomic<int64_t> meta_held{0}, meta_peak{0};

void TakeMeta(int64_t nbytes) {
  const int64_t held = meta_held.fetch_add(nbytes, std::memory_order_relaxed) + nbytes;
  int64_t peak = meta_peak.load(std::memory_order_relaxed);
  while (held > peak && !meta_peak.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
  }
}

// Lets go of the storage that Storage::Aside() holds.
void ReleaseSource(void* source) { Ref<Storage>::Adopt(static_cast<Storage*>(source)); }

}  // namespace

MetaMemory GetMetaMemory() { return {meta_held.load(), meta_peak.load()}; }
void ResetMetaPeak() { meta_peak.store(meta_held.load()); }

StatusOr<Ref<Storage>> Storage::Allocate(size_t nbytes, Device device) {
  void* data = nullptr;
  const bool meta = device.type == DeviceType::kMeta;
  if (meta) {
    TakeMeta(static_cast<int64_t>(nbytes));
  } else if (nbytes > 0) {
    OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(device));
    OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
    OFL_ASSIGN_OR_RETURN(data, backend->Allocate(nbytes, *stream));
  } else {
    OFL_RETURN_IF_ERROR(GetBackend(device).status());
  }
  return Ref<Storage>(new Storage(data, nbytes, device, nullptr, nullptr, data || meta));
}

Ref<Storage> Storage::FromExternal(void* data, size_t nbytes, Device device, void (*release)(void*),
                                   void* context) {
  return Ref<Storage>(new Storage(data, nbytes, device, release, context, false));
}

Ref<Storage> Storage::Aside(const Ref<Storage>& other) {
  // Of the first one, so that storages aside of storages aside make no chain.
  Ref<Storage> source(const_cast<Storage*>(other->source()));
  void* data = source->data();
  const size_t nbytes = source->nbytes();
  const Device device = source->device();
  return FromExternal(data, nbytes, device, ReleaseSource, source.Leak());
}

const Storage* Storage::source() const {
  return release_ == ReleaseSource ? static_cast<const Storage*>(context_) : this;
}

bool Storage::Overlaps(const Storage& o) const {
  if (source() == o.source()) return true;
  if (!data_ || !o.data_) return false;
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const auto other = reinterpret_cast<uintptr_t>(o.data_);
  return begin < other + o.nbytes_ && other < begin + nbytes_;
}

Storage::~Storage() {
  if (owned_ && device_.type == DeviceType::kMeta) {
    meta_held.fetch_sub(static_cast<int64_t>(nbytes_), std::memory_order_relaxed);
  } else if (owned_) {
    // The backend was there to allocate, so it is there to free.
    (*GetBackend(device_.type))->Free(data_, nbytes_, device_);
  } else if (release_) {
    release_(context_);
  }
}

void (*TensorImpl::release_py_object)(void*) = nullptr;

TensorImpl::TensorImpl(Ref<Storage> storage, Shape shape, Dims strides, int64_t offset, DType dtype)
    : storage(std::move(storage)),
      shape(std::move(shape)),
      strides(std::move(strides)),
      offset(offset),
      numel(this->shape.numel()),
      dtype(dtype),
      contiguous(IsContiguous(this->shape, this->strides)) {}

StatusOr<Tensor> Tensor::Empty(const Shape& shape, DType dtype, Device device) {
  if (shape.ndim() > kMaxDims) {
    return Error(ErrorKind::kValue, "empty(): the size is ", shape.ToString(),
                 ", but it must be a list of at most ", kMaxDims, " dims");
  }
  for (int64_t d : shape) {
    if (d < 0) {
      return Error(ErrorKind::kValue, "empty(): size is ", shape.ToString(),
                   ", but its dims must not be negative");
    }
  }
  if (!IsDType(dtype)) return CheckDType("empty", dtype);
  const int64_t numel = CheckedNumel(shape);
  if (numel < 0) {
    return Error(ErrorKind::kValue, "empty(): shape ", shape.ToString(),
                 " has 2^60 elements or more");
  }
  OFL_ASSIGN_OR_RETURN(Ref<Storage> storage,
                       Storage::Allocate(static_cast<size_t>(numel) * SizeOf(dtype), device));
  return Tensor(MakeRef<TensorImpl>(std::move(storage), shape, ContiguousStrides(shape), 0, dtype));
}

const TensorImpl& Tensor::Undefined() {
  static const auto* const impl = new TensorImpl(
      Storage::FromExternal(nullptr, 0, Device{DeviceType::kMeta, 0}, nullptr, nullptr), Shape{},
      Dims{}, 0, DType::kFloat32);
  return *impl;
}

void Tensor::WrongType(DType asked) const {
  std::fprintf(stderr, "oneflow_lite: data() was asked for elements of %s, but the tensor has %s\n",
               Name(asked), Name(dtype()));
  std::abort();
}

Tensor Tensor::WithGeometry(Shape shape, Dims strides, int64_t offset) const {
  if (!impl_) return Tensor();
  const bool same = impl_->global_spec && shape == impl_->shape;
  auto impl = MakeRef<TensorImpl>(impl_->storage, std::move(shape), std::move(strides), offset,
                                  impl_->dtype);
  if (same) impl->global_spec = impl_->global_spec;
  return Tensor(std::move(impl));
}

}  // namespace oneflow_lite
