// SPDX-License-Identifier: Apache-2.0
//
// The integers below n in random order: what a stable sort of n uniform numbers of float64 gives as
// places, without those numbers.
#pragma once

#include "primitive/random.h"

namespace oneflow_lite {

// The key of place i has the 53 bits of UniformDouble of words 2 * (i % 2) and 2 * (i % 2) + 1 of
// Philox(seed, offset + i / 2), as in Random.
class Permutation {
 public:
  static constexpr char kName[] = "permutation";
  static constexpr int64_t kMost = int64_t{1} << 32;
  struct Spec {
    DType dtype = DType::kInt64;  // no other
  };
  virtual ~Permutation() = default;
  // n is at most kMost. `bytes`: of the workspace, what WorkspaceBytes said.
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t n) const = 0;
  virtual Status Launch(Stream& stream, int64_t n, const PhiloxState& state, int64_t* order,
                        void* workspace, size_t bytes) const = 0;
};
using PermutationFactory = PrimitiveFactory<Permutation>;

}  // namespace oneflow_lite
