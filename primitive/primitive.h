// SPDX-License-Identifier: Apache-2.0
//
// A primitive is one device algorithm behind an abstract class. primitive/<stem>.h declares the
// class and its Spec; primitive/cpu/<stem>.cpp and primitive/cuda/<stem>.* implement it and
// register how to make one. A Launch never allocates, never synchronises, knows no tensors.
//
//   const Softmax::Spec spec{.dtype = DType::kFloat32};
//   OFL_ASSIGN_OR_RETURN(auto softmax,
//                        NewPrimitive<SoftmaxFactory>(DeviceType::kCPU, spec));
//   OFL_RETURN_IF_ERROR(softmax->Launch(stream, {.rows = 4, .cols = 5}, x, y, nullptr));
#pragma once

#include <memory>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

// Makes a P for a spec on one kind of device, or says why there is none (NotImplementedError).
template <class P>
struct PrimitiveFactory {
  using Product = P;
  using Spec = typename P::Spec;
  using Function = StatusOr<std::unique_ptr<P>> (*)(const Spec& spec);
};

namespace internal {
using AnyFactory = void (*)();
// Appends to a table; two factories for one name and device are reported by FindFactory.
OFL_API bool AddFactory(DeviceType device, const char* name, AnyFactory factory);
OFL_API StatusOr<AnyFactory> FindFactory(DeviceType device, const char* name);
}  // namespace internal

// One line at namespace scope of an implementation file:
//   const bool registered = RegisterPrimitive<Softmax>(DeviceType::kCPU, &NewSoftmax);
template <class P>
bool RegisterPrimitive(DeviceType device, typename PrimitiveFactory<P>::Function make) {
  return internal::AddFactory(device, P::kName, reinterpret_cast<internal::AnyFactory>(make));
}

template <class F>
StatusOr<std::unique_ptr<typename F::Product>> NewPrimitive(DeviceType device,
                                                            const typename F::Spec& spec) {
  OFL_ASSIGN_OR_RETURN(internal::AnyFactory any, internal::FindFactory(device, F::Product::kName));
  return reinterpret_cast<typename F::Function>(any)(spec);
}

// The reason a factory gives for a dtype it has no code for.
OFL_API Status NoPrimitiveFor(const char* primitive, DeviceType device, DType dtype);

}  // namespace oneflow_lite
