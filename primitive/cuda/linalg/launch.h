// SPDX-License-Identifier: Apache-2.0
//
// What linear algebra needs beside cuSOLVER: transposes, triangles, determinants. T is float or
// double; matrices are dense. The launchers neither allocate nor synchronise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace oneflow_lite {
namespace cuda {

// to[c][r] = from[r][c]
template <class T>
cudaError_t TransposeMatrix(int64_t rows, int64_t cols, const T* from, T* to, cudaStream_t stream);
// Sets the elements of x [batch, n, n] above, or where upper below, the diagonal to 0.
template <class T>
cudaError_t KeepTriangle(int64_t batch, int64_t n, bool upper, T* x, cudaStream_t stream);
// y [q, n] = the upper triangle of a matrix of columns that lie m apart.
template <class T>
cudaError_t CopyUpper(int64_t q, int64_t n, int64_t m, const T* columns, T* y, cudaStream_t stream);
template <class T>
cudaError_t FillIdentity(int64_t batch, int64_t n, T* x, cudaStream_t stream);
// Of the factors lu [batch, n, n] and pivots [batch, n]: the determinant into s, or, where sign is
// not null, the logarithm of its size.
template <class T>
cudaError_t Determinants(int64_t batch, int64_t n, const T* lu, const int* pivots, T* s, T* sign,
                         cudaStream_t stream);
// Row i of vt [r, n] over s[i], or 0 where s[i] is at most max(limits[0], limits[1] s[0]).
template <class T>
cudaError_t DivideRows(int64_t r, int64_t n, const T* s, const T* limits, T* vt,
                       cudaStream_t stream);

// rows [batch, m]: in which order the exchanges pivots [batch, k], from 1 on, leave them.
cudaError_t PermutedRows(int64_t batch, int64_t k, int64_t m, const int* pivots, int64_t* rows,
                         cudaStream_t stream);
// Pivots moved into [1, n].
cudaError_t ClampPivots(int64_t count, int n, const int* from, int* to, cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
