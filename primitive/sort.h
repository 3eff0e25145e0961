// SPDX-License-Identifier: Apache-2.0
//
// Sorting along rows. NaN counts as the largest; equal elements keep their order, so that the
// result is the same on every device.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class Sort {
 public:
  static constexpr char kName[] = "sort";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Sort() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows,
                                          int64_t cols) const = 0;
  // Rows lie one after the other; `indices` are places within the row. The workspace has the bytes
  // asked for above.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, bool descending, const void* x,
                        void* values, int64_t* indices, void* workspace) const = 0;
};
using SortFactory = PrimitiveFactory<Sort>;

}  // namespace oneflow_lite
