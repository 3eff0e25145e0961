// SPDX-License-Identifier: Apache-2.0
//
// What fused kernels are called where they are compiled, with A for the algorithm. The order of the
// arguments is that of the templates' parameters.
#pragma once

#include <sstream>
#include <string>

#include "primitive/cuda/fused/odd_policy.h"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

// kernel<arguments, A>; a bool is true or false.
template <class... T>
std::string KernelInstance(const char* kernel, T... arguments) {
  std::ostringstream name;
  name << std::boolalpha << kernel << '<';
  ((name << arguments << ", "), ...);
  return name.str() + "A>";
}

// Of rows of whole packs.
inline std::string KernelName(const HeldPlan& plan) {
  if (plan.lanes > 0) {
    return KernelInstance("FusedLanesKernel", plan.lanes, plan.packs, plan.full, plan.resident);
  }
  if (!plan.wide) {
    return KernelInstance("FusedShareKernel", plan.packs, plan.parked, plan.full, plan.threads,
                          plan.blocks, plan.resident);
  }
  if (plan.rows > 1) {
    return KernelInstance("FusedPairKernel", plan.packs, plan.full, plan.threads, plan.blocks,
                          plan.resident);
  }
  return KernelInstance("FusedWideKernel", plan.packs, plan.kept, plan.full, plan.threads,
                        plan.blocks, plan.resident);
}

// Of rows whose ends lie inside packs.
inline std::string KernelName(const OddPlan& plan) {
  const HeldPlan& held = plan.held;
  if (held.lanes > 0) {
    return KernelInstance("FusedOddLanesKernel", held.lanes, held.packs, plan.pack, plan.copied,
                          held.stays, held.resident);
  }
  if (held.rows > 1) {
    return KernelInstance("FusedOddPairKernel", held.packs, held.threads, held.blocks,
                          held.resident);
  }
  if (!held.wide) {
    return KernelInstance("FusedOddValuesKernel", held.packs, held.threads, held.blocks,
                          held.resident);
  }
  return KernelInstance("FusedOddWideKernel", held.packs, held.threads, held.blocks, held.resident);
}

// Of other rows.
inline std::string KernelName(const RowPlan& plan) {
  const bool cluster = plan.blocks_per_row > 1;
  switch (plan.tier) {
    case RowTier::kGroup:
      return KernelInstance("RowGroupKernel", plan.lanes, plan.packs);
    case RowTier::kBlock:
      return KernelInstance("RowBlockKernel", cluster);
    case RowTier::kShared:
      return cluster ? KernelInstance("RowClusterKernel")
                     : KernelInstance("RowStreamedKernel", true);
    case RowTier::kGrid:
      return KernelInstance("RowGridKernel");
    case RowTier::kWide:
      break;
  }
  return KernelInstance("RowStreamedKernel", false);
}

}  // namespace oneflow_lite::cuda
