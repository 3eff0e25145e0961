// SPDX-License-Identifier: Apache-2.0
#include "primitive/adam.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class AdamKernel final : public PrimitiveKernel<Adam> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    AdamProblem p;
    p.lr = c.attr<double>(0);
    p.beta1 = c.attr<double>(1), p.beta2 = c.attr<double>(2);
    p.eps = c.attr<double>(3);
    p.weight_decay = c.attr<double>(4);
    p.decoupled = c.attr<bool>(5);
    p.maximize = c.attr<bool>(6);
    p.step = c.attr<int64_t>(7);
    p.device_lr = DataOf<double>(c.input(0));
    p.grad_scale = DataOf<float>(c.input(1));
    p.found_inf = DataOf<float>(c.input(2));
    const int count = (c.num_inputs() - kAlone) / kLists;
    absl::InlinedVector<AdamTensors, 16> tensors(count);
    for (int i = 0; i < count; ++i) {
      const auto list = [&](int l) -> const Tensor& { return c.input(kAlone + l * count + i); };
      tensors[i] = {.param = DataOf<void>(list(0)),
                    .grad = DataOf<void>(list(1)),
                    .exp_avg = DataOf<void>(list(2)),
                    .exp_avg_sq = DataOf<void>(list(3)),
                    .max_exp_avg_sq = DataOf<void>(list(4)),
                    .master = DataOf<void>(list(5)),
                    .step = DataOf<double>(list(6)),
                    .numel = list(0).numel()};
    }
    return primitive_->Launch(c.stream(), p, tensors);
  }

 private:
  static constexpr int kAlone = 3, kLists = 7;  // of ops/adam.cpp

  // Null where the tensor is absent.
  template <class T>
  static T* DataOf(const Tensor& t) {
    return t.defined() ? static_cast<T*>(t.data()) : nullptr;
  }
};

OFL_REGISTER_KERNEL({.op = "adam_", .bind = [](const BindContext& c) {
                       return BindKernel<AdamKernel>(c, {.dtype = c.inputs[3]});
                     }});

}  // namespace
}  // namespace oneflow_lite
