// SPDX-License-Identifier: Apache-2.0
//
// Numbers that a functor must know before it can go on: the size of a result, whether a value is
// allowed. To read them waits for the device.
#pragma once

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {

// Whether t has elements at all: on meta it has a shape alone.
inline bool HasData(const Tensor& t) { return t.device().type != DeviceType::kMeta; }
// Whether they are in the host's memory; of a global tensor those that are here.
inline bool IsInHostMemory(const Tensor& t) { return t.device().type == DeviceType::kCPU; }
// Whether reading them waits for nothing: no device, no other process.
inline bool ReadsAtOnce(const Tensor& t) { return IsInHostMemory(t) && !GlobalOf(t); }

// Whether a check of t's values is this process's: t has elements, and some may lie here. A rank
// outside of t's placement goes on, as those do that found the values sound.
inline bool ChecksValues(const Tensor& t) { return HasData(t) && t.numel() > 0 && TakesPart(t); }

// The elements, dense and in the host's memory, outside autograd; of a global tensor all of them,
// by a collective. RuntimeError on meta.
inline StatusOr<Tensor> ReadBack(absl::string_view op, const Tensor& t) {
  if (!HasData(t)) {
    return Error(ErrorKind::kRuntime, op, "(): ", Describe(t), " has no data");
  }
  if (ReadsAtOnce(t) && t.is_contiguous()) return t.Detach();
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(const Tensor whole, Whole(op, t));
  OFL_ASSIGN_OR_RETURN(Tensor host, To(whole.Detach(), Device{}, {}));
  return Contiguous(host);
}

// The value of the only element, converted to T. Precondition: numel() is 1.
template <class T>
StatusOr<T> ValueOf(absl::string_view op, const Tensor& t) {
  OFL_ASSIGN_OR_RETURN(const Tensor host, ReadBack(op, t));
  return VisitAll(host.dtype(), [&]<class E>(Tag<E>) -> T {
    if constexpr (sizeof(E) == 2 && !std::is_integral_v<E>) {
      return static_cast<T>(static_cast<float>(*static_cast<const E*>(host.data())));
    } else {
      return static_cast<T>(*static_cast<const E*>(host.data()));
    }
  });
}

}  // namespace oneflow_lite::functional
