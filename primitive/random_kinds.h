// SPDX-License-Identifier: Apache-2.0
//
// Distributions of random numbers, and what they take.
#pragma once

#include <cstdint>

namespace oneflow_lite {

enum class RandomKind : uint8_t {
  kUniform,      // [a, b)
  kNormal,       // mean a, standard deviation b
  kExponential,  // of the density b exp(-b x), never 0
  kIntegers,     // low .. low + count - 1, each as often
  kBernoulli,    // 1 with probability threshold / 2^24, else 0
  kBits,         // 32-bit integers, as int64
};

struct RandomNumbers {
  double a = 0, b = 1;
  int64_t low = 0;
  uint64_t count = 0;      // at most 2^32
  uint32_t threshold = 0;  // at most 2^24
};

}  // namespace oneflow_lite
