// SPDX-License-Identifier: Apache-2.0
//
// bin_counts: of float32, float64 and int64.
#include "primitive/bin_counts.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class BinCountsKernel final : public PrimitiveKernel<BinCounts> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &edges = c.input(1), &weights = c.input(2);
    return primitive_->Launch(c.stream(), x.numel(), x.data(), c.attr<int64_t>(0),
                              c.attr<double>(1), c.attr<double>(2),
                              edges.numel() > 0 ? edges.data() : nullptr,
                              weights.defined() ? weights.data() : nullptr, c.output(0).data());
  }
};

constexpr DTypeSet kCounted =
    SetOf(DType::kFloat32) | SetOf(DType::kFloat64) | SetOf(DType::kInt64);
// By device, as a KernelSet asks.
OFL_REGISTER_KERNEL({.op = "bin_counts",
                     .device = DeviceType::kCPU,
                     .dtypes = kCounted,
                     .bind = BindByInput<BinCountsKernel>});
OFL_REGISTER_KERNEL({.op = "bin_counts",
                     .device = DeviceType::kCUDA,
                     .dtypes = kCounted,
                     .bind = BindByInput<BinCountsKernel>});

}  // namespace
}  // namespace oneflow_lite
