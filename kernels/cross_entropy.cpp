// SPDX-License-Identifier: Apache-2.0
#include "primitive/cross_entropy.h"

#include "kernels/cross_entropy.h"

namespace oneflow_lite {
namespace {

// Logits [rows, classes]; the attributes are ignore_index and label_smoothing.
CrossEntropyShape CrossEntropyShapeOf(const KernelContext& c) {
  const Tensor& logits = c.input(0);
  return {.rows = logits.shape()[0],
          .classes = logits.shape()[1],
          .ignore_index = c.attr<int64_t>(0),
          .smoothing = c.attr<double>(1),
          .row_stride = RowStrideOf(logits, 1)};
}

class CrossEntropyKernel final : public PrimitiveKernel<CrossEntropy> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const CrossEntropyShape shape = CrossEntropyShapeOf(c);
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.input(1).data<int64_t>(),
                              c.output(0).data(), c.output(1).data(), workspace);
  }
  bool takes_strides(int input, const Tensor& tensor, const Attrs&) const override {
    return input != 0 || IsRows(tensor);
  }
};

// The rows' own kernels, but where the logits are a part of the classes.
class CrossEntropyBackwardKernel final : public PrimitiveKernel<CrossEntropyBackward> {
 public:
  CrossEntropyBackwardKernel(std::unique_ptr<CrossEntropyBackward> whole,
                             std::unique_ptr<CrossEntropySplit> part)
      : PrimitiveKernel(std::move(whole)), part_(std::move(part)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &dloss = c.input(3);
    const auto* target = c.input(1).data<int64_t>();
    void* dx = c.output(0).data();
    if (c.attr<int64_t>(3) == 0) {
      return primitive_->Launch(c.stream(), CrossEntropyShapeOf(c), x.data(), target,
                                c.input(2).data(), dloss.data(), StrideOf(dloss), dx);
    }
    return part_->Gradient(c.stream(), ClassPartShapeOf(c, x), x.data(), target, c.input(2).data(),
                           dloss.data(), StrideOf(dloss), dx, x.shape()[1]);
  }
  bool takes_strides(int input, const Tensor& tensor, const Attrs&) const override {
    return input != 0 || IsRows(tensor);
  }

 private:
  const std::unique_ptr<CrossEntropySplit> part_;
};

StatusOr<std::unique_ptr<BoundKernel>> BindBackward(const BindContext& c) {
  const DType dtype = c.inputs[0];
  OFL_ASSIGN_OR_RETURN(auto whole,
                       NewPrimitive<CrossEntropyBackwardFactory>(c.device, {.dtype = dtype}));
  OFL_ASSIGN_OR_RETURN(auto part,
                       NewPrimitive<CrossEntropySplitFactory>(c.device, {.dtype = dtype}));
  return std::make_unique<CrossEntropyBackwardKernel>(std::move(whole), std::move(part));
}

// Makes its outputs: the gradient is a view of the logits' memory.
class CrossEntropyInPlaceKernel final : public PrimitiveKernel<CrossEntropyInPlace> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const CrossEntropyShape shape = CrossEntropyShapeOf(c);
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
  bool takes_strides(int input, const Tensor& tensor, const Attrs&) const override {
    return input != 0 || IsRows(tensor);
  }
};

class MeanWeightKernel final : public PrimitiveKernel<MeanWeight> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& target = c.input(0);
    return primitive_->Launch(c.stream(), target.numel(), c.attr<int64_t>(0),
                              target.data<int64_t>(), c.output(0).data());
  }
};

class ReduceLossKernel final : public PrimitiveKernel<ReduceLoss> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    static constexpr int64_t kNoTarget = 0;  // empty targets are there, but have no memory
    const Tensor& t = c.input(1);
    const int64_t* target = !t.defined()     ? nullptr
                            : t.numel() == 0 ? &kNoTarget
                                             : t.data<int64_t>();
    return primitive_->Launch(c.stream(), c.input(0).numel(), c.attr<int64_t>(0), c.input(0).data(),
                              target, c.output(0).data(), c.output(1).data());
  }
};

class ScaleRowsKernel final : public PrimitiveKernel<ScaleRows> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.output(0), &factor = c.input(1);
    return primitive_->Launch(c.stream(), x.shape()[0], x.shape()[1], factor.data(),
                              StrideOf(factor), x.data());
  }
};

OFL_REGISTER_KERNEL({.op = "cross_entropy",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1,
                     .bind = BindByInput<CrossEntropyKernel>});
OFL_REGISTER_KERNEL({.op = "cross_entropy_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1001,
                     .bind = BindBackward});
OFL_REGISTER_KERNEL({.op = "cross_entropy_in_place",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1,
                     .bind = BindByInput<CrossEntropyInPlaceKernel>});
OFL_REGISTER_KERNEL({.op = "mean_weight",
                     .dtypes = SetOf(DType::kInt64),
                     .bind = BindByOutput<MeanWeightKernel>});
OFL_REGISTER_KERNEL({.op = "reduce_loss",
                     .dtypes = SetOf(DType::kFloat32) | SetOf(DType::kFloat64),
                     .bind = BindByOutput<ReduceLossKernel>});
OFL_REGISTER_KERNEL({.op = "scale_rows_",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b10,
                     .bind = BindByInput<ScaleRowsKernel>});

}  // namespace
}  // namespace oneflow_lite
