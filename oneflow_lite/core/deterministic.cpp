// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/deterministic.h"

#include <atomic>

namespace oneflow_lite {
namespace {

std::atomic<bool> deterministic{false};

}  // namespace

bool DeterministicAlgorithms() { return deterministic.load(std::memory_order_relaxed); }
void SetDeterministicAlgorithms(bool value) {
  deterministic.store(value, std::memory_order_relaxed);
}

}  // namespace oneflow_lite
