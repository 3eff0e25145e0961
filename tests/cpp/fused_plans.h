// SPDX-License-Identifier: Apache-2.0
//
// The plans of fused rows (fused/policy.h, fused/odd_policy.h), whose kernels are compiled at run
// time, as text.
#pragma once

#include <string>

#include "primitive/cuda/fused/names.h"
#include "primitive/cuda/fused/odd_policy.h"
#include "primitive/cuda/fused/policy.h"

namespace oneflow_lite::cuda {

inline std::string TextOf(const HeldPlan& plan, int64_t rows, int period, const HeldTraits& t,
                          const DeviceLimits& limits) {
  const int late = plan.rows > 1 || plan.stays ? t.late_bytes : 0;
  const int64_t blocks = plan.lanes > 0 ? plan.LaneBlocks(rows, period, limits)
                                        : plan.Clusters(rows, period) * plan.blocks;
  return " grid " + std::to_string(blocks) + " block " + std::to_string(plan.threads) +
         " cluster " + std::to_string(plan.blocks) + " shared " +
         std::to_string(plan.SharedBytes(t.common_bytes + late)) + " resident " +
         std::to_string(plan.resident);
}

// The plan of one fusion; odd: of rows that start at any element.
inline std::string PlanText(int64_t rows, int64_t cols, int pack, bool odd, const HeldTraits& t,
                            const DeviceLimits& limits) {
  if (odd) {
    OddPlan plan;
    if (!PlanOddRows(rows, cols, pack, t, limits, &plan)) return " none";
    return " " + KernelName(plan) + TextOf(plan.held, rows, pack, t, limits);
  }
  HeldPlan plan;
  if (!PlanHeldRows(rows, cols / pack, t, limits, &plan)) return " none";
  return " " + KernelName(plan) + TextOf(plan, rows, 1, t, limits);
}

// softmax, log_softmax, layer_norm and rms_norm beside no operand, one, and two that serve all rows
// or a Store; cheap to compute twice or not.
inline std::string FusedPlans(int64_t rows, int64_t cols, int bytes, bool odd,
                              const DeviceLimits& limits) {
  const int pack = 16 / bytes;
  if (cols < 4 * pack || (!odd && cols % pack != 0)) return " none";
  std::string text;
  for (int kind = 0; kind < 4; ++kind) {
    for (const int common : {0, 16, 32}) {
      for (const int late : {0, 16}) {
        for (const bool lean : {true, false}) {
          HeldTraits t{.value_bytes = pack * (bytes == 8 ? 8 : 4),
                       .is_lean = lean,
                       .is_norm = kind >= 2,
                       .most_blocks = limits.clusters ? 16 : 1,
                       .common_bytes = common,
                       .late_bytes = late};
          t.is_double = bytes == 8;
          t.is_centred = kind == 2;
          t.is_log = kind == 1;
          t.stores_costly = late > 0;
          text += ";" + PlanText(rows, cols, pack, odd, t, limits);
        }
      }
    }
  }
  return text;
}

}  // namespace oneflow_lite::cuda
