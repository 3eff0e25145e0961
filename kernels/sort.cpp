// SPDX-License-Identifier: Apache-2.0
#include "primitive/sort.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class SortKernel final : public PrimitiveKernel<Sort> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const int64_t cols = x.shape()[x.ndim() - 1];
    const int64_t rows = x.numel() / cols;
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), rows, cols));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), rows, cols, c.attr<bool>(0), x.data(), c.output(0).data(),
                              c.output(1).data<int64_t>(), workspace);
  }
};

OFL_REGISTER_KERNEL({.op = "sort", .bind = BindByInput<SortKernel>});

}  // namespace
}  // namespace oneflow_lite
