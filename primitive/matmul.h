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
  int64_t ldc = 0;  // of the result, likewise; 0: n
  int64_t batch_stride_a = 0, batch_stride_b = 0;
  bool add_bias = false;    // a bias of n elements is added to each row, where AddsBias; k > 0
  bool accumulate = false;  // the product is added to c
  bool wide = false;        // c is of the compute type; without a bias

  int64_t c_stride() const { return ldc > 0 ? ldc : n; }
  bool operator==(const MatmulShape&) const = default;
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
  // Whether a bias is added before the sum is rounded. Elsewhere it is put into c, to accumulate.
  virtual bool AddsBias() const { return false; }
  // Rows that many products read or write go at full speed where they begin at multiples of so many
  // elements.
  virtual int64_t RowMultiple() const { return 1; }
  // c is batch x m x n, its batches as far apart as m of its rows. k = 0 gives zeros. `bias` is
  // read where shape.add_bias.
  virtual Status Launch(Stream& stream, const MatmulShape& shape, const void* a, const void* b,
                        const void* bias, void* c, void* workspace) const = 0;
};
using MatmulFactory = PrimitiveFactory<Matmul>;

}  // namespace oneflow_lite
