// SPDX-License-Identifier: Apache-2.0
#include "primitive/ranks.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class RankKernel : public PrimitiveKernel<RankSelect> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

 protected:
  Status Select(KernelContext& c, const Ranks& ranks, void* values, int64_t* places,
                int64_t* numbers) const {
    const Tensor& x = c.input(0);
    const int64_t cols = x.shape()[x.ndim() - 1];
    const int64_t rows = x.numel() / cols;
    OFL_ASSIGN_OR_RETURN(const size_t bytes,
                         primitive_->WorkspaceBytes(c.stream(), rows, cols, ranks));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), rows, cols, ranks, x.data(), values, places, numbers,
                              workspace);
  }
};

template <RankKind kKind>
class OneRankKernel final : public RankKernel {
 public:
  using RankKernel::RankKernel;
  Status Launch(KernelContext& c) const override {
    Ranks ranks{.kind = kKind};
    if (kKind == RankKind::kKth) ranks.k = c.attr<int64_t>(0) - 1;
    return Select(c, ranks, c.output(0).data(), c.output(1).data<int64_t>(), nullptr);
  }
};

class QuantileKernel final : public RankKernel {
 public:
  using RankKernel::RankKernel;
  Status Launch(KernelContext& c) const override {
    const std::string& interpolation = c.attr<std::string>(0);
    const Ranks ranks{.kind = interpolation == "lower"     ? RankKind::kLower
                              : interpolation == "higher"  ? RankKind::kHigher
                              : interpolation == "nearest" ? RankKind::kNearest
                                                           : RankKind::kAround,
                      .skip_nan = c.attr<bool>(1),
                      .count = c.input(1).numel(),
                      .shares = c.input(1).data<double>()};
    return Select(c, ranks, nullptr, c.output(0).data<int64_t>(), c.output(1).data<int64_t>());
  }
};

OFL_REGISTER_KERNEL({.op = "kthvalue", .bind = BindByInput<OneRankKernel<RankKind::kKth>>});
OFL_REGISTER_KERNEL({.op = "median", .bind = BindByInput<OneRankKernel<RankKind::kMedian>>});
OFL_REGISTER_KERNEL({.op = "nanmedian", .bind = BindByInput<OneRankKernel<RankKind::kNanMedian>>});
OFL_REGISTER_KERNEL({.op = "quantile_places",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<QuantileKernel>});

}  // namespace
}  // namespace oneflow_lite
