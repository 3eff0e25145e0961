// SPDX-License-Identifier: Apache-2.0
//
// cuSOLVER's dense functions and the two of cuBLAS that go with them, opened by name at first use.
// Matrices lie column by column. A handle serves one thread at a time: Use holds it.
//
//   OFL_ASSIGN_OR_RETURN(const CuSolver* library, GetCuSolver());
//   OFL_RETURN_IF_ERROR(SolverStatus(FunctionsOf<T>(*library).Getrf(handle, ...), "getrf"));
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <type_traits>

#include "oneflow_lite/core/status.h"

namespace oneflow_lite::cuda {

// The functions of one dtype, under their names without prefix; ...Size asks for a workspace.
template <class T>
struct SolverFunctions {
  using H = cusolverDnHandle_t;
  using Result = cusolverStatus_t;
  Result (*GetrfSize)(H, int m, int n, T* a, int lda, int* elements);
  Result (*Getrf)(H, int m, int n, T* a, int lda, T* work, int* pivots, int* info);
  Result (*Getrs)(H, cublasOperation_t, int n, int nrhs, const T* a, int lda, const int* pivots,
                  T* b, int ldb, int* info);
  Result (*PotrfSize)(H, cublasFillMode_t, int n, T* a, int lda, int* elements);
  Result (*Potrf)(H, cublasFillMode_t, int n, T* a, int lda, T* work, int elements, int* info);
  Result (*GeqrfSize)(H, int m, int n, T* a, int lda, int* elements);
  Result (*Geqrf)(H, int m, int n, T* a, int lda, T* tau, T* work, int elements, int* info);
  Result (*OrgqrSize)(H, int m, int n, int k, const T* a, int lda, const T* tau, int* elements);
  Result (*Orgqr)(H, int m, int n, int k, T* a, int lda, const T* tau, T* work, int elements,
                  int* info);
  Result (*SyevdSize)(H, cusolverEigMode_t, cublasFillMode_t, int n, const T* a, int lda,
                      const T* w, int* elements);
  Result (*Syevd)(H, cusolverEigMode_t, cublasFillMode_t, int n, T* a, int lda, T* w, T* work,
                  int elements, int* info);
  Result (*GesvdSize)(H, int m, int n, int* elements);
  Result (*Gesvd)(H, signed char u, signed char vt, int m, int n, T* a, int lda, T* s, T* left,
                  int ldu, T* right, int ldvt, T* work, int elements, T* rwork, int* info);
  cublasStatus_t (*Trsm)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                         cublasDiagType_t, int m, int n, const T* alpha, const T* a, int lda, T* b,
                         int ldb);
  cublasStatus_t (*Gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                         const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                         T* c, int ldc);
};

struct CuSolver {
  decltype(&cusolverDnCreate) Create;
  decltype(&cusolverDnSetStream) SetStream;
  decltype(&cublasCreate_v2) BlasCreate;
  decltype(&cublasSetStream_v2) BlasSetStream;
  SolverFunctions<float> single;
  SolverFunctions<double> twice;
};

template <class T>
const SolverFunctions<T>& FunctionsOf(const CuSolver& library) {
  if constexpr (std::is_same_v<T, float>) {
    return library.single;
  } else {
    return library.twice;
  }
}

// Opens the libraries once; a RuntimeError says what to install where they are not found.
StatusOr<const CuSolver*> GetCuSolver();

// OK, or an error that names `what` was tried.
Status SolverStatus(cusolverStatus_t status, const char* what);
Status SolverStatus(cublasStatus_t status, const char* what);

}  // namespace oneflow_lite::cuda
