// SPDX-License-Identifier: Apache-2.0
//
// where: broadcast geometry, then the primitive; 0-dim CPU operands beside others go in as numbers.
#include "primitive/select.h"

#include <cstring>

#include "kernels/broadcast.h"
#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class WhereKernel final : public PrimitiveKernel<Select> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &condition = c.input(0), &a = c.input(1), &b = c.input(2), &out = c.output(0);
    const auto g = MakeElementwise<4>(
        out.shape(), {BroadcastStrides(condition, out.shape()), BroadcastStrides(a, out.shape()),
                      BroadcastStrides(b, out.shape()), out.strides()});
    return primitive_->Launch(c.stream(), g, OperandOf(condition), OperandOf(a), OperandOf(b),
                              out.data());
  }

 private:
  static Select::Operand OperandOf(const Tensor& t) {
    Select::Operand operand;
    if (IsNumber(t)) {
      std::memcpy(&operand.bits, t.data(), SizeOf(t.dtype()));
    } else {
      operand.data = t.data();
    }
    return operand;
  }
};

StatusOr<std::unique_ptr<BoundKernel>> BindWhere(const BindContext& c) {
  return BindByOutput<WhereKernel>(c);
}

OFL_REGISTER_KERNEL(
    {.op = "where", .dtypes = SetOf(DType::kBool), .strided_inputs = 0b111, .bind = BindWhere});

}  // namespace
}  // namespace oneflow_lite
