// SPDX-License-Identifier: Apache-2.0
//
// index_select, index_copy_, index_add_ and index_sum: tensors seen as [outer, size, inner].
#include "primitive/index_rows.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// Whether t is rows along `dim` of dense elements, and one stride leads from each outer one to the
// next: it then has the strides of an IndexRows.
bool StridesOf(const Tensor& t, int dim, IndexRows* s) {
  int64_t dense = 1;
  for (int d = t.ndim() - 1; d > dim; --d) {
    if (t.shape()[d] != 1 && t.strides()[d] != dense) return false;
    dense *= t.shape()[d];
  }
  int64_t step = 0, covered = 1;
  for (int d = dim - 1; d >= 0; --d) {
    if (t.shape()[d] == 1) continue;
    if (covered == 1) step = t.strides()[d];
    if (t.strides()[d] != step * covered) return false;
    covered *= t.shape()[d];
  }
  s->outer_stride = step;
  s->row_stride = t.strides()[dim];
  return true;
}

// The shape of `whole`, and the strides of `read`, which may be the same.
IndexRows RowsOf(const Tensor& whole, const Tensor& read, int64_t dim, int64_t count) {
  IndexRows s;
  const int axis = static_cast<int>(dim);
  for (int d = 0; d < axis; ++d) s.outer *= whole.shape()[d];
  for (int d = axis + 1; d < whole.ndim(); ++d) s.inner *= whole.shape()[d];
  s.size = whole.shape()[axis];
  s.count = count;
  StridesOf(read, axis, &s);
  return s;
}

class IndexSelectKernel final : public PrimitiveKernel<IndexSelect> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  bool takes_strides(int, const Tensor& x, const Attrs& attrs) const override {
    IndexRows s;
    return StridesOf(x, static_cast<int>(attrs.get<int64_t>(0)), &s);
  }
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &index = c.input(1);
    IndexRows s = RowsOf(x, x, c.attr<int64_t>(0), index.numel());
    s.from_end = c.attr<bool>(2);
    return primitive_->Launch(c.stream(), s, index.data<int64_t>(), x.data(), c.output(0).data());
  }
};

// index_copy_ and index_add_: self, index, src.
template <bool kAlpha>
class IndexIntoKernel final : public PrimitiveKernel<IndexPut> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  bool takes_strides(int, const Tensor& src, const Attrs& attrs) const override {
    IndexRows s;
    return StridesOf(src, static_cast<int>(attrs.get<int64_t>(0)), &s);
  }
  Status Launch(KernelContext& c) const override {
    const Tensor &index = c.input(1), &src = c.input(2), &out = c.output(0);
    IndexRows s = RowsOf(out, src, c.attr<int64_t>(0), index.numel());
    s.from_end = true;
    double alpha = 1;
    if constexpr (kAlpha) alpha = c.attr<double>(1);
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), s));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), s, index.data<int64_t>(), alpha, -1, src.data(),
                              out.data(), workspace);
  }
};

// index_sum: src and index to a new tensor.
class IndexSumKernel final : public PrimitiveKernel<IndexPut> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  bool takes_strides(int, const Tensor& src, const Attrs& attrs) const override {
    IndexRows s;
    return StridesOf(src, static_cast<int>(attrs.get<int64_t>(0)), &s);
  }
  Status Launch(KernelContext& c) const override {
    const Tensor &src = c.input(0), &index = c.input(1), &out = c.output(0);
    IndexRows s = RowsOf(out, src, c.attr<int64_t>(0), index.numel());
    s.from_end = c.attr<bool>(3);
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), s));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), s, index.data<int64_t>(), 1, c.attr<int64_t>(2),
                              src.data(), out.data(), workspace);
  }
};

template <class Kernel, IndexPut::Mode kMode>
StatusOr<std::unique_ptr<BoundKernel>> BindPut(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.outputs[0], .mode = kMode});
}

OFL_REGISTER_KERNEL({.op = "index_select",
                     .strided_inputs = 0b1,
                     .bind = BindByInput<IndexSelectKernel>});
OFL_REGISTER_KERNEL({.op = "index_copy_",
                     .strided_inputs = 0b100,
                     .bind = BindPut<IndexIntoKernel<false>, IndexPut::Mode::kCopy>});
OFL_REGISTER_KERNEL({.op = "index_add_",
                     .dtypes = kNumericSet,
                     .strided_inputs = 0b100,
                     .bind = BindPut<IndexIntoKernel<true>, IndexPut::Mode::kAdd>});
OFL_REGISTER_KERNEL({.op = "index_sum",
                     .dtypes = kNumericSet,
                     .strided_inputs = 0b1,
                     .bind = BindPut<IndexSumKernel, IndexPut::Mode::kSum>});

}  // namespace
}  // namespace oneflow_lite
