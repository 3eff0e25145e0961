// SPDX-License-Identifier: Apache-2.0
//
// Elements picked or put along one dim by a tensor of places: gather and scatter. A place outside
// the dim is an IndexError on the CPU; on CUDA, which cannot stop, gather gives NaN (0 where the
// dtype has none) and scatter leaves the element out.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

// The dim along which gather works: `size` places `stride` elements apart. Negative places count
// from the end, if `from_end`.
struct GatherAxis {
  int64_t size = 0, stride = 0;
  bool from_end = false;
};

class Gather {
 public:
  static constexpr char kName[] = "gather";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Gather() = default;
  // y = x[index * stride] over the shape of the index; operands in the order index, x (at place 0
  // of the dim), y.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const GatherAxis& axis,
                        const int64_t* index, const void* x, void* y) const = 0;
};
using GatherFactory = PrimitiveFactory<Gather>;

// The dim along which scatter works: `count` places to visit, `size` places to go to.
struct ScatterAxis {
  int64_t count = 0, size = 0;
  int64_t index_stride = 0, src_stride = 0, dst_stride = 0;
  bool from_end = false;  // negative places count from the end
};

class Scatter {
 public:
  static constexpr char kName[] = "scatter";
  // What becomes of what is there; extremes with NaN are NaN.
  enum class Mode : uint8_t { kPut, kAdd, kMul, kMax, kMin };
  struct Spec {
    DType dtype = DType::kFloat32;
    Mode mode = Mode::kPut;  // kAdd: not bool
    DType src = dtype;       // kAdd: or a 16-bit float, which float32 sums
  };
  virtual ~Scatter() = default;
  virtual size_t WorkspaceBytes(const Elementwise<3>& /*columns*/,
                                const ScatterAxis& /*axis*/) const {
    return 0;
  }
  // For each column and i < axis.count in this order: src[i] goes to dst[index[i]]. So the result
  // is the same every time, and of elements that go to one place the last one stays. Operands of
  // `columns` in the order index, src, dst. A sum of 16-bit floats is rounded once on CUDA where
  // columns are held (oneflow_lite/core/held_columns.h), else after each element. There long lines,
  // and many rows of one index, are joined by their sorted places, as those of index_rows.h.
  virtual Status Launch(Stream& stream, const Elementwise<3>& columns, const ScatterAxis& axis,
                        const int64_t* index, const void* src, void* dst,
                        void* workspace) const = 0;
};
using ScatterFactory = PrimitiveFactory<Scatter>;

}  // namespace oneflow_lite
