// SPDX-License-Identifier: Apache-2.0
//
// distances: of float32 and float64, on the CPU alone.
#include "primitive/distances.h"

#include <cmath>

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class DistancesKernel final : public PrimitiveKernel<Distances> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Shape &a = c.input(0).shape(), &b = c.input(1).shape();
    const double p = c.attr<double>(0);
    const Distances::Problem problem = {.batch = a[0],
                                        .m = a[1],
                                        .n = b[1],
                                        .d = a[2],
                                        .norm = std::isinf(p) ? Distances::Norm::kLargest
                                                : p == 2      ? Distances::Norm::kEuclid
                                                : p == 1      ? Distances::Norm::kSum
                                                              : Distances::Norm::kCount,
                                        .pairs = c.attr<bool>(1)};
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), problem));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), problem, c.input(0).data(), c.input(1).data(),
                              c.output(0).data(), workspace);
  }
};

OFL_REGISTER_KERNEL({.op = "distances",
                     .device = DeviceType::kCPU,
                     .dtypes = SetOf(DType::kFloat32) | SetOf(DType::kFloat64),
                     .bind = BindByInput<DistancesKernel>});

}  // namespace
}  // namespace oneflow_lite
