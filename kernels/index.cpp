// SPDX-License-Identifier: Apache-2.0
//
// gather, scatter_ and its kin: the dim of the index taken apart from the geometry.
#include "primitive/index.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class GatherKernel final : public PrimitiveKernel<Gather> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &index = c.input(1), &y = c.output(0);
    const int64_t dim = c.attr<int64_t>(0);
    Dims still = x.strides();
    still[dim] = 0;
    const GatherAxis axis{.size = x.shape()[static_cast<int>(dim)],
                          .stride = x.strides()[dim],
                          .from_end = c.attr<bool>(1)};
    return primitive_->Launch(
        c.stream(), MakeElementwise<3>(index.shape(), {index.strides(), still, y.strides()}), axis,
        index.data<int64_t>(), x.data(), y.data());
  }
};

Dims Without(absl::Span<const int64_t> list, int64_t dim) {
  Dims rest(list.begin(), list.end());
  rest.erase(rest.begin() + dim);
  return rest;
}

class ScatterKernel final : public PrimitiveKernel<Scatter> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &index = c.input(1), &src = c.input(2), &dst = c.output(0);
    if (index.numel() == 0) return OkStatus();
    const int64_t dim = c.attr<int64_t>(0);
    const ScatterAxis axis{.count = index.shape()[static_cast<int>(dim)],
                           .size = dst.shape()[static_cast<int>(dim)],
                           .index_stride = index.strides()[dim],
                           .src_stride = src.strides()[dim],
                           .dst_stride = dst.strides()[dim],
                           .from_end = c.attr<bool>(1)};
    const Dims i = Without(index.strides(), dim), s = Without(src.strides(), dim),
               d = Without(dst.strides(), dim);
    const Elementwise<3> columns = MakeElementwise<3>(Without(index.shape(), dim), {i, s, d});
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(primitive_->WorkspaceBytes(columns, axis)));
    return primitive_->Launch(c.stream(), columns, axis, index.data<int64_t>(), src.data(),
                              dst.data(), workspace);
  }
};

template <Scatter::Mode kMode>
StatusOr<std::unique_ptr<BoundKernel>> BindScatter(const BindContext& c) {
  return BindKernel<ScatterKernel>(c, {.dtype = c.outputs[0], .mode = kMode, .src = c.inputs[2]});
}

OFL_REGISTER_KERNEL({.op = "gather", .strided_inputs = 0b11, .bind = BindByInput<GatherKernel>});
OFL_REGISTER_KERNEL({.op = "scatter_",
                     .strided_inputs = 0b111,
                     .bind = BindScatter<Scatter::Mode::kPut>});
OFL_REGISTER_KERNEL({.op = "scatter_add_",
                     .dtypes = kNumericSet,
                     .strided_inputs = 0b111,
                     .bind = BindScatter<Scatter::Mode::kAdd>});
OFL_REGISTER_KERNEL({.op = "scatter_mul_",
                     .strided_inputs = 0b111,
                     .bind = BindScatter<Scatter::Mode::kMul>});
OFL_REGISTER_KERNEL({.op = "scatter_max_",
                     .strided_inputs = 0b111,
                     .bind = BindScatter<Scatter::Mode::kMax>});
OFL_REGISTER_KERNEL({.op = "scatter_min_",
                     .strided_inputs = 0b111,
                     .bind = BindScatter<Scatter::Mode::kMin>});

}  // namespace
}  // namespace oneflow_lite
