// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of two inputs and their in-place forms: broadcast geometry, then the
// primitive of the op's name; a 0-dim CPU operand goes in as a number.
#include "primitive/binary.h"

#include "kernels/broadcast.h"
#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

Scalar NumberIn(const Tensor& t) {
  return VisitAll(t.dtype(), [&]<class T>(Tag<T>) -> Scalar {
    const T v = *t.data<T>();
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else
      return Scalar(static_cast<double>(static_cast<ComputeOf<T>>(v)));
  });
}

class BinaryKernel final : public PrimitiveKernel<Binary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &a = c.input(0), &b = c.input(1), &out = c.output(0);
    // Two of one dtype are elements like any others; of two dtypes, the wider one is the number.
    const bool elements = IsNumber(out) && a.dtype() == b.dtype();
    const bool wide_a = a.dtype() == ComputeType(b.dtype());
    if (!elements && IsNumber(a) && (wide_a || !IsNumber(b))) return LaunchNumber(c, b, a, true);
    if (!elements && IsNumber(b)) return LaunchNumber(c, a, b, false);
    const auto g = MakeElementwise<3>(
        out.shape(),
        {BroadcastStrides(a, out.shape()), BroadcastStrides(b, out.shape()), out.strides()});
    return primitive_->Launch(c.stream(), g, a.data(), b.data(), out.data());
  }

 private:
  Status LaunchNumber(KernelContext& c, const Tensor& x, const Tensor& number, bool first) const {
    const Tensor& out = c.output(0);
    const auto g =
        MakeElementwise<2>(out.shape(), {BroadcastStrides(x, out.shape()), out.strides()});
    return primitive_->LaunchScalar(c.stream(), g, x.data(), NumberIn(number), first, out.data());
  }
};

// What the operands are promoted to: the result's dtype, or of a comparison their common one.
DType CommonType(BinaryOp op, const BindContext& c) {
  return IsComparison(op) ? PromoteTypes(c.inputs[0], c.inputs[1]) : c.outputs[0];
}

struct BinaryEntry {
  const char* op;
  BinaryOp primitive;
  DTypeSet dtypes;
};

constexpr BinaryEntry kBinaryEntries[] = {
    {"add", BinaryOp::kAdd, kAllDTypes},
    {"add_", BinaryOp::kAdd, kAllDTypes},
    {"sub", BinaryOp::kSub, kNumericSet},
    {"sub_", BinaryOp::kSub, kNumericSet},
    {"mul", BinaryOp::kMul, kAllDTypes},
    {"mul_", BinaryOp::kMul, kAllDTypes},
    {"div", BinaryOp::kDiv, kFloatingSet},
    {"div_", BinaryOp::kDiv, kFloatingSet},
    {"eq", BinaryOp::kEq, kAllDTypes},
    {"ne", BinaryOp::kNe, kAllDTypes},
    {"lt", BinaryOp::kLt, kAllDTypes},
    {"le", BinaryOp::kLe, kAllDTypes},
    {"gt", BinaryOp::kGt, kAllDTypes},
    {"ge", BinaryOp::kGe, kAllDTypes},
    {"relu_backward", BinaryOp::kReluBackward, kFloatingSet},
    {"gelu_backward", BinaryOp::kGeluBackward, kFloatingSet},
    {"gelu_tanh_backward", BinaryOp::kGeluTanhBackward, kFloatingSet},
    {"maximum", BinaryOp::kMaximum, kAllDTypes},
    {"minimum", BinaryOp::kMinimum, kAllDTypes},
    {"pow", BinaryOp::kPow, kNumericSet},
    {"bitwise_and", BinaryOp::kAnd, kAllDTypes & ~kFloatingSet},
    {"bitwise_or", BinaryOp::kOr, kAllDTypes & ~kFloatingSet},
    {"bitwise_xor", BinaryOp::kXor, kAllDTypes & ~kFloatingSet},
};

const bool binary_registered = [] {
  for (const BinaryEntry& e : kBinaryEntries) {
    const auto bind = [op = e.primitive](const BindContext& c) {
      return BindKernel<BinaryKernel>(
          c, {.op = op, .dtype = CommonType(op, c), .a = c.inputs[0], .b = c.inputs[1]});
    };
    const DTypeSet dtypes = e.dtypes & kFloatingSet ? kAllDTypes : e.dtypes;
    internal::AppendKernel({.op = e.op, .dtypes = dtypes, .strided_inputs = 0b11, .bind = bind},
                           __FILE__, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
