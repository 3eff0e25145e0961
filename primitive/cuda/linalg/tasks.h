// SPDX-License-Identifier: Apache-2.0
//
// What primitive/linalg.h's tasks do by cuSOLVER and cuBLAS, on one stream.
#pragma once

#include "oneflow_lite/core/cuda/cuda_status.h"
#include "primitive/cuda/linalg/cusolver.h"
#include "primitive/linalg.h"

namespace oneflow_lite::cuda {

// The parts of a workspace: three matrices, a vector, cuSOLVER's own, and ints. Offsets in bytes.
struct LinalgSpace {
  size_t first = 0, second = 0, third = 0, vector = 0, work = 0, ints = 0, bytes = 0;
  int elements = 0;  // of cuSOLVER's own
};
// Precondition: the handle's device is current.
template <class T>
StatusOr<LinalgSpace> SpaceOf(const SolverFunctions<T>& f, cusolverDnHandle_t handle,
                              const LinalgProblem& p);

// A call on its way.
template <class T>
struct LinalgRun {
  const LinalgProblem& p;
  const LinalgBuffers& b;
  const SolverFunctions<T>& f;
  cusolverDnHandle_t solver;
  cublasHandle_t blas;
  cudaStream_t stream;
  LinalgSpace space;
  char* workspace;

  T* first() const { return reinterpret_cast<T*>(workspace + space.first); }
  T* second() const { return reinterpret_cast<T*>(workspace + space.second); }
  T* third() const { return reinterpret_cast<T*>(workspace + space.third); }
  T* vector() const { return reinterpret_cast<T*>(workspace + space.vector); }
  T* work() const { return reinterpret_cast<T*>(workspace + space.work); }
  int* ints() const { return reinterpret_cast<int*>(workspace + space.ints); }
  // Of matrix i: its part of an input or output, whose matrices have so many elements.
  const T* a(int64_t i, int64_t size) const { return static_cast<const T*>(b.a) + i * size; }
  const T* side(int64_t i, int64_t size) const { return static_cast<const T*>(b.b) + i * size; }
  T* x(int64_t i, int64_t size) const { return static_cast<T*>(b.x) + i * size; }
  T* y(int64_t i, int64_t size) const { return static_cast<T*>(b.y) + i * size; }
  T* s(int64_t i, int64_t size) const { return static_cast<T*>(b.s) + i * size; }
};

template <class T>
Status RunLu(const LinalgRun<T>& run);
template <class T>
Status RunPermutation(const LinalgRun<T>& run);
template <class T>
Status RunSolve(const LinalgRun<T>& run);
template <class T>
Status RunLuSolve(const LinalgRun<T>& run);
template <class T>
Status RunInverse(const LinalgRun<T>& run);
template <class T>
Status RunDeterminant(const LinalgRun<T>& run);
template <class T>
Status RunCholesky(const LinalgRun<T>& run);
template <class T>
Status RunTriangularSolve(const LinalgRun<T>& run);
template <class T>
Status RunQr(const LinalgRun<T>& run);
template <class T>
Status RunEigen(const LinalgRun<T>& run);
template <class T>
Status RunSvd(const LinalgRun<T>& run);
template <class T>
Status RunPseudoInverse(const LinalgRun<T>& run);

}  // namespace oneflow_lite::cuda
