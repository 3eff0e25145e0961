// SPDX-License-Identifier: Apache-2.0
#include "primitive/cross_entropy_split.h"

#include "kernels/cross_entropy.h"

namespace oneflow_lite {
namespace {

class CrossEntropyPartsKernel final : public PrimitiveKernel<CrossEntropySplit> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &parts = c.output(0);
    const ClassPartShape all = ClassPartShapeOf(c, x);
    const int64_t count = parts.shape()[0], item = SizeOf(x.dtype());
    ClassPartShape one = all;
    for (int64_t k = 0; k < count; ++k, one.first += one.count) {
      one.count = all.count / count + (k < all.count % count ? 1 : 0);
      const int64_t numbers = k * all.rows * kPartNumbers * SizeOf(parts.dtype());
      OFL_RETURN_IF_ERROR(primitive_->Part(
          c.stream(), one, static_cast<const char*>(x.data()) + (one.first - all.first) * item,
          c.input(1).data<int64_t>(), static_cast<char*>(parts.data()) + numbers));
    }
    return OkStatus();
  }
  bool takes_strides(int, const Tensor& logits, const Attrs&) const override {
    return IsRows(logits);
  }
};

class CrossEntropyOfPartsKernel final : public PrimitiveKernel<CrossEntropySplit> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const int64_t here = c.input(0).shape()[1], classes = c.attr<int64_t>(2);
    const ClassMergeShape shape{.rows = c.input(0).shape()[0],
                                .classes = classes == 0 ? here : classes,
                                .parts = c.input(2).shape()[0],
                                .ignore_index = c.attr<int64_t>(0),
                                .smoothing = c.attr<double>(1)};
    return primitive_->Merge(c.stream(), shape, c.input(1).data<int64_t>(), c.input(2).data(),
                             c.output(0).data(), c.output(1).data());
  }
  // Of the logits no element is read.
  bool takes_strides(int, const Tensor&, const Attrs&) const override { return true; }
};

class CrossEntropyGradientKernel final : public PrimitiveKernel<CrossEntropySplit> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.output(0), &dloss = c.input(3);
    const ClassPartShape shape = ClassPartShapeOf(c, x);
    return primitive_->Gradient(c.stream(), shape, x.data(), c.input(1).data<int64_t>(),
                                c.input(2).data(), dloss.data(), StrideOf(dloss), x.data(),
                                shape.row_stride);
  }
  bool takes_strides(int input, const Tensor& tensor, const Attrs&) const override {
    return input != 0 || IsRows(tensor);
  }
};

OFL_REGISTER_KERNEL({.op = "cross_entropy_parts",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1,
                     .bind = BindByInput<CrossEntropyPartsKernel>});
OFL_REGISTER_KERNEL({.op = "cross_entropy_of_parts",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1,
                     .bind = BindByInput<CrossEntropyOfPartsKernel>});
OFL_REGISTER_KERNEL({.op = "cross_entropy_gradient_",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1001,
                     .bind = BindByInput<CrossEntropyGradientKernel>});

}  // namespace
}  // namespace oneflow_lite
