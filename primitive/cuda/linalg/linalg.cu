// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/linalg/launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;  // of a transpose: 32 x 8 threads, 4 elements each

int64_t BlocksFor(int64_t n) { return (n + kThreads - 1) / kThreads; }

__device__ int64_t First() { return blockIdx.x * int64_t{blockDim.x} + threadIdx.x; }
__device__ int64_t Step() { return int64_t{gridDim.x} * blockDim.x; }

template <class T>
__global__ void TransposeKernel(int64_t rows, int64_t cols, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];
  const int64_t across = (cols + kTile - 1) / kTile, tiles = across * ((rows + kTile - 1) / kTile);
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t r0 = t / across * kTile, c0 = t % across * kTile;
    for (int i = y; i < kTile; i += kThreads / kTile) {
      if (r0 + i < rows && c0 + x < cols) tile[i][x] = from[(r0 + i) * cols + c0 + x];
    }
    __syncthreads();
    for (int i = y; i < kTile; i += kThreads / kTile) {
      if (c0 + i < cols && r0 + x < rows) to[(c0 + i) * rows + r0 + x] = tile[x][i];
    }
    __syncthreads();
  }
}

template <class T>
__global__ void TriangleKernel(int64_t count, int64_t n, bool upper, T* x) {
  for (int64_t i = First(); i < count; i += Step()) {
    const int64_t row = i / n % n, col = i % n;
    if (upper ? col < row : col > row) x[i] = T(0);
  }
}

template <class T>
__global__ void UpperKernel(int64_t count, int64_t n, int64_t m, const T* columns, T* y) {
  for (int64_t i = First(); i < count; i += Step()) {
    const int64_t row = i / n, col = i % n;
    y[i] = col >= row ? columns[col * m + row] : T(0);
  }
}

template <class T>
__global__ void IdentityKernel(int64_t count, int64_t n, T* x) {
  for (int64_t i = First(); i < count; i += Step()) x[i] = i / n % n == i % n ? T(1) : T(0);
}

// A thread for each matrix, which walks its diagonal.
template <class T>
__global__ void DeterminantKernel(int64_t batch, int64_t n, const T* lu, const int* pivots, T* s,
                                  T* sign) {
  for (int64_t b = First(); b < batch; b += Step()) {
    T product = 1, turned = 1;
    double logarithm = 0;
    for (int64_t i = 0; i < n; ++i) {
      const T u = lu[(b * n + i) * n + i];
      if (pivots[b * n + i] != i + 1) turned = -turned;
      product *= u;
      if (!sign) continue;
      logarithm += log(fabs(static_cast<double>(u)));
      turned *= u > 0 ? T(1) : u < 0 ? T(-1) : u;
    }
    s[b] = sign ? static_cast<T>(logarithm) : turned * product;
    if (sign) sign[b] = turned == 0 ? T(0) : turned;
  }
}

template <class T>
__global__ void DivideKernel(int64_t count, int64_t n, const T* s, const T* limits, T* vt) {
  const T relative = limits[1] * s[0], least = limits[0] > relative ? limits[0] : relative;
  for (int64_t i = First(); i < count; i += Step()) {
    const T value = s[i / n];
    vt[i] = value > least ? vt[i] / value : T(0);
  }
}

__global__ void PermutationKernel(int64_t batch, int64_t k, int64_t m, const int* pivots,
                                  int64_t* rows) {
  for (int64_t b = First(); b < batch; b += Step()) {
    int64_t* own = rows + b * m;
    for (int64_t i = 0; i < m; ++i) own[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = int64_t{pivots[b * k + i]} - 1;
      if (other < 0 || other >= m) continue;
      const int64_t kept = own[i];
      own[i] = own[other];
      own[other] = kept;
    }
  }
}

__global__ void ClampKernel(int64_t count, int n, const int* from, int* to) {
  for (int64_t i = First(); i < count; i += Step()) {
    to[i] = from[i] < 1 ? 1 : from[i] > n ? n : from[i];
  }
}

template <class... Params, class... Args>
cudaError_t Over(int64_t count, void (*kernel)(Params...), cudaStream_t stream,
                 const Args&... args) {
  if (count <= 0) return cudaSuccess;
  return Launch(kernel, BlocksFor(count), kThreads, 0, stream, args...);
}

}  // namespace

template <class T>
cudaError_t TransposeMatrix(int64_t rows, int64_t cols, const T* from, T* to, cudaStream_t stream) {
  const int64_t tiles = ((rows + kTile - 1) / kTile) * ((cols + kTile - 1) / kTile);
  if (tiles == 0) return cudaSuccess;
  return Launch(TransposeKernel<T>, tiles, kThreads, 0, stream, rows, cols, from, to);
}
template <class T>
cudaError_t KeepTriangle(int64_t batch, int64_t n, bool upper, T* x, cudaStream_t stream) {
  return Over(batch * n * n, TriangleKernel<T>, stream, batch * n * n, n, upper, x);
}
template <class T>
cudaError_t CopyUpper(int64_t q, int64_t n, int64_t m, const T* columns, T* y,
                      cudaStream_t stream) {
  return Over(q * n, UpperKernel<T>, stream, q * n, n, m, columns, y);
}
template <class T>
cudaError_t FillIdentity(int64_t batch, int64_t n, T* x, cudaStream_t stream) {
  return Over(batch * n * n, IdentityKernel<T>, stream, batch * n * n, n, x);
}
template <class T>
cudaError_t Determinants(int64_t batch, int64_t n, const T* lu, const int* pivots, T* s, T* sign,
                         cudaStream_t stream) {
  return Over(batch, DeterminantKernel<T>, stream, batch, n, lu, pivots, s, sign);
}
template <class T>
cudaError_t DivideRows(int64_t r, int64_t n, const T* s, const T* limits, T* vt,
                       cudaStream_t stream) {
  return Over(r * n, DivideKernel<T>, stream, r * n, n, s, limits, vt);
}

cudaError_t PermutedRows(int64_t batch, int64_t k, int64_t m, const int* pivots, int64_t* rows,
                         cudaStream_t stream) {
  return Over(batch, PermutationKernel, stream, batch, k, m, pivots, rows);
}
cudaError_t ClampPivots(int64_t count, int n, const int* from, int* to, cudaStream_t stream) {
  return Over(count, ClampKernel, stream, count, n, from, to);
}

#define OFL_INSTANCES(T)                                                                    \
  template cudaError_t TransposeMatrix<T>(int64_t, int64_t, const T*, T*, cudaStream_t);    \
  template cudaError_t KeepTriangle<T>(int64_t, int64_t, bool, T*, cudaStream_t);           \
  template cudaError_t CopyUpper<T>(int64_t, int64_t, int64_t, const T*, T*, cudaStream_t); \
  template cudaError_t FillIdentity<T>(int64_t, int64_t, T*, cudaStream_t);                 \
  template cudaError_t Determinants<T>(int64_t, int64_t, const T*, const int*, T*, T*,      \
                                       cudaStream_t);                                       \
  template cudaError_t DivideRows<T>(int64_t, int64_t, const T*, const T*, T*, cudaStream_t)
OFL_INSTANCES(float);
OFL_INSTANCES(double);

}  // namespace cuda
}  // namespace oneflow_lite
