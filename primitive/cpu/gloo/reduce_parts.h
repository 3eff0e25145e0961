// SPDX-License-Identifier: Apache-2.0
//
// Elements of several ranks become one, in the order of ranks: the result does not depend on who
// was quicker.
#pragma once

#include <cstdint>
#include <vector>

#include "primitive/collective.h"

namespace oneflow_lite {

// out[i] = parts[0][i] op parts[1][i] op ..., at least in float32 and rounded once for the 16-bit
// floats; kMean divides by the number of parts before that. out may be one of the parts.
// Precondition: parts is not empty; the dtype is floating where reduce is kMean.
void ReduceParts(const std::vector<const void*>& parts, void* out, int64_t count, DType dtype,
                 CollectiveReduce reduce);

}  // namespace oneflow_lite
