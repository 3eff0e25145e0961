// SPDX-License-Identifier: Apache-2.0
//
// Which activation a primitive computes, and the numbers it computes with; C++17, so that .cu files
// can include it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace oneflow_lite {

// The numbers that each takes are in brackets. NaN stays NaN everywhere.
enum class ActivationOp : uint8_t {
  kSilu,
  kMish,
  kHardswish,
  kHardsigmoid,
  kHardtanh,   // (least, most); also of integers
  kLeakyRelu,  // (slope)
  kElu,        // (a, b, c): b x above 0, else a (exp(c x) - 1)
  kSoftplus,   // (beta, threshold)
  kLogSigmoid,
  kSoftsign,
  kTanhshrink,
  kSoftshrink,  // (lambd)
  kHardshrink,  // (lambd)
  kThreshold,   // (threshold, value); also of integers
};
inline constexpr int kNumActivations = static_cast<int>(ActivationOp::kThreshold) + 1;

// A number per place; `whole` is what integer dtypes take.
struct ActivationNumbers {
  double real[3] = {};
  int64_t whole[2] = {};

  template <class C>
  C As(int i) const {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(whole[i]);
    } else {
      return static_cast<C>(real[i]);
    }
  }
  // What As leaves of a number that C does not hold.
  template <class C>
  C Rest(int i) const {
    return static_cast<C>(real[i] - static_cast<double>(static_cast<C>(real[i])));
  }
};

}  // namespace oneflow_lite
