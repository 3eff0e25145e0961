// SPDX-License-Identifier: Apache-2.0
//
// The activations and their gradients, each bound to the primitive of its name. An op's attributes
// are the primitive's numbers, in order.
#include "primitive/activation.h"

#include <limits>
#include <type_traits>

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// The number without its fraction, and no further than the integer dtype reaches.
int64_t WithinRange(const Scalar& number, DType dtype) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) -> int64_t {
    if constexpr (std::is_integral_v<T>) {
      if (number.fits<T>()) return static_cast<int64_t>(number.to<T>());
      const bool below = number.to<double>() < 0;
      return static_cast<int64_t>(below ? std::numeric_limits<T>::min()
                                        : std::numeric_limits<T>::max());
    } else {
      return 0;
    }
  });
}

// Attributes 0 to count - 1.
ActivationNumbers NumbersOf(const Attrs& attrs, int count, DType dtype) {
  ActivationNumbers numbers;
  for (int i = 0; i < count; ++i) {
    if (const double* real = std::get_if<double>(&attrs[i])) {
      numbers.real[i] = *real;
      continue;
    }
    const Scalar& scalar = attrs.get<Scalar>(i);
    numbers.real[i] = scalar.to<double>();
    numbers.whole[i] = WithinRange(scalar, dtype);
  }
  return numbers;
}

class ActivationKernel final : public PrimitiveKernel<Activation> {
 public:
  ActivationKernel(std::unique_ptr<Activation> primitive, int numbers)
      : PrimitiveKernel(std::move(primitive)), numbers_(numbers) {}

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &y = c.output(0);
    return primitive_->Launch(c.stream(), MakeElementwise<2>(y.shape(), {x.strides(), y.strides()}),
                              NumbersOf(c.attrs(), numbers_, y.dtype()), x.data(), y.data());
  }

 private:
  int numbers_;
};

class ActivationBackwardKernel final : public PrimitiveKernel<ActivationBackward> {
 public:
  ActivationBackwardKernel(std::unique_ptr<ActivationBackward> primitive, int numbers)
      : PrimitiveKernel(std::move(primitive)), numbers_(numbers) {}

  Status Launch(KernelContext& c) const override {
    const Tensor &dy = c.input(0), &x = c.input(1), &dx = c.output(0);
    const auto g = MakeElementwise<3>(dx.shape(), {dy.strides(), x.strides(), dx.strides()});
    return primitive_->Launch(c.stream(), g, NumbersOf(c.attrs(), numbers_, dx.dtype()), dy.data(),
                              x.data(), dx.data());
  }

 private:
  int numbers_;
};

struct ActivationEntry {
  const char* op;
  ActivationOp primitive;
  int numbers;
  DTypeSet dtypes;
};

constexpr ActivationEntry kActivationEntries[] = {
    {"silu", ActivationOp::kSilu, 0, kFloatingSet},
    {"silu_", ActivationOp::kSilu, 0, kFloatingSet},
    {"mish", ActivationOp::kMish, 0, kFloatingSet},
    {"mish_", ActivationOp::kMish, 0, kFloatingSet},
    {"hardswish", ActivationOp::kHardswish, 0, kFloatingSet},
    {"hardswish_", ActivationOp::kHardswish, 0, kFloatingSet},
    {"hardsigmoid", ActivationOp::kHardsigmoid, 0, kFloatingSet},
    {"hardsigmoid_", ActivationOp::kHardsigmoid, 0, kFloatingSet},
    {"hardtanh", ActivationOp::kHardtanh, 2, kNumericSet},
    {"hardtanh_", ActivationOp::kHardtanh, 2, kNumericSet},
    {"leaky_relu", ActivationOp::kLeakyRelu, 1, kFloatingSet},
    {"leaky_relu_", ActivationOp::kLeakyRelu, 1, kFloatingSet},
    {"elu", ActivationOp::kElu, 3, kFloatingSet},
    {"elu_", ActivationOp::kElu, 3, kFloatingSet},
    {"softplus", ActivationOp::kSoftplus, 2, kFloatingSet},
    {"logsigmoid", ActivationOp::kLogSigmoid, 0, kFloatingSet},
    {"softsign", ActivationOp::kSoftsign, 0, kFloatingSet},
    {"tanhshrink", ActivationOp::kTanhshrink, 0, kFloatingSet},
    {"softshrink", ActivationOp::kSoftshrink, 1, kFloatingSet},
    {"hardshrink", ActivationOp::kHardshrink, 1, kFloatingSet},
    {"threshold", ActivationOp::kThreshold, 2, kNumericSet},
    {"threshold_", ActivationOp::kThreshold, 2, kNumericSet},
};

struct SlopeEntry {
  const char* op;
  ActivationOp primitive;
  int numbers;
  bool of_output = false;
};

constexpr SlopeEntry kSlopeEntries[] = {
    {"silu_backward", ActivationOp::kSilu, 0},
    {"mish_backward", ActivationOp::kMish, 0},
    {"hardswish_backward", ActivationOp::kHardswish, 0},
    {"hardsigmoid_backward", ActivationOp::kHardsigmoid, 0},
    {"hardtanh_backward", ActivationOp::kHardtanh, 2},
    {"leaky_relu_backward", ActivationOp::kLeakyRelu, 1},
    {"elu_backward", ActivationOp::kElu, 3},
    {"elu_backward_of_output", ActivationOp::kElu, 3, true},
    {"softplus_backward", ActivationOp::kSoftplus, 2},
    {"logsigmoid_backward", ActivationOp::kLogSigmoid, 0},
    {"softsign_backward", ActivationOp::kSoftsign, 0},
    {"tanhshrink_backward", ActivationOp::kTanhshrink, 0},
    {"shrink_backward", ActivationOp::kHardshrink, 1},
    {"threshold_backward", ActivationOp::kThreshold, 1},
};

template <class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> BindWith(const BindContext& c, int numbers,
                                                const typename Kernel::Primitive::Spec& spec) {
  using Factory = PrimitiveFactory<typename Kernel::Primitive>;
  OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<Factory>(c.device, spec));
  return std::make_unique<Kernel>(std::move(primitive), numbers);
}

const bool activations_registered = [] {
  for (const ActivationEntry& e : kActivationEntries) {
    const auto bind = [&e](const BindContext& c) {
      return BindWith<ActivationKernel>(
          c, e.numbers, {.op = e.primitive, .dtype = c.outputs[0], .in = c.inputs[0]});
    };
    const DTypeSet dtypes = e.dtypes == kFloatingSet ? kAllDTypes : e.dtypes;
    internal::AppendKernel({.op = e.op, .dtypes = dtypes, .strided_inputs = 0b1, .bind = bind},
                           __FILE__, __LINE__);
  }
  for (const SlopeEntry& e : kSlopeEntries) {
    const auto bind = [&e](const BindContext& c) {
      return BindWith<ActivationBackwardKernel>(
          c, e.numbers, {.op = e.primitive, .dtype = c.outputs[0], .of_output = e.of_output});
    };
    internal::AppendKernel(
        {.op = e.op, .dtypes = kFloatingSet, .strided_inputs = 0b11, .bind = bind}, __FILE__,
        __LINE__);
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite
