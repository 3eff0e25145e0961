// SPDX-License-Identifier: Apache-2.0
#include "primitive/attention.h"

#include <mutex>

namespace oneflow_lite {

void WithAttentionUse(absl::FunctionRef<void(AttentionUse&)> f) {
  static auto* mutex = new std::mutex;
  static auto* use = new AttentionUse;
  std::lock_guard lock(*mutex);
  f(*use);
}

}  // namespace oneflow_lite
