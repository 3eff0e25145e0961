// SPDX-License-Identifier: Apache-2.0
//
// Products of bfloat16 by the CPU's own instructions for them. OpenBLAS has none of Debian's build;
// oneDNN has, in liboneflow_lite_onednn.so, which is opened at the first product that is worth it.
// A build without oneDNN, or a CPU without the instructions, multiplies in float32.
//
//   if (TakesBfloat16Product(shape)) return MultiplyBfloat16(shape, a, b, bias, c);
#pragma once

#include <memory>

#include "primitive/matmul.h"

namespace oneflow_lite {

// What multiplies matrices of one MatmulShape on the thread that runs it, in several at a time.
// Sums are of float32 and rounded once; numbers below float32's normal ones count as 0.
class Bfloat16Product {
 public:
  virtual ~Bfloat16Product() = default;
  virtual Status Run(const void* a, const void* b, const void* bias, void* c) const = 0;
};

// Makes one, or gives that which it made for such a shape.
using Bfloat16ProductFinder =
    StatusOr<std::shared_ptr<const Bfloat16Product>> (*)(const MatmulShape&);

// Whether such a shape goes this way. Opens the library where it has not been.
bool TakesBfloat16Product(const MatmulShape& shape);

// As Matmul::Launch, within a BlasUse. Precondition: TakesBfloat16Product(shape).
Status MultiplyBfloat16(const MatmulShape& shape, const void* a, const void* b, const void* bias,
                        void* c);

// Called once by the library when it is opened.
OFL_API void RegisterBfloat16Products(Bfloat16ProductFinder find);

}  // namespace oneflow_lite
