// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input and their gradients, each bound to the primitive of its name. An
// op's attributes are numbers, which become the primitive's parameters. Of an op for floats the
// input may be an integer: it is converted as it is loaded.
#include "primitive/unary.h"

#include "absl/strings/str_cat.h"
#include "kernels/primitive_kernel.h"
#include "primitive/unary_backward.h"

namespace oneflow_lite {
namespace {

UnaryParams ParamsOf(const Attrs& attrs) {
  UnaryParams params;
  for (size_t i = 0; i < attrs.size(); ++i) params.v[i] = attrs.get<double>(static_cast<int>(i));
  return params;
}

class UnaryKernel final : public PrimitiveKernel<Unary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &y = c.output(0);
    return primitive_->Launch(c.stream(), MakeElementwise<2>(y.shape(), {x.strides(), y.strides()}),
                              x.data(), y.data(), ParamsOf(c.attrs()));
  }
  static StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c, UnaryOp op) {
    const DType dtype = IsTruth(op) ? c.inputs[0] : c.outputs[0];
    return BindKernel<UnaryKernel>(c, {.op = op, .dtype = dtype, .in = c.inputs[0]});
  }
};

class UnaryBackwardKernel final : public PrimitiveKernel<UnaryBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &dy = c.input(0), &s = c.input(1), &dx = c.output(0);
    const auto g = MakeElementwise<3>(dx.shape(), {dy.strides(), s.strides(), dx.strides()});
    return primitive_->Launch(c.stream(), g, dy.data(), s.data(), dx.data(), ParamsOf(c.attrs()));
  }
  static StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c, UnaryOp op) {
    return BindKernel<UnaryBackwardKernel>(c, {.op = op, .dtype = c.outputs[0]});
  }
};

struct UnaryEntry {
  const char* op;
  UnaryOp primitive;
  DTypeSet dtypes;
  bool backward = false;  // whether there is <op>_backward
};

constexpr DTypeSet kBitsSet = kAllDTypes & ~kFloatingSet;

// clang-format off
constexpr UnaryEntry kUnaryEntries[] = {
    {"neg", UnaryOp::kNeg, kNumericSet},
    {"exp", UnaryOp::kExp, kFloatingSet},
    {"log", UnaryOp::kLog, kFloatingSet},
    {"relu", UnaryOp::kRelu, kNumericSet},
    {"abs", UnaryOp::kAbs, kNumericSet, true},
    {"sqrt", UnaryOp::kSqrt, kFloatingSet, true},
    {"rsqrt", UnaryOp::kRsqrt, kFloatingSet, true},
    {"pow_half", UnaryOp::kSqrt, kFloatingSet},
    {"pow_minus_half", UnaryOp::kRsqrt, kFloatingSet},
    {"tanh", UnaryOp::kTanh, kFloatingSet, true},
    {"sigmoid", UnaryOp::kSigmoid, kFloatingSet, true},
    {"sin", UnaryOp::kSin, kFloatingSet, true},
    {"cos", UnaryOp::kCos, kFloatingSet, true},
    {"erf", UnaryOp::kErf, kFloatingSet, true},
    {"floor", UnaryOp::kFloor, kFloatingSet},
    {"gelu_tanh", UnaryOp::kGeluTanh, kFloatingSet},
    {"gelu", UnaryOp::kGelu, kFloatingSet},
    // Rounding and arithmetic.
    {"ceil", UnaryOp::kCeil, kFloatingSet},
    {"trunc", UnaryOp::kTrunc, kFloatingSet},
    {"round", UnaryOp::kRound, kFloatingSet},
    {"round_decimals", UnaryOp::kRoundDecimals, kFloatingSet},
    {"frac", UnaryOp::kFrac, kFloatingSet},
    {"sign", UnaryOp::kSign, kNumericSet},
    {"square", UnaryOp::kSquare, kNumericSet, true},
    {"reciprocal", UnaryOp::kReciprocal, kFloatingSet, true},
    {"deg2rad", UnaryOp::kDeg2rad, kFloatingSet},
    {"rad2deg", UnaryOp::kRad2deg, kFloatingSet},
    {"nan_to_num", UnaryOp::kNanToNum, kFloatingSet, true},
    // Exponentials and logarithms.
    {"exp2", UnaryOp::kExp2, kFloatingSet, true},
    {"expm1", UnaryOp::kExpm1, kFloatingSet, true},
    {"log1p", UnaryOp::kLog1p, kFloatingSet, true},
    {"log2", UnaryOp::kLog2, kFloatingSet, true},
    {"log10", UnaryOp::kLog10, kFloatingSet, true},
    {"logit", UnaryOp::kLogit, kFloatingSet, true},
    // Trigonometric and hyperbolic functions.
    {"tan", UnaryOp::kTan, kFloatingSet, true},
    {"sinh", UnaryOp::kSinh, kFloatingSet, true},
    {"cosh", UnaryOp::kCosh, kFloatingSet, true},
    {"asin", UnaryOp::kAsin, kFloatingSet, true},
    {"acos", UnaryOp::kAcos, kFloatingSet, true},
    {"atan", UnaryOp::kAtan, kFloatingSet, true},
    {"asinh", UnaryOp::kAsinh, kFloatingSet, true},
    {"acosh", UnaryOp::kAcosh, kFloatingSet, true},
    {"atanh", UnaryOp::kAtanh, kFloatingSet, true},
    {"sinc", UnaryOp::kSinc, kFloatingSet, true},
    // Special functions.
    {"erfc", UnaryOp::kErfc, kFloatingSet, true},
    {"erfinv", UnaryOp::kErfinv, kFloatingSet, true},
    {"lgamma", UnaryOp::kLgamma, kFloatingSet, true},
    {"digamma", UnaryOp::kDigamma, kFloatingSet, true},
    {"i0", UnaryOp::kI0, kFloatingSet, true},
    // functional/special.h
    {"ndtr", UnaryOp::kNdtr, kFloatingSet, true},
    {"log_ndtr", UnaryOp::kLogNdtr, kFloatingSet, true},
    {"ndtri", UnaryOp::kNdtri, kFloatingSet, true},
    {"entr", UnaryOp::kEntr, kFloatingSet, true},
    {"erfcx", UnaryOp::kErfcx, kFloatingSet, true},
    {"i0e", UnaryOp::kI0e, kFloatingSet, true},
    {"i1", UnaryOp::kI1, kFloatingSet, true},
    {"i1e", UnaryOp::kI1e, kFloatingSet, true},
    {"polygamma", UnaryOp::kPolygamma, kFloatingSet, true},
    {"mvlgamma", UnaryOp::kMvlgamma, kFloatingSet, true},
    // Truths and bits.
    {"isnan", UnaryOp::kIsNan, kAllDTypes},
    {"isinf", UnaryOp::kIsInf, kAllDTypes},
    {"isfinite", UnaryOp::kIsFinite, kAllDTypes},
    {"isposinf", UnaryOp::kIsPosInf, kAllDTypes},
    {"isneginf", UnaryOp::kIsNegInf, kAllDTypes},
    {"signbit", UnaryOp::kIsSigned, kAllDTypes},
    {"logical_not", UnaryOp::kLogicalNot, kAllDTypes},
    {"bitwise_not", UnaryOp::kBitwiseNot, kBitsSet},
};
// clang-format on

template <class Kernel>
void AppendUnary(std::string op, UnaryOp primitive, DTypeSet dtypes, uint32_t strided, int line) {
  const auto bind = [primitive](const BindContext& c) { return Kernel::Bind(c, primitive); };
  internal::AppendKernel(
      {.op = std::move(op), .dtypes = dtypes, .strided_inputs = strided, .bind = bind}, __FILE__,
      line);
}

const bool unary_registered = [] {
  for (const UnaryEntry& e : kUnaryEntries) {
    const DTypeSet dtypes = e.dtypes == kFloatingSet ? kAllDTypes : e.dtypes;
    AppendUnary<UnaryKernel>(e.op, e.primitive, dtypes, 0b1, __LINE__);
    if (!e.backward) continue;
    AppendUnary<UnaryBackwardKernel>(absl::StrCat(e.op, "_backward"), e.primitive, kFloatingSet,
                                     0b11, __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
