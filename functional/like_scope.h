// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {

// In which what is new lies as a global x does; for a partial sum as for a whole one. Nothing where
// x is local.
class LikeScope {
 public:
  explicit LikeScope(const Tensor& x) {
    const GlobalSpec* g = GlobalOf(x);
    if (!g) return;
    NdSbp sbp = g->sbp;
    for (Sbp& s : sbp) {
      if (s.kind == Sbp::Kind::kPartialSum) s = Sbp::Broadcast();
    }
    scope_.emplace(g->placement, std::move(sbp));
  }

 private:
  std::optional<GlobalScope> scope_;
};

}  // namespace oneflow_lite::functional
