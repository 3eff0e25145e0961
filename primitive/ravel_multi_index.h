// SPDX-License-Identifier: Apache-2.0
//
// Indices of several dims joined to places of the flattened dims: what x[i, j] picks by.
#pragma once

#include <limits>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

// Some of the indices, and what they are joined to. More than kMost take several launches.
struct MultiIndex {
  static constexpr int kMost = 4;

  // Operands in the order indices, out; those that are not there as operand 0.
  Elementwise<kMost + 1> g;
  int count = 0;
  bool continues = false;  // out has the places of the dims before
  const int64_t* index[kMost] = {};
  int64_t size[kMost] = {};  // of the dims; their strides follow from these
  int64_t dim[kMost] = {};   // for messages: which dim of the indexed tensor each one is
};

class RavelMultiIndex {
 public:
  static constexpr char kName[] = "ravel_multi_index";
  // What CUDA gives where an index lies outside its dim: no place, counted from either end.
  static constexpr int64_t kNoPlace = std::numeric_limits<int64_t>::min();
  struct Spec {};
  virtual ~RavelMultiIndex() = default;
  // out = (out size[0] + index[0]) size[1] + index[1] ...; negative indices count from the end of
  // their dim. One outside is an IndexError on the CPU. `out` is dense.
  virtual Status Launch(Stream& stream, const MultiIndex& m, int64_t* out) const = 0;
};

}  // namespace oneflow_lite
