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
  // Of a part of a larger tensor: runs of `run` elements that lie side by side there, `middle` of
  // them middle_step apart, and groups of those outer_step apart. 0: all lie side by side.
  int64_t run = 0, middle = 1, middle_step = 0, outer_step = 0;
  int64_t start = 0;  // the place of element 0

  // The place of an element in the larger tensor, by which it draws.
  int64_t PlaceOf(int64_t i) const {
    if (run == 0) return start + i;
    const int64_t r = i / run;
    return start + r / middle * outer_step + r % middle * middle_step + i % run;
  }
};

// Element i, at place k = PlaceOf(i) / inner, draws number k. Draw k is UniformFloat of word k % 4
// of Philox(seed, offset + k / 4); it drops below p. Computed in the compute type, rounded once.
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
