// SPDX-License-Identifier: Apache-2.0
//
// Filling memory: a constant, an arithmetic sequence, random numbers.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/op_kinds.h"
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
};
using ArangeFactory = PrimitiveFactory<Arange>;

// Where a random kernel starts in its generator's sequence of Philox counters.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;              // counters
  const uint64_t* shift = nullptr;  // on the device: two numbers, added to seed and offset there
};

// Element i of float32 and narrower takes word i % 4 of Philox(seed, offset + i / 4); of float64,
// words 2 * (i % 2) (high) and 2 * (i % 2) + 1 (low) of Philox(seed, offset + i / 2). Normals take
// the uniforms u, v of the pair that elements 2k and 2k + 1 share and give r cos t and r sin t with
// r = sqrt(-2 log(1 - u)), t = 2 pi v. The 16-bit floats round the float32 value (a uniform that
// rounds to 1 becomes 0).
class Random {
 public:
  static constexpr char kName[] = "random";
  struct Spec {
    Distribution distribution = Distribution::kUniform;
    DType dtype = DType::kFloat32;  // a float; int64 for kBits
  };
  virtual ~Random() = default;
  virtual Status Launch(Stream& stream, int64_t n, const PhiloxState& state, void* y) const = 0;
  // How many counters a launch over n elements takes.
  static uint64_t CountersFor(DType dtype, int64_t n) {
    const uint64_t per = dtype == DType::kFloat64 ? 2 : 4;
    return (static_cast<uint64_t>(n) + per - 1) / per;
  }
};
using RandomFactory = PrimitiveFactory<Random>;

}  // namespace oneflow_lite
