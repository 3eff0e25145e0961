// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/simd_targets.h"

#include <hwy/highway.h>

namespace oneflow_lite {

std::string SimdTargets() {
  std::string names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (!names.empty()) names += ", ";
    names += hwy::TargetName(target);
  }
  return names;
}

}  // namespace oneflow_lite
