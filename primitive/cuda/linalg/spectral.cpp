// SPDX-License-Identifier: Apache-2.0
//
// QR, eigenvalues, singular values and pseudoinverses by cuSOLVER.
#include <algorithm>

#include "primitive/cuda/linalg/launch.h"
#include "primitive/cuda/linalg/tasks.h"

namespace oneflow_lite::cuda {
namespace {

int AsInt(int64_t n) { return static_cast<int>(n); }
int Ld(int64_t n) { return static_cast<int>(std::max<int64_t>(n, 1)); }
Status Did(cudaError_t status) { return CudaStatus(status, Linalg::kName); }

template <class T>
Status CopyToFirst(const LinalgRun<T>& run, const T* from, int64_t n) {
  return Did(cudaMemcpyAsync(run.first(), from, static_cast<size_t>(n) * sizeof(T),
                             cudaMemcpyDeviceToDevice, run.stream));
}
template <class T>
Status ClearInfo(const LinalgRun<T>& run) {
  return Did(
      cudaMemsetAsync(run.b.info, 0, static_cast<size_t>(run.p.batch) * sizeof(int), run.stream));
}

// The singular values of matrix i into s. The left and right vectors are cuSOLVER's, column by
// column: those of the transpose where n >= m. `vectors`: 'A' all, 'S' as many as values, 'N' none.
template <class T>
Status SingularValues(const LinalgRun<T>& run, int64_t i, char vectors, T* s, T* left, T* right) {
  const int64_t m = run.p.m, n = run.p.n, rows = std::max(m, n), cols = std::min(m, n);
  if (n >= m) {
    OFL_RETURN_IF_ERROR(CopyToFirst(run, run.a(i, m * n), m * n));
  } else {
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(m, n, run.a(i, m * n), run.first(), run.stream)));
  }
  const auto job = static_cast<signed char>(vectors);
  return SolverStatus(run.f.Gesvd(run.solver, job, job, AsInt(rows), AsInt(cols), run.first(),
                                  Ld(rows), s, left, Ld(rows), right, Ld(cols), run.work(),
                                  run.space.elements, nullptr, run.b.info + i),
                      "gesvd");
}

}  // namespace

template <class T>
Status RunQr(const LinalgRun<T>& run) {
  const int64_t m = run.p.m, n = run.p.n, r = std::min(m, n), q = run.p.full ? m : r;
  if (r == 0) {  // Q is the identity, or has no columns
    return run.p.vectors && run.p.full ? Did(FillIdentity(run.p.batch, m, run.x(0, 0), run.stream))
                                       : OkStatus();
  }
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(m, n, run.a(i, m * n), run.first(), run.stream)));
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Geqrf(run.solver, AsInt(m), AsInt(n), run.first(), Ld(m), run.vector(),
                                 run.work(), run.space.elements, run.ints()),
                     "geqrf"));
    OFL_RETURN_IF_ERROR(
        Did(CopyUpper(q, n, m, static_cast<const T*>(run.first()), run.y(i, q * n), run.stream)));
    if (!run.p.vectors) continue;
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Orgqr(run.solver, AsInt(m), AsInt(q), AsInt(r), run.first(), Ld(m),
                                 run.vector(), run.work(), run.space.elements, run.ints()),
                     "orgqr"));
    OFL_RETURN_IF_ERROR(Did(
        TransposeMatrix(q, m, static_cast<const T*>(run.first()), run.x(i, m * q), run.stream)));
  }
  return OkStatus();
}

template <class T>
Status RunEigen(const LinalgRun<T>& run) {
  const int64_t n = run.p.n;
  if (n == 0) return ClearInfo(run);
  const auto mode = run.p.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const auto triangle = run.p.upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(CopyToFirst(run, run.a(i, n * n), n * n));
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Syevd(run.solver, mode, triangle, AsInt(n), run.first(), Ld(n),
                                 run.s(i, n), run.work(), run.space.elements, run.b.info + i),
                     "syevd"));
    if (!run.p.vectors) continue;
    OFL_RETURN_IF_ERROR(Did(
        TransposeMatrix(n, n, static_cast<const T*>(run.first()), run.x(i, n * n), run.stream)));
  }
  return OkStatus();
}

template <class T>
Status RunSvd(const LinalgRun<T>& run) {
  const int64_t m = run.p.m, n = run.p.n, r = std::min(m, n);
  const int64_t left = run.p.full ? m : r, right = run.p.full ? n : r;  // columns of U and V
  if (r == 0) {
    if (run.p.vectors && run.p.full) {
      OFL_RETURN_IF_ERROR(Did(FillIdentity(run.p.batch, m, run.x(0, 0), run.stream)));
      OFL_RETURN_IF_ERROR(Did(FillIdentity(run.p.batch, n, run.y(0, 0), run.stream)));
    }
    return ClearInfo(run);
  }
  const char vectors = !run.p.vectors ? 'N' : run.p.full ? 'A' : 'S';
  for (int64_t i = 0; i < run.p.batch; ++i) {
    T* s = run.s(i, r);
    if (!run.p.vectors) {
      OFL_RETURN_IF_ERROR(SingularValues<T>(run, i, vectors, s, nullptr, nullptr));
    } else if (n >= m) {  // of A^T: its vectors, column by column, are V^T and U row by row
      OFL_RETURN_IF_ERROR(
          SingularValues(run, i, vectors, s, run.y(i, n * right), run.x(i, m * left)));
    } else {
      OFL_RETURN_IF_ERROR(SingularValues(run, i, vectors, s, run.second(), run.third()));
      OFL_RETURN_IF_ERROR(Did(TransposeMatrix(left, m, static_cast<const T*>(run.second()),
                                              run.x(i, m * left), run.stream)));
      OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, right, static_cast<const T*>(run.third()),
                                              run.y(i, n * right), run.stream)));
    }
  }
  return OkStatus();
}

// x, seen column by column, is the transpose of the inverse. Of A = U S V^T, where m > n, that is
// U S^-1 V^T; of A^T = U S V^T it is V S^-1 U^T.
template <class T>
Status RunPseudoInverse(const LinalgRun<T>& run) {
  const int64_t m = run.p.m, n = run.p.n, r = std::min(m, n), rows = std::max(m, n);
  if (r == 0) return ClearInfo(run);
  const T one = 1, zero = 0;
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(SingularValues(run, i, 'S', run.vector(), run.second(), run.third()));
    OFL_RETURN_IF_ERROR(Did(DivideRows(r, rows, static_cast<const T*>(run.vector()), run.side(i, 2),
                                       run.second(), run.stream)));
    const bool turned = n >= m;
    const cublasOperation_t op = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const T *a = turned ? run.third() : run.second(), *b = turned ? run.second() : run.third();
    OFL_RETURN_IF_ERROR(SolverStatus(
        run.f.Gemm(run.blas, op, op, AsInt(m), AsInt(n), AsInt(r), &one, a, Ld(turned ? r : m), b,
                   Ld(turned ? n : r), &zero, run.x(i, m * n), Ld(m)),
        "gemm"));
  }
  return OkStatus();
}

#define OFL_INSTANCES(T)                            \
  template Status RunQr<T>(const LinalgRun<T>&);    \
  template Status RunEigen<T>(const LinalgRun<T>&); \
  template Status RunSvd<T>(const LinalgRun<T>&);   \
  template Status RunPseudoInverse<T>(const LinalgRun<T>&)
OFL_INSTANCES(float);
OFL_INSTANCES(double);

}  // namespace oneflow_lite::cuda
