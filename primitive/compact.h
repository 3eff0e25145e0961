// SPDX-License-Identifier: Apache-2.0
//
// Elements where a mask holds, in their order: their places, the elements themselves one after the
// other, and such elements put back. A mask's elements hold where they are not 0.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Compact {
 public:
  static constexpr char kName[] = "compact";
  struct Spec {
    DType mask = DType::kBool;
    DType dtype = DType::kFloat32;  // of the elements that are moved
  };
  virtual ~Compact() = default;
  virtual size_t WorkspaceBytes(int64_t n) const { return 0; }
  // The coordinates in `dims` (outermost first) of the first `count` places that hold, a row of
  // `ndim` for each; rows that are left over are 0. `mask` is dense, of the dims' product.
  virtual Status Places(Stream& stream, int ndim, const int64_t* dims, const void* mask,
                        int64_t count, int64_t* y, void* workspace) const = 0;
  // The first `count` elements of x where the mask holds; those left over are 0. Both dense, of n.
  virtual Status Take(Stream& stream, int64_t n, const void* mask, const void* x, int64_t count,
                      void* y, void* workspace) const = 0;
  // y[i] = the next of the `count` elements of src where the mask holds, else x[i]; where src has
  // no more, x[i] too.
  virtual Status Put(Stream& stream, int64_t n, const void* mask, const void* x, const void* src,
                     int64_t count, void* y, void* workspace) const = 0;
};
using CompactFactory = PrimitiveFactory<Compact>;

}  // namespace oneflow_lite
