// SPDX-License-Identifier: Apache-2.0
#include "primitive/loss.h"

#include <algorithm>

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

// As the op names them, in the order of LossKind and LossOrder.
constexpr absl::string_view kKinds[] = {"mse",
                                        "l1",
                                        "smooth_l1",
                                        "huber",
                                        "kl_div",
                                        "kl_div_log",
                                        "bce_with_logits",
                                        "bce",
                                        "poisson_nll",
                                        "poisson_nll_log",
                                        "gaussian_nll",
                                        "soft_margin",
                                        "hinge_embedding",
                                        "margin_ranking",
                                        "prelu_weight"};
static_assert(std::size(kKinds) == kLossKinds, "a loss without a name");
constexpr absl::string_view kOrders[] = {"", "x", "t", "p", "xx", "xt", "tt", "xp", "tp", "pp"};

template <class E, size_t N>
StatusOr<E> FindIn(const absl::string_view (&names)[N], const std::string& name) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  if (found != std::end(names)) return static_cast<E>(found - names);
  return Error(ErrorKind::kNotImplemented, "loss(): there is no kernel for \"", name, "\"");
}

Status Run(KernelContext& c, const Loss& loss, const std::string& kind, const std::string& order,
           LossProblem problem, LossPointers at, const Tensor& p) {
  OFL_ASSIGN_OR_RETURN(problem.kind, FindIn<LossKind>(kKinds, kind));
  OFL_ASSIGN_OR_RETURN(problem.order, FindIn<LossOrder>(kOrders, order));
  if (p.defined()) {
    at.p = p.data();
    problem.period = std::max<int64_t>(1, p.numel());
  }
  at.y = c.output(0).data();
  OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(loss.WorkspaceBytes(c.stream(), problem)));
  return loss.Launch(c.stream(), problem, at, workspace);
}

class LossKernel final : public PrimitiveKernel<Loss> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const std::string& reduction = c.attr<std::string>(1);
    LossProblem problem = {.a = c.attr<double>(2), .b = c.attr<double>(3)};
    problem.n = c.input(0).numel();
    problem.summed = reduction != "none";
    if (reduction == "mean") problem.scale = 1 / static_cast<double>(problem.n);
    return Run(c, *primitive_, c.attr<std::string>(0), "", problem,
               {.x = c.input(0).data(), .t = c.input(1).data()}, c.input(2));
  }
};

class LossSlopeKernel final : public PrimitiveKernel<Loss> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    LossProblem problem = {
        .a = c.attr<double>(3), .b = c.attr<double>(4), .scale = c.attr<double>(2)};
    problem.n = c.input(1).numel();
    problem.one_dy = c.input(0).ndim() == 0;
    return Run(c, *primitive_, c.attr<std::string>(0), c.attr<std::string>(1), problem,
               {.dy = c.input(0).data(), .x = c.input(1).data(), .t = c.input(2).data()},
               c.input(3));
  }
};

OFL_REGISTER_KERNEL({.op = "loss", .dtypes = kFloatingSet, .bind = BindByInput<LossKernel>});
OFL_REGISTER_KERNEL({.op = "loss_slope",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<LossSlopeKernel>});

}  // namespace
}  // namespace oneflow_lite
