// SPDX-License-Identifier: Apache-2.0
//
// Batched matrix product c = op(a) op(b), row-major, through the device's BLAS.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

struct MatmulShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  // A transposed operand is stored as k x m (a) or n x k (b). The leading dimension counts the
  // elements between stored rows; the batch stride may be 0 to use one matrix for all.
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0;
  int64_t batch_stride_a = 0, batch_stride_b = 0;
};

class Matmul {
 public:
  static constexpr char kName[] = "matmul";
  struct Spec {
    // Of a, b and c: one of the four floats. All but float64 accumulate in float32, without TF32.
    DType dtype = DType::kFloat32;
  };
  virtual ~Matmul() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const MatmulShape& shape) const { return 0; }
  // c is dense, batch x m x n. k = 0 gives zeros.
  virtual Status Launch(Stream& stream, const MatmulShape& shape, const void* a, const void* b,
                        void* c, void* workspace) const = 0;
};
using MatmulFactory = PrimitiveFactory<Matmul>;

}  // namespace oneflow_lite
