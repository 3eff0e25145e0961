// SPDX-License-Identifier: Apache-2.0
//
// Filling memory: a constant, an arithmetic sequence. random.h has the random numbers.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Fill {
 public:
  static constexpr char kName[] = "fill";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Fill() = default;
  // y = value over a strided destination.
  virtual Status Launch(Stream& stream, const Elementwise<1>& g, Scalar value, void* y) const = 0;
};
using FillFactory = PrimitiveFactory<Fill>;

class Arange {
 public:
  static constexpr char kName[] = "arange";
  using Spec = Fill::Spec;
  virtual ~Arange() = default;
  // y[i] = start + i * step, computed in int64 for integer dtypes and in double for floats.
  virtual Status Launch(Stream& stream, int64_t n, Scalar start, Scalar step, void* y) const = 0;
  // The same of n numbers from start to end, both included, from the nearer end, so that neither is
  // rounded but to a double; integer dtypes lose the fraction.
  virtual Status LaunchBetween(Stream& stream, int64_t n, double start, double end,
                               void* y) const = 0;
};
using ArangeFactory = PrimitiveFactory<Arange>;

}  // namespace oneflow_lite
