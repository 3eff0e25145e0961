// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/linalg/tasks.h"

#include <algorithm>

#include "primitive/cuda/linalg/launch.h"

namespace oneflow_lite::cuda {
namespace {

int AsInt(int64_t n) { return static_cast<int>(n); }
// A leading dimension, which is 1 at least.
int Ld(int64_t n) { return static_cast<int>(std::max<int64_t>(n, 1)); }

Status Did(cudaError_t status) { return CudaStatus(status, Linalg::kName); }
// All bits 0, which is also the info of a matrix of no elements.
Status Clear(void* p, int64_t bytes, cudaStream_t stream) {
  return bytes > 0 ? Did(cudaMemsetAsync(p, 0, static_cast<size_t>(bytes), stream)) : OkStatus();
}
Status CopyTo(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return OkStatus();
  return Did(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream));
}

// Whether the singular values are those of the transpose: cuSOLVER has no more columns than rows.
bool OfTranspose(const LinalgProblem& p) { return p.n >= p.m; }

// The triangle that cuSOLVER reads is that of the transpose.
cublasFillMode_t TriangleOf(const LinalgProblem& p) {
  return p.upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
cusolverEigMode_t VectorsOf(const LinalgProblem& p) {
  return p.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

// The elements of cuSOLVER's own workspace. Its functions look at sizes alone.
template <class T>
Status AskElements(const SolverFunctions<T>& f, cusolverDnHandle_t h, const LinalgProblem& p,
                   int* elements) {
  const int m = AsInt(p.m), n = AsInt(p.n), r = std::min(m, n);
  if (r == 0) return OkStatus();
  switch (p.task) {
    case LinalgTask::kLu:
    case LinalgTask::kSolve:
    case LinalgTask::kInverse:
    case LinalgTask::kDeterminant:
    case LinalgTask::kLogDeterminant:
      return SolverStatus(f.GetrfSize(h, m, n, nullptr, m, elements), "getrf");
    case LinalgTask::kCholesky:
      return SolverStatus(f.PotrfSize(h, TriangleOf(p), n, nullptr, n, elements), "potrf");
    case LinalgTask::kQr: {
      int other = 0;
      OFL_RETURN_IF_ERROR(SolverStatus(f.GeqrfSize(h, m, n, nullptr, m, elements), "geqrf"));
      OFL_RETURN_IF_ERROR(
          SolverStatus(f.OrgqrSize(h, m, p.full ? m : r, r, nullptr, m, nullptr, &other), "orgqr"));
      *elements = std::max(*elements, other);
      return OkStatus();
    }
    case LinalgTask::kEigen:
      return SolverStatus(
          f.SyevdSize(h, VectorsOf(p), TriangleOf(p), n, nullptr, n, nullptr, elements), "syevd");
    case LinalgTask::kSvd:
    case LinalgTask::kPseudoInverse:
      return SolverStatus(f.GesvdSize(h, std::max(m, n), r, elements), "gesvd");
    default:
      return OkStatus();
  }
}

}  // namespace

template <class T>
StatusOr<LinalgSpace> SpaceOf(const SolverFunctions<T>& f, cusolverDnHandle_t handle,
                              const LinalgProblem& p) {
  LinalgSpace space;
  OFL_RETURN_IF_ERROR(AskElements(f, handle, p, &space.elements));
  const int64_t m = p.m, n = p.n, r = std::min(m, n);
  int64_t first = m * n, second = 0, third = 0, vector = 0, ints = 1;
  switch (p.task) {
    case LinalgTask::kSolve:
      second = n * p.k;
      break;
    case LinalgTask::kLuSolve:
      second = n * p.k;
      ints = p.batch * n + 1;
      break;
    case LinalgTask::kInverse:
      ints = n + 1;
      break;
    case LinalgTask::kQr:
      first = m * std::max(n, p.full ? m : r);
      vector = r;
      break;
    case LinalgTask::kSvd:
      if (p.vectors && !OfTranspose(p)) {
        second = m * (p.full ? m : r);
        third = n * n;
      }
      break;
    case LinalgTask::kPseudoInverse:
      second = std::max(m, n) * r;
      third = r * r;
      vector = r;
      break;
    case LinalgTask::kPermutation:
    case LinalgTask::kCholesky:
    case LinalgTask::kTriangularSolve:
      first = 0;
      break;
    default:
      break;
  }
  const auto take = [&space](int64_t bytes) {
    constexpr size_t kAlignment = 256;
    const size_t at = space.bytes;
    space.bytes += (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  constexpr int64_t kItem = sizeof(T);
  space.first = take(first * kItem);
  space.second = take(second * kItem);
  space.third = take(third * kItem);
  space.vector = take(vector * kItem);
  space.work = take(int64_t{space.elements} * kItem);
  space.ints = take(ints * int64_t{sizeof(int)});
  return space;
}

namespace {

// The factors of matrix i of a into `first`, column by column.
template <class T>
Status Factor(const LinalgRun<T>& run, int64_t i, int* pivots, int* info) {
  const auto& [m, n] = std::pair(run.p.m, run.p.n);
  OFL_RETURN_IF_ERROR(Did(TransposeMatrix(m, n, run.a(i, m * n), run.first(), run.stream)));
  return SolverStatus(
      run.f.Getrf(run.solver, AsInt(m), AsInt(n), run.first(), Ld(m), run.work(), pivots, info),
      "getrf");
}

// X [n, k] of matrix i by the factors in `first`.
template <class T>
Status SolveFactored(const LinalgRun<T>& run, int64_t i, const int* pivots, int* info) {
  const int64_t n = run.p.n, k = run.p.k;
  if (n * k == 0) return OkStatus();
  const cublasOperation_t op = run.p.transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, k, run.side(i, n * k), run.second(), run.stream)));
  OFL_RETURN_IF_ERROR(SolverStatus(run.f.Getrs(run.solver, op, AsInt(n), AsInt(k), run.first(),
                                               Ld(n), pivots, run.second(), Ld(n), info),
                                   "getrs"));
  return Did(TransposeMatrix(k, n, run.second(), run.x(i, n * k), run.stream));
}

}  // namespace

template <class T>
Status RunLu(const LinalgRun<T>& run) {
  const int64_t m = run.p.m, n = run.p.n, r = std::min(m, n);
  if (r == 0) return Clear(run.b.info, run.p.batch * int64_t{sizeof(int)}, run.stream);
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(Factor(run, i, run.b.pivots + i * r, run.b.info + i));
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, m, run.first(), run.x(i, m * n), run.stream)));
  }
  return OkStatus();
}

template <class T>
Status RunPermutation(const LinalgRun<T>& run) {
  return Did(PermutedRows(run.p.batch, run.p.k, run.p.m, run.b.pivots, run.b.places, run.stream));
}

template <class T>
Status RunSolve(const LinalgRun<T>& run) {
  const int64_t n = run.p.n;
  if (n == 0) return Clear(run.b.info, run.p.batch * int64_t{sizeof(int)}, run.stream);
  for (int64_t i = 0; i < run.p.batch; ++i) {
    int* pivots = run.b.pivots + i * n;
    OFL_RETURN_IF_ERROR(Factor(run, i, pivots, run.b.info + i));
    OFL_RETURN_IF_ERROR(SolveFactored(run, i, pivots, run.ints()));
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, n, run.first(), run.y(i, n * n), run.stream)));
  }
  return OkStatus();
}

template <class T>
Status RunLuSolve(const LinalgRun<T>& run) {
  const int64_t n = run.p.n;
  if (n == 0) return OkStatus();
  // Whatever a caller passes, no rows may be exchanged that are not there.
  int* pivots = run.ints() + 1;
  OFL_RETURN_IF_ERROR(
      Did(ClampPivots(run.p.batch * n, AsInt(n), run.b.pivots, pivots, run.stream)));
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, n, run.a(i, n * n), run.first(), run.stream)));
    OFL_RETURN_IF_ERROR(SolveFactored(run, i, pivots + i * n, run.ints()));
  }
  return OkStatus();
}

// The inverse of the transpose is the transpose of the inverse.
template <class T>
Status RunInverse(const LinalgRun<T>& run) {
  const int64_t n = run.p.n;
  if (n == 0) return Clear(run.b.info, run.p.batch * int64_t{sizeof(int)}, run.stream);
  int* pivots = run.ints() + 1;
  OFL_RETURN_IF_ERROR(Did(FillIdentity(run.p.batch, n, run.x(0, 0), run.stream)));
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(
        CopyTo(run.first(), run.a(i, n * n), n * n * int64_t{sizeof(T)}, run.stream));
    OFL_RETURN_IF_ERROR(SolverStatus(run.f.Getrf(run.solver, AsInt(n), AsInt(n), run.first(), Ld(n),
                                                 run.work(), pivots, run.b.info + i),
                                     "getrf"));
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Getrs(run.solver, CUBLAS_OP_N, AsInt(n), AsInt(n), run.first(), Ld(n),
                                 pivots, run.x(i, n * n), Ld(n), run.ints()),
                     "getrs"));
  }
  return OkStatus();
}

template <class T>
Status RunDeterminant(const LinalgRun<T>& run) {
  const int64_t n = run.p.n;
  for (int64_t i = 0; n > 0 && i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(Factor(run, i, run.b.pivots + i * n, run.ints()));
    OFL_RETURN_IF_ERROR(Did(TransposeMatrix(n, n, run.first(), run.x(i, n * n), run.stream)));
  }
  return Did(Determinants(run.p.batch, n, static_cast<const T*>(run.x(0, 0)), run.b.pivots,
                          run.s(0, 0), static_cast<T*>(run.b.z), run.stream));
}

template <class T>
Status RunCholesky(const LinalgRun<T>& run) {
  const int64_t n = run.p.n, batch = run.p.batch;
  if (n == 0) return Clear(run.b.info, batch * int64_t{sizeof(int)}, run.stream);
  OFL_RETURN_IF_ERROR(CopyTo(run.b.x, run.b.a, batch * n * n * int64_t{sizeof(T)}, run.stream));
  for (int64_t i = 0; i < batch; ++i) {
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Potrf(run.solver, TriangleOf(run.p), AsInt(n), run.x(i, n * n), Ld(n),
                                 run.work(), run.space.elements, run.b.info + i),
                     "potrf"));
  }
  return Did(KeepTriangle(batch, n, run.p.upper, run.x(0, 0), run.stream));
}

// X^T A^T = B^T
template <class T>
Status RunTriangularSolve(const LinalgRun<T>& run) {
  const int64_t n = run.p.n, k = run.p.k;
  if (n * k == 0) return OkStatus();
  OFL_RETURN_IF_ERROR(
      CopyTo(run.b.x, run.b.b, run.p.batch * n * k * int64_t{sizeof(T)}, run.stream));
  const T one = 1;
  for (int64_t i = 0; i < run.p.batch; ++i) {
    OFL_RETURN_IF_ERROR(
        SolverStatus(run.f.Trsm(run.blas, CUBLAS_SIDE_RIGHT, TriangleOf(run.p), CUBLAS_OP_N,
                                run.p.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, AsInt(k),
                                AsInt(n), &one, run.a(i, n * n), Ld(n), run.x(i, n * k), Ld(k)),
                     "trsm"));
  }
  return OkStatus();
}

#define OFL_INSTANCES(T)                                                                   \
  template StatusOr<LinalgSpace> SpaceOf<T>(const SolverFunctions<T>&, cusolverDnHandle_t, \
                                            const LinalgProblem&);                         \
  template Status RunLu<T>(const LinalgRun<T>&);                                           \
  template Status RunPermutation<T>(const LinalgRun<T>&);                                  \
  template Status RunSolve<T>(const LinalgRun<T>&);                                        \
  template Status RunLuSolve<T>(const LinalgRun<T>&);                                      \
  template Status RunInverse<T>(const LinalgRun<T>&);                                      \
  template Status RunDeterminant<T>(const LinalgRun<T>&);                                  \
  template Status RunCholesky<T>(const LinalgRun<T>&);                                     \
  template Status RunTriangularSolve<T>(const LinalgRun<T>&)
OFL_INSTANCES(float);
OFL_INSTANCES(double);

}  // namespace oneflow_lite::cuda
