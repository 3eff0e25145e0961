// SPDX-License-Identifier: Apache-2.0
//
// The shape of an op along one axis.
#pragma once

#include <stdint.h>

namespace oneflow_lite {
namespace cuda {

// x: [outer, axis, inner].
struct ReduceProblem {
  int64_t outer, axis, inner;
};

}  // namespace cuda
}  // namespace oneflow_lite
