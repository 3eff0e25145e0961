// SPDX-License-Identifier: Apache-2.0
//
// Whether kernels that are faster without a fixed order of additions must do without them. Of all
// there are, those are cuDNN's gradients of attention; the rest gives the same bits each time.
#pragma once

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// Of the process; false at first.
OFL_API bool DeterministicAlgorithms();
OFL_API void SetDeterministicAlgorithms(bool value);

}  // namespace oneflow_lite
