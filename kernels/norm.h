// SPDX-License-Identifier: Apache-2.0
//
// The kernels of layer_norm and rms_norm, forward and backward: see the tensors as rows x cols and
// launch the device's primitive. Inputs and outputs come in the order in which ops/norm.h declares
// them, without those that the primitive has no argument for.
#pragma once

#include <limits>

#include "oneflow_lite/core/row_stride.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "primitive/creation.h"
#include "primitive/norm.h"

namespace oneflow_lite {

inline int64_t WrapNormAxis(int64_t axis, const Tensor& x) {
  return axis < 0 ? axis + x.ndim() : axis;
}

inline NormShape NormShapeOf(const Tensor& x, int64_t attr, double eps) {
  const int64_t axis = WrapNormAxis(attr, x);
  NormShape shape{.rows = 1, .cols = 1, .eps = eps};
  for (int d = 0; d < x.ndim(); ++d) (d < axis ? shape.rows : shape.cols) *= x.shape()[d];
  if (!x.is_contiguous()) shape.x_stride = RowStrideOf(x, axis);
  return shape;
}

// Reads a launch's tensors one after the other; null for an absent one.
class NormTensors {
 public:
  explicit NormTensors(KernelContext& c) : c_(c) {}
  const void* Input() {
    const Tensor& t = c_.input(input_++);
    return t.defined() ? t.data() : nullptr;
  }
  void* Output() { return c_.output(output_++).data(); }  // null where it has no elements

 private:
  KernelContext& c_;
  int input_ = 0, output_ = 0;
};

class NormKernelBase : public BoundKernel {
 public:
  // `x`: which input may have a row stride; `fill` is for FillOutputs.
  NormKernelBase(int x, std::unique_ptr<Fill> fill) : x_(x), fill_(std::move(fill)) {}

  bool takes_strides(int i, const Tensor& input, const Attrs& attrs) const override {
    return i == x_ && RowStrideOf(input, WrapNormAxis(attrs.get<int64_t>(0), input)) > 0;
  }

 protected:
  // For a tensor without elements: `value` in the outputs from `first` on that have some.
  Status FillOutputs(KernelContext& c, int first, double value) const {
    for (int i = first; i < c.num_outputs(); ++i) {
      const Tensor& t = c.output(i);
      if (t.numel() == 0) continue;
      const Dims strides = ContiguousStrides(t.shape());
      OFL_RETURN_IF_ERROR(fill_->Launch(c.stream(), MakeElementwise<1>(t.shape(), {strides}),
                                        Scalar(value), t.data()));
    }
    return OkStatus();
  }

 private:
  int x_;
  std::unique_ptr<Fill> fill_;
};

// P is LayerNorm or RmsNorm.
template <class P, bool kResidual>
class NormKernel final : public NormKernelBase {
 public:
  static constexpr int kX = 0;

  NormKernel(std::unique_ptr<P> primitive, std::unique_ptr<Fill> fill)
      : NormKernelBase(kX, std::move(fill)), primitive_(std::move(primitive)) {}

  Status Launch(KernelContext& c) const override {
    const NormShape shape = NormShapeOf(c.input(kX), c.attr<int64_t>(0), c.attr<double>(1));
    if (shape.cols == 0) {  // statistics of nothing
      return FillOutputs(c, kResidual ? 2 : 1, std::numeric_limits<double>::quiet_NaN());
    }
    NormTensors next(c);
    typename P::Args args;
    args.x = next.Input();
    if constexpr (kResidual) args.residual = next.Input();
    args.weight = next.Input();
    if constexpr (requires { args.bias; }) args.bias = next.Input();
    args.y = next.Output();
    if constexpr (kResidual) args.sum = next.Output();
    if constexpr (requires { args.mean; }) args.mean = next.Output();
    args.rstd = next.Output();
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, args, workspace);
  }

 private:
  std::unique_ptr<P> primitive_;
};

// P is LayerNormBackward or RmsNormBackward.
template <class P>
class NormBackwardKernel final : public NormKernelBase {
 public:
  static constexpr int kX = 2;

  NormBackwardKernel(std::unique_ptr<P> primitive, std::unique_ptr<Fill> fill)
      : NormKernelBase(kX, std::move(fill)), primitive_(std::move(primitive)) {}

  Status Launch(KernelContext& c) const override {
    const Tensor& dy = c.input(0);
    if (dy.numel() == 0) return FillOutputs(c, 1, 0);  // dweight and dbias of no rows
    const Tensor& normalised = c.input(kX).defined() ? c.input(kX) : dy;
    const NormShape shape = NormShapeOf(normalised, c.attr<int64_t>(0), 0);
    NormTensors next(c);
    typename P::Args args;
    args.dy = next.Input();
    args.rstd = next.Input();
    args.x = next.Input();
    args.y = next.Input();
    args.weight = next.Input();
    args.dsum = next.Input();
    if constexpr (requires { args.bias; }) args.bias = next.Input();
    if constexpr (requires { args.mean; }) args.mean = next.Input();
    args.dx = next.Output();
    args.dweight = next.Output();
    if constexpr (requires { args.dbias; }) args.dbias = next.Output();
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, args, workspace);
  }

 private:
  std::unique_ptr<P> primitive_;
};

// Binds Kernel to its primitive P; `columns` are the places of weight and bias among the inputs. An
// absent one comes as the dtype of input 0, so that float32 among them tells of mixed dtypes.
template <class Kernel, class P>
StatusOr<std::unique_ptr<BoundKernel>> BindNorm(const BindContext& c,
                                                std::initializer_list<int> columns,
                                                DType fill_dtype) {
  NormSpec spec{.dtype = c.inputs[0], .weight_dtype = c.inputs[0]};
  for (const int i : columns) {
    if (c.inputs[i] == DType::kFloat32) spec.weight_dtype = DType::kFloat32;
  }
  OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<PrimitiveFactory<P>>(c.device, spec));
  OFL_ASSIGN_OR_RETURN(auto fill, NewPrimitive<FillFactory>(c.device, {.dtype = fill_dtype}));
  return std::make_unique<Kernel>(std::move(primitive), std::move(fill));
}

}  // namespace oneflow_lite
