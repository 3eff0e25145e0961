// SPDX-License-Identifier: Apache-2.0
//
// as_strided_backward, the one view op with a kernel: zeros, then a strided copy.
#include "oneflow_lite/framework/kernel_registry.h"
#include "primitive/copy.h"
#include "primitive/creation.h"

namespace oneflow_lite {
namespace {

class PutBackKernel final : public BoundKernel {
 public:
  PutBackKernel(std::unique_ptr<Fill> fill, std::unique_ptr<Copy> copy)
      : fill_(std::move(fill)), copy_(std::move(copy)) {}

  Status Launch(KernelContext& c) const override {
    const Tensor &grad = c.input(0), &out = c.output(0);
    OFL_RETURN_IF_ERROR(fill_->Launch(c.stream(), MakeElementwise<1>(out.shape(), {out.strides()}),
                                      Scalar(0), out.data()));
    if (grad.numel() == 0) return OkStatus();
    char* start = static_cast<char*>(out.data()) +
                  c.attr<int64_t>(3) * static_cast<int64_t>(SizeOf(out.dtype()));
    return copy_->Launch(c.stream(),
                         MakeElementwise<2>(grad.shape(), {grad.strides(), c.attr<Dims>(2)}),
                         grad.data(), start);
  }

 private:
  std::unique_ptr<Fill> fill_;
  std::unique_ptr<Copy> copy_;
};

StatusOr<std::unique_ptr<BoundKernel>> BindStridedBackward(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto fill, NewPrimitive<FillFactory>(c.device, {.dtype = c.inputs[0]}));
  OFL_ASSIGN_OR_RETURN(
      auto copy, NewPrimitive<CopyFactory>(c.device, {.from = c.inputs[0], .to = c.inputs[0]}));
  return std::make_unique<PutBackKernel>(std::move(fill), std::move(copy));
}

OFL_REGISTER_KERNEL({.op = "as_strided_backward",
                     .strided_inputs = 0b1,
                     .bind = BindStridedBackward});

}  // namespace
}  // namespace oneflow_lite
