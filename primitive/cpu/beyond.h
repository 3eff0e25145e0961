// SPDX-License-Identifier: Apache-2.0
//
// The next element of a row that a selection of a few or a running extreme has to look at: whole
// vectors of others are passed over.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// The first i in [begin, n) for which x[i] is larger (smaller) than the bound, or neither that nor
// the reverse nor equal, as NaN; n if there is none.
using BeyondFunction = int64_t (*)(const void* x, int64_t begin, int64_t n, const void* bound);
BeyondFunction FindBeyond(DType dtype, bool larger);
// The first that is as large (small) as the bound, larger (smaller), or NaN.
BeyondFunction FindReaching(DType dtype, bool larger);

}  // namespace oneflow_lite
