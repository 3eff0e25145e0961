// SPDX-License-Identifier: Apache-2.0
//
// Which whole numbers of a range are among the elements: what takes the place of a sort where there
// are few numbers that can be.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class Presence {
 public:
  static constexpr char kName[] = "presence";
  struct Spec {
    DType dtype = DType::kInt32;  // an integer dtype
  };
  virtual ~Presence() = default;
  // seen[k] = whether low + k, which the dtype has, is among the n elements of x, which is dense.
  // seen begins at a boundary of 4 bytes. A GPU goes through x once for each 65536 numbers.
  virtual Status Launch(Stream& stream, int64_t n, const void* x, int64_t low, int64_t size,
                        bool* seen) const = 0;
};
using PresenceFactory = PrimitiveFactory<Presence>;

}  // namespace oneflow_lite
