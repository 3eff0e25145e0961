// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: an element depends on the seed and its own index alone, so CPU and CUDA draw the
// same, and threads and launch shapes do not matter.
#pragma once

#include "primitive/primitive.h"
#include "primitive/random_kinds.h"

namespace oneflow_lite {

// Where a random kernel starts in its generator's sequence of Philox counters.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;              // counters
  const uint64_t* shift = nullptr;  // on the device: two numbers, added to seed and offset there
};

// Element i takes word i % 4 of Philox(seed, offset + i / 4). Only the real distributions of
// float64 take two, 2 * (i % 2) (high) and 2 * (i % 2) + 1 (low) of Philox(seed, offset + i / 2).
// The distributions (random_math.h) are made of uniforms u in [0, 1), in the compute type:
//   kUniform      a + u (b - a); what rounds to b becomes a
//   kNormal       a + b r cos t and a + b r sin t, r = sqrt(-2 log(1 - u)), t = 2 pi v, of the
//                 uniforms u, v of the pair that elements 2k and 2k + 1 share
//   kExponential  -log(1 - u) / b; 2^-25 / b where u is 0
//   kIntegers     low + floor(word * count / 2^32)
//   kBernoulli    whether u < threshold / 2^24
class Random {
 public:
  static constexpr char kName[] = "random";
  struct Spec {
    RandomKind kind = RandomKind::kUniform;
    // A float for the first three, int64 for kBits, any for the others.
    DType dtype = DType::kFloat32;
  };
  virtual ~Random() = default;
  virtual Status Launch(Stream& stream, int64_t n, const PhiloxState& state,
                        const RandomNumbers& numbers, void* y) const = 0;
};
using RandomFactory = PrimitiveFactory<Random>;

}  // namespace oneflow_lite
