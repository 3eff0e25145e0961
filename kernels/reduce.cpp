// SPDX-License-Identifier: Apache-2.0
//
// Reductions; their gradients see the tensor as outer x axis x inner around the reduced dims.
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

// The op has the dims, or one dim, as its first attribute.
AxisSplit SplitOf(const Shape& shape, const Attrs& attrs) {
  if (const auto* dim = std::get_if<int64_t>(&attrs[0])) return SplitAt(shape, *dim);
  return SplitAround(shape, attrs.get<Dims>(0));
}

ReduceShape ReduceShapeOf(const Tensor& x, const Attrs& attrs) {
  ReduceShape shape;
  const auto* dim = std::get_if<int64_t>(&attrs[0]);
  for (int d = 0; d < x.ndim(); ++d) {
    bool reduced = dim && *dim == d;
    if (!dim) {
      for (const int64_t given : attrs.get<Dims>(0)) reduced = reduced || given == d;
    }
    shape.Add(x.shape()[d], x.strides()[d], reduced);
  }
  return shape;
}

// Whichever reduction: attribute kParameter, where there is one, is the primitive's parameter.
template <int kParameter, bool kPlacesAlone>
class ReduceKernel final : public PrimitiveKernel<Reduce> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return primitive_->TakesStrides(ReduceShapeOf(input, attrs));
  }
  Status Launch(KernelContext& c) const override {
    const ReduceShape shape = ReduceShapeOf(c.input(0), c.attrs());
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    double parameter = 0;
    if constexpr (kParameter > 0) parameter = c.attr<double>(kParameter);
    void* first = kPlacesAlone ? nullptr : c.output(0).data();
    void* second = kPlacesAlone          ? c.output(0).data()
                   : c.num_outputs() > 1 ? c.output(1).data()
                                         : nullptr;
    return primitive_->Launch(c.stream(), shape, parameter, c.input(0).data(), first, second,
                              workspace);
  }
};

template <ReduceKind kOp, int kParameter>
StatusOr<std::unique_ptr<BoundKernel>> BindReduce(const BindContext& c) {
  return BindKernel<ReduceKernel<kParameter, false>>(
      c, {.op = kOp, .in = c.inputs[0], .out = c.outputs[0]});
}
template <ReduceKind kOp>
StatusOr<std::unique_ptr<BoundKernel>> BindPlaces(const BindContext& c) {
  return BindKernel<ReduceKernel<0, true>>(c, {.op = kOp, .in = c.inputs[0], .out = c.inputs[0]});
}

template <ReduceKind kOp, int kParameter = 0>
bool Register(const char* op, DTypeSet dtypes, int line) {
  return internal::AppendKernel(
      {.op = op, .dtypes = dtypes, .strided_inputs = 0b1, .bind = BindReduce<kOp, kParameter>},
      __FILE__, line);
}

const bool registered = Register<ReduceKind::kSum>("sum", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kMean>("mean", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kNanSum>("nansum", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kNanMean>("nanmean", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kProd>("prod", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kMax>("amax", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kMin>("amin", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kMinMax>("aminmax", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kAny>("any", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kAll>("all", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kCount>("count_nonzero", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kNorm, 2>("vector_norm", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kLogSumExp>("logsumexp", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kVar, 2>("var", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kStd, 2>("std", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kVar, 2>("var_mean", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kStd, 2>("std_mean", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kProdParts>("prod_parts", kFloatingSet, __LINE__) &&
                        Register<ReduceKind::kArgMax>("max", kAllDTypes, __LINE__) &&
                        Register<ReduceKind::kArgMin>("min", kAllDTypes, __LINE__);

OFL_REGISTER_KERNEL({.op = "argmax",
                     .strided_inputs = 0b1,
                     .bind = BindPlaces<ReduceKind::kArgMax>});
OFL_REGISTER_KERNEL({.op = "argmin",
                     .strided_inputs = 0b1,
                     .bind = BindPlaces<ReduceKind::kArgMin>});

// Gradients: dy, x and what the kind needs; the first attribute is the dims, the second a number.
template <ReduceGradKind kOp>
class ReduceGradKernel final : public PrimitiveKernel<ReduceGrad> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    ReduceGrad::Operands o{c.input(0).data(), c.input(1).data(), nullptr, nullptr, nullptr};
    const auto at = [&](int i) { return c.input(i).data(); };
    switch (kOp) {
      case ReduceGradKind::kVar:
      case ReduceGradKind::kLogSumExp:
        o.extra = at(2);
        break;
      case ReduceGradKind::kStd:
        o.extra = at(2);
        o.y = at(3);
        break;
      case ReduceGradKind::kNorm:
        o.y = at(2);
        break;
      case ReduceGradKind::kProd:
        o.extra = at(2);
        o.zeros = c.input(3).data<int64_t>();
        break;
    }
    return primitive_->Launch(c.stream(), SplitOf(c.input(1).shape(), c.attrs()), c.attr<double>(1),
                              o, c.output(0).data());
  }
};

template <ReduceGradKind kOp>
StatusOr<std::unique_ptr<BoundKernel>> BindGrad(const BindContext& c) {
  return BindKernel<ReduceGradKernel<kOp>>(c, {.op = kOp, .dtype = c.inputs[0]});
}
OFL_REGISTER_KERNEL({.op = "var_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindGrad<ReduceGradKind::kVar>});
OFL_REGISTER_KERNEL({.op = "std_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindGrad<ReduceGradKind::kStd>});
OFL_REGISTER_KERNEL({.op = "vector_norm_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindGrad<ReduceGradKind::kNorm>});
OFL_REGISTER_KERNEL({.op = "logsumexp_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindGrad<ReduceGradKind::kLogSumExp>});
OFL_REGISTER_KERNEL({.op = "prod_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindGrad<ReduceGradKind::kProd>});

}  // namespace
}  // namespace oneflow_lite
