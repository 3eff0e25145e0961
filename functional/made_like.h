// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {

// What make() gives, of x's shape: where x is global, it lies as x does, and for a partial sum as
// the whole one.
template <class F>
StatusOr<Tensor> MadeLike(const Tensor& x, F make) {
  const GlobalSpec* g = GlobalOf(x);
  if (!g) return make();
  NdSbp sbp = g->sbp;
  for (Sbp& s : sbp) {
    if (s.kind == Sbp::Kind::kPartialSum) s = Sbp::Broadcast();
  }
  const GlobalScope scope(g->placement, sbp);
  OFL_ASSIGN_OR_RETURN(const Tensor made, make());
  const GlobalSpec* as = GlobalOf(made);
  if (!as || as->sbp == sbp) return made;
  // The op has no kernels for shards that lie so: a new leaf.
  OFL_ASSIGN_OR_RETURN(const Tensor moved, Box(made.Detach(), g->placement, sbp));
  OFL_RETURN_IF_ERROR(autograd::SetRequiresGrad(moved, autograd::RequiresGrad(made)));
  return moved;
}

}  // namespace oneflow_lite::functional
