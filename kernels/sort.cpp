// SPDX-License-Identifier: Apache-2.0
#include "primitive/sort.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

int64_t LastDim(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

class SortKernel final : public PrimitiveKernel<Sort> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const int64_t cols = LastDim(x);
    const int64_t rows = x.numel() / cols;
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), rows, cols));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), rows, cols, c.attr<bool>(0), x.data(), c.output(0).data(),
                              c.output(1).data<int64_t>(), workspace);
  }
};

class UniqueValuesKernel final : public PrimitiveKernel<UniqueValues> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const int64_t n = c.input(0).numel();
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), n));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), n, c.input(0).data(), c.output(0).data(),
                              c.output(1).data<int64_t>(), workspace);
  }
};

class TopKKernel final : public PrimitiveKernel<TopK> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const int64_t cols = LastDim(x);
    const TopK::Problem problem{x.numel() / cols, cols, c.attr<int64_t>(0), c.attr<bool>(1)};
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), problem));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), problem, x.data(), c.output(0).data(),
                              c.output(1).data<int64_t>(), workspace);
  }
};

class SortRowsKernel final : public PrimitiveKernel<SortRows> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Shape& shape = c.input(0).shape();
    OFL_ASSIGN_OR_RETURN(const size_t bytes,
                         primitive_->WorkspaceBytes(c.stream(), shape[0], shape[1]));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), shape[0], shape[1], c.input(0).data(),
                              c.output(0).data<int64_t>(), workspace);
  }
};

class LongestRunKernel final : public PrimitiveKernel<LongestRun> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const int64_t cols = LastDim(c.input(0));
    return primitive_->Launch(c.stream(), c.input(0).numel() / cols, cols, c.input(0).data(),
                              c.output(0).data<int64_t>());
  }
};

class SearchSortedKernel final : public PrimitiveKernel<SearchSorted> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &sorted = c.input(0), &x = c.input(1);
    int64_t rows = 1;
    for (int d = 0; d + 1 < sorted.ndim(); ++d) rows *= sorted.shape()[d];
    const SearchSorted::Problem problem{rows, LastDim(sorted), x.numel(), c.attr<bool>(0),
                                        c.attr<bool>(1)};
    return primitive_->Launch(c.stream(), problem, sorted.data(), x.data(), c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "sort", .bind = BindByInput<SortKernel>});
OFL_REGISTER_KERNEL({.op = "unique_values", .bind = BindByInput<UniqueValuesKernel>});
OFL_REGISTER_KERNEL({.op = "topk", .bind = BindByInput<TopKKernel>});
OFL_REGISTER_KERNEL({.op = "sort_rows", .bind = BindByInput<SortRowsKernel>});
OFL_REGISTER_KERNEL({.op = "longest_run", .bind = BindByInput<LongestRunKernel>});
OFL_REGISTER_KERNEL({.op = "searchsorted", .bind = BindByInput<SearchSortedKernel>});

}  // namespace
}  // namespace oneflow_lite
