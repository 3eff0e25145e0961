// SPDX-License-Identifier: Apache-2.0
//
// cast, copy_ and to_device through the strided copy primitive and the devices' transfers.
#include "primitive/copy.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

// Reads input kSrc, writes the output: cast (0) and copy_ (1).
template <int kSrc>
class CopyKernel final : public PrimitiveKernel<Copy> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &src = c.input(kSrc), &dst = c.output(0);
    if (src.data() == dst.data()) return OkStatus();  // x.copy_(x): the geometry is the same too
    const auto g = MakeElementwise<2>(src.shape(), {src.strides(), dst.strides()});
    return primitive_->Launch(c.stream(), g, src.data(), dst.data());
  }
};

template <int kSrc>
StatusOr<std::unique_ptr<BoundKernel>> BindCopy(const BindContext& c) {
  return BindKernel<CopyKernel<kSrc>>(c, {.from = c.inputs[kSrc], .to = c.outputs[0]});
}

// Bytes from one device to another: host to device, device to host, or between two devices of a
// kind through the driver. The context's stream is that of the destination.
class ToDeviceKernel final : public BoundKernel {
 public:
  Status Launch(KernelContext& c) const override {
    const Tensor &src = c.input(0), &dst = c.output(0);
    if (src.device().type == DeviceType::kCPU) {
      OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(dst.device()));
      return backend->CopyFromHost(dst.data(), src.data(), src.nbytes(), c.stream());
    }
    OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(src.device()));
    OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(src.device()));
    if (dst.device().type == DeviceType::kCPU) {
      return backend->CopyToHost(dst.data(), src.data(), src.nbytes(), *stream);
    }
    if (stream->capturing() || c.stream().capturing()) {
      return Error(ErrorKind::kRuntime, "a copy from ", src.device().ToString(), " to ",
                   dst.device().ToString(),
                   " cannot be captured in a graph: it waits for both devices");
    }
    // The source's work comes first, and its memory is not reused before the copy has ended.
    OFL_RETURN_IF_ERROR(stream->Synchronize());
    OFL_RETURN_IF_ERROR(backend->CopyOnDevice(dst.data(), src.data(), src.nbytes(), c.stream()));
    return c.stream().Synchronize();
  }
};

OFL_REGISTER_KERNEL({.op = "cast", .strided_inputs = 0b1, .bind = BindCopy<0>});
OFL_REGISTER_KERNEL({.op = "copy_", .strided_inputs = 0b11, .bind = BindCopy<1>});
OFL_REGISTER_KERNEL({.op = "to_device",
                     .bind = [](const BindContext&) -> StatusOr<std::unique_ptr<BoundKernel>> {
                       return std::make_unique<ToDeviceKernel>();
                     }});

}  // namespace
}  // namespace oneflow_lite
