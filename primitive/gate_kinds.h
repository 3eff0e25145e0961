// SPDX-License-Identifier: Apache-2.0
//
// The gated units, for hosts and devices.
#pragma once

namespace oneflow_lite {

enum class GateKind : int {
  kGlu,     // first * sigmoid(second)
  kSwiglu,  // silu(first) * second
};

}  // namespace oneflow_lite
