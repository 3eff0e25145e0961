// SPDX-License-Identifier: Apache-2.0
//
// Dropout: elements chosen by random numbers, keyed by the element's index, are replaced. Nothing
// but the place in the generator's sequence is kept for the gradient, which draws again.
#pragma once

#include "primitive/primitive.h"
#include "primitive/random.h"

namespace oneflow_lite {

struct DropoutNumbers {
  double p = 0.5;    // the share of the draws that drop
  double scale = 1;  // y = x scale + kept where kept, else `dropped`
  double kept = 0;
  double dropped = 0;
  int64_t inner = 1;  // so many elements in a row share a draw
};

// Draw k is UniformFloat of word k % 4 of Philox(seed, offset + k / 4); it drops below p. Computed
// in the compute type, rounded once.
class Dropout {
 public:
  static constexpr char kName[] = "dropout";
  struct Spec {
    DType dtype = DType::kFloat32;  // a float
  };
  virtual ~Dropout() = default;
  // drawn: the seed and the offset that were used, with the state's shift, on the device.
  virtual Status Launch(Stream& stream, int64_t n, const PhiloxState& state,
                        const DropoutNumbers& numbers, const void* x, void* y,
                        uint64_t* drawn) const = 0;
  // dx = dy scale where forward kept, else 0.
  virtual Status LaunchBackward(Stream& stream, int64_t n, const DropoutNumbers& numbers,
                                const void* dy, const uint64_t* drawn, void* dx) const = 0;
};
using DropoutFactory = PrimitiveFactory<Dropout>;

}  // namespace oneflow_lite
