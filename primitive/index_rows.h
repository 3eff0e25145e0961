// SPDX-License-Identifier: Apache-2.0
//
// Whole rows picked, put or added along one dim by a list of places: what index_select, embedding,
// their gradient, index_add and index_copy come to.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

// A tensor seen as [outer, size, inner], and one of `count` rows for each outer one: rows are
// `inner` elements that lie densely. Strides are in elements.
struct IndexRows {
  int64_t outer = 1, size = 0, count = 0, inner = 1;
  int64_t outer_stride = 0, row_stride = 0;  // of the tensor that is read
  bool from_end = false;                     // negative places count from the end
};

class IndexSelect {
 public:
  static constexpr char kName[] = "index_select";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~IndexSelect() = default;
  // y[o][k] = x[o][index[k]]; y is dense. A place outside [0, size) is an IndexError on the CPU; on
  // CUDA it gives NaN, or 0 where the dtype has none.
  virtual Status Launch(Stream& stream, const IndexRows& shape, const int64_t* index, const void* x,
                        void* y) const = 0;
};
using IndexSelectFactory = PrimitiveFactory<IndexSelect>;

class IndexPut {
 public:
  static constexpr char kName[] = "index_put";
  enum class Mode : uint8_t {
    kCopy,  // y[o][index[k]] = x[o][k]: of several the last one stays
    kAdd,   // y[o][index[k]] += alpha x[o][k]
    kSum,   // the same of zeros: what y was before does not count, and what has no row is 0
  };
  struct Spec {
    DType dtype = DType::kFloat32;
    Mode mode = Mode::kAdd;  // kAdd and kSum: not bool
  };
  virtual ~IndexPut() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, const IndexRows& shape) const {
    return size_t{0};
  }
  // x has `count` rows for each outer one and the strides of the shape, y is dense. Sums are taken
  // in the compute type, rounded once, and are the same every time. `skipped` is a place, from the
  // start, whose rows go nowhere; -1: none. A place outside [0, size) is an IndexError on the CPU,
  // and goes nowhere on CUDA.
  virtual Status Launch(Stream& stream, const IndexRows& shape, const int64_t* index, double alpha,
                        int64_t skipped, const void* x, void* y, void* workspace) const = 0;
};
using IndexPutFactory = PrimitiveFactory<IndexPut>;

}  // namespace oneflow_lite
