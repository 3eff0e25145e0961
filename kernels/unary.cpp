// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input, each bound to the primitive of its name.
#include "primitive/unary.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class UnaryKernel final : public PrimitiveKernel<Unary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), c.output(0).numel(), c.input(0).data(),
                              c.output(0).data());
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
    {"gelu_tanh", UnaryOp::kGeluTanh, kFloatingSet},
    {"gelu", UnaryOp::kGelu, kFloatingSet},
};
// clang-format on

const bool unary_registered = [] {
  for (const UnaryEntry& e : kUnaryEntries) {
    const auto bind = [op = e.primitive](const BindContext& c) {
      return BindKernel<UnaryKernel>(c, {.op = op, .dtype = c.inputs[0]});
    };
    internal::AppendKernel({.op = e.op, .dtypes = e.dtypes, .bind = bind}, __FILE__, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
