// SPDX-License-Identifier: Apache-2.0
//
// A workspace cut into pieces. Without memory it only counts what the pieces need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oneflow_lite::cuda {

class AttentionRoom {
 public:
  explicit AttentionRoom(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}
  // At the alignment that the caching allocator keeps too.
  void* Take(int64_t bytes) {
    char* const piece = memory_ ? memory_ + used_ : nullptr;
    used_ += (bytes + 255) / 256 * 256;
    return piece;
  }
  size_t used() const { return static_cast<size_t>(used_); }

 private:
  char* memory_;
  int64_t used_ = 0;
};

}  // namespace oneflow_lite::cuda
