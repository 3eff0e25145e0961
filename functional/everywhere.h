// SPDX-License-Identifier: Apache-2.0
//
// What a functor computes on the host is local; here it becomes what a GlobalScope asks for.
#pragma once

#include "functional/copy.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {

// A local tensor that is the same on every rank, as the scope of the call wants it: itself where
// there is none. No rank is asked for anything.
inline StatusOr<Tensor> Everywhere(const Tensor& same) {
  const GlobalScope::Target* scope = GlobalScope::Current();
  if (!scope || GlobalOf(same)) return same;
  const Placement& p = *scope->placement;
  Tensor shard;
  if (!p.Here().empty()) {
    OFL_ASSIGN_OR_RETURN(shard, To(same.Detach(), p.device(), {}));
  }
  const NdSbp whole(p.ndim(), Sbp::Broadcast());
  return Box(MakeGlobal(same.shape(), same.dtype(), {scope->placement, whole, std::move(shard)}),
             scope->placement, scope->sbp);
}

}  // namespace oneflow_lite::functional
