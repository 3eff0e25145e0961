// SPDX-License-Identifier: Apache-2.0
//
// The kind of error for a matrix that has no inverse, factorization or decomposition: Python's
// LinAlgError, a RuntimeError. It has a header of its own because few files need it.
//
//   return Error(kLinAlgError, "linalg.inv(): the matrix is singular");
#pragma once

#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

inline constexpr auto kLinAlgError =
    static_cast<ErrorKind>(static_cast<char>(ErrorKind::kPython) + 1);

}  // namespace oneflow_lite
