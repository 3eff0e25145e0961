// SPDX-License-Identifier: Apache-2.0
//
// Reductions: sees the tensor as outer x axis x inner around the reduced dims.
#include "primitive/reduce.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

AxisSplit SplitAround(const Shape& shape, const Dims& dims) {
  AxisSplit s;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (dims.empty() || d < dims.front())
      s.outer *= shape[d];
    else if (d <= dims.back())
      s.axis *= shape[d];
    else
      s.inner *= shape[d];
  }
  return s;
}

Status Run(KernelContext& c, const Reduce& reduce, const AxisSplit& split) {
  OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(reduce.WorkspaceBytes(c.stream(), split)));
  return reduce.Launch(c.stream(), split, c.input(0).data(), c.output(0).data(), workspace);
}

// sum, mean and amax over a run of dims.
class ReduceKernel final : public PrimitiveKernel<Reduce> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return Run(c, *primitive_, SplitAround(c.input(0).shape(), c.attr<Dims>(0)));
  }
};

// max (values, indices) and argmax (indices) along one dim.
class MaxKernel final : public BoundKernel {
 public:
  MaxKernel(std::unique_ptr<Reduce> values, std::unique_ptr<ArgMax> places)
      : values_(std::move(values)), places_(std::move(places)) {}
  Status Launch(KernelContext& c) const override {
    const AxisSplit split = SplitAt(c.input(0).shape(), c.attr<int64_t>(0));
    if (values_) OFL_RETURN_IF_ERROR(Run(c, *values_, split));
    return places_->Launch(c.stream(), split, c.input(0).data(),
                           c.output(values_ ? 1 : 0).data<int64_t>());
  }

 private:
  std::unique_ptr<Reduce> values_;  // null for argmax
  std::unique_ptr<ArgMax> places_;
};

template <ReduceOp kOp>
StatusOr<std::unique_ptr<BoundKernel>> BindReduce(const BindContext& c) {
  return BindKernel<ReduceKernel>(c, {.op = kOp, .in = c.inputs[0], .out = c.outputs[0]});
}

template <bool kValues>
StatusOr<std::unique_ptr<BoundKernel>> BindMax(const BindContext& c) {
  std::unique_ptr<Reduce> values;
  if (kValues) {
    OFL_ASSIGN_OR_RETURN(
        values, NewPrimitive<ReduceFactory>(
                    c.device, {.op = ReduceOp::kMax, .in = c.inputs[0], .out = c.inputs[0]}));
  }
  OFL_ASSIGN_OR_RETURN(auto places, NewPrimitive<ArgMaxFactory>(c.device, {.dtype = c.inputs[0]}));
  return std::make_unique<MaxKernel>(std::move(values), std::move(places));
}

OFL_REGISTER_KERNEL({.op = "sum", .bind = BindReduce<ReduceOp::kSum>});
OFL_REGISTER_KERNEL({.op = "mean", .dtypes = kFloatingSet, .bind = BindReduce<ReduceOp::kMean>});
OFL_REGISTER_KERNEL({.op = "amax", .bind = BindReduce<ReduceOp::kMax>});
OFL_REGISTER_KERNEL({.op = "max", .bind = BindMax<true>});
OFL_REGISTER_KERNEL({.op = "argmax", .bind = BindMax<false>});

}  // namespace
}  // namespace oneflow_lite
