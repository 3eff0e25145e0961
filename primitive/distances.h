// SPDX-License-Identifier: Apache-2.0
//
// Distances of all pairs of rows of two matrices, or of all pairs within one: cdist and pdist.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class Distances {
 public:
  static constexpr char kName[] = "distances";
  struct Spec {
    DType dtype = DType::kFloat32;  // or float64
  };
  // The norm of the difference: how many elements are not 0, the sum of their sizes, the root of
  // the sum of their squares, or the largest size. With a NaN in it the last three are NaN.
  enum class Norm : uint8_t { kCount, kSum, kEuclid, kLargest };
  struct Problem {
    int64_t batch, m, n, d;  // a: batch x m x d, b: batch x n x d
    Norm norm;
    // Only those of a row and the rows behind it, m = n and batch = 1: n (n - 1) / 2.
    bool pairs;
  };
  virtual ~Distances() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, const Problem& problem) const = 0;
  // y: batch x m x n, row by row. Squares and sizes are summed as they are: one beyond the dtype's
  // range is infinite.
  virtual Status Launch(Stream& stream, const Problem& problem, const void* a, const void* b,
                        void* y, void* workspace) const = 0;
};
using DistancesFactory = PrimitiveFactory<Distances>;

}  // namespace oneflow_lite
