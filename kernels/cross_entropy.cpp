// SPDX-License-Identifier: Apache-2.0
#include "primitive/cross_entropy.h"

#include "oneflow_lite/framework/kernel_registry.h"

namespace oneflow_lite {
namespace {

// Logits [rows, classes]; the attributes are ignore_index and label_smoothing.
CrossEntropyShape ShapeOf(const KernelContext& c) {
  const Shape& logits = c.input(0).shape();
  return {.rows = logits[0],
          .classes = logits[1],
          .ignore_index = c.attr<int64_t>(0),
          .smoothing = c.attr<double>(1)};
}

// The distance of neighbouring elements of a 1-D tensor.
int64_t StrideOf(const Tensor& t) { return t.numel() > 1 ? t.strides()[0] : 0; }

class CrossEntropyKernel final : public BoundKernel {
 public:
  explicit CrossEntropyKernel(std::unique_ptr<CrossEntropy> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const CrossEntropyShape shape = ShapeOf(c);
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.input(1).data<int64_t>(),
                              c.output(0).data(), c.output(1).data(), workspace);
  }

 private:
  std::unique_ptr<CrossEntropy> primitive_;
};

class CrossEntropyBackwardKernel final : public BoundKernel {
 public:
  explicit CrossEntropyBackwardKernel(std::unique_ptr<CrossEntropyBackward> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c), c.input(0).data(), c.input(1).data<int64_t>(),
                              c.input(2).data(), c.input(3).data(), StrideOf(c.input(3)),
                              c.output(0).data());
  }

 private:
  std::unique_ptr<CrossEntropyBackward> primitive_;
};

// Makes its outputs: the gradient is a view of the logits' memory.
class CrossEntropyInPlaceKernel final : public BoundKernel {
 public:
  explicit CrossEntropyInPlaceKernel(std::unique_ptr<CrossEntropyInPlace> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const CrossEntropyShape shape = ShapeOf(c);
    const Tensor& x = c.input(0);
    OFL_ASSIGN_OR_RETURN(Tensor loss,
                         Tensor::Empty(Shape{shape.rows}, ComputeType(x.dtype()), x.device()));
    if (shape.rows > 0) {
      OFL_ASSIGN_OR_RETURN(void* workspace,
                           c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
      OFL_RETURN_IF_ERROR(primitive_->Launch(
          c.stream(), shape, x.data(), c.input(1).data<int64_t>(),
          c.input(2).defined() ? c.input(2).data() : nullptr, loss.data(), workspace));
      x.storage()->BumpVersion();
    }
    c.set_output(0, std::move(loss));
    c.set_output(1, x.Detach());
    return OkStatus();
  }

 private:
  std::unique_ptr<CrossEntropyInPlace> primitive_;
};

class MeanWeightKernel final : public BoundKernel {
 public:
  explicit MeanWeightKernel(std::unique_ptr<MeanWeight> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor& target = c.input(0);
    return primitive_->Launch(c.stream(), target.numel(), c.attr<int64_t>(0),
                              target.data<int64_t>(), c.output(0).data());
  }

 private:
  std::unique_ptr<MeanWeight> primitive_;
};
StatusOr<std::unique_ptr<BoundKernel>> BindMeanWeight(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<MeanWeightFactory>(c.device, {.dtype = c.outputs[0]}));
  return std::make_unique<MeanWeightKernel>(std::move(primitive));
}

class ReduceLossKernel final : public BoundKernel {
 public:
  explicit ReduceLossKernel(std::unique_ptr<ReduceLoss> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    static constexpr int64_t kNoTarget = 0;  // empty targets are there, but have no memory
    const Tensor& t = c.input(1);
    const int64_t* target = !t.defined()     ? nullptr
                            : t.numel() == 0 ? &kNoTarget
                                             : t.data<int64_t>();
    return primitive_->Launch(c.stream(), c.input(0).numel(), c.attr<int64_t>(0), c.input(0).data(),
                              target, c.output(0).data(), c.output(1).data());
  }

 private:
  std::unique_ptr<ReduceLoss> primitive_;
};
StatusOr<std::unique_ptr<BoundKernel>> BindReduceLoss(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<ReduceLossFactory>(c.device, {.dtype = c.outputs[0]}));
  return std::make_unique<ReduceLossKernel>(std::move(primitive));
}

class ScaleRowsKernel final : public BoundKernel {
 public:
  explicit ScaleRowsKernel(std::unique_ptr<ScaleRows> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.output(0), &factor = c.input(1);
    return primitive_->Launch(c.stream(), x.shape()[0], x.shape()[1], factor.data(),
                              StrideOf(factor), x.data());
  }

 private:
  std::unique_ptr<ScaleRows> primitive_;
};

template <class Kernel, class Factory>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<Factory>(c.device, {.dtype = c.inputs[0]}));
  return std::make_unique<Kernel>(std::move(primitive));
}

OFL_REGISTER_KERNEL({.op = "cross_entropy",
                     .dtypes = kFloatingSet,
                     .bind = Bind<CrossEntropyKernel, CrossEntropyFactory>});
OFL_REGISTER_KERNEL({.op = "cross_entropy_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1000,
                     .bind = Bind<CrossEntropyBackwardKernel, CrossEntropyBackwardFactory>});
OFL_REGISTER_KERNEL({.op = "cross_entropy_in_place",
                     .dtypes = kFloatingSet,
                     .bind = Bind<CrossEntropyInPlaceKernel, CrossEntropyInPlaceFactory>});
OFL_REGISTER_KERNEL({.op = "mean_weight", .dtypes = SetOf(DType::kInt64), .bind = BindMeanWeight});
OFL_REGISTER_KERNEL({.op = "reduce_loss",
                     .dtypes = SetOf(DType::kFloat32) | SetOf(DType::kFloat64),
                     .bind = BindReduceLoss});
OFL_REGISTER_KERNEL({.op = "scale_rows_",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b10,
                     .bind = Bind<ScaleRowsKernel, ScaleRowsFactory>});

}  // namespace
}  // namespace oneflow_lite
