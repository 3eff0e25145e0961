// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input, each bound to the primitive of its name. Of an op for floats
// the input may be an integer: it is converted as it is loaded.
#include "primitive/unary.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class UnaryKernel final : public PrimitiveKernel<Unary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &y = c.output(0);
    return primitive_->Launch(c.stream(), MakeElementwise<2>(y.shape(), {x.strides(), y.strides()}),
                              x.data(), y.data());
  }
};

struct UnaryEntry {
  const char* op;
  UnaryOp primitive;
  DTypeSet dtypes;
};

// clang-format off
constexpr UnaryEntry kUnaryEntries[] = {
    {"neg", UnaryOp::kNeg, kNumericSet},
    {"exp", UnaryOp::kExp, kFloatingSet},
    {"log", UnaryOp::kLog, kFloatingSet},
    {"relu", UnaryOp::kRelu, kNumericSet},
    {"abs", UnaryOp::kAbs, kNumericSet},
    {"sqrt", UnaryOp::kSqrt, kFloatingSet},
    {"rsqrt", UnaryOp::kRsqrt, kFloatingSet},
    {"tanh", UnaryOp::kTanh, kFloatingSet},
    {"sigmoid", UnaryOp::kSigmoid, kFloatingSet},
    {"sin", UnaryOp::kSin, kFloatingSet},
    {"cos", UnaryOp::kCos, kFloatingSet},
    {"erf", UnaryOp::kErf, kFloatingSet},
    {"floor", UnaryOp::kFloor, kFloatingSet},
    {"silu", UnaryOp::kSilu, kFloatingSet},
    {"gelu_tanh", UnaryOp::kGeluTanh, kFloatingSet},
    {"gelu", UnaryOp::kGelu, kFloatingSet},
};
// clang-format on

const bool unary_registered = [] {
  for (const UnaryEntry& e : kUnaryEntries) {
    const auto bind = [op = e.primitive](const BindContext& c) {
      const DType in = c.inputs[0], out = c.outputs[0];
      const DType common = out == DType::kBool ? in : out;
      return BindKernel<UnaryKernel>(c, {.op = op, .dtype = common, .in = in, .out = out});
    };
    const DTypeSet dtypes = e.dtypes == kFloatingSet ? kAllDTypes : e.dtypes;
    internal::AppendKernel({.op = e.op, .dtypes = dtypes, .strided_inputs = 0b1, .bind = bind},
                           __FILE__, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
